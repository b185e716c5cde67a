/**
 * The types of a sending domain and its DKIM keys, and the changes that the results of DNS checks cause. Pure.
 *
 * Guarantees: a failed lookup changes nothing. A domain whose RSA record is missing causes a warning immediately.
 * Only a check after the grace period blocks the domain. A key signs only after its record was found. The record of a
 * retiring key is checked until no message signed with the key can still be in transit.
 */

/** Signature algorithm of a DKIM key (RFC 6376, RFC 8463). */
export type DkimAlgorithm = 'rsa' | 'ed25519';

export interface DkimKey {
  readonly selector: string;
  readonly algorithm: DkimAlgorithm;
  /** The public key in base64, as in the tag `p=` of the record. */
  readonly publicKey: string;
  /** The encrypted private key (secret.ts), base64url. */
  readonly sealed: string;
  /**
   * `staged`: the record of the key has not been found in DNS yet. `active`: the key signs. `retiring`: the record of
   * the key is required until `retireAt`.
   */
  readonly state: 'staged' | 'active' | 'retiring';
  /** All times of a key are in milliseconds since the epoch. */
  readonly createdAt: number;
  readonly activatedAt: number | null;
  /** The time when the key and its record can be removed; null unless the key is retiring. */
  readonly retireAt: number | null;
}

export type DomainStatus = 'pending' | 'authenticated' | 'failing';

/** The return path of a sending domain: the domain of the envelope sender of its messages. */
export interface ReturnPath {
  /** Lower-case A-labels. */
  readonly name: string;
  /**
   * True if the last answered checks found the MX record and the SPF record of the return path. Messages use only a
   * verified return path.
   */
  readonly isVerified: boolean;
}

export interface SendingDomain {
  readonly id: number;
  /** The revision increases with every change. An update that was computed from another revision is stale. */
  readonly revision: number;
  readonly accountId: number;
  /** Lower-case A-labels. */
  readonly name: string;
  /** True if subdomains of the domain can also send. */
  readonly subdomains: boolean;
  /** Null if messages of the domain use the return path of the installation. */
  readonly returnPath: ReturnPath | null;
  readonly status: DomainStatus;
  readonly createdAt: number;
  /** The time of the last check that DNS answered. */
  readonly checkedAt: number | null;
  /** The time when the domain last became authenticated; null if it was never authenticated. */
  readonly authenticatedAt: number | null;
  readonly failingSince: number | null;
  /** The selectors whose records were found by the last check that DNS answered. */
  readonly published: readonly string[];
  readonly keys: readonly DkimKey[];
}

export interface DnsRecord {
  readonly purpose: 'dkim' | 'spf' | 'dmarc' | 'return-path' | 'provider';
  /** `SES` is not a DNS record type: it means the status of the domain at the provider. */
  readonly type: 'TXT' | 'CNAME' | 'MX' | 'SES';
  /** The fully qualified domain name, without the final dot. */
  readonly name: string;
  /**
   * The value as in a zone file, in one string without quotes. Domain names in the value have no final dot, for example
   * `10 mx.example.com` for MX.
   */
  readonly value: string;
}

export interface RecordCheck extends DnsRecord {
  /** `unknown`: the lookup failed. A failed lookup is never treated as `missing`. */
  readonly found: 'found' | 'missing' | 'wrong' | 'unknown';
  /** The values that DNS returned at this name for this purpose. */
  readonly seen: readonly string[];
  /** One line for the operator: the found value, the expected value and the remedy. */
  readonly detail: string;
}

/** The time for which a domain can send after the first check that found its RSA record missing or wrong. */
export const GRACE_PERIOD_MS = 72 * 3_600_000;
/**
 * The time for which the record of a key is required after the last attempt, because other servers queue messages and
 * verify signatures later.
 */
const RECORD_RETENTION_MS = 48 * 3_600_000;

export interface CheckEvaluation {
  readonly status: DomainStatus;
  readonly checkedAt: number | null;
  readonly authenticatedAt: number | null;
  readonly failingSince: number | null;
  /**
   * `lost`: the record is missing and the grace period begins. `blocked`: the grace period has ended. `recovered`: the
   * record exists again. Null: no change.
   */
  readonly event: 'authenticated' | 'lost' | 'blocked' | 'recovered' | null;
  /** One line for each record whose result is `missing`, `wrong` or `unknown`. */
  readonly warnings: readonly string[];
}

/** Returns the name of the DNS record of a key (RFC 6376 section 3.6.2.1). */
export function getDkimRecordName(domain: string, selector: string): string {
  return `${selector}._domainkey.${domain}`;
}

/**
 * Evaluates the checks of the records of a domain. Only the record of the active RSA key determines the status, because
 * every verifier supports RSA. All other records cause only warnings. An Ed25519 key is used in addition to an RSA key
 * (RFC 8463 section 3), because some verifiers do not support Ed25519.
 */
export function evaluateChecks(domain: SendingDomain, checks: readonly RecordCheck[], now: number): CheckEvaluation {
  const { status, checkedAt, authenticatedAt, failingSince } = domain;
  const warnings = checks.filter((check) => check.found !== 'found').map((check) => `${check.name}: ${check.detail}`);
  const activeRsaKeys = domain.keys.filter((key) => key.state === 'active' && key.algorithm === 'rsa');
  const keyResults = activeRsaKeys.map((key) => findDkimCheck(domain, key, checks)?.found ?? 'unknown');
  const isRecordLost = keyResults.length === 0 || keyResults.some((found) => found === 'missing' || found === 'wrong');
  if (!isRecordLost && keyResults.includes('unknown')) {
    return { status, checkedAt, authenticatedAt, failingSince, event: null, warnings };
  }
  if (!isRecordLost) {
    const event = status === 'pending' ? 'authenticated' : status === 'failing' ? 'recovered' : null;
    const newAuthenticatedAt = event === null ? authenticatedAt : now;
    return {
      status: 'authenticated',
      checkedAt: now,
      authenticatedAt: newAuthenticatedAt,
      failingSince: null,
      event,
      warnings,
    };
  }
  if (authenticatedAt === null) {
    return { status: 'pending', checkedAt: now, authenticatedAt, failingSince: null, event: null, warnings };
  }
  const newFailingSince = failingSince ?? now;
  const isGracePeriodOver = now >= newFailingSince + GRACE_PERIOD_MS;
  const event = status !== 'failing' ? 'lost' : isGracePeriodOver && maySend(domain) ? 'blocked' : null;
  return { status: 'failing', checkedAt: now, authenticatedAt, failingSince: newFailingSince, event, warnings };
}

function findDkimCheck(domain: SendingDomain, key: DkimKey, checks: readonly RecordCheck[]): RecordCheck | undefined {
  const name = getDkimRecordName(domain.name, key.selector);
  return checks.find((check) => check.purpose === 'dkim' && check.name === name);
}

/**
 * Returns true if messages of the domain are accepted and sent. The end of the grace period alone does not block a
 * domain. A later check must confirm that the record is still missing.
 */
export function maySend({
  status,
  checkedAt,
  failingSince,
}: Pick<SendingDomain, 'status' | 'checkedAt' | 'failingSince'>): boolean {
  switch (status) {
    case 'authenticated':
      return true;
    case 'failing':
      return failingSince === null || checkedAt === null || checkedAt < failingSince + GRACE_PERIOD_MS;
    case 'pending':
      return false;
  }
}

/**
 * Returns the keys that sign: first the active RSA keys, then the active Ed25519 keys with a published record (RFC 8463
 * section 4). An RSA key also signs during the grace period, because its record may be published again before the
 * receiving server verifies the signature.
 */
export function getSigningKeys({ keys, published }: Pick<SendingDomain, 'keys' | 'published'>): readonly DkimKey[] {
  const activeKeys = keys.filter((key) => key.state === 'active');
  const publishedEd25519Keys = activeKeys.filter(
    (key) => key.algorithm === 'ed25519' && published.includes(key.selector),
  );
  return [...activeKeys.filter((key) => key.algorithm === 'rsa'), ...publishedEd25519Keys];
}

/** Returns the selectors of `keys` whose records were found by these checks. */
export function findPublishedSelectors(
  domain: string,
  keys: readonly DkimKey[],
  checks: readonly RecordCheck[],
): readonly string[] {
  const foundRecordNames = new Set(
    checks.filter((check) => check.purpose === 'dkim' && check.found === 'found').map(({ name }) => name),
  );
  return keys
    .map(({ selector }) => selector)
    .filter((selector) => foundRecordNames.has(getDkimRecordName(domain, selector)));
}

/**
 * Returns true if these checks found the MX record and the SPF record of the return path. Bounces must have a
 * destination, and SPF must authenticate the domain of the return path.
 */
export function isReturnPathVerified(name: string, checks: readonly RecordCheck[]): boolean {
  const isFound = (purpose: DnsRecord['purpose'], type: DnsRecord['type']) =>
    checks.some(
      (check) => check.purpose === purpose && check.type === type && check.name === name && check.found === 'found',
    );
  return isFound('return-path', 'MX') && isFound('spf', 'TXT');
}

/** The change that a check causes to a return path: `lost` if one of its records is no longer found. */
export type ReturnPathChange = 'verified' | 'lost';

/**
 * Returns the change that these checks caused to the return path. Null if the state of the return path did not change,
 * or if the checks do not contain its records.
 */
export function findReturnPathChange(
  { returnPath: before }: Pick<SendingDomain, 'returnPath'>,
  { returnPath: after }: Pick<SendingDomain, 'returnPath'>,
  checks: readonly RecordCheck[],
): ReturnPathChange | null {
  if (before === null || after === null) return null;
  if (!checks.some(({ purpose, name }) => purpose === 'return-path' && name === after.name)) return null;
  if (before.name !== after.name || before.isVerified === after.isVerified) return null;
  return after.isVerified ? 'verified' : 'lost';
}

/** A change of a domain by an operator. An absent member does not change. */
export interface DomainChange {
  readonly subdomains?: boolean;
  /** The name of the return path in lower-case A-labels. Null removes the return path. */
  readonly returnPath?: string | null;
}

/** Returns the last answered check of each record. A failed lookup does not replace an earlier answer. */
export function keepLastAnsweredChecks(
  earlierChecks: readonly RecordCheck[],
  checks: readonly RecordCheck[],
): readonly RecordCheck[] {
  return checks.map((check) => {
    if (check.found !== 'unknown') return check;
    const { type, name, value } = check;
    return (
      earlierChecks.find(
        (earlierCheck) => earlierCheck.type === type && earlierCheck.name === name && earlierCheck.value === value,
      ) ?? check
    );
  });
}

export type Rotation =
  | { readonly kind: 'staged'; readonly keys: readonly DkimKey[] }
  /** `in-progress`: an earlier rotation is not complete. The keys with these selectors are still staged. */
  | { readonly kind: 'in-progress'; readonly selectors: readonly string[] };

/** Adds new keys as staged keys. Fails if the domain already has staged keys. */
export function beginRotation(domain: Pick<SendingDomain, 'keys'>, newKeys: readonly DkimKey[]): Rotation {
  const stagedKeys = domain.keys.filter((key) => key.state === 'staged');
  if (stagedKeys.length > 0) return { kind: 'in-progress', selectors: stagedKeys.map((key) => key.selector) };
  return { kind: 'staged', keys: [...domain.keys, ...newKeys.map((key) => ({ ...key, state: 'staged' as const }))] };
}

/** Returns the keys that are not staged, or null if there are no staged keys. */
export function cancelRotation({ keys }: Pick<SendingDomain, 'keys'>): readonly DkimKey[] | null {
  const remainingKeys = keys.filter((key) => key.state !== 'staged');
  return remainingKeys.length === keys.length ? null : remainingKeys;
}

/**
 * Returns the keys after a DNS check. A staged key whose record was found becomes active, and the earlier active key of
 * the same algorithm becomes `retiring`. `maxAgeMs` is the maximum age of a message. Returns `domain.keys` itself if
 * nothing changes.
 */
export function advanceRotation(
  domain: SendingDomain,
  checks: readonly RecordCheck[],
  now: number,
  maxAgeMs: number,
): readonly DkimKey[] {
  const publishedKeys = domain.keys.filter(
    (key) => key.state === 'staged' && findDkimCheck(domain, key, checks)?.found === 'found',
  );
  if (publishedKeys.length === 0) return domain.keys;
  return domain.keys.map((key) => {
    if (publishedKeys.includes(key)) return { ...key, state: 'active', activatedAt: now };
    if (key.state === 'active' && publishedKeys.some((publishedKey) => publishedKey.algorithm === key.algorithm)) {
      return { ...key, state: 'retiring', retireAt: now + maxAgeMs + RECORD_RETENTION_MS };
    }
    return key;
  });
}

/**
 * Removes the keys whose retirement has ended. Returns `keys` itself if no retirement has ended. The DNS records of the
 * removed keys are no longer required.
 */
export function removeRetiredKeys(keys: readonly DkimKey[], now: number): readonly DkimKey[] {
  const hasRetired = (key: DkimKey) => key.state === 'retiring' && key.retireAt !== null && now >= key.retireAt;
  return keys.some(hasRetired) ? keys.filter((key) => !hasRetired(key)) : keys;
}

/** The values that a check of the records of a domain writes to the store. */
export interface DomainUpdate {
  readonly id: number;
  readonly status: SendingDomain['status'];
  readonly checkedAt: number | null;
  readonly authenticatedAt: number | null;
  readonly failingSince: number | null;
  /** An `unknown` check does not replace the last answered check of its record. */
  readonly checks: readonly RecordCheck[];
  /**
   * The revision of the domain from which the update was computed. If the domain has another revision, the update is
   * `stale` and changes nothing.
   */
  readonly revision: number;
  /** All keys that the domain has after the update. The store deletes every other key of the domain. */
  readonly keys: readonly DkimKey[];
}

/**
 * Returns the sending domain with this name. If no domain has this name, returns the nearest stored parent domain.
 * Returns null if neither exists, if another account owns the found domain, or if the parent does not allow subdomains.
 * `name` is in lower-case A-labels. `findByName` returns the stored domain with exactly this name.
 */
export function findSendingDomain(
  findByName: (name: string) => SendingDomain | undefined,
  accountId: number,
  name: string,
): SendingDomain | null {
  const exactDomain = findByName(name);
  if (exactDomain !== undefined) return exactDomain.accountId === accountId ? exactDomain : null;
  for (let dotIndex = name.indexOf('.'); dotIndex >= 0; dotIndex = name.indexOf('.', dotIndex + 1)) {
    const parentDomain = findByName(name.slice(dotIndex + 1));
    if (parentDomain !== undefined)
      return parentDomain.accountId === accountId && parentDomain.subdomains ? parentDomain : null;
  }
  return null;
}

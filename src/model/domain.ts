/**
 * A sending domain, its DKIM keys, and how the result of a DNS check changes them. Pure.
 *
 * Guarantees: a failed lookup changes nothing. A domain whose RSA record is missing causes a warning at once and is blocked only by
 * a check after the grace period. A key signs only after its record was found. Its record is checked until no message signed with
 * it can still be on its way.
 */

/** Signature algorithm of a DKIM key (RFC 6376, RFC 8463). */
export type DkimAlgorithm = 'rsa' | 'ed25519';

export interface DkimKey {
  readonly selector: string;
  readonly algorithm: DkimAlgorithm;
  /** Base64, as `p=` has it. */
  readonly publicKey: string;
  /** The private key, sealed (secret.ts), base64url. */
  readonly sealed: string;
  /** `staged`: to be published, does not sign yet. `active`: signs. `retiring`: its record is needed until `retireAt`. */
  readonly state: 'staged' | 'active' | 'retiring';
  /** Milliseconds since the epoch, here and below. */
  readonly createdAt: number;
  readonly activatedAt: number | null;
  /** When key and record can be removed; null unless retiring. */
  readonly retireAt: number | null;
}

export type DomainStatus = 'pending' | 'authenticated' | 'failing';

export interface SendingDomain {
  readonly id: number;
  /** Grows with every change. An update that was computed from another revision is stale. */
  readonly revision: number;
  readonly accountId: number;
  /** Lower-case A-labels. */
  readonly name: string;
  /** True if its subdomains can send too. */
  readonly subdomains: boolean;
  readonly status: DomainStatus;
  readonly createdAt: number;
  /** The last check that DNS answered. */
  readonly checkedAt: number | null;
  /** When it last became authenticated; null if it never was. */
  readonly authenticatedAt: number | null;
  readonly failingSince: number | null;
  /** Selectors whose records were found by the last check that was answered. */
  readonly published: readonly string[];
  readonly keys: readonly DkimKey[];
}

export interface DnsRecord {
  readonly purpose: 'dkim' | 'spf' | 'dmarc' | 'return-path' | 'provider';
  /** `SES` is not a DNS record but the status of the domain at the provider. */
  readonly type: 'TXT' | 'CNAME' | 'MX' | 'SES';
  /** Fully qualified, without the last dot. */
  readonly name: string;
  /** The value as in a zone, but unquoted and in one string; names without the last dot; `10 mx.example.com` for MX. */
  readonly value: string;
}

export interface RecordCheck extends DnsRecord {
  /** `unknown`: the lookup failed. It is never treated as `missing`. */
  readonly found: 'found' | 'missing' | 'wrong' | 'unknown';
  /** The values that DNS has at this name for this purpose. */
  readonly seen: readonly string[];
  /** One line for the operator: what was found, what was expected, what to do. */
  readonly detail: string;
}

/** How long a domain can still send after its records were lost. */
export const GRACE_PERIOD_MS = 72 * 3_600_000;
/** How long a record is needed after the last attempt: messages wait in other servers' queues, and verifiers check again for days. */
const RECORD_RETENTION_MS = 48 * 3_600_000;

export interface CheckEvaluation {
  readonly status: DomainStatus;
  readonly checkedAt: number | null;
  readonly authenticatedAt: number | null;
  readonly failingSince: number | null;
  /** `lost`: the grace period begins; `blocked`: the grace period is over; `recovered`: after `lost`; null: no change. */
  readonly event: 'authenticated' | 'lost' | 'blocked' | 'recovered' | null;
  /** One line for each record that is missing, wrong or unknown. */
  readonly warnings: readonly string[];
}

/** The name of a key's record (RFC 6376 section 3.6.2.1). */
export function dkimRecordName(domain: string, selector: string): string {
  return `${selector}._domainkey.${domain}`;
}

/**
 * Evaluates the checks of a domain's records. The record of the active RSA key decides, because every verifier supports RSA; all
 * other records only cause warnings (RFC 8463 section 3: Ed25519 is used beside RSA while some verifiers do not support it).
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
    const since = event === null ? authenticatedAt : now;
    return { status: 'authenticated', checkedAt: now, authenticatedAt: since, failingSince: null, event, warnings };
  }
  if (authenticatedAt === null) {
    return { status: 'pending', checkedAt: now, authenticatedAt, failingSince: null, event: null, warnings };
  }
  const since = failingSince ?? now;
  const isGraceOver = now >= since + GRACE_PERIOD_MS;
  const event = status !== 'failing' ? 'lost' : isGraceOver && maySend(domain) ? 'blocked' : null;
  return { status: 'failing', checkedAt: now, authenticatedAt, failingSince: since, event, warnings };
}

function findDkimCheck(domain: SendingDomain, key: DkimKey, checks: readonly RecordCheck[]): RecordCheck | undefined {
  const name = dkimRecordName(domain.name, key.selector);
  return checks.find((check) => check.purpose === 'dkim' && check.name === name);
}

/**
 * True if messages of the domain are accepted and sent. Time alone blocks nothing: a check after the grace period must find that
 * the record is still missing.
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
 * The keys that sign: RSA first, which every verifier knows, Ed25519 beside it (RFC 8463 section 4) while its record is
 * there. The RSA key signs through the grace too: its record may be back before the message is read.
 */
export function signingKeys({ keys, published }: Pick<SendingDomain, 'keys' | 'published'>): readonly DkimKey[] {
  const active = keys.filter((key) => key.state === 'active');
  const publishedEd25519Keys = active.filter((key) => key.algorithm === 'ed25519' && published.includes(key.selector));
  return [...active.filter((key) => key.algorithm === 'rsa'), ...publishedEd25519Keys];
}

/** The selectors of `keys` whose records these checks found. */
export function publishedSelectors(
  domain: string,
  keys: readonly DkimKey[],
  checks: readonly RecordCheck[],
): readonly string[] {
  const names = new Set(
    checks.filter((check) => check.purpose === 'dkim' && check.found === 'found').map(({ name }) => name),
  );
  return keys.map(({ selector }) => selector).filter((selector) => names.has(dkimRecordName(domain, selector)));
}

/** The last answer about each record: a lookup that failed leaves the one of before. */
export function lastAnsweredChecks(
  earlierChecks: readonly RecordCheck[],
  checks: readonly RecordCheck[],
): readonly RecordCheck[] {
  return checks.map((check) => {
    if (check.found !== 'unknown') return check;
    const { type, name, value } = check;
    return (
      earlierChecks.find((earlier) => earlier.type === type && earlier.name === name && earlier.value === value) ??
      check
    );
  });
}

export type Rotation =
  | { readonly kind: 'staged'; readonly keys: readonly DkimKey[] }
  /** An earlier rotation has not ended: the keys with these selectors wait for their records. */
  | { readonly kind: 'underway'; readonly selectors: readonly string[] };

/** Adds new keys, which wait for their records, to those that sign. */
export function beginRotation(domain: Pick<SendingDomain, 'keys'>, newKeys: readonly DkimKey[]): Rotation {
  const stagedKeys = domain.keys.filter((key) => key.state === 'staged');
  if (stagedKeys.length > 0) return { kind: 'underway', selectors: stagedKeys.map((key) => key.selector) };
  return { kind: 'staged', keys: [...domain.keys, ...newKeys.map((key) => ({ ...key, state: 'staged' as const }))] };
}

/** The keys without those that wait for their records; null where none does. */
export function cancelRotation({ keys }: Pick<SendingDomain, 'keys'>): readonly DkimKey[] | null {
  const remainingKeys = keys.filter((key) => key.state !== 'staged');
  return remainingKeys.length === keys.length ? null : remainingKeys;
}

/**
 * The keys after a DNS check: a staged key whose record was found becomes active, and the active key of the same algorithm retires.
 * `maxAgeMs` is the maximum age of a message. Returns the same list if nothing changes.
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

/** The keys without those that have retired, whose records can be removed from DNS; the same list if none has. */
export function removeRetiredKeys(keys: readonly DkimKey[], now: number): readonly DkimKey[] {
  const hasRetired = (key: DkimKey) => key.state === 'retiring' && key.retireAt !== null && now >= key.retireAt;
  return keys.some(hasRetired) ? keys.filter((key) => !hasRetired(key)) : keys;
}

/** What a check of a domain's records writes to the store. */
export interface DomainUpdate {
  readonly id: number;
  readonly status: SendingDomain['status'];
  readonly checkedAt: number | null;
  readonly authenticatedAt: number | null;
  readonly failingSince: number | null;
  /** An `unknown` check leaves the last answered check of its record in place. */
  readonly checks: readonly RecordCheck[];
  /** The revision that it was computed from. If the domain has another one by then, the update is `stale` and changes nothing. */
  readonly revision: number;
  /** All keys of the domain. A key that is not listed is deleted. */
  readonly keys: readonly DkimKey[];
}

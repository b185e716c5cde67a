/**
 * A sending domain, its DKIM keys, and the changes that DNS checks cause. A failed lookup changes nothing, only a check
 * after the grace period blocks the domain, and a key signs only after its record was found. Pure.
 */

/** RFC 6376, RFC 8463. */
export type DkimAlgorithm = 'rsa' | 'ed25519';

export interface DkimKey {
  readonly selector: string;
  readonly algorithm: DkimAlgorithm;
  /** In base64, as in the tag `p=`. */
  readonly publicKey: string;
  /** The encrypted private key (secret.ts), base64url. */
  readonly sealed: string;
  /** `staged`: not found in DNS yet. `active`: signs. `retiring`: its record is required until `retireAt`. */
  readonly state: 'staged' | 'active' | 'retiring';
  readonly createdAt: number;
  readonly activatedAt: number | null;
  readonly retireAt: number | null;
}

export type DomainStatus = 'pending' | 'authenticated' | 'failing';

/** The domain of the envelope sender. */
export interface ReturnPath {
  /** Lower-case A-labels. */
  readonly name: string;
  /** The last answered checks found its MX and SPF records. Messages use only a verified return path. */
  readonly isVerified: boolean;
}

export interface SendingDomain {
  readonly id: number;
  /** An update that was computed from another revision is stale. */
  readonly revision: number;
  readonly accountId: number;
  /** Lower-case A-labels. */
  readonly name: string;
  readonly subdomains: boolean;
  /** Null: the return path of the installation. */
  readonly returnPath: ReturnPath | null;
  readonly status: DomainStatus;
  readonly createdAt: number;
  /** The last check that DNS answered. */
  readonly checkedAt: number | null;
  /** When the domain last became authenticated; null if never. */
  readonly authenticatedAt: number | null;
  readonly failingSince: number | null;
  /** The selectors that the last answered check found. */
  readonly published: readonly string[];
  readonly keys: readonly DkimKey[];
}

export interface DnsRecord {
  readonly purpose: 'dkim' | 'spf' | 'dmarc' | 'return-path' | 'provider';
  /** `SES` is not a DNS record type: it means the status of the domain at the provider. */
  readonly type: 'TXT' | 'CNAME' | 'MX' | 'SES';
  /** Fully qualified, without the final dot. */
  readonly name: string;
  /** As in a zone file, in one string without quotes and final dots, such as `10 mx.example.com`. */
  readonly value: string;
}

export interface RecordCheck extends DnsRecord {
  /** `unknown`: the lookup failed. A failed lookup is never treated as `missing`. */
  readonly found: 'found' | 'missing' | 'wrong' | 'unknown';
  readonly seen: readonly string[];
  /** One line: the found value, the expected value and the remedy. */
  readonly detail: string;
}

/** How long a domain can send after the first check that found its RSA record missing or wrong. */
export const GRACE_PERIOD_MS = 72 * 3_600_000;
/** Other servers queue messages and verify signatures later. */
const RECORD_RETENTION_MS = 48 * 3_600_000;

type CheckedMembers = 'status' | 'checkedAt' | 'authenticatedAt' | 'failingSince';

export interface CheckEvaluation extends Pick<SendingDomain, CheckedMembers> {
  /** `lost`: the grace period begins. `blocked`: it has ended. `recovered`: the record exists again. */
  readonly event: 'authenticated' | 'lost' | 'blocked' | 'recovered' | null;
  readonly warnings: readonly string[];
}

/** RFC 6376 section 3.6.2.1. */
export function getDkimRecordName(domain: string, selector: string): string {
  return `${selector}._domainkey.${domain}`;
}

/** Only the active RSA key decides: every verifier supports RSA, and Ed25519 is in addition (RFC 8463 section 3). */
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

/** The end of the grace period alone does not block a domain: a later check must confirm that the record is missing. */
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

/** RSA first (RFC 8463 section 4), also in the grace period: its record may return before the receiver verifies. */
export function getSigningKeys({ keys, published }: Pick<SendingDomain, 'keys' | 'published'>): readonly DkimKey[] {
  const activeKeys = keys.filter((key) => key.state === 'active');
  const publishedEd25519Keys = activeKeys.filter(
    (key) => key.algorithm === 'ed25519' && published.includes(key.selector),
  );
  return [...activeKeys.filter((key) => key.algorithm === 'rsa'), ...publishedEd25519Keys];
}

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

/** Bounces must have a destination, and SPF must authenticate the domain. */
export function isReturnPathVerified(name: string, checks: readonly RecordCheck[]): boolean {
  const isFound = (purpose: DnsRecord['purpose'], type: DnsRecord['type']) =>
    checks.some(
      (check) => check.purpose === purpose && check.type === type && check.name === name && check.found === 'found',
    );
  return isFound('return-path', 'MX') && isFound('spf', 'TXT');
}

export type ReturnPathChange = 'verified' | 'lost';

/** Null if nothing changed, or if the checks do not contain its records. */
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

/** An absent member does not change. */
export interface DomainChange {
  readonly subdomains?: boolean;
  /** Null removes the return path. */
  readonly returnPath?: string | null;
}

/** A failed lookup does not replace an earlier answer. */
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
  /** An earlier rotation is not complete. */
  | { readonly kind: 'in-progress'; readonly selectors: readonly string[] };

export function beginRotation(domain: Pick<SendingDomain, 'keys'>, newKeys: readonly DkimKey[]): Rotation {
  const stagedKeys = domain.keys.filter((key) => key.state === 'staged');
  if (stagedKeys.length > 0) return { kind: 'in-progress', selectors: stagedKeys.map((key) => key.selector) };
  return { kind: 'staged', keys: [...domain.keys, ...newKeys.map((key) => ({ ...key, state: 'staged' as const }))] };
}

/** Null if there are no staged keys. */
export function cancelRotation({ keys }: Pick<SendingDomain, 'keys'>): readonly DkimKey[] | null {
  const remainingKeys = keys.filter((key) => key.state !== 'staged');
  return remainingKeys.length === keys.length ? null : remainingKeys;
}

/** An active key retires when a staged key of its algorithm is found. Returns `domain.keys` if nothing changes. */
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

/** Returns `keys` itself if no retirement has ended. */
export function removeRetiredKeys(keys: readonly DkimKey[], now: number): readonly DkimKey[] {
  const hasRetired = (key: DkimKey) => key.state === 'retiring' && key.retireAt !== null && now >= key.retireAt;
  return keys.some(hasRetired) ? keys.filter((key) => !hasRetired(key)) : keys;
}

/** The store deletes every key of the domain that is not in `keys`. */
export interface DomainUpdate extends Pick<SendingDomain, 'id' | 'revision' | 'keys' | CheckedMembers> {
  /** An `unknown` check does not replace the last answered check of its record. */
  readonly checks: readonly RecordCheck[];
}

/** The domain of this name, or its nearest stored parent if that allows subdomains and the account owns it. */
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

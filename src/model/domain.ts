/**
 * A sending domain and its keys: what they are, and how a look at DNS changes them. Pure; the store keeps them, the
 * resolver looks, and whoever re-verifies in the background puts the two together.
 *
 * Promises: a lookup that failed changes nothing; a domain whose RSA record is gone is warned about at once and refused
 * only by an answer after the grace; a key signs only once its record has been seen, and its record is asked for until no message
 * signed with it can still be under way.
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
  /** `staged`: to be published, not signing yet. `active`: signs. `retiring`: its record stays until `retireAt`. */
  readonly state: 'staged' | 'active' | 'retiring';
  /** Milliseconds since the epoch, here and below. */
  readonly createdAt: number;
  readonly activatedAt: number | null;
  /** When key and record may go; null unless retiring. */
  readonly retireAt: number | null;
}

export type DomainStatus = 'pending' | 'authenticated' | 'failing';

export interface SendingDomain {
  readonly id: number;
  /** Grows with every change; an update computed from another one is stale. */
  readonly revision: number;
  readonly accountId: number;
  /** Lower-case A-labels. */
  readonly name: string;
  /** Whether its subdomains may send too; the operator's choice. */
  readonly subdomains: boolean;
  readonly status: DomainStatus;
  readonly createdAt: number;
  /** The last look at DNS that was answered. */
  readonly checkedAt: number | null;
  /** When it last became authenticated; null when it never was. */
  readonly authenticatedAt: number | null;
  readonly failingSince: number | null;
  /** Selectors whose records were found when last a look at them was answered. */
  readonly published: readonly string[];
  readonly keys: readonly DkimKey[];
}

export interface DnsRecord {
  readonly purpose: 'dkim' | 'spf' | 'dmarc' | 'return-path' | 'provider';
  /** `SES` is no record but the provider's own view of the domain. */
  readonly type: 'TXT' | 'CNAME' | 'MX' | 'SES';
  /** Fully qualified, without the last dot. */
  readonly name: string;
  /** As a zone has it, but unquoted and in one piece; names without the last dot; `10 mx.example.com` for MX. */
  readonly value: string;
}

export interface RecordCheck extends DnsRecord {
  /** `unknown`: the lookup failed, so that nothing is known; it is never taken for `missing`. */
  readonly found: 'found' | 'missing' | 'wrong' | 'unknown';
  /** What DNS has at that name, as far as it bears on the purpose. */
  readonly seen: readonly string[];
  /** One line for the operator: what was seen, what was expected, what to do. */
  readonly detail: string;
}

/** A domain that lost its records goes on sending for so long. */
export const GRACE_PERIOD_MS = 72 * 3_600_000;
/** Mail waits in other servers' queues, and verifiers and archives look again, for days after the last attempt. */
const LINGER_MS = 48 * 3_600_000;

export interface CheckEvaluation {
  readonly status: DomainStatus;
  readonly checkedAt: number | null;
  readonly authenticatedAt: number | null;
  readonly failingSince: number | null;
  /** `lost`: warned about, the grace begins; `blocked`: the grace is over; `recovered`: after `lost`; null: no news. */
  readonly event: 'authenticated' | 'lost' | 'blocked' | 'recovered' | null;
  /** One line for each record that is not as it should be. */
  readonly warnings: readonly string[];
}

/** The name of a key's record (RFC 6376 section 3.6.2.1). */
export function dkimRecordName(domain: string, selector: string): string {
  return `${selector}._domainkey.${domain}`;
}

/**
 * What the checks of a domain's records make of it. The active RSA key decides, which every verifier knows; all else warns
 * (RFC 8463 section 3 has Ed25519 beside it for as long as some verifiers lack it).
 */
export function evaluateChecks(domain: SendingDomain, checks: readonly RecordCheck[], now: number): CheckEvaluation {
  const { status, checkedAt, authenticatedAt, failingSince } = domain;
  const warnings = checks.filter((check) => check.found !== 'found').map((check) => `${check.name}: ${check.detail}`);
  const deciding = domain.keys.filter((key) => key.state === 'active' && key.algorithm === 'rsa');
  const signing = deciding.map((key) => dkimCheckOf(domain, key, checks)?.found ?? 'unknown');
  const lost = signing.length === 0 || signing.some((found) => found === 'missing' || found === 'wrong');
  if (!lost && signing.includes('unknown')) {
    return { status, checkedAt, authenticatedAt, failingSince, event: null, warnings };
  }
  if (!lost) {
    const event = status === 'pending' ? 'authenticated' : status === 'failing' ? 'recovered' : null;
    const since = event === null ? authenticatedAt : now;
    return { status: 'authenticated', checkedAt: now, authenticatedAt: since, failingSince: null, event, warnings };
  }
  if (authenticatedAt === null) {
    return { status: 'pending', checkedAt: now, authenticatedAt, failingSince: null, event: null, warnings };
  }
  const since = failingSince ?? now;
  const over = now >= since + GRACE_PERIOD_MS;
  const event = status !== 'failing' ? 'lost' : over && maySend(domain) ? 'blocked' : null;
  return { status: 'failing', checkedAt: now, authenticatedAt, failingSince: since, event, warnings };
}

function dkimCheckOf(domain: SendingDomain, key: DkimKey, checks: readonly RecordCheck[]): RecordCheck | undefined {
  const name = dkimRecordName(domain.name, key.selector);
  return checks.find((check) => check.purpose === 'dkim' && check.name === name);
}

/**
 * Whether mail of the domain is accepted and sent. Time alone blocks nothing: DNS has to have answered, after the grace,
 * that the record is still gone.
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
  const beside = active.filter((key) => key.algorithm === 'ed25519' && published.includes(key.selector));
  return [...active.filter((key) => key.algorithm === 'rsa'), ...beside];
}

/** The selectors of `keys` whose records these checks found. */
export function publishedSelectors(
  domain: string,
  keys: readonly DkimKey[],
  checks: readonly RecordCheck[],
): readonly string[] {
  const names = new Set(
    checks.filter((one) => one.purpose === 'dkim' && one.found === 'found').map(({ name }) => name),
  );
  return keys.map(({ selector }) => selector).filter((selector) => names.has(dkimRecordName(domain, selector)));
}

/** The last answer about each record: a lookup that failed leaves the one of before. */
export function lastAnsweredChecks(
  before: readonly RecordCheck[],
  checks: readonly RecordCheck[],
): readonly RecordCheck[] {
  return checks.map((check) => {
    if (check.found !== 'unknown') return check;
    const { type, name, value } = check;
    return before.find((one) => one.type === type && one.name === name && one.value === value) ?? check;
  });
}

export type Rotation =
  | { readonly kind: 'staged'; readonly keys: readonly DkimKey[] }
  /** An earlier rotation has not ended: the keys with these selectors wait for their records. */
  | { readonly kind: 'underway'; readonly selectors: readonly string[] };

/** Stages new keys beside those that sign. */
export function beginRotation(domain: Pick<SendingDomain, 'keys'>, fresh: readonly DkimKey[]): Rotation {
  const waiting = domain.keys.filter((key) => key.state === 'staged');
  if (waiting.length > 0) return { kind: 'underway', selectors: waiting.map((key) => key.selector) };
  return { kind: 'staged', keys: [...domain.keys, ...fresh.map((key) => ({ ...key, state: 'staged' as const }))] };
}

/** The keys without those that wait for their records; null where none does. */
export function cancelRotation({ keys }: Pick<SendingDomain, 'keys'>): readonly DkimKey[] | null {
  const kept = keys.filter((key) => key.state !== 'staged');
  return kept.length === keys.length ? null : kept;
}

/**
 * The keys after a look at DNS: a staged key whose record was found signs from now on, and its forerunner of the same
 * algorithm retires. `maxAgeMs` is how long a message is tried. The same list where nothing changes.
 */
export function advanceRotation(
  domain: SendingDomain,
  checks: readonly RecordCheck[],
  now: number,
  maxAgeMs: number,
): readonly DkimKey[] {
  const seen = domain.keys.filter(
    (key) => key.state === 'staged' && dkimCheckOf(domain, key, checks)?.found === 'found',
  );
  if (seen.length === 0) return domain.keys;
  return domain.keys.map((key) => {
    if (seen.includes(key)) return { ...key, state: 'active', activatedAt: now };
    if (key.state === 'active' && seen.some((next) => next.algorithm === key.algorithm)) {
      return { ...key, state: 'retiring', retireAt: now + maxAgeMs + LINGER_MS };
    }
    return key;
  });
}

/** The keys without those whose time is over; the same list where there is none. Their records may be taken out of DNS. */
export function removeRetiredKeys(keys: readonly DkimKey[], now: number): readonly DkimKey[] {
  const over = (key: DkimKey) => key.state === 'retiring' && key.retireAt !== null && now >= key.retireAt;
  return keys.some(over) ? keys.filter((key) => !over(key)) : keys;
}

/** What a check of a domain's records writes down. */
export interface DomainUpdate {
  readonly id: number;
  readonly status: SendingDomain['status'];
  readonly checkedAt: number | null;
  readonly authenticatedAt: number | null;
  readonly failingSince: number | null;
  /** One that is `unknown` leaves the last answer about its record. */
  readonly checks: readonly RecordCheck[];
  /** The domain's revision that it was computed from: where it has another by now, it is `stale` and changes nothing. */
  readonly revision: number;
  /** All keys as they stand now; those left out are deleted. */
  readonly keys: readonly DkimKey[];
}

/**
 * Audit log entries of changes by operators. Given an `Actor`, a store writes the entry in the transaction of the change, so both
 * are stored or neither. `before` and `after` are what that transaction read. No entry contains a secret, the hash of a key or the
 * text of a message.
 */
import type { Account, ApiKey } from './account.ts';
import type { SendingDomain } from './domain.ts';
import type { State } from './message.ts';
import type { Suppression } from './suppression.ts';

/** Who makes a change, and when. */
export interface Actor {
  /** `cli:NAME`, `page` or `token:NAME`. */
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** One change by an operator. It contains no secret. */
export interface AuditEntry {
  readonly id: number;
  readonly at: number;
  /** `cli:NAME`, `page` or `token:NAME`. */
  readonly actor: string;
  /** Such as `account.lock`. */
  readonly action: string;
  /** What was changed: an account's name, a key's number, a domain, an address. */
  readonly target: string;
  /** The values before and after the change, as JSON; null if there is none. */
  readonly before: string | null;
  readonly after: string | null;
}

export type NewAuditEntry = Omit<AuditEntry, 'id'>;

/** Makes the entry of a change; `before` and `after` are written as JSON. */
export function auditEntry(
  { name: actor, at }: Actor,
  action: string,
  target: string,
  before: unknown,
  after: unknown,
): NewAuditEntry {
  return { at, actor, action, target, before: json(before), after: json(after) };
}

function json(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}

export function auditedAccount({ limits, locked, thresholds }: Account) {
  return { limits, locked: locked?.reason ?? null, thresholds };
}

/** Leaves out the hash. */
export function auditedKey({ id, name, prefix, expiresAt, revokedAt }: ApiKey) {
  return { id: `key_${id}`, name, prefix, expiresAt, revokedAt };
}

/** Leaves out the keys themselves. */
export function auditedDomain({ status, subdomains, keys }: SendingDomain) {
  return { status, subdomains, keys: keys.map(({ selector, state }) => `${selector} ${state}`) };
}

/** True if a check or a rotation changed something that an entry shows. */
export function auditedDomainDiffers(before: SendingDomain, after: SendingDomain): boolean {
  return json(auditedDomain(before)) !== json(auditedDomain(after));
}

export function auditedMessage(state: State, dueAt: number | null) {
  return { state, dueAt };
}

/** One batch of an import, and the progress of the import after it. */
export interface ImportStep {
  /** The entry that the first batch has written; null for the first batch. */
  readonly entry: number | null;
  /** Of the whole file. */
  readonly bytes: number;
  /** Rows of this batch, those that were skipped among them. */
  readonly read: number;
  readonly skipped: number;
  /** Null while further batches follow. */
  readonly end: 'complete' | 'stopped' | null;
}

interface ImportCounts {
  readonly read: number;
  readonly added: number;
  readonly skipped: number;
}

/**
 * What the entry of an import shows after a batch that added `added` addresses. `shown` is what the entry showed before, JSON that
 * this function made, or null for a new entry. The counts are those of the committed batches, so the entry of an import that was
 * killed is true; it keeps the member `unfinished`.
 */
export function auditedImport(storedEntry: string | null, { bytes, read, skipped, end }: ImportStep, added: number) {
  const before: ImportCounts = storedEntry === null ? { read: 0, added: 0, skipped: 0 } : JSON.parse(storedEntry);
  const counts = { read: before.read + read, added: before.added + added, skipped: before.skipped + skipped };
  return {
    read: counts.read,
    added: counts.added,
    known: counts.read - counts.added - counts.skipped,
    skipped: counts.skipped,
    bytes,
    ...(end === null ? { unfinished: true } : end === 'stopped' ? { stopped: true } : {}),
  };
}

/** The number of addresses that an entry names. The others are only counted. */
const MAX_NAMED_ADDRESSES = 5;

export function auditedSuppressions(added: number, entries: readonly Suppression[]) {
  const addresses = entries.slice(0, MAX_NAMED_ADDRESSES).map(({ address }) => address);
  return {
    added,
    addresses,
    ...(entries.length > MAX_NAMED_ADDRESSES ? { andMore: entries.length - MAX_NAMED_ADDRESSES } : {}),
  };
}

// The differences between the values before and after a change, member by member.

export interface DifferenceLine {
  /** In words, for example `limits: volume expires`. */
  readonly member: string;
  /** Null if there was, or is, no value. */
  readonly before: string | null;
  readonly after: string | null;
}

/** How times (ms since the epoch) and durations (ms) are formatted. */
export interface DifferenceFormat {
  readonly time: (ms: number) => string;
  readonly duration: (ms: number) => string;
}

/** The members that differ; all members if there is no value before or after. */
export function listDifferences(before: unknown, after: unknown, format: DifferenceFormat): readonly DifferenceLine[] {
  const [beforeMembers, afterMembers] = [flattenMembers(before, format), flattenMembers(after, format)];
  return [...new Set([...beforeMembers.keys(), ...afterMembers.keys()])]
    .map((member) => ({
      member: memberLabel(member),
      before: beforeMembers.get(member) ?? null,
      after: afterMembers.get(member) ?? null,
    }))
    .filter((line) => line.before !== line.after);
}

/** `limits.volumeExpiresAt` as `limits: volume expires`; the value shows that it is a time. */
function memberLabel(member: string): string {
  return member
    .replace(/At$/, '')
    .replaceAll('.', ': ')
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** The members that are not null, by path. */
function flattenMembers(value: unknown, format: DifferenceFormat): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  const addMembers = (path: string, memberValue: unknown) => {
    if (memberValue === null || memberValue === undefined) return;
    if (Array.isArray(memberValue)) members.set(path, memberValue.map(String).join(', '));
    else if (typeof memberValue === 'object' && !isRate(memberValue)) {
      for (const [name, inner] of Object.entries(memberValue))
        addMembers(path === '' ? name : `${path}.${name}`, inner);
    } else members.set(path === '' ? 'value' : path, formatValue(path, memberValue, format));
  };
  addMembers('', value);
  return members;
}

/** True for a rate or a throttle, which has two numbers and is shown as one value. */
function isRate(value: object): boolean {
  return 'periodMs' in value || 'perSecond' in value;
}

function formatValue(path: string, value: unknown, format: DifferenceFormat): string {
  if (typeof value === 'object' && value !== null) return formatLimit(value, format);
  // Milliseconds since the epoch, as the store keeps times.
  if (typeof value === 'number' && path.endsWith('At')) return format.time(value);
  if (typeof value === 'number' && path.startsWith('thresholds.')) return `${Number((value * 100).toFixed(4))} %`;
  return String(value);
}

/** `1000 in 1 h`; `50 a second, 200 at once`. */
function formatLimit(value: object, { duration }: DifferenceFormat): string {
  if ('limit' in value && 'periodMs' in value) return `${value.limit} in ${duration(Number(value.periodMs))}`;
  if ('perSecond' in value && 'burst' in value) return `${value.perSecond} a second, ${value.burst} at once`;
  return JSON.stringify(value);
}

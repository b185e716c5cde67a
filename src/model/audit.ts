/**
 * Audit log entries for changes by operators. If a change has an `Actor`, the store writes the entry in the transaction
 * of the change, so that neither is stored without the other. `before` and `after` are the values before and after the
 * change, as this transaction reads and writes them. No entry contains a secret, the hash of a key or the content of a
 * message.
 */
import type { Account, ApiKey } from './account.ts';
import type { SendingDomain } from './domain.ts';
import type { BulkStep, State } from './message.ts';
import type { ProviderRemoval, Suppression } from './suppression.ts';
import type { Webhook } from './webhook.ts';

/** The nouns of the actions, such as `account` of `account.lock`. The dashboard can filter the audit log by noun. */
export const AUDITED_NOUNS = [
  'account',
  'key',
  'domain',
  'suppression',
  'message',
  'inbox',
  'webhook',
  'token',
] as const;

/** The operator who makes a change, and the time of the change. */
export interface Actor {
  /** `cli:NAME`, `page` or `token:NAME`. */
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** The entry of one change by an operator. It contains no secret. */
export interface AuditEntry {
  readonly id: number;
  readonly at: number;
  /** `cli:NAME`, `page` or `token:NAME`. */
  readonly actor: string;
  /** The name of the action, for example `account.lock`. */
  readonly action: string;
  /** The identifier of the changed object, such as an account name, a key number, a domain name or an address. */
  readonly target: string;
  /** The values before and after the change, as JSON; null if there is no value. */
  readonly before: string | null;
  readonly after: string | null;
}

export type NewAuditEntry = Omit<AuditEntry, 'id'>;

/** Creates the entry of a change. `before` and `after` are converted to JSON. */
export function createAuditEntry(
  { name: actor, at }: Actor,
  action: string,
  target: string,
  before: unknown,
  after: unknown,
): NewAuditEntry {
  return { at, actor, action, target, before: toJson(before), after: toJson(after) };
}

function toJson(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}

/** Returns the properties that an audit log entry contains for an account. */
export function toAuditedAccount({ limits, locked, thresholds, onReputation, sesConfigurationSet }: Account) {
  return { limits, locked: locked?.reason ?? null, thresholds, onReputation, sesConfigurationSet };
}

/** Returns the properties that an audit log entry contains for a key. The hash is not one of them. */
export function toAuditedKey({ id, name, prefix, expiresAt, revokedAt }: ApiKey) {
  return { id: `key_${id}`, name, prefix, expiresAt, revokedAt };
}

/**
 * Returns the members that an audit log entry contains for a domain. Only the selector and the state of each DKIM key
 * are recorded.
 */
export function toAuditedDomain({ status, subdomains, returnPath, keys }: SendingDomain) {
  return { status, subdomains, returnPath, keys: keys.map(({ selector, state }) => `${selector} ${state}`) };
}

/** Returns true if a check or a rotation changed a member that `toAuditedDomain` returns. */
export function hasAuditedDomainChanged(before: SendingDomain, after: SendingDomain): boolean {
  return toJson(toAuditedDomain(before)) !== toJson(toAuditedDomain(after));
}

/** Returns the members that an audit log entry contains for an endpoint. The secret is not recorded. */
export function toAuditedWebhook({ url, account, name, events, disabled }: Webhook) {
  return { url, account, name, events, disabled: disabled?.reason ?? null };
}

/** Returns the content of an entry about a message. */
export function toAuditedMessage(state: State, dueAt: number | null) {
  return { state, dueAt };
}

/** The counts of one batch of an import, and the audit log entry to which they are added. */
export interface ImportStep {
  /** The id of the entry that the first batch created. Null in the first batch. */
  readonly entry: number | null;
  /** The size of the whole file. */
  readonly fileBytes: number;
  /** The number of rows in this batch, including skipped rows. */
  readonly rowCount: number;
  readonly skippedCount: number;
  /** The result of the import. Null if more batches follow. */
  readonly end: 'complete' | 'stopped' | null;
}

interface ImportCounts {
  readonly read: number;
  readonly added: number;
  readonly skipped: number;
}

/**
 * Returns the content of an import's entry after a batch that added `addedCount` addresses. `storedEntry` is the
 * previous content as JSON, or null for a new entry. The counts include only committed batches, so they are correct
 * even after the process was killed. Until the last batch, the content has the member `unfinished`.
 */
export function toAuditedImport(
  storedEntry: string | null,
  { fileBytes, rowCount, skippedCount, end }: ImportStep,
  addedCount: number,
) {
  const before: ImportCounts = storedEntry === null ? { read: 0, added: 0, skipped: 0 } : JSON.parse(storedEntry);
  const counts = {
    read: before.read + rowCount,
    added: before.added + addedCount,
    skipped: before.skipped + skippedCount,
  };
  return {
    read: counts.read,
    added: counts.added,
    known: counts.read - counts.added - counts.skipped,
    skipped: counts.skipped,
    bytes: fileBytes,
    ...(end === null ? { unfinished: true } : end === 'stopped' ? { stopped: true } : {}),
  };
}

/** The action of the audit log entry of a run. A run changes all messages that match a filter. */
export const BULK_AUDIT_ACTION = 'message.change';

interface BulkCounts {
  readonly done: number;
  readonly refused: number;
}

/**
 * Returns the content of the entry of a run after a batch. `storedEntry` is the previous content as JSON, or null for a
 * new entry. The counts include only committed batches. Until the last batch, the content has the member `unfinished`.
 */
export function toAuditedRun(storedEntry: string | null, { action, isLast }: BulkStep, { done, refused }: BulkCounts) {
  const before: BulkCounts = storedEntry === null ? { done: 0, refused: 0 } : JSON.parse(storedEntry);
  const counts = { done: before.done + done, refused: before.refused + refused };
  return { action, ...counts, ...(isLast ? {} : { unfinished: true }) };
}

/** The maximum number of addresses in an entry. Further addresses are only counted. */
const MAX_NAMED_ADDRESSES = 5;

/** Returns the content of an entry about added suppressions: their number, and the first addresses of `entries`. */
export function toAuditedSuppressions(added: number, entries: readonly Suppression[]) {
  const addresses = entries.slice(0, MAX_NAMED_ADDRESSES).map(({ address }) => address);
  return {
    added,
    addresses,
    ...(entries.length > MAX_NAMED_ADDRESSES ? { andMore: entries.length - MAX_NAMED_ADDRESSES } : {}),
  };
}

/**
 * Returns the value `before` of an entry about the removal of an address. `provider` names the provider whose
 * suppression list was also changed.
 */
export function toAuditedRemoval(address: string, providerRemoval: ProviderRemoval | undefined) {
  return providerRemoval === undefined ? { address } : { address, provider: providerRemoval.provider };
}

// The types and functions below list the differences between the values before and after a change, by member.

export interface DifferenceLine {
  /** The name of the member as an operator sees it, for example `limits: volume expires`. */
  readonly member: string;
  /** Null if there is no value. */
  readonly before: string | null;
  readonly after: string | null;
}

/** The functions that format times (ms since the epoch) and durations (ms). */
export interface DifferenceFormat {
  readonly formatTime: (ms: number) => string;
  readonly formatDuration: (ms: number) => string;
}

/** Returns the members with different values. If there is no value before or after the change, all members differ. */
export function listDifferences(before: unknown, after: unknown, format: DifferenceFormat): readonly DifferenceLine[] {
  const [beforeMembers, afterMembers] = [flattenMembers(before, format), flattenMembers(after, format)];
  return [...new Set([...beforeMembers.keys(), ...afterMembers.keys()])]
    .map((member) => ({
      member: formatMemberName(member),
      before: beforeMembers.get(member) ?? null,
      after: afterMembers.get(member) ?? null,
    }))
    .filter((line) => line.before !== line.after);
}

/**
 * Formats `limits.volumeExpiresAt` as `limits: volume expires`. The suffix `At` is removed, because the value is shown
 * as a time.
 */
function formatMemberName(member: string): string {
  return member
    .replace(/At$/, '')
    .replaceAll('.', ': ')
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Returns the formatted members that are not null, by path. */
function flattenMembers(value: unknown, format: DifferenceFormat): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  const addMembers = (path: string, memberValue: unknown) => {
    if (memberValue === null || memberValue === undefined) return;
    if (Array.isArray(memberValue)) members.set(path, memberValue.map(String).join(', '));
    else if (typeof memberValue === 'object' && !isRateOrThrottle(memberValue)) {
      for (const [name, innerValue] of Object.entries(memberValue))
        addMembers(path === '' ? name : `${path}.${name}`, innerValue);
    } else members.set(path === '' ? 'value' : path, formatValue(path, memberValue, format));
  };
  addMembers('', value);
  return members;
}

/** Returns true for a rate or a throttle. Both consist of two numbers and are shown as one value. */
function isRateOrThrottle(value: object): boolean {
  return 'periodMs' in value || 'perSecond' in value;
}

function formatValue(path: string, value: unknown, format: DifferenceFormat): string {
  if (typeof value === 'object' && value !== null) return formatLimit(value, format);
  // Stored times are in milliseconds since the epoch.
  if (typeof value === 'number' && path.endsWith('At')) return format.formatTime(value);
  if (typeof value === 'number' && path.startsWith('thresholds.')) return `${Number((value * 100).toFixed(4))} %`;
  return String(value);
}

/** Formats a rate as `1000 in 1 h` and a throttle as `50 per second, burst 200`. */
function formatLimit(value: object, { formatDuration }: DifferenceFormat): string {
  if ('limit' in value && 'periodMs' in value) return `${value.limit} in ${formatDuration(Number(value.periodMs))}`;
  if ('perSecond' in value && 'burst' in value) return `${value.perSecond} per second, burst ${value.burst}`;
  return JSON.stringify(value);
}

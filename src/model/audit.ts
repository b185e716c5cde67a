/** Audit log entries, written in the transaction of the change, without secrets and content of messages. */
import type { Account, ApiKey } from './account.ts';
import type { SendingDomain } from './domain.ts';
import type { BulkStep, State } from './message.ts';
import type { ProviderRemoval, Suppression } from './suppression.ts';
import type { Webhook } from './webhook.ts';

export const AUDITED_NOUNS = [
  'account',
  'key',
  'domain',
  'sender',
  'suppression',
  'message',
  'hold',
  'route',
  'routing',
  'inbox',
  'webhook',
  'token',
] as const;

export interface Actor {
  /** `cli:NAME`, `page` or `token:NAME`. */
  readonly name: string;
  readonly at: number;
}

export interface AuditEntry {
  readonly id: number;
  readonly at: number;
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  /** As JSON. */
  readonly before: string | null;
  readonly after: string | null;
}

export type NewAuditEntry = Omit<AuditEntry, 'id'>;

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

export function toAuditedAccount(account: Account) {
  const { limits, locked, thresholds, onReputation, sesConfigurationSet, maxAgeMs, onlyTo, unknownFields } = account;
  const options = { maxAgeMs, onlyTo, unknownFields };
  return { limits, locked: locked?.reason ?? null, thresholds, onReputation, sesConfigurationSet, ...options };
}

export function toAuditedKey({ id, name, prefix, expiresAt, revokedAt }: ApiKey) {
  return { id: `key_${id}`, name, prefix, expiresAt, revokedAt };
}

export function toAuditedDomain({ status, subdomains, returnPath, keys }: SendingDomain) {
  return { status, subdomains, returnPath, keys: keys.map(({ selector, state }) => `${selector} ${state}`) };
}

export function hasAuditedDomainChanged(before: SendingDomain, after: SendingDomain): boolean {
  return toJson(toAuditedDomain(before)) !== toJson(toAuditedDomain(after));
}

export function toAuditedWebhook({ url, account, name, events, disabled }: Webhook) {
  return { url, account, name, events, disabled: disabled?.reason ?? null };
}

export function toAuditedMessage(state: State, dueAt: number | null) {
  return { state, dueAt };
}

export interface ImportStep {
  /** The entry that the first batch created; null in the first batch. */
  readonly entry: number | null;
  readonly fileBytes: number;
  /** The number of rows in this batch, including skipped rows. */
  readonly rowCount: number;
  readonly skippedCount: number;
  /** Null if more batches follow. */
  readonly end: 'complete' | 'stopped' | null;
}

interface ImportCounts {
  readonly read: number;
  readonly added: number;
  readonly skipped: number;
}

/** Only committed batches count, so the counts are correct after a kill. `unfinished`: the import has not ended. */
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

export const BULK_AUDIT_ACTION = 'message.change';

interface BulkCounts {
  readonly done: number;
  readonly refused: number;
}

/** As `toAuditedImport`, for an action on all messages that match a filter. */
export function toAuditedRun(storedEntry: string | null, { action, isLast }: BulkStep, { done, refused }: BulkCounts) {
  const before: BulkCounts = storedEntry === null ? { done: 0, refused: 0 } : JSON.parse(storedEntry);
  const counts = { done: before.done + done, refused: before.refused + refused };
  return { action, ...counts, ...(isLast ? {} : { unfinished: true }) };
}

/** Further addresses are only counted. */
const MAX_NAMED_ADDRESSES = 5;

export function toAuditedSuppressions(added: number, entries: readonly Suppression[]) {
  const addresses = entries.slice(0, MAX_NAMED_ADDRESSES).map(({ address }) => address);
  return {
    added,
    addresses,
    ...(entries.length > MAX_NAMED_ADDRESSES ? { andMore: entries.length - MAX_NAMED_ADDRESSES } : {}),
  };
}

export function toAuditedRemoval(address: string, providerRemoval: ProviderRemoval | undefined) {
  return providerRemoval === undefined ? { address } : { address, provider: providerRemoval.provider };
}

export interface DifferenceLine {
  /** As an operator sees it, for example `limits: volume expires`. */
  readonly member: string;
  readonly before: string | null;
  readonly after: string | null;
}

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

/** `limits.volumeExpiresAt` becomes `limits: volume expires`; the value is shown as a time. */
function formatMemberName(member: string): string {
  return member
    .replace(/At$/, '')
    .replaceAll('.', ': ')
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

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

/** Both consist of two numbers and are shown as one value. */
function isRateOrThrottle(value: object): boolean {
  return 'periodMs' in value || 'perSecond' in value;
}

function formatValue(path: string, value: unknown, format: DifferenceFormat): string {
  if (typeof value === 'object' && value !== null) return formatLimit(value, format);
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

// What roles and scopes of tokens permit. The file imports no module of Node, because the dashboard uses it.

/** Each role permits what the role before it permits. */
export type Role = 'viewer' | 'support' | 'operator' | 'admin';

export interface AccessRule {
  readonly role: Role;
  /** True if the result contains message bodies, raw source, captured mail, reports or an export. */
  readonly readsContent: boolean;
}

export const TOKEN_SCOPES = ['metrics', 'read', 'content', 'full'] as const;
/** `metrics`: `/metrics` alone. `read`: what a viewer may see. `content`: also content. `full`: all but tokens. */
export type TokenScope = (typeof TOKEN_SCOPES)[number];
/** `all`: a signed-in page or a command. */
export type Scope = TokenScope | 'all';

// The topics of live updates. The queries of the dashboard have the same names.

export const TOPICS = [
  'messages',
  'overview',
  'inbox',
  'accounts',
  'domains',
  'suppressions',
  'webhooks',
  'feedback',
  'holds',
  'routes',
  'tokens',
  'audit',
] as const;
export type Topic = (typeof TOPICS)[number];

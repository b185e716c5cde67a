/**
 * What a change by an operator writes into the audit log, for both stores. Given an `Actor`, a store writes the entry in the
 * transaction of the change: both are there or neither is. Before and after are what that transaction saw. Secrets, hashes of keys
 * and message texts are in no entry.
 */

import type { Account, ApiKey } from './account.ts';
import type { SendingDomain } from './domain.ts';
import type { State } from './state-machine.ts';
import type { Suppression } from './suppression.ts';

/** Who makes a change, and when. */
export interface Actor {
  /** `cli:NAME`, `page` or `token:NAME`. */
  readonly who: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** One change by an operator. Secrets are in none of them. */
export interface AuditEntry {
  readonly id: number;
  readonly at: number;
  /** `cli:NAME`, `page` or `token:NAME`. */
  readonly who: string;
  /** Such as `account.lock`. */
  readonly action: string;
  /** What was changed: an account's name, a key's number, a domain, an address. */
  readonly subject: string;
  /** As they were and as they are, JSON; null where there is nothing to tell. */
  readonly before: string | null;
  readonly after: string | null;
}

export type NewAuditEntry = Omit<AuditEntry, 'id'>;

/** The entry of a change; `before` and `after` become JSON. */
export function auditEntry(
  { who, at }: Actor,
  action: string,
  subject: string,
  before: unknown,
  after: unknown,
): NewAuditEntry {
  return { at, who, action, subject, before: json(before), after: json(after) };
}

function json(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}

export function accountShown({ limits, locked, thresholds }: Account) {
  return { limits, locked: locked?.reason ?? null, thresholds };
}

/** Never the hash. */
export function keyShown({ id, name, prefix, expiresAt, revokedAt }: ApiKey) {
  return { id: `key_${id}`, name, prefix, expiresAt, revokedAt };
}

/** Never the keys themselves. */
export function domainShown({ status, subdomains, keys }: SendingDomain) {
  return { status, subdomains, keys: keys.map(({ selector, state }) => `${selector} ${state}`) };
}

/** True where a check or a rotation changed something that an entry shows. */
export function domainDiffers(before: SendingDomain, after: SendingDomain): boolean {
  return json(domainShown(before)) !== json(domainShown(after));
}

export function mailShown(state: State, dueAt: number | null) {
  return { state, dueAt };
}

/** Addresses that an entry names; of the others it has the number. */
const MAX_NAMED = 5;

export function suppressionsShown(added: number, entries: readonly Suppression[]) {
  const addresses = entries.slice(0, MAX_NAMED).map(({ address }) => address);
  return { added, addresses, ...(entries.length > MAX_NAMED ? { andMore: entries.length - MAX_NAMED } : {}) };
}

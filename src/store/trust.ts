/** The store contract's part for trust: suppression lists, sending domains, reputation. Held by the same suite. */
import type { DkimKey, RecordCheck, SendingDomain } from '../model/domain.ts';
import type { WindowCounts } from '../model/reputation.ts';
import type { Actor } from './audit.ts';
import type { Changed } from './store.ts';

export type SuppressionReason = 'bounce' | 'complaint' | 'manual';

export interface Suppression {
  /** The canonical address. */
  readonly address: string;
  readonly reason: SuppressionReason;
  /** The mail request that caused it, or null. */
  readonly source: string | null;
  readonly at: number;
}

/** Whose list: an account's name, or `*` for the one of the whole service. */
export type ListName = string;

/** What a list is searched for: the beginning of addresses, or of what stands behind their last `@`. */
export interface SuppressionSearch {
  readonly of: 'address' | 'domain';
  /** Not empty; as canonical addresses have it. */
  readonly prefix: string;
}

/** An entry with the list that it is on. */
export interface ListedSuppression extends Suppression {
  readonly list: ListName;
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

/** With `by` a change is in the audit log, written in the same transaction. */
export interface TrustStore {
  /** Emails, hard bounces and complaints of the last 7 days, or since the last unlock. */
  reputationOf(accountName: string, now: number): Promise<Changed<WindowCounts>>;
  /** The same of all accounts that have any, by their numbers. */
  reputations(now: number): Promise<ReadonlyMap<number, WindowCounts>>;

  /** Puts addresses on a list; one that is there keeps its first reason and time. Resolves to how many were new, or `missing` for no such account. */
  addSuppressions(list: ListName, entries: readonly Suppression[], by?: Actor): Promise<Changed<number>>;
  removeSuppression(list: ListName, address: string, by?: Actor): Promise<Changed<boolean>>;
  /** In order of address, after `after`. */
  listSuppressions(list: ListName, after: string | null, limit: number): Promise<Changed<readonly Suppression[]>>;
  /** Those found, after the address `after`: in order of address, or of domain and then address. By an index, however long the list. */
  searchSuppressions(
    list: ListName,
    search: SuppressionSearch,
    after: string | null,
    limit: number,
  ): Promise<Changed<readonly Suppression[]>>;
  /** Every list that has the address, `*` first. */
  findSuppression(address: string): Promise<readonly ListedSuppression[]>;

  /** `exists` where any account owns the name already. */
  addDomain(
    accountName: string,
    domain: { readonly name: string; readonly subdomains: boolean; readonly keys: readonly DkimKey[] },
    now: number,
    by?: Actor,
  ): Promise<Changed<SendingDomain>>;
  findDomain(name: string): Promise<SendingDomain | null>;
  /** What the last answered check of each record found; empty before the first. */
  domainChecks(name: string): Promise<readonly RecordCheck[]>;
  listDomains(): Promise<readonly SendingDomain[]>;
  /** Writes a check's result or a rotation; every node knows within a second. The revision stays where only times changed. */
  updateDomain(update: DomainUpdate, by?: Actor): Promise<Changed<SendingDomain> | { readonly kind: 'stale' }>;
  setSubdomains(name: string, subdomains: boolean, by?: Actor): Promise<Changed<SendingDomain>>;
  removeDomain(name: string, by?: Actor): Promise<Changed<SendingDomain>>;
}

/**
 * The store contract, by role. One suite (test/contract) holds every implementation to it. A part of the service is handed the
 * roles that it uses, and no more. A new method is one line of its role, one of `METHODS`, and one implementation for each
 * database.
 *
 * Promises: what `accept` answered as accepted is on disk, synced. A batch is one transaction: a rejected promise means that
 * nothing of the batch was stored. Times are milliseconds since the epoch, handed in by the caller. Rejections are StoreErrors.
 * Nothing here speaks HTTP or SMTP.
 */

import type {
  Account,
  AccountChange,
  AccountLimits,
  ApiKey,
  ChangeResult,
  DirectoryChanges,
  FoundKeys,
  GuardedChangeResult,
  OperatorToken,
  WindowCounts,
} from '../model/account.ts';
import type { Actor, AuditEntry, ImportStep } from '../model/audit.ts';
import type { DkimKey, DomainUpdate, RecordCheck, SendingDomain } from '../model/domain.ts';
import type { FeedbackReport, FeedbackResult, UnprocessedReport } from '../model/feedback.ts';
import type {
  AcceptResult,
  Lease,
  LeasedMessage,
  LeaseRef,
  MessageFilter,
  MessageHistory,
  NewMessage,
  OperatorChangeResult,
  Settlement,
  SettleResult,
  StoredMessage,
  StoredMessageSummary,
} from '../model/message.ts';
import type { NodeIdentity, NodeStatus, TokenRequest, TokensGranted } from '../model/node.ts';
import type { ChangeFeedPosition, OverviewData, QueueStatistics } from '../model/overview.ts';
import type { RunningTime } from '../model/running-time.ts';
import type { ListedSuppression, ListName, Suppression, SuppressionSearch } from '../model/suppression.ts';
import type { TrafficRow, TrafficStep } from '../model/traffic.ts';
import type { StoreError } from './error.ts';
import type { IndexProgress, IndexStep } from './search/index-step.ts';
import type { MessageSearch, MessageSearchResult } from './search/query.ts';

/** How much a claim may lease. The first mail request is leased whatever its size, so that none is too large for ever. */
export interface ClaimLimits {
  readonly mails: number;
  /** Of message text, as UTF-8. */
  readonly bytes: number;
}

export interface Claimed {
  readonly mails: readonly LeasedMessage[];
  /** Those that ended `suppressed` instead of being leased. */
  readonly suppressed: readonly Pick<LeasedMessage, 'id' | 'accountId' | 'to'>[];
  /** True where more may be due than was leased: another claim is worth while at once. */
  readonly more: boolean;
}

/** Taking messages in. */
export interface AcceptStore {
  accept(batch: readonly NewMessage[]): Promise<readonly AcceptResult[]>;
  /** The greatest id stored, or null: new ids start after it. */
  newestId(): Promise<string | null>;
  /**
   * Takes tokens out of the buckets that all nodes share, by the store's own time; a bucket not seen before is full. One
   * whose limit has changed keeps its tokens as far as they fit, and a full one stays full.
   */
  takeTokens(batch: readonly TokenRequest[], now: number): Promise<readonly TokensGranted[]>;
}

/** Leases and their ends. */
export interface QueueStore {
  /**
   * Leases due mail requests, fairly over accounts and lanes; those of locked accounts wait. The work of one claim is
   * bounded: where it ends before it has looked everywhere, `more` says so and the next one goes on from there.
   */
  claim(room: ClaimLimits, lease: Lease, now: number): Promise<Claimed>;
  /** Policy `hold`: notes, synced, that these leases are about to hand over. Answers `lost` like `settle`. */
  markTransmitting(batch: readonly LeaseRef[]): Promise<readonly SettleResult[]>;
  settle(batch: readonly Settlement[]): Promise<readonly SettleResult[]>;
  /**
   * Gives leases back unused: queued in their old place, the attempt not counted, and no event written, so that a next
   * hop that comes and goes does not fill histories.
   */
  release(batch: readonly LeaseRef[], now: number): Promise<readonly SettleResult[]>;
  /**
   * Takes back leases that ended without an answer: those whose time is over at `now`, of this node (`by`) and of nodes
   * that are not alive; with `deadNodes` every lease of another node that is not alive (`beat`); with `everyLease`, at
   * the start of the embedded store, all of them. Never those in `except`, whose outcome this node still holds. Marked
   * ones become `uncertain` under `hold`, all others `queued`. Under `hold` the attempt of an unmarked one is given
   * back; under `resend` it is not known whether it was made, so it stays counted. Resolves to how many.
   */
  recover(options: {
    readonly now: number;
    readonly everyLease: boolean;
    readonly deadNodes: boolean;
    readonly onUncertain: 'resend' | 'hold';
    readonly by: string;
    /**
     * Of its own leases, those that end by then; `now` where it is not given. A node that names all it holds in `except`
     * gives back earlier what it has been leased without hearing of it (an answer of the store that was lost).
     */
    readonly ownUntil?: number;
    readonly except?: readonly string[];
  }): Promise<number>;
  /** For each: false where its recipient is on a suppression list by now. */
  checkSuppression(batch: readonly { readonly id: string }[]): Promise<readonly boolean[]>;
}

/** What time alone does to what is stored. */
export interface RetentionStore {
  /** Ends up to `limit` queued mail requests accepted at or before `acceptedBefore` as `expired`. */
  expire(acceptedBefore: number, now: number, limit: number, by: string): Promise<readonly string[]>;
  /**
   * Makes due now up to `limit` queued mail requests due later than `latestDueAt`, which no retry can be: only a clock
   * set back leaves such. Resolves to how many.
   */
  resetDistantDueTimes(latestDueAt: number, now: number, limit: number): Promise<number>;
  /**
   * Erases up to `limit` bodies whose terminal state was reached at or before `endedBefore`, and up to `limit`
   * idempotency keys as old as `keysBefore`. Resolves to the greater count of the two: at `limit` there may be more.
   */
  purgeBodiesAndKeys(endedBefore: number, keysBefore: number, limit: number): Promise<number>;
  /**
   * Forgets up to `limit` reports that came at or before `before`, and as many provider's ids given at or before it, and
   * of the kept ones all but the newest `keep`. Resolves to the greatest count: at `limit` there may be more.
   */
  purgeFeedback(before: number, keep: number, limit: number): Promise<number>;
  /** Deletes up to `limit` minutes that began before the one time and hours that began before the other; resolves to how many. */
  purgeTraffic(minutesBefore: number, hoursBefore: number, limit: number): Promise<number>;
}

/** What is reported of messages after they were handed over. */
export interface FeedbackStore {
  /** Applies reports, in order, in one transaction; a rejected promise means that nothing of the batch was stored. */
  recordFeedback(batch: readonly FeedbackReport[]): Promise<readonly FeedbackResult[]>;
  /** When the last report came, or null. */
  lastFeedbackAt(): Promise<number | null>;
}

/** Accounts, keys and domains as running nodes know them. */
export interface DirectoryStore {
  /** Calls back at once with everything, and again within a second of any change, by whichever process. */
  watchDirectory(onChange: (changes: DirectoryChanges) => void): Promise<void>;
  /**
   * The keys of these SHA-256 digests (hexadecimal, 1,000 at most) with their accounts; whatever was committed before the call is
   * found. Digests without a key are left out.
   */
  findKeys(hashes: readonly string[]): Promise<FoundKeys>;
  /** On a store without accounts: makes one with its first key, both or neither. Null where there is any account. */
  createFirstKey(
    accountName: string,
    key: { readonly name: string; readonly prefix: string; readonly hash: string },
    now: number,
  ): Promise<{ readonly account: Account; readonly key: ApiKey } | null>;
  /** Remembers when keys were last used. */
  touchKeys(used: readonly { readonly id: number; readonly at: number }[]): Promise<void>;
}

/** Who runs on this store, and the time that they share. */
export interface NodeStore {
  /**
   * Reads the running time, advances it (`advanceRunningTime`) to the store's own time (the database server's where nodes
   * share one, else `now`), and writes it back, in one transaction. Resolves to what it wrote.
   */
  updateRunningTime(passedMs: number, now: number): Promise<RunningTime>;
  /**
   * Says that this node lives, and will for `ttlMs` without saying so again. Resolves to the store's own time, in
   * milliseconds since the epoch: the database server's where nodes share one, else `now`.
   */
  recordHeartbeat(node: NodeIdentity, ttlMs: number, now: number): Promise<number>;
  /** Says that this node ends: what it still holds may be taken over at once. */
  removeNode(name: string): Promise<void>;
  /** Those alive, and those that died within the last hour, by name. */
  listNodes(now: number): Promise<readonly NodeStatus[]>;
}

/** Figures over time. */
export interface TrafficStore {
  /** Writes rows of this node in place of what it wrote of the same spans before. A crash may lose the last of it. */
  writeTraffic(node: string, rows: readonly TrafficRow[]): Promise<void>;
  /**
   * Sums over all nodes for each step of `stepMs` from `since` up to, without, `until`, in order; steps without traffic are left
   * out. Steps begin at multiples of `stepMs`, which is of minutes or of hours: whole hours are read from the hours.
   */
  readTraffic(since: number, until: number, stepMs: number): Promise<readonly TrafficStep[]>;
}

/** The index of searches. */
export interface IndexStore {
  /** The greatest id stored, or null: new ids start after it. */
  newestId(): Promise<string | null>;
  /**
   * Indexes up to some thousand mail requests, so that searches need not look at each. Searches find the same without it. Only
   * one process at a time does it; the others are told that nothing was done.
   */
  indexMessages(step: IndexStep): Promise<IndexProgress>;
}

/** Accounts, their keys and their reputation. */
export interface AccountStore {
  /** With `by`, here and below, the change is in the audit log, written in the same transaction. */
  createAccount(name: string, limits: AccountLimits, now: number, by?: Actor): Promise<ChangeResult<Account>>;
  /**
   * In one transaction. A new volume or rate begins its count again at zero; thresholds replace the defaults. With `expected`, here
   * and below, nothing changes where the account has another `accountVersion` by now.
   */
  setAccount(
    name: string,
    change: AccountChange,
    now: number,
    expected?: string,
    by?: Actor,
  ): Promise<GuardedChangeResult<Account>>;
  lockAccount(
    name: string,
    reason: string,
    now: number,
    expected?: string,
    by?: Actor,
  ): Promise<GuardedChangeResult<Account>>;
  unlockAccount(name: string, now: number, expected?: string, by?: Actor): Promise<GuardedChangeResult<Account>>;
  listAccounts(): Promise<readonly Account[]>;
  /** Emails, hard bounces and complaints of the last 7 days, or since the last unlock. */
  reputationOf(accountName: string, now: number): Promise<ChangeResult<WindowCounts>>;
  /** The same of all accounts that have any, by their numbers. */
  reputations(now: number): Promise<ReadonlyMap<number, WindowCounts>>;
  createKey(
    accountName: string,
    key: { readonly name: string; readonly prefix: string; readonly hash: string; readonly expiresAt: number | null },
    now: number,
    by?: Actor,
  ): Promise<ChangeResult<ApiKey>>;
  listKeys(accountName: string): Promise<ChangeResult<readonly ApiKey[]>>;
  revokeKey(id: number, now: number, by?: Actor): Promise<ChangeResult<ApiKey>>;
  /** Makes a new key with the old one's name; the old one expires at `oldExpiresAt`. */
  rotateKey(
    id: number,
    key: { readonly prefix: string; readonly hash: string },
    oldExpiresAt: number,
    now: number,
    by?: Actor,
  ): Promise<ChangeResult<ApiKey>>;
}

/** Sending domains. */
export interface DomainStore {
  /** `exists` where any account owns the name already. */
  addDomain(
    accountName: string,
    domain: { readonly name: string; readonly subdomains: boolean; readonly keys: readonly DkimKey[] },
    now: number,
    by?: Actor,
  ): Promise<ChangeResult<SendingDomain>>;
  findDomain(name: string): Promise<SendingDomain | null>;
  /** What the last answered check of each record found; empty before the first. */
  domainChecks(name: string): Promise<readonly RecordCheck[]>;
  listDomains(): Promise<readonly SendingDomain[]>;
  /** Writes a check's result or a rotation; every node knows within a second. The revision stays where only times changed. */
  updateDomain(update: DomainUpdate, by?: Actor): Promise<ChangeResult<SendingDomain> | { readonly kind: 'stale' }>;
  setSubdomains(name: string, subdomains: boolean, by?: Actor): Promise<ChangeResult<SendingDomain>>;
  removeDomain(name: string, by?: Actor): Promise<ChangeResult<SendingDomain>>;
}

/** Suppression lists. */
export interface SuppressionStore {
  /** Puts addresses on a list; one that is there keeps its first reason and time. Resolves to how many were new, or `missing` for no such account. */
  addSuppressions(list: ListName, entries: readonly Suppression[], by?: Actor): Promise<ChangeResult<number>>;
  /**
   * Adds one batch of an import, as `addSuppressions` does. With `by` the whole import has one entry in the audit log: the first
   * batch writes it, and each later one updates its counts, in the transaction of the batch. Resolves to how many were new, and
   * to the number of the entry for the next batch (null without `by`).
   */
  importSuppressions(
    list: ListName,
    entries: readonly Suppression[],
    step: ImportStep,
    by?: Actor,
  ): Promise<ChangeResult<{ readonly added: number; readonly entry: number | null }>>;
  removeSuppression(list: ListName, address: string, by?: Actor): Promise<ChangeResult<boolean>>;
  /** In order of address, after `after`. */
  listSuppressions(list: ListName, after: string | null, limit: number): Promise<ChangeResult<readonly Suppression[]>>;
  /** Those found, after the address `after`: in order of address, or of domain and then address. By an index, however long the list. */
  searchSuppressions(
    list: ListName,
    search: SuppressionSearch,
    after: string | null,
    limit: number,
  ): Promise<ChangeResult<readonly Suppression[]>>;
  /** Every list that has the address, `*` first. */
  findSuppression(address: string): Promise<readonly ListedSuppression[]>;
}

/** Messages, and reports that were not understood, as operators see them. */
export interface MessageStore {
  listMessages(filter: MessageFilter): Promise<readonly StoredMessageSummary[]>;
  findMessage(id: string): Promise<StoredMessage | null>;
  /** Of those that there are, in the order asked for. No message is read. */
  messageHistories(ids: readonly string[]): Promise<readonly MessageHistory[]>;
  /** Works for about `budgetMs` at most, and answers with what it has found by then. */
  searchMessages(search: MessageSearch, budgetMs: number): Promise<MessageSearchResult>;
  /** Makes a queued one due now; puts an uncertain one back into the queue. */
  retryMessage(id: string, now: number, by?: Actor): Promise<OperatorChangeResult>;
  cancelMessage(id: string, now: number, by?: Actor): Promise<OperatorChangeResult>;
  /** Kept ones, the newest first, before the number given. */
  listFeedback(before: number | null, limit: number): Promise<readonly UnprocessedReport[]>;
  findFeedback(id: number): Promise<(UnprocessedReport & { readonly raw: Uint8Array }) | null>;
}

/** The audit log, the tokens by which scripts of operators sign in, and who signed out. */
export interface AccessStore {
  /** The newest first, before the number given. */
  listAudit(before: number | null, limit: number): Promise<readonly AuditEntry[]>;
  /** `exists` where another token that is not revoked has the name. */
  createToken(
    token: Pick<OperatorToken, 'name' | 'prefix' | 'hash' | 'expiresAt'>,
    now: number,
    by?: Actor,
  ): Promise<ChangeResult<OperatorToken>>;
  listTokens(): Promise<readonly OperatorToken[]>;
  /** The tokens with these hashes (SHA-256, hexadecimal), expired and revoked ones included. */
  findTokens(hashes: readonly string[]): Promise<readonly OperatorToken[]>;
  revokeToken(id: number, now: number, by?: Actor): Promise<ChangeResult<OperatorToken>>;
  touchToken(id: number, at: number): Promise<void>;
  /** Somebody signed out whose session would have ended by itself at `until`; such whose time has come are forgotten. */
  endSession(hash: string, until: number, now: number): Promise<void>;
  isSessionEnded(hash: string): Promise<boolean>;
}

/** What an operator sees first. */
export interface OverviewStore {
  queueFigures(): Promise<QueueStatistics>;
  overviewFacts(now: number): Promise<OverviewData>;
  changeFeedPosition(now: number): Promise<ChangeFeedPosition>;
}

/** Everything that an operator can see and change. With `by` a change is in the audit log, written in the same transaction. */
export interface OperatorStore
  extends AccountStore,
    DomainStore,
    SuppressionStore,
    MessageStore,
    AccessStore,
    OverviewStore,
    Pick<AcceptStore, 'newestId'>,
    Pick<NodeStore, 'listNodes'>,
    Pick<TrafficStore, 'readTraffic'>,
    Pick<FeedbackStore, 'lastFeedbackAt'>,
    Pick<StoreLifecycle, 'probe'> {}

/** Every method that asks the database, with what it does there. */
export type StoreMethods = AcceptStore &
  QueueStore &
  RetentionStore &
  FeedbackStore &
  DirectoryStore &
  NodeStore &
  TrafficStore &
  IndexStore &
  OperatorStore;

/** The store as a whole: opened, failing, closed. */
export interface StoreLifecycle {
  /** Resolves when a write would work; rejects with the store's own reason. */
  probe(): Promise<void>;
  /** Resolves, and never rejects, once the store can answer no more although nobody has closed it. */
  readonly failed: Promise<StoreError>;
  /** Closes it and all that it has opened, whatever fails meanwhile. */
  close(): Promise<void>;
}

export type Store = StoreMethods & StoreLifecycle;

/** What a method does to the database, so that a store can choose where it runs and what it must not outlive. */
export type MethodKind =
  /** A change. Its answer says that something is kept. */
  | 'change'
  /** A change that only records what is happening anyway. It goes on while the database's files are away, in case they return. */
  | 'outcome'
  /** A question on the path of messages, or whose answer decides the next change. It is short. */
  | 'read'
  /** A question of an operator. It may take long, and delays no change. */
  | 'question';

/** Methods that a store puts together from others. */
export type ComposedMethod = 'watchDirectory' | 'indexMessages';
export type MethodName = Exclude<keyof StoreMethods, ComposedMethod>;

export const METHODS: Readonly<Record<MethodName, MethodKind>> = {
  accept: 'change',
  newestId: 'read',
  takeTokens: 'change',
  claim: 'outcome',
  markTransmitting: 'change',
  settle: 'outcome',
  release: 'outcome',
  recover: 'outcome',
  checkSuppression: 'read',
  expire: 'change',
  resetDistantDueTimes: 'change',
  purgeBodiesAndKeys: 'change',
  purgeFeedback: 'change',
  purgeTraffic: 'change',
  recordFeedback: 'change',
  lastFeedbackAt: 'question',
  findKeys: 'read',
  createFirstKey: 'change',
  touchKeys: 'change',
  updateRunningTime: 'change',
  recordHeartbeat: 'outcome',
  removeNode: 'outcome',
  listNodes: 'question',
  writeTraffic: 'change',
  readTraffic: 'question',
  createAccount: 'change',
  setAccount: 'change',
  lockAccount: 'change',
  unlockAccount: 'change',
  listAccounts: 'read',
  reputationOf: 'question',
  reputations: 'question',
  createKey: 'change',
  listKeys: 'read',
  revokeKey: 'change',
  rotateKey: 'change',
  addDomain: 'change',
  findDomain: 'read',
  domainChecks: 'read',
  listDomains: 'read',
  updateDomain: 'change',
  setSubdomains: 'change',
  removeDomain: 'change',
  addSuppressions: 'change',
  importSuppressions: 'change',
  removeSuppression: 'change',
  listSuppressions: 'question',
  searchSuppressions: 'question',
  findSuppression: 'question',
  listMessages: 'question',
  findMessage: 'question',
  messageHistories: 'question',
  searchMessages: 'question',
  retryMessage: 'change',
  cancelMessage: 'change',
  listFeedback: 'question',
  findFeedback: 'question',
  listAudit: 'question',
  createToken: 'change',
  listTokens: 'read',
  findTokens: 'read',
  revokeToken: 'change',
  touchToken: 'change',
  endSession: 'change',
  isSessionEnded: 'question',
  queueFigures: 'question',
  overviewFacts: 'question',
  changeFeedPosition: 'question',
  probe: 'change',
};

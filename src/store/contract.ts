/**
 * The store contract, by role. One test suite (test/contract) checks every implementation. Each part of the service
 * receives only the roles that it uses. A new method needs one line in its role, one line in `METHODS`, and one
 * implementation per database.
 *
 * Guarantees: a message that `accept` answers as accepted is on disk, synced. A batch is one transaction: if the
 * promise rejects, nothing of the batch is stored. Times are milliseconds since the epoch and come from the caller.
 * Methods reject with a StoreError. The contract knows neither HTTP nor SMTP.
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

/** Limits of one claim. The first message is leased whatever its size, so that every message is leased at some time. */
export interface ClaimLimits {
  readonly messages: number;
  /** Total message text, in bytes of UTF-8. */
  readonly bytes: number;
}

export interface ClaimedMessages {
  readonly messages: readonly LeasedMessage[];
  /** Messages that ended as `suppressed` instead of being leased. */
  readonly suppressed: readonly Pick<LeasedMessage, 'id' | 'accountId' | 'to'>[];
  /** True if more messages may be due. Then another claim should follow at once. */
  readonly hasMore: boolean;
}

/** Accepting messages. */
export interface AcceptStore {
  accept(batch: readonly NewMessage[]): Promise<readonly AcceptResult[]>;
  /** The greatest stored id, or null. New ids are greater. */
  newestId(): Promise<string | null>;
  /**
   * Takes tokens from the buckets that all nodes share, by the store's own time. A new bucket is full. After a change
   * of the limit, a full bucket is full under the new limit; any other keeps its tokens up to the new burst.
   */
  takeTokens(batch: readonly TokenRequest[], now: number): Promise<readonly TokensGranted[]>;
}

/** Leases and their settlement. */
export interface QueueStore {
  /**
   * Leases due messages, fairly over accounts and lanes. Messages of locked accounts wait. The work of one claim is
   * bounded: if it stops before it has examined every account, `more` is true and the next claim continues there.
   */
  claim(limits: ClaimLimits, lease: Lease, now: number): Promise<ClaimedMessages>;
  /**
   * Policy `hold`: records, synced, that the messages of these leases are about to be transmitted. Answers `lost` like
   * `settle`.
   */
  markTransmitting(batch: readonly LeaseRef[]): Promise<readonly SettleResult[]>;
  settle(batch: readonly Settlement[]): Promise<readonly SettleResult[]>;
  /**
   * Returns unused leases: the messages keep their order in the queue and their attempt count, and no event is written.
   * A next hop that fails repeatedly therefore adds nothing to histories.
   */
  release(batch: readonly LeaseRef[], now: number): Promise<readonly SettleResult[]>;
  /**
   * Recovers leases that ended without an answer: expired leases of this node (`by`) and of nodes that are not alive.
   * `deadNodes` adds every lease of other nodes that are not alive (`recordHeartbeat`); `everyLease` adds all leases
   * and is used when the embedded store starts. Leases in `except`, whose outcome this node still holds, are left
   * alone. Under `hold` a marked message becomes `uncertain`; every other one becomes `queued`. Under `hold` the
   * attempt of an unmarked message is not counted. Under `resend` it stays counted, because it may have been made.
   * Resolves to the number of recovered leases.
   */
  recover(options: {
    readonly now: number;
    readonly includeAllLeases: boolean;
    readonly includeDeadNodes: boolean;
    readonly onUncertain: 'resend' | 'hold';
    readonly node: string;
    /**
     * Recovers this node's own leases that expire by this time; default `now`. A node that lists all its leases in
     * `except` uses it to recover leases whose answer from the store was lost.
     */
    readonly ownLeasesUntil?: number;
    readonly excludedIds?: readonly string[];
  }): Promise<number>;
  /** For each message: false if its recipient is on a suppression list now. */
  checkSuppression(batch: readonly { readonly id: string }[]): Promise<readonly boolean[]>;
}

/** Expiry, retention and repair of due times. */
export interface RetentionStore {
  /** Ends up to `limit` queued messages accepted at or before `acceptedBefore` as `expired`. Resolves to their ids. */
  expire(acceptedBefore: number, now: number, limit: number, node: string): Promise<readonly string[]>;
  /**
   * Makes up to `limit` queued messages due now whose due time is after `latestDueAt`. Retries never wait that long;
   * such times remain after a clock was set back. Resolves to the number of messages.
   */
  resetExcessiveDueTimes(latestDueAt: number, now: number, limit: number): Promise<number>;
  /**
   * Purges up to `limit` bodies of messages that ended at or before `endedBefore`, and up to `limit` idempotency keys
   * stored at or before `keysBefore`. Resolves to the greater of the two counts: if it equals `limit`, there may be
   * more.
   */
  purgeBodiesAndKeys(endedBefore: number, keysBefore: number, limit: number): Promise<number>;
  /**
   * Purges up to `limit` reports received at or before `before`, up to `limit` provider references of the same age, and
   * stored reports beyond the newest `keep`. Resolves to the greatest of the counts: if it equals `limit`, there may be
   * more.
   */
  purgeFeedback(before: number, maxStored: number, limit: number): Promise<number>;
  /**
   * Purges up to `limit` minute rows that began before `minutesBefore` and up to `limit` hour rows that began before
   * `hoursBefore`. Resolves to their number.
   */
  purgeTraffic(minutesBefore: number, hoursBefore: number, limit: number): Promise<number>;
}

/** Reports about messages that a next hop has accepted. */
export interface FeedbackStore {
  /** Applies reports in order, in one transaction. If the promise rejects, nothing of the batch is stored. */
  recordFeedback(batch: readonly FeedbackReport[]): Promise<readonly FeedbackResult[]>;
  /** When the last report was received, or null. */
  lastFeedbackAt(): Promise<number | null>;
}

/** Accounts, keys and domains as running nodes cache them. */
export interface DirectoryStore {
  /** Calls `onChange` at once with everything, then within one second of any change by any process. */
  watchDirectory(onChange: (changes: DirectoryChanges) => void): Promise<void>;
  /**
   * The keys with these SHA-256 digests (hexadecimal, at most 1,000) and their accounts. Finds everything committed
   * before the call. Digests without a key are left out.
   */
  findKeys(hashes: readonly string[]): Promise<FoundKeys>;
  /** Creates an account with its first key, both or neither, if the store has no account. Otherwise null. */
  createFirstKey(
    accountName: string,
    key: { readonly name: string; readonly prefix: string; readonly hash: string },
    now: number,
  ): Promise<{ readonly account: Account; readonly key: ApiKey } | null>;
  /** Records when keys were last used. */
  updateKeysLastUsed(used: readonly { readonly id: number; readonly at: number }[]): Promise<void>;
}

/** The nodes of this store, and the running time that they share. */
export interface NodeStore {
  /**
   * In one transaction: reads the running time, advances it (`advanceRunningTime`) to the store's own time, and writes
   * it. The store's own time is the database server's where nodes share one, otherwise `now`. Resolves to the written
   * value.
   */
  updateRunningTime(elapsedMs: number, now: number): Promise<RunningTime>;
  /**
   * Records a heartbeat: the node counts as alive for `ttlMs`. Resolves to the store's own time in milliseconds since
   * the epoch: the database server's where nodes share one, otherwise `now`.
   */
  recordHeartbeat(node: NodeIdentity, ttlMs: number, now: number): Promise<number>;
  /** Removes the node. Other nodes may recover its leases at once. */
  removeNode(name: string): Promise<void>;
  /** The nodes that are alive and those that died within the last hour, by name. */
  listNodes(now: number): Promise<readonly NodeStatus[]>;
}

/** Traffic over time. */
export interface TrafficStore {
  /** Writes rows of this node; replaces what it wrote for the same spans. A crash may lose the most recent rows. */
  writeTraffic(node: string, rows: readonly TrafficRow[]): Promise<void>;
  /**
   * Sums over all nodes for each step of `stepMs` from `since` (inclusive) to `until` (exclusive), in order. Steps
   * without traffic are left out. Steps begin at multiples of `stepMs`, which is a multiple of a minute or an hour;
   * multiples of an hour are read from the hour rows.
   */
  readTraffic(since: number, until: number, stepMs: number): Promise<readonly TrafficStep[]>;
}

/** The search index. */
export interface IndexStore {
  /** The greatest stored id, or null. New ids are greater. */
  newestId(): Promise<string | null>;
  /**
   * Indexes up to some thousand messages, so that searches need not read each row. The index never changes a search
   * result. One process at a time does the work; for the others the call does nothing.
   */
  indexMessages(step: IndexStep): Promise<IndexProgress>;
}

/** Accounts, their keys and their reputation. */
export interface AccountStore {
  /** With `by`, here and below, the change is written to the audit log in the same transaction. */
  createAccount(name: string, limits: AccountLimits, now: number, actor?: Actor): Promise<ChangeResult<Account>>;
  /**
   * In one transaction. A new volume or rate restarts its count at zero. New thresholds replace the defaults. With
   * `expected`, here and below, nothing changes if the account's `accountVersion` differs.
   */
  setAccount(
    name: string,
    change: AccountChange,
    now: number,
    expected?: string,
    actor?: Actor,
  ): Promise<GuardedChangeResult<Account>>;
  lockAccount(
    name: string,
    reason: string,
    now: number,
    expected?: string,
    actor?: Actor,
  ): Promise<GuardedChangeResult<Account>>;
  unlockAccount(name: string, now: number, expected?: string, actor?: Actor): Promise<GuardedChangeResult<Account>>;
  listAccounts(): Promise<readonly Account[]>;
  /** Emails, hard bounces and complaints of the last 7 days, or since the last unlock. */
  readReputation(accountName: string, now: number): Promise<ChangeResult<WindowCounts>>;
  /** The same for all accounts that have any, by account id. */
  readAllReputations(now: number): Promise<ReadonlyMap<number, WindowCounts>>;
  createKey(
    accountName: string,
    key: { readonly name: string; readonly prefix: string; readonly hash: string; readonly expiresAt: number | null },
    now: number,
    actor?: Actor,
  ): Promise<ChangeResult<ApiKey>>;
  listKeys(accountName: string): Promise<ChangeResult<readonly ApiKey[]>>;
  revokeKey(id: number, now: number, actor?: Actor): Promise<ChangeResult<ApiKey>>;
  /** Creates a key with the old key's name. The old key expires at `oldExpiresAt`. */
  rotateKey(
    id: number,
    key: { readonly prefix: string; readonly hash: string },
    oldExpiresAt: number,
    now: number,
    actor?: Actor,
  ): Promise<ChangeResult<ApiKey>>;
}

/** Sending domains. */
export interface DomainStore {
  /** Answers `exists` if any account owns the name. */
  addDomain(
    accountName: string,
    domain: { readonly name: string; readonly subdomains: boolean; readonly keys: readonly DkimKey[] },
    now: number,
    actor?: Actor,
  ): Promise<ChangeResult<SendingDomain>>;
  findDomain(name: string): Promise<SendingDomain | null>;
  /** What the last answered check of each record found; empty before the first check. */
  findDomainChecks(name: string): Promise<readonly RecordCheck[]>;
  listDomains(): Promise<readonly SendingDomain[]>;
  /**
   * Writes the result of a check or a rotation. Every node sees it within one second. The revision does not change if
   * only times changed.
   */
  updateDomain(update: DomainUpdate, actor?: Actor): Promise<ChangeResult<SendingDomain> | { readonly kind: 'stale' }>;
  setSubdomains(name: string, subdomains: boolean, actor?: Actor): Promise<ChangeResult<SendingDomain>>;
  removeDomain(name: string, actor?: Actor): Promise<ChangeResult<SendingDomain>>;
}

/** Suppression lists. */
export interface SuppressionStore {
  /**
   * Adds addresses to a list. An address already listed keeps its reason and time. Resolves to the number of new
   * addresses, or `missing` if there is no such account.
   */
  addSuppressions(list: ListName, entries: readonly Suppression[], actor?: Actor): Promise<ChangeResult<number>>;
  /**
   * Adds one batch of an import, as `addSuppressions` does. With `by` the whole import has one audit log entry: the
   * first batch writes it, and each later batch updates its counts in the same transaction. Resolves to the number of
   * new addresses and to the entry's id for the next batch (null without `by`).
   */
  importSuppressions(
    list: ListName,
    entries: readonly Suppression[],
    step: ImportStep,
    actor?: Actor,
  ): Promise<ChangeResult<{ readonly added: number; readonly entry: number | null }>>;
  removeSuppression(list: ListName, address: string, actor?: Actor): Promise<ChangeResult<boolean>>;
  /** In order of address, starting after `after`. */
  listSuppressions(list: ListName, after: string | null, limit: number): Promise<ChangeResult<readonly Suppression[]>>;
  /**
   * The matching entries after the address `after`, in order of address, or of domain and then address. An index serves
   * the search at any list size.
   */
  searchSuppressions(
    list: ListName,
    search: SuppressionSearch,
    after: string | null,
    limit: number,
  ): Promise<ChangeResult<readonly Suppression[]>>;
  /** Every list that contains the address, `*` first. */
  findSuppression(address: string): Promise<readonly ListedSuppression[]>;
}

/** Messages, and reports that were not understood, as operators see them. */
export interface MessageStore {
  listMessages(filter: MessageFilter): Promise<readonly StoredMessageSummary[]>;
  findMessage(id: string): Promise<StoredMessage | null>;
  /** Those that exist, in the order of `ids`. Reads no message text. */
  messageHistories(ids: readonly string[]): Promise<readonly MessageHistory[]>;
  /** Works for about `budgetMs` and answers with what it has found by then. */
  searchMessages(search: MessageSearch, budgetMs: number): Promise<MessageSearchResult>;
  /** Makes a queued message due now; requeues an uncertain one. */
  retryMessage(id: string, now: number, actor?: Actor): Promise<OperatorChangeResult>;
  cancelMessage(id: string, now: number, actor?: Actor): Promise<OperatorChangeResult>;
  /** Stored reports, newest first, with ids less than `before`. */
  listFeedback(before: number | null, limit: number): Promise<readonly UnprocessedReport[]>;
  findFeedback(id: number): Promise<(UnprocessedReport & { readonly raw: Uint8Array }) | null>;
}

/** The audit log, operator tokens, and ended sessions. */
export interface AccessStore {
  /** Newest first, with ids less than `before`. */
  listAudit(before: number | null, limit: number): Promise<readonly AuditEntry[]>;
  /** Answers `exists` if another token that is not revoked has the name. */
  createToken(
    token: Pick<OperatorToken, 'name' | 'prefix' | 'hash' | 'expiresAt'>,
    now: number,
    actor?: Actor,
  ): Promise<ChangeResult<OperatorToken>>;
  listTokens(): Promise<readonly OperatorToken[]>;
  /** The tokens with these SHA-256 hashes (hexadecimal), including expired and revoked ones. */
  findTokens(hashes: readonly string[]): Promise<readonly OperatorToken[]>;
  revokeToken(id: number, now: number, actor?: Actor): Promise<ChangeResult<OperatorToken>>;
  updateTokenLastUsed(id: number, at: number): Promise<void>;
  /** Records a sign-out. The session would have expired at `until`. Entries that have expired by `now` are deleted. */
  endSession(hash: string, expiresAt: number, now: number): Promise<void>;
  isSessionEnded(hash: string): Promise<boolean>;
}

/** The figures of the overview page. */
export interface OverviewStore {
  readQueueStatistics(): Promise<QueueStatistics>;
  readOverviewData(now: number): Promise<OverviewData>;
  changeFeedPosition(now: number): Promise<ChangeFeedPosition>;
}

/**
 * Everything that an operator can see and change. With `by` a change is written to the audit log in the same
 * transaction.
 */
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

/** Every method that accesses the database. */
export type StoreMethods = AcceptStore &
  QueueStore &
  RetentionStore &
  FeedbackStore &
  DirectoryStore &
  NodeStore &
  TrafficStore &
  IndexStore &
  OperatorStore;

/** Health and shutdown of the store. */
export interface StoreLifecycle {
  /** Resolves if a write works; otherwise rejects with the store's own reason. */
  probe(): Promise<void>;
  /** Resolves, and never rejects, when the store fails for good without having been closed. */
  readonly failed: Promise<StoreError>;
  /** Closes the store and everything that it has opened, whatever fails meanwhile. */
  close(): Promise<void>;
}

export type Store = StoreMethods & StoreLifecycle;

/**
 * What a method does to the database. A store decides by it on which thread the method runs and whether a file fault
 * stops it.
 */
export type MethodKind =
  /** A change. Its answer promises that something is stored. */
  | 'change'
  /**
   * A change that records what happens in any case. It continues while the database's files are missing, because they
   * may return.
   */
  | 'outcome'
  /** A short read on the path of messages, or one that decides the next change. */
  | 'read'
  /** A read for an operator. It may take long and must not delay a change. */
  | 'question';

/** Methods that a store composes from others. */
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
  resetExcessiveDueTimes: 'change',
  purgeBodiesAndKeys: 'change',
  purgeFeedback: 'change',
  purgeTraffic: 'change',
  recordFeedback: 'change',
  lastFeedbackAt: 'question',
  findKeys: 'read',
  createFirstKey: 'change',
  updateKeysLastUsed: 'change',
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
  readReputation: 'question',
  readAllReputations: 'question',
  createKey: 'change',
  listKeys: 'read',
  revokeKey: 'change',
  rotateKey: 'change',
  addDomain: 'change',
  findDomain: 'read',
  findDomainChecks: 'read',
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
  updateTokenLastUsed: 'change',
  endSession: 'change',
  isSessionEnded: 'question',
  readQueueStatistics: 'question',
  readOverviewData: 'question',
  changeFeedPosition: 'question',
  probe: 'change',
};

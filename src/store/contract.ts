/**
 * Defines the interfaces of the store, one for each role. One test suite (test/contract) checks every implementation.
 * Each module of the service receives only the roles that it uses. A new method requires a declaration in its role, a
 * line in `METHODS`, and an implementation for each database.
 *
 * Guarantees: a message that `accept` reports as accepted is written to disk and synced. A batch is one transaction: if
 * the promise rejects, nothing of the batch is stored. Times are milliseconds since the epoch and are passed by the
 * caller. Methods reject with a StoreError. The interfaces are independent of HTTP and SMTP.
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
import type { SpanMs } from '../model/deliverability.ts';
import type { DkimKey, DomainChange, DomainUpdate, RecordCheck, SendingDomain } from '../model/domain.ts';
import type {
  AppliedReports,
  FeedbackReport,
  FeedbackResult,
  LastFeedback,
  UnprocessedReport,
} from '../model/feedback.ts';
import type {
  AcceptResult,
  BulkResult,
  BulkStep,
  Lease,
  LeasedMessage,
  LeaseRef,
  MessageFilter,
  MessageHistory,
  NewMessage,
  OperatorChangeResult,
  ResendRequest,
  ResendResult,
  Settlement,
  SettleResult,
  StoredMessage,
  StoredMessageSummary,
} from '../model/message.ts';
import type {
  DeliveryStatus,
  NodeIdentity,
  NodeStatus,
  RefusedReports,
  TokenGrant,
  TokenRequest,
} from '../model/node.ts';
import type { ChangeFeedPosition, OverviewData, QueueStatistics } from '../model/overview.ts';
import type { PackedReports } from '../model/packed-reports.ts';
import type { RunningTime } from '../model/running-time.ts';
import type {
  ListedSuppression,
  ListName,
  ProviderRemoval,
  Suppression,
  SuppressionSearch,
} from '../model/suppression.ts';
import type { TrafficRow, TrafficStep } from '../model/traffic.ts';
import type { DeliverabilityStore } from './deliverability-store.ts';
import type { StoreError } from './error.ts';
import type { InboxRuleStore } from './inbox-rule-store.ts';
import type { NotificationStore } from './notification-store.ts';
import type { IndexProgress, IndexStep } from './search/index-step.ts';
import type { MessageSearch, MessageSearchResult } from './search/query.ts';
import type { WebhookStore, WebhookWorkerStore } from './webhook-store.ts';

/**
 * Limits of one claim. The first message is leased regardless of its size, so that a large message cannot stay in the
 * queue forever.
 */
export interface ClaimLimits {
  readonly maxMessages: number;
  /** Maximum total size of the message texts, in bytes of UTF-8. */
  readonly maxBytes: number;
}

export interface ClaimedMessages {
  readonly messages: readonly LeasedMessage[];
  /** The messages that were suppressed instead of leased. */
  readonly suppressed: readonly Pick<LeasedMessage, 'id' | 'accountId' | 'to'>[];
  /** True if more messages may be due. The caller should then claim again immediately. */
  readonly hasMore: boolean;
}

/** The operations that accept messages. */
export interface AcceptStore {
  accept(batch: readonly NewMessage[]): Promise<readonly AcceptResult[]>;
  /** Resolves to the greatest stored id, or to null. Every new id is greater than this id. */
  findNewestId(): Promise<string | null>;
  /**
   * Takes tokens from the buckets that all nodes share. The time of the store determines the refill. A new bucket is
   * full. After a change of the limit, a full bucket remains full under the new limit, and any other bucket keeps its
   * tokens up to the new burst.
   */
  takeTokens(batch: readonly TokenRequest[], now: number): Promise<readonly TokenGrant[]>;
}

/** The operations on leases: claim, mark, settle, release and recover. */
export interface QueueStore {
  /**
   * Leases due messages, distributed fairly among accounts, and between first attempts and retries. Messages of locked
   * accounts are not leased. One claim examines a limited number of accounts. If it stops before it has examined every
   * account, `hasMore` is true and the next claim continues with the next account.
   */
  claim(limits: ClaimLimits, lease: Lease, now: number): Promise<ClaimedMessages>;
  /**
   * Records, with a synced commit, that the messages of these leases are about to be transmitted. Used under the policy
   * `hold`. Returns `lost` for a lease that is no longer valid, as `settle` does.
   */
  markTransmitting(batch: readonly LeaseRef[]): Promise<readonly SettleResult[]>;
  settle(batch: readonly Settlement[]): Promise<readonly SettleResult[]>;
  /**
   * Releases unused leases. The messages keep their order in the queue and their attempt count. Writes no event, so
   * that a next hop that fails repeatedly does not add an entry to the history of each message.
   */
  release(batch: readonly LeaseRef[], now: number): Promise<readonly SettleResult[]>;
  /**
   * Recovers leases that ended without an outcome: expired leases of this node (`node`) and of nodes that are not
   * alive. `includeDeadNodes` adds unexpired leases of other nodes that are not alive (see `recordHeartbeat`).
   * `includeAllLeases` adds all leases and is used when the embedded store starts. Leases of messages in `excludedIds`,
   * whose outcome this node has not stored yet, are not recovered. Under `hold` a message that `markTransmitting` has
   * marked becomes `uncertain`. An unmarked message becomes `queued`, and its attempt is not counted. Under `resend`
   * every message becomes `queued`, and its attempt stays counted, because the attempt may have been made. Resolves to
   * the number of recovered leases.
   */
  recover(options: {
    readonly now: number;
    readonly includeAllLeases: boolean;
    readonly includeDeadNodes: boolean;
    readonly onUncertain: 'resend' | 'hold';
    readonly node: string;
    /**
     * The leases of this node that expire by this time are recovered. Default: `now`. A node that lists all its known
     * leases in `excludedIds` uses a time after `now` to recover leases whose claim was committed although the response
     * was lost.
     */
    readonly ownLeasesUntil?: number;
    readonly excludedIds?: readonly string[];
  }): Promise<number>;
  /** Returns false for each message whose recipient is on a suppression list now, and true for every other message. */
  checkSuppression(batch: readonly { readonly id: string }[]): Promise<readonly boolean[]>;
}

/** The operations that expire messages, purge old data and repair due times. */
export interface RetentionStore {
  /**
   * Expires up to `limit` queued messages that were accepted at or before `acceptedBefore`. Resolves to the ids of
   * these messages.
   */
  expire(acceptedBefore: number, now: number, limit: number, node: string): Promise<readonly string[]>;
  /**
   * Sets the due time to `now` for up to `limit` queued messages whose due time is after `latestDueAt`. No retry is
   * scheduled that late, so such a due time was stored before the clock was set back. Resolves to the number of changed
   * messages.
   */
  resetExcessiveDueTimes(latestDueAt: number, now: number, limit: number): Promise<number>;
  /**
   * Purges up to `limit` bodies of messages that reached a terminal state at or before `endedBefore`, and up to `limit`
   * idempotency keys stored at or before `keysBefore`. Resolves to the greater of the two counts. If it equals `limit`,
   * more rows may remain.
   */
  purgeBodiesAndKeys(endedBefore: number, keysBefore: number, limit: number): Promise<number>;
  /**
   * Purges reports received at or before `before`, provider references of the same age, and unprocessed reports that
   * are not among the newest `maxStored`: up to `limit` of each kind. Resolves to the greatest of the counts. If it
   * equals `limit`, more rows may remain.
   */
  purgeFeedback(before: number, maxStored: number, limit: number): Promise<number>;
  /**
   * Purges up to `limit` minute rows that began before `minuteRowsBefore` and up to `limit` hour rows that began before
   * `hourRowsBefore`. Resolves to the number of purged rows.
   */
  purgeTraffic(minuteRowsBefore: number, hourRowsBefore: number, limit: number): Promise<number>;
  /**
   * Purges up to `limit` deliverability rows that have the span `spanMs` and began before `before`. Resolves to the
   * number of purged rows.
   */
  purgeDeliverability(spanMs: SpanMs, before: number, limit: number): Promise<number>;
  /**
   * Purges up to `limit` mailbox providers whose last lookup was before `before`, and up to `limit` mailbox providers
   * that are not among the newest `maxStored`. Resolves to the greater of the two counts.
   */
  purgeMailboxProviders(before: number, maxStored: number, limit: number): Promise<number>;
}

/** The operations that apply reports about messages that a next hop has accepted. */
export interface FeedbackStore {
  /** Applies a batch of reports in one transaction. If the promise rejects, nothing of the batch is stored. */
  recordFeedback(batch: readonly FeedbackReport[]): Promise<readonly FeedbackResult[]>;
  /** Applies the packed reports of provider events in one transaction, like `recordFeedback`. */
  recordPackedFeedback(batch: PackedReports): Promise<readonly FeedbackResult[]>;
  /**
   * Applies up to `limit` pending reports that are due at `now`, each at most once on all nodes. A report whose message
   * is not yet settled is postponed.
   */
  applyPendingReports(now: number, limit: number): Promise<AppliedReports>;
  /** Resolves to the time of the last received report, or to null. */
  findLastFeedbackAt(): Promise<number | null>;
  /**
   * Resolves, for each source, to the time of its last report that changed a message or the history of a message. Only
   * the newest million reports are read, so that the duration is limited. A source without such a report is omitted.
   */
  listLastFeedback(): Promise<readonly LastFeedback[]>;
}

/** The operations for the nodes' caches of accounts, keys and domains. */
export interface DirectoryStore {
  /** Calls `onChange` immediately with all entries, and then within one second of each change by any process. */
  watchDirectory(onChange: (changes: DirectoryChanges) => void): Promise<void>;
  /**
   * Returns the keys with these SHA-256 digests (hexadecimal, at most 1,000) and their accounts. Includes everything
   * committed before the call. Digests without a key are omitted.
   */
  findKeys(hashes: readonly string[]): Promise<FoundKeys>;
  /**
   * Creates an account if the store has no account. In the same transaction, creates its first key unless `key` is
   * null. Resolves to null if the store has an account.
   */
  createFirstAccount(
    accountName: string,
    key: { readonly name: string; readonly prefix: string; readonly hash: string } | null,
    now: number,
  ): Promise<{ readonly account: Account; readonly key: ApiKey | null } | null>;
  /** Records when keys were last used. */
  updateKeysLastUsed(used: readonly { readonly id: number; readonly at: number }[]): Promise<void>;
}

/** The operations on the nodes of this store, and on the running time that the nodes share. */
export interface NodeStore {
  /**
   * Reads the running time, advances it (`advanceRunningTime`) to the time of the store, and writes it, in one
   * transaction. The time of the store is the time of the database server, or `now` on the embedded store. Resolves to
   * the written value.
   */
  updateRunningTime(elapsedMs: number, now: number): Promise<RunningTime>;
  /**
   * Records a heartbeat: the node is alive for `ttlMs`. Resolves to the time of the store in milliseconds since the
   * epoch. This time is the time of the database server, or `now` on the embedded store. `refused` replaces the refused
   * reports of the node, and `delivery` replaces its delivery status. Default: none.
   */
  recordHeartbeat(
    node: NodeIdentity,
    ttlMs: number,
    now: number,
    refused?: readonly RefusedReports[],
    delivery?: DeliveryStatus | null,
  ): Promise<number>;
  /** Removes the node. After the removal, other nodes may recover the leases of this node immediately. */
  removeNode(name: string): Promise<void>;
  /**
   * Lists the nodes that are alive, and those whose liveness timeout expired within the last hour, in order of name.
   */
  listNodes(now: number): Promise<readonly NodeStatus[]>;
}

/** The operations on the traffic time series. */
export interface TrafficStore {
  /**
   * Writes rows of this node. Replaces the node's rows for the same time spans. A crash may lose the most recent rows.
   */
  writeTraffic(node: string, rows: readonly TrafficRow[]): Promise<void>;
  /**
   * Returns sums over all nodes for each step of `stepMs` from `since` (inclusive) to `until` (exclusive), in order.
   * Steps without traffic are omitted. Steps begin at multiples of `stepMs`, which is a multiple of one minute. If
   * `stepMs` is a multiple of one hour, the hour rows are read.
   */
  readTraffic(since: number, until: number, stepMs: number): Promise<readonly TrafficStep[]>;
}

/** The operations that maintain the search index. */
export interface IndexStore {
  /** Resolves to the greatest stored id, or to null. Every new id is greater than this id. */
  findNewestId(): Promise<string | null>;
  /**
   * Indexes up to a few thousand messages, so that a search does not read each row. The index does not change the
   * result of a search. Only one process at a time builds the index. In other processes the call does nothing.
   */
  indexMessages(step: IndexStep): Promise<IndexProgress>;
}

/** An API key to store. */
export interface NewKey {
  readonly name: string;
  readonly prefix: string;
  readonly hash: string;
  readonly expiresAt: number | null;
}

/** The operations on accounts, their keys and their reputation. */
export interface AccountStore {
  /**
   * Creates an account. If `actor` is given, the change is written to the audit log in the same transaction. The same
   * applies to `actor` in the other methods of this interface.
   */
  createAccount(name: string, limits: AccountLimits, now: number, actor?: Actor): Promise<ChangeResult<Account>>;
  /**
   * Changes the account in one transaction. A new volume or rate limit restarts its count at zero. New reputation
   * thresholds replace the current ones. If `expected` is given and the account's version (`computeAccountVersion`)
   * differs, nothing changes. The same applies to `expected` in the other methods of this interface.
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
  /**
   * Returns the numbers of messages, hard bounces and complaints of the last 7 days. Counts from before the last unlock
   * of the account are not included.
   */
  readReputation(accountName: string, now: number): Promise<ChangeResult<WindowCounts>>;
  /** Returns the counts of `readReputation` for all accounts with a count greater than zero, by account id. */
  readAllReputations(now: number): Promise<ReadonlyMap<number, WindowCounts>>;
  /** Stores a generated key. Returns `exists` if a key with this hash is stored, in any account and any state. */
  createKey(accountName: string, key: NewKey, now: number, actor?: Actor): Promise<ChangeResult<ApiKey>>;
  /**
   * Stores a key that the operator has supplied, as `createKey` stores a generated key. The action in the audit log
   * entry differs from that of `createKey`.
   */
  importKey(accountName: string, key: NewKey, now: number, actor?: Actor): Promise<ChangeResult<ApiKey>>;
  listKeys(accountName: string): Promise<ChangeResult<readonly ApiKey[]>>;
  revokeKey(id: number, now: number, actor?: Actor): Promise<ChangeResult<ApiKey>>;
  /** Creates a key with the name of the old key. The old key expires at `oldExpiresAt`. */
  rotateKey(
    id: number,
    key: { readonly prefix: string; readonly hash: string },
    oldExpiresAt: number,
    now: number,
    actor?: Actor,
  ): Promise<ChangeResult<ApiKey>>;
}

/** `used`: the name is used by the domain `by`, as its name or as its return path. Nothing is changed. */
export type DomainNameResult = ChangeResult<SendingDomain> | { readonly kind: 'used'; readonly by: string };

/** The operations on sending domains. */
export interface DomainStore {
  /** Returns `exists` if any account owns the name, and `used` if the name is the return path of a domain. */
  addDomain(
    accountName: string,
    domain: { readonly name: string; readonly subdomains: boolean; readonly keys: readonly DkimKey[] },
    now: number,
    actor?: Actor,
  ): Promise<DomainNameResult>;
  findDomain(name: string): Promise<SendingDomain | null>;
  /** Returns the result of the last answered check of each record. The list is empty before the first check. */
  findDomainChecks(name: string): Promise<readonly RecordCheck[]>;
  listDomains(): Promise<readonly SendingDomain[]>;
  /**
   * Writes the result of a check or a rotation. Every node reads the result within one second. The revision does not
   * change if only the times of checks changed.
   */
  updateDomain(update: DomainUpdate, actor?: Actor): Promise<ChangeResult<SendingDomain> | { readonly kind: 'stale' }>;
  /**
   * Changes the domain. A new return path is unverified until its records are checked. Returns `used` if the return
   * path is the name of a domain or the return path of another domain.
   */
  setDomain(name: string, change: DomainChange, actor?: Actor): Promise<DomainNameResult>;
  removeDomain(name: string, actor?: Actor): Promise<ChangeResult<SendingDomain>>;
}

/** The operations on suppression lists. */
export interface SuppressionStore {
  /**
   * Adds addresses to a list. An address that is already listed keeps its reason and time. Resolves to the number of
   * new addresses, or to `missing` if the account does not exist.
   */
  addSuppressions(list: ListName, entries: readonly Suppression[], actor?: Actor): Promise<ChangeResult<number>>;
  /**
   * Adds one batch of an import to a list, in the same way as `addSuppressions`. With `actor` the whole import has one
   * audit log entry. The first batch writes the entry. Each later batch updates the counts of the entry in its own
   * transaction. Resolves to the number of new addresses and to the id of the entry, which the next batch requires
   * (null without `actor`).
   */
  importSuppressions(
    list: ListName,
    entries: readonly Suppression[],
    step: ImportStep,
    actor?: Actor,
  ): Promise<ChangeResult<{ readonly added: number; readonly entry: number | null }>>;
  /**
   * Removes an address from a list. Resolves to false if the list does not contain the address. `providerRemoval`
   * describes the removal of the address from the list of a provider. The caller has already completed this removal.
   * The audit log entry names the provider, and is also written if only the list of the provider contained the address.
   */
  removeSuppression(
    list: ListName,
    address: string,
    providerRemoval?: ProviderRemoval,
    actor?: Actor,
  ): Promise<ChangeResult<boolean>>;
  /** Lists the entries after the address `after`, in order of address. */
  listSuppressions(list: ListName, after: string | null, limit: number): Promise<ChangeResult<readonly Suppression[]>>;
  /**
   * Returns the entries after the address `after` that match `search`. A search by address returns them in order of
   * address, and a search by domain in order of domain and then address. The search uses an index.
   */
  searchSuppressions(
    list: ListName,
    search: SuppressionSearch,
    after: string | null,
    limit: number,
  ): Promise<ChangeResult<readonly Suppression[]>>;
  /** Returns the entry of each list that contains the address. The entry of the list `*` is the first entry. */
  findSuppression(address: string): Promise<readonly ListedSuppression[]>;
  /** Returns the addresses of `addresses` that at least one list contains, in any order. */
  findSuppressed(addresses: readonly string[]): Promise<readonly string[]>;
}

/** The operations of operators on messages, and on reports that could not be processed. */
export interface MessageStore {
  listMessages(filter: MessageFilter): Promise<readonly StoredMessageSummary[]>;
  findMessage(id: string): Promise<StoredMessage | null>;
  /** Returns the histories of the messages that exist, in the order of `ids`. Does not read message texts. */
  readMessageHistories(ids: readonly string[]): Promise<readonly MessageHistory[]>;
  /** Searches for about `budgetMs` and returns the messages found in that time. */
  searchMessages(search: MessageSearch, budgetMs: number): Promise<MessageSearchResult>;
  /** Makes a queued message due now. Requeues an uncertain message. */
  retryMessage(id: string, now: number, actor?: Actor): Promise<OperatorChangeResult>;
  cancelMessage(id: string, now: number, actor?: Actor): Promise<OperatorChangeResult>;
  /**
   * Submits an ended message again as a new message, which is accepted like any other message: the suppression lists,
   * the volume and the rate limit apply. The histories of the ended message and of the new message refer to each other.
   * The acceptance, both history entries and the audit log entry are written in one transaction.
   */
  resendMessage(request: ResendRequest, now: number, actor?: Actor): Promise<ResendResult>;
  /**
   * Performs one batch of an action on many messages in one transaction. A message whose state does not allow the
   * action is refused, and a message that was resent before is not resent again. All batches of the action share one
   * audit log entry: the first batch writes it, and each later batch of the same actor and filter updates its counts.
   */
  changeMessages(step: BulkStep, now: number, actor?: Actor): Promise<BulkResult>;
  /** Lists stored reports with ids less than `before`, newest first. */
  listFeedback(before: number | null, limit: number): Promise<readonly UnprocessedReport[]>;
  findFeedback(id: number): Promise<(UnprocessedReport & { readonly raw: Uint8Array }) | null>;
}

/** The operations on the audit log, operator tokens, and ended sessions. */
export interface AccessStore {
  /** Lists entries with ids less than `before`, newest first. */
  listAudit(before: number | null, limit: number): Promise<readonly AuditEntry[]>;
  /** Returns `exists` if another token that is not revoked has the name. */
  createToken(
    token: Pick<OperatorToken, 'name' | 'prefix' | 'hash' | 'expiresAt'>,
    now: number,
    actor?: Actor,
  ): Promise<ChangeResult<OperatorToken>>;
  listTokens(): Promise<readonly OperatorToken[]>;
  /** Returns the tokens with these SHA-256 hashes (hexadecimal), including expired and revoked ones. */
  findTokens(hashes: readonly string[]): Promise<readonly OperatorToken[]>;
  revokeToken(id: number, now: number, actor?: Actor): Promise<ChangeResult<OperatorToken>>;
  updateTokenLastUsed(id: number, at: number): Promise<void>;
  /**
   * Records a sign-out of a session that would have expired at `expiresAt`. Deletes entries that have expired by `now`.
   */
  endSession(hash: string, expiresAt: number, now: number): Promise<void>;
  isSessionEnded(hash: string): Promise<boolean>;
}

/** The operations that read the data of the overview page. */
export interface OverviewStore {
  readQueueStatistics(): Promise<QueueStatistics>;
  /** Resolves to at most `maxItems` items of each kind, by default `MAX_OVERVIEW_ITEMS`. */
  readOverviewData(now: number, maxItems?: number): Promise<OverviewData>;
  readChangeFeedPosition(now: number): Promise<ChangeFeedPosition>;
}

/**
 * The operations that read and change data for an operator. With `actor` a change is written to the audit log in the
 * same transaction.
 */
export interface OperatorStore
  extends AccountStore,
    DomainStore,
    SuppressionStore,
    MessageStore,
    AccessStore,
    OverviewStore,
    WebhookStore,
    Pick<InboxRuleStore, 'addInboxRule' | 'listInboxRules' | 'removeInboxRule'>,
    Pick<NotificationStore, 'listNotifications'>,
    Pick<AcceptStore, 'findNewestId'>,
    Pick<NodeStore, 'listNodes'>,
    Pick<TrafficStore, 'readTraffic'>,
    Pick<DeliverabilityStore, 'readDeliverability' | 'findMailboxProviders' | 'listMailboxProviderDomains'>,
    Pick<FeedbackStore, 'findLastFeedbackAt' | 'listLastFeedback'>,
    Pick<StoreLifecycle, 'probe'> {}

/** Every method that accesses the database. */
export type StoreMethods = AcceptStore &
  QueueStore &
  RetentionStore &
  FeedbackStore &
  DirectoryStore &
  NodeStore &
  TrafficStore &
  DeliverabilityStore &
  IndexStore &
  WebhookWorkerStore &
  NotificationStore &
  InboxRuleStore &
  OperatorStore;

/** The operations that probe and close the store. */
export interface StoreLifecycle {
  /**
   * Probes the store with a write. Resolves if the write succeeds; otherwise rejects with the error of the database.
   */
  probe(): Promise<void>;
  /** Resolves when the store fails permanently before `close` is called. Never rejects. */
  readonly failed: Promise<StoreError>;
  /** Closes the store and all its threads and connections, even if one of them fails to close. */
  close(): Promise<void>;
}

export type Store = StoreMethods & StoreLifecycle;

/**
 * The kind of access of a method to the database. In the embedded store, the kind determines the thread on which the
 * method runs, and whether the method fails when database files are missing. The PostgreSQL store does not use the
 * kind.
 */
export type MethodKind =
  /** A change. A successful result guarantees that the change is stored. */
  | 'change'
  /**
   * A change that records an event which this call cannot prevent, such as the outcome of an attempt. The change is
   * also executed while database files are missing, because the files may be restored.
   */
  | 'outcome'
  /** A short read on which the processing of messages or the next change depends. */
  | 'read'
  /** A read for an operator, which may take a long time and must not delay a change. */
  | 'operator-read';

export function isRead(kind: MethodKind): boolean {
  return kind === 'read' || kind === 'operator-read';
}

/** The methods that a store implements by means of other methods. */
export type ComposedMethod = 'watchDirectory' | 'indexMessages';
export type MethodName = Exclude<keyof StoreMethods, ComposedMethod>;

export const METHODS: Readonly<Record<MethodName, MethodKind>> = {
  accept: 'change',
  findNewestId: 'read',
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
  purgeDeliverability: 'change',
  purgeMailboxProviders: 'change',
  recordFeedback: 'change',
  recordPackedFeedback: 'change',
  applyPendingReports: 'change',
  findLastFeedbackAt: 'operator-read',
  listLastFeedback: 'operator-read',
  findKeys: 'read',
  createFirstAccount: 'change',
  updateKeysLastUsed: 'change',
  updateRunningTime: 'change',
  recordHeartbeat: 'outcome',
  removeNode: 'outcome',
  listNodes: 'read',
  writeTraffic: 'change',
  readTraffic: 'operator-read',
  writeDeliverability: 'change',
  readDeliverability: 'operator-read',
  writeMailboxProviders: 'change',
  findMailboxProviders: 'operator-read',
  listMailboxProviderDomains: 'operator-read',
  createAccount: 'change',
  setAccount: 'change',
  lockAccount: 'change',
  unlockAccount: 'change',
  listAccounts: 'read',
  readReputation: 'operator-read',
  readAllReputations: 'operator-read',
  createKey: 'change',
  importKey: 'change',
  listKeys: 'read',
  revokeKey: 'change',
  rotateKey: 'change',
  addDomain: 'change',
  findDomain: 'read',
  findDomainChecks: 'read',
  listDomains: 'read',
  updateDomain: 'change',
  setDomain: 'change',
  removeDomain: 'change',
  addSuppressions: 'change',
  importSuppressions: 'change',
  removeSuppression: 'change',
  listSuppressions: 'operator-read',
  searchSuppressions: 'operator-read',
  findSuppression: 'operator-read',
  findSuppressed: 'operator-read',
  listMessages: 'operator-read',
  findMessage: 'operator-read',
  readMessageHistories: 'operator-read',
  searchMessages: 'operator-read',
  retryMessage: 'change',
  cancelMessage: 'change',
  resendMessage: 'change',
  changeMessages: 'change',
  listFeedback: 'operator-read',
  findFeedback: 'operator-read',
  listAudit: 'operator-read',
  createToken: 'change',
  listTokens: 'read',
  findTokens: 'read',
  revokeToken: 'change',
  updateTokenLastUsed: 'change',
  endSession: 'change',
  isSessionEnded: 'operator-read',
  readQueueStatistics: 'operator-read',
  readOverviewData: 'operator-read',
  readChangeFeedPosition: 'operator-read',
  createWebhook: 'change',
  listWebhooks: 'read',
  findWebhook: 'read',
  updateWebhook: 'change',
  enableWebhook: 'change',
  disableWebhook: 'change',
  rotateWebhookSecret: 'change',
  deleteWebhook: 'change',
  addTestDelivery: 'change',
  listDeliveries: 'operator-read',
  findDelivery: 'operator-read',
  listDeliveryLeases: 'operator-read',
  replayDelivery: 'change',
  replayDeliveries: 'change',
  countReplayable: 'operator-read',
  releaseDeliveries: 'change',
  readWebhookStatistics: 'operator-read',
  fanOutEvents: 'change',
  claimDeliveries: 'outcome',
  settleDeliveries: 'outcome',
  releaseDeliveryLeases: 'outcome',
  recoverDeliveries: 'outcome',
  disableFailingWebhooks: 'change',
  purgeDeliveries: 'change',
  readAttentionCheck: 'read',
  recordAttention: 'change',
  claimNotifications: 'change',
  settleNotification: 'outcome',
  listNotifications: 'operator-read',
  purgeNotifications: 'change',
  addInboxRule: 'change',
  listInboxRules: 'read',
  removeInboxRule: 'change',
  consumeInboxRules: 'outcome',
  probe: 'change',
};

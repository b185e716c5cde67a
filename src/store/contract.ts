/**
 * The interfaces of the store, one for each role; a module of the service receives only the roles that it uses. `Nouns`
 * are the methods that are written once for both databases and documented there. A method needs a line in `METHODS`.
 *
 * A message that `accept` reports as accepted is written to disk and synced. A batch is one transaction: if the promise
 * rejects, nothing of the batch is stored. Times are milliseconds since the epoch and are passed by the caller. With
 * `actor` a change is written to the audit log in the same transaction. Methods reject with a StoreError.
 */
import type { DirectoryChanges } from '../model/account.ts';
import type { AppliedReports, FeedbackReport, FeedbackResult } from '../model/feedback.ts';
import type {
  AcceptResult,
  Lease,
  LeasedMessage,
  LeaseRef,
  NewMessage,
  Settlement,
  SettleResult,
} from '../model/message.ts';
import type {
  DeliveryStatus,
  NodeIdentity,
  NodeStatus,
  RefusedReports,
  TokenGrant,
  TokenRequest,
} from '../model/node.ts';
import type { PackedReports } from '../model/packed-reports.ts';
import type { RunningTime } from '../model/running-time.ts';
import type { StoreError } from './error.ts';
import type { Nouns } from './nouns.ts';
import type { IndexStore } from './search/indexer.ts';
import type { MessageSearch, MessageSearchResult } from './search/query.ts';
import type { WebhookStore, WebhookWorkerStore } from './webhook-store.ts';

export type { NewKey } from './accounts.ts';
export type { DomainNameResult } from './domains.ts';
export type { AttentionRecord } from './notifications.ts';

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

export interface AcceptStore extends Pick<Nouns, 'findNewestId'> {
  accept(batch: readonly NewMessage[]): Promise<readonly AcceptResult[]>;
  /**
   * Takes tokens from the buckets that all nodes share. The time of the store determines the refill. A new bucket is
   * full. After a change of the limit, a full bucket remains full under the new limit, and any other bucket keeps its
   * tokens up to the new burst.
   */
  takeTokens(batch: readonly TokenRequest[], now: number): Promise<readonly TokenGrant[]>;
}

export interface QueueStore extends Pick<Nouns, 'checkSuppression'> {
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
}

export interface RetentionStore
  extends Pick<Nouns, 'purgeFeedback' | 'purgeTraffic' | 'purgeDeliverability' | 'purgeMailboxProviders'> {
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
}

export interface FeedbackStore extends Pick<Nouns, 'findLastFeedbackAt' | 'listLastFeedback'> {
  /** Applies a batch of reports in one transaction. If the promise rejects, nothing of the batch is stored. */
  recordFeedback(batch: readonly FeedbackReport[]): Promise<readonly FeedbackResult[]>;
  /** Applies the packed reports of provider events in one transaction, like `recordFeedback`. */
  recordPackedFeedback(batch: PackedReports): Promise<readonly FeedbackResult[]>;
  /**
   * Applies up to `limit` pending reports that are due at `now`, each at most once on all nodes. A report whose message
   * is not yet settled is postponed.
   */
  applyPendingReports(now: number, limit: number): Promise<AppliedReports>;
}

export interface DirectoryStore extends Pick<Nouns, 'findKeys' | 'createFirstAccount' | 'updateKeysLastUsed'> {
  /** Calls `onChange` immediately with all entries, and then within one second of each change by any process. */
  watchDirectory(onChange: (changes: DirectoryChanges) => void): Promise<void>;
}

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

export type TrafficStore = Pick<Nouns, 'writeTraffic' | 'readTraffic'>;

/** A crash may lose the most recent writes. */
export type DeliverabilityStore = Pick<
  Nouns,
  | 'writeDeliverability'
  | 'readDeliverability'
  | 'writeMailboxProviders'
  | 'findMailboxProviders'
  | 'listMailboxProviderDomains'
>;

export type AccountStore = Pick<
  Nouns,
  | 'createAccount'
  | 'setAccount'
  | 'lockAccount'
  | 'unlockAccount'
  | 'listAccounts'
  | 'readReputation'
  | 'readAllReputations'
  | 'createKey'
  | 'importKey'
  | 'listKeys'
  | 'revokeKey'
  | 'rotateKey'
>;

export type DomainStore = Pick<
  Nouns,
  'addDomain' | 'findDomain' | 'findDomainChecks' | 'listDomains' | 'updateDomain' | 'setDomain' | 'removeDomain'
>;

export type SuppressionStore = Pick<
  Nouns,
  | 'addSuppressions'
  | 'importSuppressions'
  | 'removeSuppression'
  | 'listSuppressions'
  | 'searchSuppressions'
  | 'findSuppression'
  | 'findSuppressed'
>;

export interface MessageStore
  extends Pick<
    Nouns,
    | 'listMessages'
    | 'findMessage'
    | 'readMessageHistories'
    | 'retryMessage'
    | 'cancelMessage'
    | 'resendMessage'
    | 'changeMessages'
    | 'listFeedback'
    | 'findFeedback'
  > {
  /** Searches for about `budgetMs` and returns the messages found in that time. */
  searchMessages(search: MessageSearch, budgetMs: number): Promise<MessageSearchResult>;
}

/** The audit log, operator tokens, and ended sessions. */
export type AccessStore = Pick<
  Nouns,
  | 'listAudit'
  | 'createToken'
  | 'listTokens'
  | 'findTokens'
  | 'revokeToken'
  | 'updateTokenLastUsed'
  | 'endSession'
  | 'isSessionEnded'
>;

export type OverviewStore = Pick<Nouns, 'readQueueStatistics' | 'readOverviewData' | 'readChangeFeedPosition'>;

export type NotificationStore = Pick<
  Nouns,
  | 'readAttentionCheck'
  | 'recordAttention'
  | 'claimNotifications'
  | 'settleNotification'
  | 'listNotifications'
  | 'purgeNotifications'
>;

export type InboxRuleStore = Pick<Nouns, 'addInboxRule' | 'listInboxRules' | 'removeInboxRule' | 'consumeInboxRules'>;

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

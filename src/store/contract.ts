/**
 * The interfaces of the store, one for each role; a module of the service receives only the roles that it uses. `Nouns`
 * are the methods that are written once for both databases and documented there.
 *
 * A message that `accept` reports as accepted is written to disk and synced. A batch is one transaction: if the promise
 * rejects, nothing of the batch is stored. Times are milliseconds since the epoch and are passed by the caller. With
 * `actor` a change is written to the audit log in the same transaction. Methods reject with a StoreError.
 */
import type { DirectoryChanges } from '../model/account.ts';
import type { FeedbackReport, FeedbackResult, PackedReports } from '../model/feedback.ts';
import type {
  AcceptResult,
  Lease,
  LeasedMessage,
  LeaseRef,
  NewMessage,
  ParkReason,
  Settlement,
  SettleResult,
} from '../model/message.ts';
import type * as accounts from './accounts.ts';
import type * as credentials from './credentials.ts';
import type * as deliveries from './deliveries.ts';
import type * as domains from './domains.ts';
import type { StoreError } from './error.ts';
import type * as holds from './holds.ts';
import type * as inboxRules from './inbox-rules.ts';
import type * as messages from './messages.ts';
import type * as nodes from './nodes.ts';
import type * as notifications from './notifications.ts';
import type { Bound, NounMethod, Nouns } from './nouns.ts';
import type * as overview from './overview.ts';
import type * as routes from './routes.ts';
import type { IndexStore } from './search/indexer.ts';
import type { MessageSearch, MessageSearchResult } from './search/query.ts';
import type * as senders from './senders.ts';
import type * as suppressions from './suppressions.ts';
import type * as webhooks from './webhooks.ts';

export type { NewKey } from './accounts.ts';
export type { DeliveryClaimLimits, DeliveryRecovery } from './deliveries.ts';
export type { DomainNameResult } from './domains.ts';
export type { AttentionRecord } from './notifications.ts';

/** The first message is leased regardless of its size, so that a large message cannot stay in the queue forever. */
export interface ClaimLimits {
  readonly maxMessages: number;
  /** Maximum total size of the message texts, in bytes of UTF-8. */
  readonly maxBytes: number;
}

export interface ClaimedMessages {
  readonly messages: readonly LeasedMessage[];
  readonly suppressed: readonly Pick<LeasedMessage, 'id' | 'accountId' | 'to'>[];
  readonly hasMore: boolean;
}

export interface AcceptStore extends Pick<Nouns, 'findNewestId' | 'takeTokens'> {
  accept(batch: readonly NewMessage[]): Promise<readonly AcceptResult[]>;
}

export interface QueueStore extends Pick<Nouns, 'checkSuppression' | 'recover' | 'listParked' | 'unpark'> {
  /**
   * Fair among accounts, and between first attempts and retries. One claim examines a limited number of accounts; the
   * next one continues with the next account.
   */
  claim(limits: ClaimLimits, lease: Lease, now: number): Promise<ClaimedMessages>;
  /** Under the policy `hold`: records, with a synced commit, that the messages are about to be transmitted. */
  markTransmitting(batch: readonly LeaseRef[]): Promise<readonly SettleResult[]>;
  settle(batch: readonly Settlement[]): Promise<readonly SettleResult[]>;
  /** Releases unused leases without an event, so that a failing next hop does not fill the histories. */
  release(batch: readonly LeaseRef[], now: number): Promise<readonly SettleResult[]>;
  /** Also without an event. No claim finds the messages until `unpark`. */
  park(batch: readonly LeaseRef[], reason: ParkReason, now: number): Promise<readonly SettleResult[]>;
}

export type RetentionStore = Pick<
  Nouns,
  | 'expire'
  | 'listExpiring'
  | 'parkQueued'
  | 'resetExcessiveDueTimes'
  | 'purgeBodiesAndKeys'
  | 'purgeMessages'
  | 'purgeAudit'
  | 'purgeFeedback'
  | 'purgeSuppressions'
  | 'purgeTraffic'
  | 'purgeDeliverability'
  | 'purgeMailboxProviders'
>;

export interface FeedbackStore extends Pick<Nouns, 'applyPendingReports' | 'findLastFeedbackAt' | 'listLastFeedback'> {
  recordFeedback(batch: readonly FeedbackReport[]): Promise<readonly FeedbackResult[]>;
  recordPackedFeedback(batch: PackedReports): Promise<readonly FeedbackResult[]>;
}

export interface DirectoryStore extends Pick<Nouns, 'findKeys' | 'createFirstAccount' | 'updateKeysLastUsed'> {
  /** Calls `onChange` immediately with all entries, and then within one second of each change by any process. */
  watchDirectory(onChange: (changes: DirectoryChanges) => void): Promise<void>;
}

export type NodeStore = Bound<typeof nodes>;

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

export type AccountStore = Omit<Bound<typeof accounts>, 'readWindow' | 'createFirstAccount' | 'updateKeysLastUsed'>;

export type SenderStore = Bound<typeof senders>;

export type DomainStore = Omit<Bound<typeof domains>, 'readDomainsSince'>;

export type SuppressionStore = Omit<
  Bound<typeof suppressions>,
  'checkSuppression' | 'purgeSuppressions' | 'readSuppressions' | 'ON_LISTED'
>;

export interface MessageStore
  extends Omit<Bound<typeof messages>, 'findNewestId' | 'readQueueStatistics'>,
    Pick<Nouns, 'listFeedback' | 'findFeedback'> {
  searchMessages(search: MessageSearch, budgetMs: number): Promise<MessageSearchResult>;
}

export type AccessStore = Bound<typeof credentials> & Pick<Nouns, 'listAudit'>;

export type OverviewStore = Bound<typeof overview> & Pick<Nouns, 'readQueueStatistics'>;

/** The operations of operators on endpoints and deliveries. */
export type WebhookStore = Bound<typeof webhooks>;

export type WebhookWorkerStore = Bound<typeof deliveries>;

export type NotificationStore = Bound<typeof notifications>;

export type HoldStore = Omit<Bound<typeof holds>, 'readHoldsSince'>;

export type InboxRuleStore = Bound<typeof inboxRules>;

export type RouteStore = Omit<Bound<typeof routes>, 'readRoutingSince'>;

export interface OperatorStore
  extends AccountStore,
    DomainStore,
    SenderStore,
    SuppressionStore,
    MessageStore,
    AccessStore,
    OverviewStore,
    WebhookStore,
    HoldStore,
    Pick<InboxRuleStore, 'addInboxRule' | 'listInboxRules' | 'removeInboxRule'>,
    Pick<NotificationStore, 'listNotifications'>,
    Omit<RouteStore, 'recordRouteUse'>,
    Pick<AcceptStore, 'findNewestId'>,
    Pick<NodeStore, 'listNodes'>,
    Pick<TrafficStore, 'readTraffic'>,
    Pick<DeliverabilityStore, 'readDeliverability' | 'findMailboxProviders' | 'listMailboxProviderDomains'>,
    Pick<FeedbackStore, 'findLastFeedbackAt' | 'listLastFeedback'>,
    Pick<QueueStore, 'listParked'>,
    Pick<StoreLifecycle, 'probe'> {}

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
  RouteStore &
  OperatorStore;

export interface StoreLifecycle {
  probe(): Promise<void>;
  /** Resolves when the store fails permanently before `close` is called. Never rejects. */
  readonly failed: Promise<StoreError>;
  close(): Promise<void>;
}

export type Store = StoreMethods & StoreLifecycle;

/** Determines the thread of the embedded store, and whether the method fails when database files are missing. */
export type MethodKind =
  /** A change. A successful result guarantees that the change is stored. */
  | 'change'
  /**
   * A change that records what this call cannot prevent, such as the outcome of an attempt. It is also executed while
   * database files are missing, because they may be restored.
   */
  | 'outcome'
  /** A short read on which the processing of messages or the next change depends. */
  | 'read'
  /** A read for an operator, which may take a long time and must not delay a change. */
  | 'operator-read';

export function isRead(kind: MethodKind): boolean {
  return kind === 'read' || kind === 'operator-read';
}

export type ComposedMethod = 'watchDirectory' | 'indexMessages';
export type MethodName = Exclude<keyof StoreMethods, ComposedMethod>;

/** The methods that each database implements in its own way. */
export const HOT_METHODS: Readonly<Record<Exclude<MethodName, NounMethod>, MethodKind>> = {
  accept: 'change',
  claim: 'outcome',
  markTransmitting: 'change',
  settle: 'outcome',
  release: 'outcome',
  park: 'outcome',
  recordFeedback: 'change',
  recordPackedFeedback: 'change',
  searchMessages: 'operator-read',
  probe: 'change',
};

/** Of the methods that are written once. All others are changes. */
const NOUN_KINDS: { readonly [Name in NounMethod]?: Exclude<MethodKind, 'change'> } = {
  findNewestId: 'read',
  checkSuppression: 'read',
  findLastFeedbackAt: 'operator-read',
  listLastFeedback: 'operator-read',
  findKeys: 'read',
  readTraffic: 'operator-read',
  readDeliverability: 'operator-read',
  findMailboxProviders: 'operator-read',
  listMailboxProviderDomains: 'operator-read',
  listAccounts: 'read',
  readReputation: 'operator-read',
  readAllReputations: 'operator-read',
  listKeys: 'read',
  findDomain: 'read',
  findDomainChecks: 'read',
  listDomains: 'read',
  listSuppressions: 'operator-read',
  searchSuppressions: 'operator-read',
  findSuppression: 'operator-read',
  findSuppressed: 'operator-read',
  listParked: 'operator-read',
  listExpiring: 'operator-read',
  listHolds: 'operator-read',
  listMessages: 'operator-read',
  findMessage: 'operator-read',
  readMessageHistories: 'operator-read',
  listFeedback: 'operator-read',
  findFeedback: 'operator-read',
  listAudit: 'operator-read',
  listTokens: 'read',
  findTokens: 'read',
  isSessionEnded: 'operator-read',
  readQueueStatistics: 'operator-read',
  readOverviewData: 'operator-read',
  readChangeFeedPosition: 'operator-read',
  listWebhooks: 'read',
  findWebhook: 'read',
  listDeliveries: 'operator-read',
  findDelivery: 'operator-read',
  listDeliveryLeases: 'operator-read',
  countReplayable: 'operator-read',
  readWebhookStatistics: 'operator-read',
  claimDeliveries: 'outcome',
  settleDeliveries: 'outcome',
  releaseDeliveryLeases: 'outcome',
  recoverDeliveries: 'outcome',
  readAttentionCheck: 'read',
  listNotifications: 'operator-read',
  listInboxRules: 'read',
  readRouting: 'read',
  listRouteUses: 'read',
  listRouteSenders: 'read',
  consumeInboxRules: 'outcome',
  recover: 'outcome',
  recordHeartbeat: 'outcome',
  removeNode: 'outcome',
  listNodes: 'read',
};

const KINDS: { readonly [Name in MethodName]?: MethodKind } = { ...NOUN_KINDS, ...HOT_METHODS };

export function getMethodKind(name: MethodName): MethodKind {
  return KINDS[name] ?? 'change';
}

/**
 * Defines the role of the store for webhooks: endpoints, the outbox of events, and deliveries.
 *
 * Every method of the store writes the events of its changes to the outbox in the same transaction. Events of a type to
 * which no endpoint subscribes are not written. After the call that creates or changes an endpoint has resolved, the
 * endpoint receives every event of its subscription that any node records.
 */
import type { ChangeResult } from '../model/account.ts';
import type { Actor } from '../model/audit.ts';
import type {
  CreateWebhookResult,
  DeliverySettlement,
  DeliverySettleResult,
  DeliveryStatus,
  LeasedDelivery,
  NewWebhook,
  ReplaySelection,
  Webhook,
  WebhookChange,
  WebhookDelivery,
  WebhookStatistics,
} from '../model/webhook.ts';

/** The operations of operators on endpoints and deliveries. */
export interface WebhookStore {
  createWebhook(webhook: NewWebhook, now: number, actor?: Actor): Promise<CreateWebhookResult>;
  /** Lists the endpoints in order of their ids. */
  listWebhooks(): Promise<readonly Webhook[]>;
  findWebhook(id: number): Promise<Webhook | null>;
  updateWebhook(id: number, change: WebhookChange, actor?: Actor): Promise<ChangeResult<Webhook>>;
  /**
   * Enables the endpoint and resolves to it. The caller must then make the deliveries of the endpoint due
   * (`releaseDeliveries`). An endpoint that is already enabled stays unchanged.
   */
  enableWebhook(id: number, actor?: Actor): Promise<ChangeResult<Webhook>>;
  /**
   * Disables the endpoint with the reason `operator`. Events for the endpoint are still recorded. An endpoint that the
   * service has disabled gets the reason `operator` and the time `now`. An endpoint that an operator has disabled stays
   * unchanged.
   */
  disableWebhook(id: number, now: number, actor?: Actor): Promise<ChangeResult<Webhook>>;
  /** Replaces the secret. Attempts are also signed with the previous secret until `previousUntil`. */
  rotateWebhookSecret(id: number, sealed: string, previousUntil: number, actor?: Actor): Promise<ChangeResult<Webhook>>;
  /**
   * Deletes the endpoint. After the deletion, no claim returns deliveries of the endpoint; `purgeDeliveries` removes
   * the deliveries.
   */
  deleteWebhook(id: number, actor?: Actor): Promise<ChangeResult<Webhook>>;
  /**
   * Adds a delivery of type `webhook.test` with the id `deliveryId` (a UUIDv7), due at `now`. Resolves to `exists` if
   * the endpoint is disabled.
   */
  addTestDelivery(id: number, deliveryId: string, now: number, actor?: Actor): Promise<ChangeResult<WebhookDelivery>>;
  /**
   * Lists the deliveries of an endpoint with ids less than `before`, newest first. `status` selects the deliveries of
   * one status.
   */
  listDeliveries(
    id: number,
    status: DeliveryStatus | null,
    before: string | null,
    limit: number,
  ): Promise<ChangeResult<readonly WebhookDelivery[]>>;
  findDelivery(id: number, deliveryId: string): Promise<WebhookDelivery | null>;
  /**
   * Lists up to 1,000 leases of an endpoint that end later than `after` and no later than `until`. The endpoint may
   * already be deleted.
   */
  listDeliveryLeases(
    id: number,
    after: number,
    until: number,
  ): Promise<readonly Pick<LeasedDelivery, 'id' | 'lease'>[]>;
  /**
   * Makes a delivery in any status due at `now` and restarts its schedule. A delivery whose attempt is in progress
   * stays unchanged. Resolves to `missing` if the endpoint has no such delivery.
   */
  replayDelivery(id: number, deliveryId: string, now: number, actor?: Actor): Promise<ChangeResult<WebhookDelivery>>;
  /**
   * Makes selected deliveries due at `now`, as `replayDelivery` does. Selects deliveries with ids greater than `after`,
   * in order of id. Reads at most `limit` rows. Resolves to the number of replayed deliveries and to the id after which
   * the next call continues (null at the end). Only the call with `after` null writes an audit log entry.
   */
  replayDeliveries(
    id: number,
    selection: ReplaySelection,
    after: string | null,
    now: number,
    limit: number,
    actor?: Actor,
  ): Promise<ChangeResult<{ readonly replayed: number; readonly next: string | null }>>;
  /** Counts the deliveries that `replayDeliveries` would replay. */
  countReplayable(id: number, selection: ReplaySelection, now: number): Promise<ChangeResult<number>>;
  /**
   * Makes pending deliveries of the endpoint due at `now`: up to `limit` deliveries that are due later and have no
   * attempt in progress. Resolves to the number of changed deliveries. If this number equals `limit`, more such
   * deliveries may remain.
   */
  releaseDeliveries(id: number, now: number, limit: number): Promise<number>;
  /** Returns the statistics of every endpoint that has a pending or failed delivery, by id. */
  readWebhookStatistics(): Promise<readonly WebhookStatistics[]>;
}

/** The limits of one claim of deliveries. */
export interface DeliveryClaimLimits {
  /** The maximum number of deliveries of the claim. */
  readonly maxDeliveries: number;
  /** The maximum number of deliveries of each listed endpoint. */
  readonly freeSlots: readonly { readonly webhookId: number; readonly count: number }[];
  /** The maximum number of deliveries of each endpoint that `freeSlots` does not list. */
  readonly defaultFreeSlots: number;
  /** The claim examines endpoints with ids greater than this id, which is 0 for the first claim of a pass. */
  readonly after: number;
}

export interface ClaimedDeliveries {
  readonly deliveries: readonly LeasedDelivery[];
  /** The endpoint after which the next claim of the pass continues. Null if no endpoint remains. */
  readonly next: number | null;
}

/** Selects the leases that `recoverDeliveries` ends. */
export interface DeliveryRecovery {
  readonly now: number;
  /** The latest end of a lease that began at or before `now`. */
  readonly until: number;
  /** The calling node. Without `ownLeasesExcept`, the leases of this node stay unchanged. */
  readonly node: string;
  /** True if no other node can be alive. If false, leases of live nodes stay unchanged. */
  readonly includeAllLeases: boolean;
  /**
   * If this list is given, only leases of `node` end, except the leases of the listed deliveries. The ended leases
   * belong to a claim whose response was lost, or to a release that failed.
   */
  readonly ownLeasesExcept?: readonly string[];
}

/** The operations of the webhook worker. */
export interface WebhookWorkerStore {
  /**
   * Moves up to `limit` events from the outbox to deliveries, one for each endpoint that receives the event, in one
   * transaction. The deliveries are due at `now`. Any number of nodes may call the method concurrently. `seed` is a
   * random text of 16 hexadecimal digits, which makes the ids of the deliveries unique. Resolves to the numbers of
   * events and deliveries. If `hasMore` is true, the caller must call the method again at once. An event that was
   * recorded before `keptSince` is removed without a delivery.
   */
  fanOutEvents(
    now: number,
    seed: string,
    limit: number,
    keptSince: number,
  ): Promise<{ readonly events: number; readonly deliveries: number; readonly hasMore: boolean }>;
  /**
   * Leases due deliveries of enabled endpoints until `leaseUntil`. The earliest due deliveries of each endpoint are
   * leased first. One claim examines at most 1,000 endpoints in order of id, so a pass over all endpoints may need
   * several claims. A delivery whose lease has expired is due again.
   */
  claimDeliveries(
    limits: DeliveryClaimLimits,
    owner: string,
    leaseUntil: number,
    now: number,
  ): Promise<ClaimedDeliveries>;
  /**
   * Records the attempts of leased deliveries. The response 410 disables the endpoint in the same transaction. A failed
   * attempt of a test delivery does not count for `disableFailingWebhooks`.
   */
  settleDeliveries(batch: readonly DeliverySettlement[], now: number): Promise<readonly DeliverySettleResult[]>;
  /**
   * Disables, with the reason `failing`, up to `limit` enabled endpoints that had a failed attempt at or before
   * `failedBefore` and no successful attempt since. Resolves to the ids of the disabled endpoints.
   */
  disableFailingWebhooks(failedBefore: number, now: number, limit: number): Promise<readonly number[]>;
  /**
   * Releases leases without an attempt: the deliveries are due at `now`, and the number of their attempts stays
   * unchanged.
   */
  releaseDeliveryLeases(
    batch: readonly Pick<LeasedDelivery, 'id' | 'webhookId' | 'owner' | 'lease'>[],
    now: number,
  ): Promise<void>;
  /**
   * Ends the leases of nodes that are not alive, so that the leased deliveries are due at `now`. The result of an
   * attempt under such a lease is not recorded. Resolves to the number of these deliveries.
   */
  recoverDeliveries(recovery: DeliveryRecovery): Promise<number>;
  /**
   * Purges deliveries that were delivered at or before `deliveredBefore`, deliveries in any status that were created at
   * or before `createdBefore`, and deliveries of deleted endpoints: up to `limit` of each kind. Resolves to the
   * greatest of the three counts. If this count equals `limit`, more rows may remain.
   */
  purgeDeliveries(deliveredBefore: number, createdBefore: number, limit: number): Promise<number>;
}

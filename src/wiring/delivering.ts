import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { MonotonicClock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { createHostLookup } from '../domains/dns.ts';
import { updateWithProviderKey } from '../domains/ses-identity.ts';
import { checkSecret, createDomainCheck, loadWebhookKey } from '../domains/setup.ts';
import type { DomainCache } from '../domains/signing.ts';
import { watchDomains } from '../domains/watcher.ts';
import type { ApiKeyCache } from '../http/keys.ts';
import { getLoopRecipient } from '../message/return-path.ts';
import type { Publish } from '../model/events.ts';
import type { InboxRule, InboxRuleRequest } from '../model/inbox.ts';
import type { LeasedMessage } from '../model/message.ts';
import type { Routing } from '../model/route.ts';
import {
  DELIVERY_LEASE_MS,
  DELIVERY_RETENTION_MS,
  type DeliverySettlement,
  type DeliverySettleResult,
} from '../model/webhook.ts';
import type { Events } from '../observability/events.ts';
import { createAttemptGuard, createSuppressionCheck, isAllowedByAccount } from '../queue/attempt.ts';
import { createDispatcher, type Dispatcher } from '../queue/dispatcher.ts';
import { type HoldChecks, startParkingScanner } from '../queue/parking.ts';
import { createRoutes, type Route, type Routes } from '../queue/routes.ts';
import { startSweeper } from '../queue/sweeper.ts';
import { createGroupCommit, publishCommits, type StoreHealth } from '../store/commits.ts';
import type { Store } from '../store/contract.ts';
import type { ConsumeInboxRule } from '../transports/capture.ts';
import { createWebhookClient } from '../webhooks/attempt.ts';
import { createWebhookLane } from '../webhooks/lane.ts';
import { createWebhookPace } from '../webhooks/pace.ts';
import { createSigningKeyCache, openTargetUrl } from '../webhooks/sealing.ts';
import { type Lane, startOutboundWorker } from '../webhooks/worker.ts';
import { type ClusterNode, createFailureReporter } from './node.ts';
import { startRouteUpkeep } from './route-upkeep.ts';

/** Per commit, which limits its duration. */
const MAX_BATCH_SETTLEMENTS = 512;
/** The transport `capture:` makes at most 16 attempts at the same time. */
const MAX_BATCH_ATTEMPTS = 16;

export interface DeliveryParts {
  readonly settings: Settings;
  readonly node: ClusterNode;
  readonly store: Store;
  readonly health: StoreHealth;
  readonly directory: ApiKeyCache;
  readonly domains: DomainCache;
  readonly holds: HoldChecks;
  /** The first is `default`. */
  readonly routes: readonly [Route, ...Route[]];
  readonly watchRouting: (listener: (routing: Routing) => void) => void;
  readonly publish: Publish;
  readonly drainMs: number;
}

export async function startDelivery(
  parts: DeliveryParts,
): Promise<AsyncDisposable & { readonly dispatcher: Dispatcher; readonly routes: Routes }> {
  const { settings, store, health, directory, holds, publish, drainMs } = parts;
  await using stack = new AsyncDisposableStack();
  const { name: node, clock, ages, membership, sharesStore } = parts.node;
  const reportFailure = createFailureReporter(publish, clock);
  await checkSecret(settings, store);
  const ownLeases = { now: clock.now(), node, includeAllLeases: !sharesStore };
  const { onUncertain } = settings;
  const count = await store.recover({ ...ownLeases, includeDeadNodes: false, onUncertain });
  if (count > 0) publish({ type: 'node.leases_recovered', at: clock.now(), count });
  if (!sharesStore) await store.recoverDeliveries({ ...ownLeases, until: ownLeases.now + DELIVERY_LEASE_MS });
  const batch = { maxBatch: MAX_BATCH_SETTLEMENTS, now: clock.monotonic };
  const onCommit = publishCommits('settle', clock, publish);
  const settleCommits = createGroupCommit(health.observeCall(store.settle), { ...batch, onCommit });
  const markCommits = createGroupCommit(store.markTransmitting, batch);
  const suppressionQueries = createGroupCommit(
    (messages: readonly LeasedMessage[]) => store.checkSuppression(messages, clock.now()),
    batch,
  );
  const suppressionCheck = createSuppressionCheck(clock, suppressionQueries.submit);
  const loopRecipient = getLoopRecipient(settings.returnPathDomain);
  const isNotification = createNotificationCheck(settings);
  const isAllowed = (message: LeasedMessage) =>
    isAllowedByAccount(directory.findAccount(message.accountId), message.to) ||
    isNotification(message) ||
    message.to === loopRecipient;
  const routeListeners: (() => void)[] = [];
  const roomListeners: (() => void)[] = [];
  const onChange = () => {
    for (const listener of routeListeners) listener();
  };
  const routes = createRoutes({ clock, routes: parts.routes, onChange });
  const upkeepParts = { node, clock, sharesStore, store, routes };
  // Stopped after the dispatcher, so that its last messages count.
  stack.defer(
    await startRouteUpkeep({ ...upkeepParts, onError: (error) => reportFailure('store the use of routes', error) }),
  );
  const dispatcher = createDispatcher({
    node,
    clock,
    ages,
    random: Math.random,
    policy: settings,
    routes,
    claim: store.claim,
    release: store.release,
    park: store.park,
    settle: settleCommits.submit,
    markTransmitting: markCommits.submit,
    onRoom() {
      for (const listener of roomListeners) listener();
    },
    loopRecipient,
    isNotification,
    mustNotAttempt: createAttemptGuard(directory, membership),
    mayReceive: (message) => isAllowed(message) && suppressionCheck.mayReceive(message),
    isHeld: holds.isHeld,
    onChange: suppressionCheck.recordChange,
    publish,
  });
  stack.defer(() => dispatcher.drain(drainMs));
  routeListeners.push(dispatcher.reroute);
  parts.watchRouting(routes.applyRouting);
  const { canDetectDeadNodes } = membership;
  const { listLeasedMessageIds } = dispatcher;
  stack.defer(
    startSweeper({
      node,
      clock,
      ages,
      policy: settings,
      store,
      holds,
      canDetectDeadNodes,
      listLeasedMessageIds,
      publish,
    }),
  );
  stack.defer(
    startParkingScanner({
      clock,
      store,
      get nextEndAt() {
        return holds.nextEndAt;
      },
      onChange(listener) {
        holds.onChange(listener);
        routeListeners.push(listener);
      },
      onRoom: (listener) => void roomListeners.push(listener),
      isStillParked: (message) =>
        message.parked.reason === 'hold' ? holds.mayBeHeld(message) : !dispatcher.canPlace(message),
      onUnparked: dispatcher.wake,
      onError: (error) => reportFailure('unpark', error),
    }),
  );
  stack.defer(
    watchDomains({
      clock,
      listDomains: store.listDomains,
      findDomain: store.findDomain,
      checkRecords: createDomainCheck(settings, clock),
      updateDomain: updateWithProviderKey(settings, store.updateDomain, reportFailure),
      publish,
    }),
  );
  dispatcher.start();
  const started = stack.move();
  return { dispatcher, routes, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** Returns whether a message is a notification to operators. */
export function createNotificationCheck({ notifyTargets, notifyFrom }: Pick<Settings, 'notifyTargets' | 'notifyFrom'>) {
  const addresses = new Set(notifyTargets.flatMap((target) => (target.kind === 'mail' ? [target.address] : [])));
  return ({ from, to }: { readonly from: string; readonly to: string }) => from === notifyFrom && addresses.has(to);
}

/** Concurrent attempts share a transaction that counts the uses of the rules of the inbox. */
export function createConsumeInboxRule(
  store: Pick<Store, 'consumeInboxRules'>,
  clock: MonotonicClock,
): ConsumeInboxRule {
  const { submit } = createGroupCommit<InboxRuleRequest, { readonly rule: InboxRule | null }>(
    async (batch) => (await store.consumeInboxRules(batch, clock.now())).map((rule) => ({ rule })),
    { maxBatch: MAX_BATCH_ATTEMPTS, now: clock.monotonic },
  );
  return async (request) => (await submit(request)).rule;
}

const MAX_BATCH_DELIVERIES = 128;
/** Then the leases of the deliveries without a recorded result are released. */
const MAX_OUTBOUND_DRAIN_MS = 5_000;

/** For requests to endpoints and to the targets of notifications. */
export function createOutboundClient(
  { webhookTargets: targets, dns }: Settings,
  version: string,
  clock: MonotonicClock,
) {
  return createWebhookClient({
    clock,
    targets,
    lookUp: createHostLookup(dns, targets === 'any'),
    userAgent: version === '' ? 'Postrider' : `Postrider/${version}`,
  });
}

export interface WebhookParts extends Pick<DeliveryParts, 'settings' | 'node' | 'store' | 'drainMs'> {
  readonly version: string;
  readonly events: Events;
}

export function startLane(
  { node, store, events, drainMs }: Pick<WebhookParts, 'node' | 'store' | 'events' | 'drainMs'>,
  lane: Lane,
): AsyncDisposable & { wake(): void } {
  const { name, clock } = node;
  const settleCommits = createGroupCommit<DeliverySettlement, DeliverySettleResult>(
    (batch) => store.settleDeliveries(batch, clock.now()),
    { maxBatch: MAX_BATCH_DELIVERIES, now: clock.monotonic },
  );
  const worker = startOutboundWorker({
    ...{ node: name, clock, random: Math.random, store, settle: settleCommits.submit, lane, publish: events.publish },
  });
  return {
    wake: worker.wake,
    [Symbol.asyncDispose]: () => worker.drain(Math.min(MAX_OUTBOUND_DRAIN_MS, drainMs)),
  };
}

export function startWebhooks(parts: WebhookParts): AsyncDisposable {
  const { settings, version, node, store, events } = parts;
  const stack = new AsyncDisposableStack();
  const { clock } = node;
  const { publish } = events;
  const client = createOutboundClient(settings, version, clock);
  stack.defer(() => client.close());
  let utilization = performance.eventLoopUtilization();
  const pace = createWebhookPace(clock.monotonic, () => {
    const previousUtilization = utilization;
    utilization = performance.eventLoopUtilization();
    return performance.eventLoopUtilization(utilization, previousUtilization).utilization;
  });
  let key: Buffer | null = null;
  // The key is derived at the first use, so that an installation without endpoints needs no secret.
  const getKey = () => {
    key ??= loadWebhookKey(settings);
    return key;
  };
  const lane = createWebhookLane({
    clock,
    createSeed: () => randomBytes(8).toString('hex'),
    getRetentionStart: () => node.ages.getCutoff(DELIVERY_RETENTION_MS),
    store,
    attempt: client.attempt,
    getPauseMs: pace.getPauseMs,
    openSecret: createSigningKeyCache(getKey),
    openUrl: (sealedUrl) => openTargetUrl(getKey(), sealedUrl),
    publish,
  });
  const { wake } = stack.use(startLane(parts, lane));
  // These events follow commits of this process and wake the worker at once. The poll of the worker finds the events of
  // other processes.
  stack.defer(
    events.subscribe({
      'store.committed': ({ size }) => {
        pace.countMessages(size);
        wake();
      },
      'message.confirmed': wake,
      'message.bounced': wake,
      'message.complained': wake,
      'message.suppressed': wake,
      'message.cancelled': wake,
      'operator.changed': wake,
    }),
  );
  return { [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

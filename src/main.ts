/**
 * Creates the components of a process for its roles, starts the components in order and stops them in reverse order.
 *
 * Guarantees: if the start fails, every component that was started is stopped, and the promise rejects with a one-line
 * error. `stop` completes the requests in progress, waits a limited time for the delivery attempts in progress,
 * releases the remaining leases, and then closes the store and the log. It stops every component even if
 * one of them fails to stop.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { requireValidClock } from './checks/clock.ts';
import { type MonotonicClock, systemClock } from './clock.ts';
import type { Settings, TransportSetting } from './config/settings.ts';
import { getDataFolder, getSecretWarning, SECRET_REMEDY } from './domains/setup.ts';
import { DomainCache } from './domains/signing.ts';
import { ApiKeyCache } from './http/keys.ts';
import type { ServerLimits } from './http/server.ts';
import { readCertificate } from './http/tls.ts';
import { generateApiKey } from './model/credentials.ts';
import {
  type DeliveryStatus,
  type RefusedReports,
  type RuntimeStatus,
  STANDBY_TEXTS,
  type Standby,
} from './model/node.ts';
import { createMessageIdGenerator } from './model/submission.ts';
import { createEvents } from './observability/events.ts';
import { createLog, createLogHandlers, type LogDestination } from './observability/log.ts';
import { watchHealth } from './store/commits.ts';
import type { Store } from './store/contract.ts';
import { cacheByCost } from './store/cost-cache.ts';
import { openStore } from './store/open.ts';
import { startIndexer } from './store/search/indexer.ts';
import type { FilesFault } from './store/sqlite/thread.ts';
import { createReplaceableTransport, openTransport } from './transports/open.ts';
import type { Transport } from './transports/transport.ts';
import { startApi } from './wiring/api.ts';
import { allocateConnections, readDescriptorLimit } from './wiring/connections.ts';
import { startDelivery } from './wiring/delivery.ts';
import { findFirstError } from './wiring/disposal.ts';
import { createEventAuthenticators } from './wiring/event-authenticators.ts';
import { createFailureReporter } from './wiring/events.ts';
import { type FeedbackAddresses, NO_FEEDBACK, startFeedback } from './wiring/feedback.ts';
import { createConsumeInboxRule } from './wiring/inbox-rules.ts';
import { createNodeName, startNode } from './wiring/node.ts';
import { startObservability } from './wiring/observability.ts';
import { type OperatorApiOptions, startOperator } from './wiring/operator.ts';
import { findRestartReason, watchSecretFiles } from './wiring/secret-files.ts';
import { startWebhooks } from './wiring/webhooks.ts';

/**
 * Maximum wait for the delivery attempts in progress during a shutdown. Before this wait, the shutdown waits at most
 * one fifth of this time for the requests in progress.
 */
const MAX_DRAIN_MS = 25_000;

/** Interval between two checks for changed secret files. */
const SECRET_CHECK_INTERVAL_MS = 5_000;

export interface Service {
  readonly publicUrl: string | null;
  readonly operatorUrl: string | null;
  /** One-time sign-in link; null when a password is set. */
  readonly signInUrl: string | null;
  /** The name of the account that `startService` created in an empty store; otherwise null. */
  readonly firstAccount: string | null;
  /** The raw API key that `startService` created for an empty store; otherwise null. */
  readonly firstKey: string | null;
  /** True if any account has a domain from which messages may be sent. */
  readonly hasSendingDomain: boolean;
  /** Addresses of the listeners for bounces and complaints. */
  readonly feedback: FeedbackAddresses;
  /** Folder of the Maildir if the transport is `capture:`; otherwise null. */
  readonly inboxPath: string | null;
  /** Resolves when the service can no longer work; the process must then be restarted. Never rejects. */
  readonly failed: Promise<Error>;
  /**
   * Stops every component. If a component fails to stop, the other components are still stopped, and the promise
   * rejects with the first error.
   */
  stop(): Promise<void>;
}

/** Replacements that tests and the demo inject. */
export interface ServiceOptions {
  readonly clock?: MonotonicClock;
  readonly openStore?: (settings: Settings) => Promise<Store>;
  readonly limits?: Partial<ServerLimits>;
  readonly drainMs?: number;
  /** Until this promise resolves or the start fails, the log writes nothing to standard output. */
  readonly delayLogUntil?: Promise<unknown>;
  /** Receives the lines of the log instead of standard output. */
  readonly logDestination?: LogDestination;
  /**
   * Called with a one-line text if opening the store takes more than a few seconds. By default the text is written to
   * the log.
   */
  readonly onWait?: (line: string) => void;
  /** Receives the configured transport and returns the transport that the service uses. */
  readonly wrapTransport?: (transport: Transport) => Transport;
  /** If false, the account that `startService` creates in an empty store has no API key. The default is true. */
  readonly createsFirstKey?: boolean;
  /** Dependencies of the operator API. Without them the operator listener serves no operator API. */
  readonly operatorApi?: OperatorApiOptions;
}

/** Starts the service. Rejects with a one-line Error. */
export async function startService(settings: Settings, options: ServiceOptions = {}): Promise<Service> {
  try {
    return await startComponents(settings, options);
  } catch (error) {
    // The first error is the cause of the failed start. A later error occurred during the shutdown.
    throw findFirstError(error);
  }
}

/**
 * Starts the components in the order in which this function creates them, and disposes of them in reverse order. If the
 * start fails, the components that were started are disposed of.
 */
async function startComponents(settings: Settings, options: ServiceOptions): Promise<Service> {
  await using stack = new AsyncDisposableStack();
  const { clock: machineClock = systemClock, limits = {}, drainMs = MAX_DRAIN_MS, delayLogUntil = null } = options;
  const { roles, tls } = settings;
  // These checks run before the store opens, so that a start that cannot succeed changes nothing.
  requireValidClock(machineClock.now());
  if (tls !== null && (roles.has('api') || roles.has('feedback'))) readCertificate(tls);
  const node = createNodeName();
  const version = options.operatorApi?.version ?? '';
  const log = createLog(settings.logLevel, options.logDestination ?? null, delayLogUntil);
  stack.defer(() => log.close());

  const events = createEvents(machineClock);
  const { publish } = events;
  events.subscribe(createLogHandlers(log, node));
  const warn = (detail: string) => publish({ type: 'node.warned', at: machineClock.now(), detail });
  let filesFault: FilesFault | null = null;
  const onFilesFault = (fault: FilesFault | null) => {
    filesFault = fault;
    const at = machineClock.now();
    publish(fault === null ? { type: 'store.files_restored', at } : { type: 'store.files_lost', at, ...fault });
  };
  const onStandby = (standby: Standby) =>
    publish({ type: 'store.standby', at: machineClock.now(), standby, meaning: STANDBY_TEXTS[standby] });
  const { onWait = warn, openStore: openStoreOption } = options;
  const store = await (openStoreOption?.(settings) ??
    openStore(settings.database, {
      exclusive: true,
      requireSyncStandby: settings.requireSyncStandby,
      node,
      warn,
      onStandby,
      onWait,
      onFilesFault,
    }));
  stack.defer(() => store.close());
  const { ignoredVariables } = settings;
  if (ignoredVariables.length > 0)
    publish({ type: 'node.variables_ignored', at: machineClock.now(), names: ignoredVariables });
  const secretFault = getSecretWarning(settings);
  if (secretFault !== null) warn(`${secretFault}; ${SECRET_REMEDY}`);
  let readRefusedReports = (): readonly RefusedReports[] => [];
  let readDelivery = (): DeliveryStatus | null => null;
  const reportNodeFailure = createFailureReporter(publish, machineClock);
  const ownNode = await startNode(
    node,
    settings,
    store,
    machineClock,
    reportNodeFailure,
    () => readRefusedReports(),
    () => readDelivery(),
  );
  const { clock } = ownNode;
  const reportFailure = createFailureReporter(publish, clock);
  // If the node cannot be removed from the store, the other nodes treat it as dead after the liveness timeout.
  stack.defer(() => ownNode.leave().catch((error: unknown) => reportFailure('leave', error)));
  const health = watchHealth(store, clock, () => filesFault?.reason ?? null);
  stack.defer(() => health.stop());
  let storeFailed = false;
  void store.failed.then(() => {
    storeFailed = true;
  });
  const readQueueStatistics = cacheByCost(
    () => store.readQueueStatistics(),
    () => performance.now(),
  );
  const { getDroppedLineCount } = log;
  const observability = stack.use(
    await startObservability({
      settings,
      version,
      node,
      clock,
      store,
      readQueueStatistics,
      getDroppedLineCount,
      events,
    }),
  );
  readRefusedReports = observability.getRefusedReports;
  if (roles.has('deliver')) {
    readDelivery = observability.getDeliveryStatus;
    // Commands and other nodes read the state of the circuit breaker and its cause from the store.
    events.subscribe({
      'attempt.ended': () => {
        if (observability.getDeliveryStatus().breaker.state !== 'closed') ownNode.membership.sendStatus();
      },
      'circuit_breaker.closed': () => ownNode.membership.sendStatus(),
    });
  }

  const directory = new ApiKeyCache({ clock, publish });
  const domains = new DomainCache({ clock, publish });
  await store.watchDirectory((changes) => {
    directory.apply(changes);
    domains.apply(changes);
  });

  if (roles.has('operator') || roles.has('deliver')) {
    const monotonic = () => performance.now();
    stack.defer(startIndexer({ clock, monotonic, sharesStore: ownNode.sharesStore, store, reportFailure }));
  }

  const inboxPath = join(getDataFolder(settings.database), 'inbox');
  const transportParts = {
    clock,
    inboxPath,
    consumeInboxRule: createConsumeInboxRule(store, clock),
    onError: reportFailure,
  };
  const { transport: configuredTransport, inbox } = openTransport(settings.transport, transportParts);
  const replaceableTransport = createReplaceableTransport(configuredTransport);
  const transport = options.wrapTransport?.(replaceableTransport) ?? replaceableTransport;
  stack.defer(() => transport.close(1_000));
  const applyTransport = (next: TransportSetting): string | null => {
    const reason = findRestartReason(settings.transport, next);
    if (reason === null) replaceableTransport.replace(openTransport(next, transportParts).transport, MAX_DRAIN_MS);
    return reason;
  };
  const authenticators = createEventAuthenticators(settings.eventSecrets);
  const applyEventSecrets = authenticators.replace;
  let { notifySecrets } = settings;
  const applyNotifySecrets = (secrets: readonly string[]) => {
    notifySecrets = secrets;
  };
  const { secretFiles } = settings;
  stack.defer(
    watchSecretFiles({
      files: secretFiles,
      clock,
      intervalMs: SECRET_CHECK_INTERVAL_MS,
      applyTransport,
      applyEventSecrets,
      applyNotifySecrets,
      warn,
    }),
  );
  const connectionLimits = allocateConnections(settings, readDescriptorLimit(), transport.concurrency, warn);
  const sharedComponents = { settings, node: ownNode, store, health, directory, domains, transport, publish, drainMs };
  const delivery = roles.has('deliver') ? stack.use(await startDelivery(sharedComponents)) : null;
  const dispatcher = delivery?.dispatcher ?? null;
  if (roles.has('deliver')) stack.use(startWebhooks({ settings, version, node: ownNode, store, events, drainMs }));

  const feedback = roles.has('feedback')
    ? stack.use(
        await startFeedback({
          settings,
          authenticators,
          clock,
          store,
          domains,
          maxConnections: connectionLimits.events,
          publish,
        }),
      )
    : null;

  const readStatus = (): RuntimeStatus => ({
    node,
    version,
    storeFault: health.findFault(),
    storeRemedy: filesFault?.remedy ?? null,
    delivery: delivery === null ? null : observability.getDeliveryStatus(),
    refusedReports: observability.getRefusedReports(),
  });
  // Messages and notifications get their ids from one generator, because no two ids may have the same time and
  // counter.
  const ids = createMessageIdGenerator(await store.findNewestId(), randomUUID);
  if (settings.notifyTargets.length > 0) {
    const { startNotifications } = await import('./wiring/notifications.ts');
    const notifications = startNotifications({
      ...{ settings, version, node: ownNode, domains, directory, ids, status: readStatus },
      ...{ store: { ...store, readQueueStatistics }, events, drainMs, getSecrets: () => notifySecrets, warn },
    });
    stack.use(notifications);
  }
  // The role `api` stores this key at the end of its start if the store has no account.
  const firstKey = options.createsFirstKey === false ? null : generateApiKey(randomBytes);
  const operator = roles.has('operator')
    ? stack.use(
        await startOperator({
          settings,
          clock,
          machineClock,
          store: { ...store, readQueueStatistics },
          directory,
          events,
          observability,
          maxConnections: connectionLimits.operator,
          inbox,
          status: readStatus,
          firstKey: firstKey?.key ?? null,
          api: options.operatorApi ?? null,
        }),
      )
    : null;

  const getNotReadyReason = () => (storeFailed ? 'the store has failed' : health.findFault());
  const listenerParts = {
    limits: { maxConnections: connectionLimits.public, ...limits },
    getNotReadyReason,
    dispatcher,
    firstKey,
    ids,
  };
  const api = roles.has('api') ? stack.use(await startApi({ ...sharedComponents, ...listenerParts })) : null;

  const [publicUrl, operatorUrl] = [api?.publicUrl ?? null, operator?.url ?? null];
  publish({
    type: 'node.started',
    at: clock.now(),
    transport: settings.transport.kind,
    url: publicUrl ?? operatorUrl ?? '',
  });
  stack.defer(() => publish({ type: 'node.draining', at: clock.now() }));
  const startedComponents = stack.move();
  return {
    publicUrl,
    operatorUrl,
    signInUrl: operator?.signInUrl ?? null,
    feedback: feedback?.addresses ?? NO_FEEDBACK,
    firstAccount: api?.firstAccount ?? null,
    firstKey: api?.firstKey ?? null,
    hasSendingDomain: domains.hasSendingDomain(),
    inboxPath: inbox === null ? null : inboxPath,
    failed: store.failed,
    async stop() {
      try {
        await startedComponents.disposeAsync();
      } catch (error) {
        throw findFirstError(error);
      }
    },
  };
}

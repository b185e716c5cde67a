/** Starts the components from top to bottom, and disposes of them from bottom to top, also if the start fails. */
import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { requireValidClock } from './checks/clock.ts';
import { type MonotonicClock, systemClock } from './clock.ts';
import type { Settings } from './config/settings.ts';
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
import type { RouteMetric } from './observability/metrics.ts';
import { createHoldChecks } from './queue/parking.ts';
import { watchHealth } from './store/commits.ts';
import type { Store } from './store/contract.ts';
import { cacheByCost } from './store/cost-cache.ts';
import { openStore } from './store/open.ts';
import { startIndexer } from './store/search/indexer.ts';
import type { FilesFault } from './store/sqlite/thread.ts';
import type { Transport } from './transports/transport.ts';
import { startApi } from './wiring/accepting.ts';
import { createConsumeInboxRule, createNotificationCheck, startDelivery, startWebhooks } from './wiring/delivering.ts';
import { startFeedback } from './wiring/feedback.ts';
import {
  allocateConnections,
  createFailureReporter,
  createNodeName,
  readDescriptorLimit,
  startNode,
} from './wiring/node.ts';
import { startObservability } from './wiring/observability.ts';
import { type OperatorApiOptions, startOperator } from './wiring/operating.ts';
import { openRoutes } from './wiring/routes.ts';
import { createEventAuthenticators, watchSecretFiles } from './wiring/secret-files.ts';

/** For attempts in progress during a shutdown, which first waits a fifth of this time for requests in progress. */
const MAX_DRAIN_MS = 25_000;
const SECRET_CHECK_INTERVAL_MS = 5_000;

export type Service = Awaited<ReturnType<typeof startComponents>>;

export interface ServiceOptions {
  readonly clock?: MonotonicClock;
  readonly openStore?: (settings: Settings) => Promise<Store>;
  readonly limits?: Partial<ServerLimits>;
  readonly drainMs?: number;
  /** Until then, or until the start fails, the log writes nothing to standard output. */
  readonly delayLogUntil?: Promise<unknown>;
  readonly logDestination?: LogDestination;
  /** Receives one line if opening the store takes more than a few seconds, instead of the log. */
  readonly onWait?: (line: string) => void;
  readonly wrapTransport?: (transport: Transport) => Transport;
  readonly createsFirstKey?: boolean;
  readonly operatorApi?: OperatorApiOptions;
}

export async function startService(settings: Settings, options: ServiceOptions = {}): Promise<Service> {
  return throwFirstError(startComponents(settings, options));
}

/** Disposal wraps the first error, the cause, in a SuppressedError for each later one. */
async function throwFirstError<T>(step: Promise<T>): Promise<T> {
  try {
    return await step;
  } catch (error) {
    let firstError: unknown = error;
    while (firstError instanceof SuppressedError) firstError = firstError.suppressed;
    throw firstError;
  }
}

async function startComponents(startSettings: Settings, options: ServiceOptions) {
  await using stack = new AsyncDisposableStack();
  const { clock: machineClock = systemClock, limits = {}, drainMs = MAX_DRAIN_MS, operatorApi = null } = options;
  const { roles, tls } = startSettings;
  // These checks run before the store opens, so that a start that cannot succeed changes nothing.
  requireValidClock(machineClock.now());
  if (tls !== null && (roles.has('api') || roles.has('feedback'))) readCertificate(tls);
  const name = createNodeName();
  const version = operatorApi?.version ?? '';
  const log = createLog(startSettings, options.logDestination ?? null, options.delayLogUntil ?? null);
  stack.defer(() => log.close());
  const events = createEvents(machineClock);
  const { publish } = events;
  events.subscribe(createLogHandlers(log, name));
  const warn = (detail: string) => publish({ type: 'node.warned', at: machineClock.now(), detail });

  let filesFault: FilesFault | null = null;
  const openStoreOnce = () =>
    openStore(startSettings.database, {
      exclusive: true,
      requireSyncStandby: startSettings.requireSyncStandby,
      node: name,
      warn,
      onWait: options.onWait ?? warn,
      onStandby: (standby: Standby) =>
        publish({ type: 'store.standby', at: machineClock.now(), standby, meaning: STANDBY_TEXTS[standby] }),
      onFilesFault(fault: FilesFault | null) {
        filesFault = fault;
        const at = machineClock.now();
        publish(fault === null ? { type: 'store.files_restored', at } : { type: 'store.files_lost', at, ...fault });
      },
    });
  const store = await (options.openStore?.(startSettings) ?? openStoreOnce());
  stack.defer(() => store.close());
  const { ignoredVariables } = startSettings;
  if (ignoredVariables.length > 0)
    publish({ type: 'node.variables_ignored', at: machineClock.now(), names: ignoredVariables });
  const secretFault = getSecretWarning(startSettings);
  if (secretFault !== null) warn(`${secretFault}; ${SECRET_REMEDY}`);

  let readRefusedReports = (): readonly RefusedReports[] => [];
  let readDelivery = (): DeliveryStatus | null => null;
  let readRouteStates = (): readonly RouteMetric[] => [];
  const node = await startNode({
    name,
    settings: startSettings,
    store,
    clock: machineClock,
    onError: createFailureReporter(publish, machineClock),
    readRefusedReports: () => readRefusedReports(),
    readDelivery: () => readDelivery(),
  });
  const { clock } = node;
  const reportFailure = createFailureReporter(publish, clock);
  // If the node cannot be removed from the store, the other nodes treat it as dead after the liveness timeout.
  stack.defer(() => node.leave().catch((error: unknown) => reportFailure('leave', error)));
  const consumeInboxRule = createConsumeInboxRule(store, clock);
  const inboxPath = join(getDataFolder(startSettings.database), 'inbox');
  const transportParts = { clock, inboxPath, consumeInboxRule, onError: reportFailure };
  const wrapTransport = options.wrapTransport ?? ((transport: Transport) => transport);
  const opened = openRoutes(startSettings, transportParts, MAX_DRAIN_MS, wrapTransport);
  for (const { transport } of opened.transports) stack.defer(() => transport.close(1_000));
  const { settings, inbox } = opened;
  const health = watchHealth(store, clock, () => filesFault?.reason ?? null);
  stack.defer(() => health.stop());
  let storeFailed = false;
  void store.failed.then(() => {
    storeFailed = true;
  });
  const monotonic = () => performance.now();
  const readQueueStatistics = cacheByCost(() => store.readQueueStatistics(), monotonic);
  const { getDroppedLineCount } = log;
  const shared = { settings, version, clock, events };
  const observability = stack.use(
    await startObservability({
      ...{ ...shared, node: name, store, readQueueStatistics, getDroppedLineCount },
      readRouteStates: () => readRouteStates(),
    }),
  );
  readRefusedReports = observability.getRefusedReports;

  const directory = new ApiKeyCache({ clock, publish });
  const domains = new DomainCache({ clock, publish });
  const { findMailboxProvider } = observability;
  const holds = createHoldChecks({ clock, findMailboxProvider, isNotification: createNotificationCheck(settings) });
  await store.watchDirectory((changes) => {
    directory.apply(changes);
    domains.apply(changes);
    if (changes.holds !== null) holds.replace(changes.holds);
    if (changes.routing !== null) opened.replaceRouting(changes.routing);
  });
  if (roles.has('operator') || roles.has('deliver'))
    stack.defer(startIndexer({ clock, monotonic, sharesStore: node.sharesStore, store, reportFailure }));

  const authenticators = createEventAuthenticators(settings.eventSecrets);
  let { notifySecrets } = settings;
  stack.defer(
    watchSecretFiles({
      files: settings.secretFiles,
      clock,
      intervalMs: SECRET_CHECK_INTERVAL_MS,
      applyTransport: opened.replace,
      recordRouteFault: opened.recordFault,
      applyEventSecrets: authenticators.replace,
      applyNotifySecrets(secrets) {
        notifySecrets = secrets;
      },
      warn,
    }),
  );
  const concurrency = opened.transports.reduce((sum, { transport }) => sum + transport.concurrency, 0);
  const connections = allocateConnections(settings, readDescriptorLimit(), concurrency, warn);

  const routes = opened.create({ domains, directory, publish, clock });
  const { watchRouting } = opened;
  const mailParts = {
    settings,
    node,
    store,
    health,
    directory,
    domains,
    holds,
    routes,
    watchRouting,
    publish,
    drainMs,
  };
  const delivery = roles.has('deliver') ? stack.use(await startDelivery(mailParts)) : null;
  if (delivery !== null) {
    const { routes: states } = delivery;
    readDelivery = () => {
      const statuses = states.readStatus(clock.now()).map((status) => {
        const fileFault = opened.findFault(status.name);
        return fileFault === null ? status : { ...status, fileFault };
      });
      return { routes: statuses, alarms: observability.readAlarms() };
    };
    readRouteStates = () =>
      states.readStatus(clock.now()).map(({ name: route, state }) => {
        return { name: route, state: states.isPaused(route, clock.now()) ? 'paused' : state };
      });
    // Commands and other nodes read the state of the routes from the store. The cause is known after the event.
    const sendStatus = () => void clock.after(0, node.membership.sendStatus);
    events.subscribe({
      'circuit_breaker.opened': sendStatus,
      'circuit_breaker.half_opened': sendStatus,
      'circuit_breaker.closed': sendStatus,
    });
    stack.use(startWebhooks({ ...shared, node, store, drainMs }));
  }

  const feedbackParts = { settings, authenticators, clock, store, domains, publish };
  const feedback = roles.has('feedback')
    ? stack.use(await startFeedback({ ...feedbackParts, maxConnections: connections.events }))
    : null;

  const status = (): RuntimeStatus => ({
    node: name,
    version,
    storeFault: health.findFault(),
    storeRemedy: filesFault?.remedy ?? null,
    delivery: readDelivery(),
    refusedReports: observability.getRefusedReports(),
  });
  // Messages and notifications share a generator, because no two ids may have the same time and counter.
  const ids = createMessageIdGenerator(await store.findNewestId(), randomUUID);
  const statisticsStore = { ...store, readQueueStatistics };
  if (settings.notifyTargets.length > 0) {
    const { startNotifications } = await import('./wiring/notifications.ts');
    const getSecrets = () => notifySecrets;
    const parts = { ...shared, node, store: statisticsStore, domains, directory, ids, status, drainMs };
    stack.use(startNotifications({ ...parts, getSecrets, warn }));
  }
  // The role `api` stores this key at the end of its start if the store has no account.
  const firstKey = options.createsFirstKey === false ? null : generateApiKey(randomBytes);
  const operator = roles.has('operator')
    ? stack.use(
        await startOperator({
          ...shared,
          machineClock,
          store: statisticsStore,
          directory,
          observability,
          maxConnections: connections.operator,
          inbox,
          status,
          firstKey: firstKey?.key ?? null,
          api: operatorApi,
        }),
      )
    : null;
  const api = roles.has('api')
    ? stack.use(
        await startApi({
          ...mailParts,
          limits: { maxConnections: connections.public, ...limits },
          getNotReadyReason: () => (storeFailed ? 'the store has failed' : health.findFault()),
          dispatcher: delivery?.dispatcher ?? null,
          firstKey,
          ids,
        }),
      )
    : null;

  const [publicUrl, operatorUrl] = [api?.publicUrl ?? null, operator?.url ?? null];
  const url = publicUrl ?? operatorUrl ?? '';
  publish({ type: 'node.started', at: clock.now(), transport: settings.transport.kind, url });
  stack.defer(() => publish({ type: 'node.draining', at: clock.now() }));
  const started = stack.move();
  return {
    publicUrl,
    operatorUrl,
    signInUrl: operator?.signInUrl ?? null,
    feedback: feedback?.addresses ?? { smtp: null, http: null },
    firstAccount: api?.firstAccount ?? null,
    firstKey: api?.firstKey ?? null,
    hasSendingDomain: domains.hasSendingDomain(),
    inboxPath: inbox === null ? null : inboxPath,
    /** The process must then be restarted. Never rejects. */
    failed: store.failed,
    /** Rejects with the first error, after every component has been stopped. */
    stop: () => throwFirstError(started.disposeAsync()),
  };
}

/**
 * The only place that wires: builds the parts for the chosen roles, starts them in order, stops them in reverse.
 *
 * Promises: a failed start leaves nothing running and rejects with one clear line; `stop` answers the requests in flight,
 * lets attempts end within a bound, gives the other leases back and closes the store last, and does the rest of it where
 * one part fails.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type MonotonicClock, systemClock } from './clock.ts';
import type { Settings } from './config/settings.ts';
import { dataFolder, SECRET_REMEDY, secretWarning } from './domains/setup.ts';
import { DomainCache } from './domains/signing.ts';
import { readDescriptorLimit } from './http/capacity.ts';
import { ApiKeyCache } from './http/keys.ts';
import type { ListenerLimits } from './http/listener-options.ts';
import { newApiKey } from './model/credentials.ts';
import type { RuntimeStatus } from './model/node.ts';
import { createEvents } from './observability/events.ts';
import { createLog, logHandlers } from './observability/log.ts';
import { watchHealth } from './store/commits.ts';
import type { Store } from './store/contract.ts';
import { cacheByCost } from './store/cost-cache.ts';
import { openStore } from './store/open.ts';
import { startIndexer } from './store/search/indexer.ts';
import type { FilesFault } from './store/sqlite/thread.ts';
import { openTransport } from './transports/open.ts';
import type { Transport } from './transports/transport.ts';
import { startApi } from './wiring/api.ts';
import { allocateConnections, createHttpConnections } from './wiring/connections.ts';
import { startDelivery } from './wiring/delivery.ts';
import { firstError } from './wiring/disposal.ts';
import { createFailureReporter } from './wiring/events.ts';
import { type FeedbackAddresses, NO_FEEDBACK, startFeedback } from './wiring/feedback.ts';
import { createNodeName, startNode } from './wiring/node.ts';
import { startObservability } from './wiring/observability.ts';
import { type OperatorApiOptions, startOperator } from './wiring/operator.ts';

/** Attempts under way at a stop get this long; requests under way a fifth of it before. */
const DRAIN_MS = 25_000;

export interface Service {
  readonly publicUrl: string | null;
  readonly operatorUrl: string | null;
  /** Signs in once, where no password is set; else null. */
  readonly signInUrl: string | null;
  /** The raw key made on an empty store, else null. */
  readonly firstKey: string | null;
  /** Where bounces and complaints are taken. */
  readonly feedback: FeedbackAddresses;
  /** The Maildir of `capture:`, else null. */
  readonly inboxPath: string | null;
  /** Resolves, and never rejects, once the service can do its work no more: the process has to be started anew. */
  readonly failed: Promise<Error>;
  /** Stops every part, also where one fails to stop; rejects then with the first such fault. */
  stop(): Promise<void>;
}

/** What a test, or the demo, may hand in instead of the machine's own. */
export interface ServiceOptions {
  readonly clock?: MonotonicClock;
  readonly openStore?: (settings: Settings) => Promise<Store>;
  readonly limits?: Partial<ListenerLimits>;
  readonly drainMs?: number;
  /** The log writes nothing to standard output before this has resolved, or the start has failed. */
  readonly delayLogUntil?: Promise<unknown>;
  /** Told in one line what a start waits for that takes longer than a few seconds. Default: the log. */
  readonly onWait?: (line: string) => void;
  /** Gets the transport of the settings, and gives the one that is used. */
  readonly wrapTransport?: (transport: Transport) => Transport;
  /** What the operator API needs of this installation; without it there is no such API. */
  readonly operatorApi?: OperatorApiOptions;
}

/** Starts the service; rejects with an Error of one line. */
export async function startService(settings: Settings, surroundings: ServiceOptions = {}): Promise<Service> {
  try {
    return await start(settings, surroundings);
  } catch (error) {
    // Why it did not start says more than what then failed to stop.
    throw firstError(error);
  }
}

/** Started from top to bottom, disposed from bottom to top; a start that fails disposes of what it has started. */
async function start(settings: Settings, surroundings: ServiceOptions): Promise<Service> {
  await using stack = new AsyncDisposableStack();
  const {
    clock: machineClock = systemClock,
    limits = {},
    drainMs = DRAIN_MS,
    delayLogUntil: logAfter = null,
  } = surroundings;
  const { roles } = settings;
  const node = createNodeName();
  const version = surroundings.operatorApi?.version ?? '';
  const log = createLog(settings.logLevel, null, logAfter);
  stack.defer(() => log.close());

  const events = createEvents(machineClock);
  const { publish } = events;
  events.subscribe(logHandlers(log, node));
  const warn = (detail: string) => publish({ type: 'node.warned', at: machineClock.now(), detail });
  let filesFault: FilesFault | null = null;
  const onFilesFault = (fault: FilesFault | null) => {
    filesFault = fault;
    const at = machineClock.now();
    publish(fault === null ? { type: 'store.files_restored', at } : { type: 'store.files_lost', at, ...fault });
  };
  const { onWait: waiting = warn, openStore: open } = surroundings;
  const store = await (open?.(settings) ??
    openStore(settings.database, { exclusive: true, node, warn, onWait: waiting, onFilesFault }));
  stack.defer(() => store.close());
  const secretFault = secretWarning(settings);
  if (secretFault !== null) warn(`${secretFault}; ${SECRET_REMEDY}`);
  const ownNode = await startNode(node, settings, store, machineClock, createFailureReporter(publish, machineClock));
  const { clock } = ownNode;
  const failed = createFailureReporter(publish, clock);
  // A node that cannot say that it ends is found dead soon.
  stack.defer(() => ownNode.leave().catch((error: unknown) => failed('leave', error)));
  const health = watchHealth(store, clock, () => filesFault?.reason ?? null);
  stack.defer(() => health.stop());
  let dead = false;
  void store.failed.then(() => {
    dead = true;
  });
  const queueFigures = cacheByCost(
    () => store.queueFigures(),
    () => performance.now(),
  );
  const { droppedLines } = log;
  const observability = stack.use(
    startObservability({ settings, version, node, clock, store, queueFigures, droppedLines: droppedLines, events }),
  );

  const directory = new ApiKeyCache({ clock, publish });
  const domains = new DomainCache({ clock, publish });
  await store.watchDirectory((changes) => {
    directory.apply(changes);
    domains.apply(changes);
  });

  if (roles.has('operator') || roles.has('deliver')) {
    const monotonic = () => performance.now();
    stack.defer(startIndexer({ clock, monotonic, shared: ownNode.sharesStore, store, failed }));
  }

  const inboxPath = join(dataFolder(settings.database), 'inbox');
  const { transport: opened, inbox } = openTransport(settings.transport, { clock, inboxPath, onError: failed });
  const transport = surroundings.wrapTransport?.(opened) ?? opened;
  const most = allocateConnections(settings, readDescriptorLimit(), transport.concurrency, warn);
  const shared = { settings, node: ownNode, store, health, directory, domains, transport, publish, drainMs };
  const delivery = roles.has('deliver') ? stack.use(await startDelivery(shared)) : null;
  const dispatcher = delivery?.dispatcher ?? null;

  const connected = { settings, clock, publish };
  const forEvents = createHttpConnections('events', most.events, connected);
  const feedback = roles.has('feedback')
    ? stack.use(await startFeedback({ settings, clock, store, connections: forEvents, publish }))
    : null;

  const status = (): RuntimeStatus => ({
    node,
    version,
    storeFault: health.fault(),
    storeRemedy: filesFault?.remedy ?? null,
    delivery: delivery === null ? null : observability.deliveryStatus(),
  });
  // Stored by the role `api` at its end where there is no account yet.
  const firstKey = newApiKey(randomBytes);
  const operator = roles.has('operator')
    ? stack.use(
        await startOperator({
          settings,
          clock,
          machineClock,
          store: { ...store, queueFigures },
          directory,
          events,
          observability,
          connections: createHttpConnections('operator', most.operator, connected),
          inbox,
          status,
          firstKey: firstKey.key,
          api: surroundings.operatorApi ?? null,
        }),
      )
    : null;

  const ready = () => (dead ? 'the store has failed' : health.fault());
  const reach = { limits: { maxConnections: most.public, ...limits }, ready, dispatcher, firstKey };
  const api = roles.has('api') ? stack.use(await startApi({ ...shared, ...reach })) : null;

  const [publicUrl, operatorUrl] = [api?.publicUrl ?? null, operator?.url ?? null];
  publish({
    type: 'node.started',
    at: clock.now(),
    transport: settings.transport.kind,
    url: publicUrl ?? operatorUrl ?? '',
  });
  stack.defer(() => publish({ type: 'node.draining', at: clock.now() }));
  const running = stack.move();
  return {
    publicUrl,
    operatorUrl,
    signInUrl: operator?.signInUrl ?? null,
    feedback: feedback?.addresses ?? NO_FEEDBACK,
    firstKey: api?.firstKey ?? null,
    inboxPath: inbox === null ? null : inboxPath,
    failed: store.failed,
    async stop() {
      try {
        await running.disposeAsync();
      } catch (error) {
        throw firstError(error);
      }
    },
  };
}

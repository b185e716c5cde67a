/**
 * The only place that wires: builds the parts for the chosen roles, starts them in order, stops them in reverse.
 *
 * Promises: a failed start leaves nothing running and rejects with one clear line; `stop` answers the requests in flight,
 * lets attempts end within a bound, gives the other leases back and closes the store last, and does the rest of it where
 * one part fails.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SteadyClock } from './clock.ts';
import { systemClock } from './clock.ts';
import type { DescribedSetting } from './config/load.ts';
import type { Settings } from './config/settings.ts';
import { DomainDirectory } from './domains/directory.ts';
import { dataFolder, operatorKey, SECRET_REMEDY, secretWarning } from './domains/setup.ts';
import { readEntity } from './feedback/read/entity.ts';
import { bind } from './http/bind.ts';
import { CONNECTION_LIMITS, Connections, withoutShare } from './http/connections.ts';
import { MAX_CONNECTIONS, readDescriptorLimit, shareDescriptors } from './http/descriptors.ts';
import { KeyDirectory } from './http/directory.ts';
import { openApiDocument } from './http/openapi.ts';
import type { ListenerLimits } from './http/ports.ts';
import type { HttpListenerName } from './model/events.ts';
import type { RuntimeStatus } from './model/runtime-status.ts';
import { createEvents } from './observability/events.ts';
import { createLog } from './observability/log.ts';
import { logLines } from './observability/log-lines.ts';
import { audited } from './operator/audited.ts';
import type { ListFiles } from './operator/list-files.ts';
import { createOperatorListener } from './operator/listener.ts';
import type { Store } from './store/contract.ts';
import { watchHealth } from './store/health.ts';
import { openStore } from './store/open.ts';
import { remember } from './store/remember.ts';
import { startIndexer } from './store/search/indexer.ts';
import type { FilesFault } from './store/sqlite/files.ts';
import { openTransport } from './transports/open.ts';
import type { Transport } from './transports/transport.ts';
import { aboutService } from './wiring/about.ts';
import { startApi } from './wiring/api.ts';
import { startDelivery } from './wiring/delivery.ts';
import { firstFault } from './wiring/disposal.ts';
import { accountEvents, faults } from './wiring/events.ts';
import { type FeedbackAddresses, NO_FEEDBACK, startFeedback } from './wiring/feedback.ts';
import { installationOf } from './wiring/installation.ts';
import { nodeName, takePlace } from './wiring/node.ts';
import { startObservability } from './wiring/observability.ts';

/** Where `npm ci` builds the operator's pages. */
const DASHBOARD = fileURLToPath(new URL('../dashboard/dist', import.meta.url));
/** Attempts under way at a stop get this long; requests under way a fifth of it before. */
const DRAIN_MS = 25_000;

/** How long a download from the operator listener may stand still. */
const MAX_STALL_MS = 30_000;
/** What the SMTP intake holds at most, and some that it is about to refuse. */
const MAX_SMTP_CONNECTIONS = 250;

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
export interface Surroundings {
  readonly clock?: SteadyClock;
  readonly openStore?: (settings: Settings) => Promise<Store>;
  readonly limits?: Partial<ListenerLimits>;
  readonly drainMs?: number;
  /** The log writes nothing to standard output before this has resolved, or the start has failed. */
  readonly logAfter?: Promise<unknown>;
  /** Gets the transport of the settings, and gives the one that is used. */
  readonly transport?: (transport: Transport) => Transport;
  /** What the operator API needs of this installation; without it there is no such API. */
  readonly operator?: OperatorParts;
}

export interface OperatorParts {
  readonly version: string;
  readonly files: (store: Store) => ListFiles;
  /** The settings that the service was started with, secrets masked. */
  readonly describeSettings: () => readonly DescribedSetting[];
}

/** Descriptors beside those of the HTTP listeners and of the store: attempts under way, and the SMTP intake. */
function descriptorsOf({ roles, feedbackListen }: Settings, concurrency: number): number {
  const delivery = roles.has('deliver') ? concurrency : 0;
  return delivery + (roles.has('feedback') && feedbackListen !== null ? MAX_SMTP_CONNECTIONS : 0);
}

/** Starts the service; rejects with an Error of one line. */
export async function startService(settings: Settings, surroundings: Surroundings = {}): Promise<Service> {
  try {
    return await start(settings, surroundings);
  } catch (error) {
    // Why it did not start says more than what then failed to stop.
    throw firstFault(error);
  }
}

/** Started from top to bottom, disposed from bottom to top; a start that fails disposes of what it has started. */
async function start(settings: Settings, surroundings: Surroundings): Promise<Service> {
  await using stack = new AsyncDisposableStack();
  const {
    clock: machineClock = systemClock,
    openStore: open,
    limits = {},
    drainMs = DRAIN_MS,
    logAfter = null,
    operator: parts,
  } = surroundings;
  const { roles } = settings;
  const node = nodeName();
  const log = createLog(settings.logLevel, null, logAfter);
  stack.defer(() => log.close());

  const events = createEvents(machineClock);
  const { publish } = events;
  events.subscribe(logLines(log, node));
  const warn = (detail: string) => publish({ type: 'node.warning', at: machineClock.now(), detail });
  let filesFault: FilesFault | null = null;
  const onFilesFault = (fault: FilesFault | null) => {
    filesFault = fault;
    const at = machineClock.now();
    publish(fault === null ? { type: 'store.files-back', at } : { type: 'store.files-lost', at, ...fault });
  };
  const store = await (open?.(settings) ?? openStore(settings.database, { exclusive: true, node, warn, onFilesFault }));
  stack.defer(() => store.close());
  const secretFault = secretWarning(settings);
  if (secretFault !== null) warn(`${secretFault}; ${SECRET_REMEDY}`);
  const descriptors = readDescriptorLimit();
  const place = await takePlace(node, settings, store, machineClock, faults(publish, machineClock));
  const { clock } = place;
  const failed = faults(publish, clock);
  // A node that cannot say that it ends is found dead soon.
  stack.defer(() => place.leave().catch((error: unknown) => failed('leave', error)));
  const health = watchHealth(store, clock, () => filesFault?.reason ?? null);
  stack.defer(() => health.stop());
  let dead = false;
  void store.failed.then(() => {
    dead = true;
  });
  const queueFigures = remember(
    () => store.queueFigures(),
    () => performance.now(),
  );
  const version = parts?.version ?? '';
  const observability = stack.use(
    startObservability({ settings, version, node, clock, store, queueFigures, log, events }),
  );

  const directory = new KeyDirectory(accountEvents(publish, clock));
  const domains = new DomainDirectory();
  await store.watchDirectory((changes) => {
    directory.apply(changes);
    domains.apply(changes);
    if (changes.accounts.length + changes.keys.length > 0) publish({ type: 'account.changed', at: clock.now() });
    if (changes.domains.length + changes.removed.length > 0) publish({ type: 'domain.changed', at: clock.now() });
  });

  if (roles.has('operator') || roles.has('deliver')) {
    const monotonic = () => performance.now();
    stack.defer(startIndexer({ clock, monotonic, shared: place.shared, store, failed }));
  }

  const inbox = join(dataFolder(settings.database), 'inbox');
  const opened = openTransport(settings.transport, { clock, inboxPath: inbox, failed });
  const { transport: wrap = (transport: Transport) => transport } = surroundings;
  const handover = { ...opened, transport: wrap(opened.transport) };
  const connections = (listener: HttpListenerName, most: number) =>
    new Connections({
      limits: { ...CONNECTION_LIMITS, unreadTimeoutMs: MAX_STALL_MS, maxConnections: most },
      clock,
      sharesNothing: withoutShare(settings.trustedProxies),
      dropped: (reason) => publish({ type: 'connection.dropped', at: clock.now(), listener, reason }),
    });
  const most = shareDescriptors(descriptors, descriptorsOf(settings, handover.transport.concurrency));
  if (most.public < MAX_CONNECTIONS.public) {
    warn(
      `the limit of ${descriptors} open files leaves ${most.public} connections to the public listener and ${most.operator} to the operator listener; raise it (\`ulimit -n 65536\`, LimitNOFILE=65536)`,
    );
  }
  const shared = { settings, place, store, health, directory, domains, publish, drainMs };
  const delivery = roles.has('deliver') ? stack.use(await startDelivery({ ...shared, handover })) : null;
  const dispatcher = delivery?.dispatcher ?? null;

  const reports = { settings, clock, store, connections: connections('events', most.events), publish };
  const feedback = roles.has('feedback') ? stack.use(await startFeedback(reports)) : null;

  const service = (): RuntimeStatus => ({
    node,
    version,
    storeFault: health.fault(),
    storeRemedy: filesFault?.remedy ?? null,
    delivery: delivery === null ? null : observability.deliveryStatus(),
  });
  const cancelMail: Store['cancelMail'] = async (id, now, by) => {
    const answer = await store.cancelMail(id, now, by);
    if (answer.kind === 'done') publish({ type: 'message.cancelled', at: now, id });
    return answer;
  };
  const retryMail: Store['retryMail'] = async (id, now, by) => {
    const answer = await store.retryMail(id, now, by);
    if (answer.kind === 'done') publish({ type: 'message.retried', at: now, id });
    return answer;
  };
  let operatorUrl: string | null = null;
  let signInUrl: string | null = null;
  if (roles.has('operator')) {
    const files = parts?.files(store);
    const about = aboutService({ settings, version, clock, directory, subscribe: events.subscribe });
    const operator = createOperatorListener({
      settings,
      clock,
      bind,
      connections: connections('operator', most.operator),
      metrics: observability.scrape,
      openApi: `${JSON.stringify(openApiDocument(), null, 2)}\n`,
      dashboard: DASHBOARD,
      inbox: handover.inbox,
      readEntity,
      api:
        parts === undefined || files === undefined
          ? null
          : {
              store,
              operate: (actor) => {
                const own = audited({ ...store, queueFigures, cancelMail, retryMail }, actor, clock.now);
                return {
                  actor,
                  clock,
                  machineClock,
                  settings,
                  random: randomBytes,
                  status: service,
                  store: own,
                  installation: installationOf(settings, machineClock, (work) => work(own)),
                  describeSettings: parts.describeSettings,
                  progress: () => undefined,
                };
              },
              news: observability.news,
              changed: () => publish({ type: 'operator.changed', at: clock.now() }),
              files,
              version: parts.version,
              about,
              key: operatorKey(settings),
            },
      failed: (error) => failed('operator', error),
    });
    stack.defer(() => operator.close());
    // Before it: whoever follows an import hears that it breaks off.
    stack.defer(() => files?.stop());
    ({ url: operatorUrl, signInUrl } = await operator.start());
    // An operator's first look finds the store's reader at work and the queue counted.
    if (parts !== undefined) void queueFigures().catch(() => undefined);
  }

  const ready = () => (dead ? 'the store has failed' : health.fault());
  const reach = { transport: handover.transport, limits: { maxConnections: most.public, ...limits } };
  const api = roles.has('api') ? stack.use(await startApi({ ...shared, ...reach, ready, dispatcher })) : null;
  const publicUrl = api?.publicUrl ?? null;
  const url = publicUrl ?? operatorUrl ?? '';
  publish({ type: 'node.started', at: clock.now(), transport: settings.transport.kind, url });
  stack.defer(() => publish({ type: 'node.draining', at: clock.now() }));
  const inboxPath = handover.inbox === null ? null : inbox;
  const running = stack.move();
  return {
    publicUrl,
    operatorUrl,
    signInUrl,
    feedback: feedback?.addresses ?? NO_FEEDBACK,
    firstKey: api?.firstKey ?? null,
    inboxPath,
    failed: store.failed,
    async stop() {
      try {
        await running.disposeAsync();
      } catch (error) {
        throw firstFault(error);
      }
    },
  };
}

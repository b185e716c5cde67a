/**
 * The only place that wires: builds the parts for the chosen roles, starts them in order, stops them in reverse.
 *
 * Promises: a failed start leaves nothing running and rejects with one clear line; `stop` answers the requests in flight,
 * lets attempts end within a bound, gives the other leases back and closes the store last, and does the rest of it where
 * one part fails.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { newApiKey } from './admit/api-key.ts';
import { mailIds } from './admit/mail-id.ts';
import type { Clock } from './clock.ts';
import { systemClock } from './clock.ts';
import type { Settings } from './config/settings.ts';
import { createBreaker } from './deliver/breaker.ts';
import { openTransport } from './deliver/open.ts';
import { isSimulated, simulatorKind } from './deliver/simulator/address.ts';
import { DomainDirectory } from './domains/directory.ts';
import { outgoing } from './domains/outgoing.ts';
import { checkSecret, domainCheck, signing } from './domains/setup.ts';
import { watchDomains } from './domains/watcher.ts';
import { bind } from './http/bind.ts';
import { KeyDirectory } from './http/directory.ts';
import { ERROR_CODES } from './http/errors.ts';
import { createListener } from './http/listener.ts';
import { openApiDocument } from './http/openapi.ts';
import type { ListenerLimits } from './http/ports.ts';
import { Throttle } from './http/throttle.ts';
import { createLog } from './observe/log.ts';
import { createMetrics } from './observe/metrics.ts';
import { createReporter } from './observe/reporter.ts';
import { createOperatorListener } from './operator/listener.ts';
import type { Dispatcher } from './queue/dispatcher.ts';
import { createDispatcher } from './queue/dispatcher.ts';
import { createIntake } from './queue/intake.ts';
import { createScreening } from './queue/screening.ts';
import { startSweeper } from './queue/sweeper.ts';
import { simulatedComplaint } from './record/record.ts';
import { groupCommit } from './store/group-commit.ts';
import { watchHealth } from './store/health.ts';
import { openStore } from './store/open.ts';
import type { Store } from './store/store.ts';

/** Attempts under way at a stop get this long; requests under way a fifth of it before. */
const DRAIN_MS = 25_000;
/** Mail requests of one commit at most, so that no commit takes long. */
const BATCH = 512;
/** Above this the listener sheds load: what waits would be answered too late to be of use. */
const WAIT_MAX_MS = 1_000;
const TOUCH_KEYS_MS = 5_000;

export interface Service {
  readonly publicUrl: string | null;
  readonly operatorUrl: string | null;
  /** The raw key made on an empty store, else null. */
  readonly firstKey: string | null;
  /** The Maildir of `capture:`, else null. */
  readonly inboxPath: string | null;
  /** Resolves, and never rejects, once the service can do its work no more: the process has to be started anew. */
  readonly failed: Promise<Error>;
  /** Stops every part, also where one fails to stop; rejects then with the first such fault. */
  stop(): Promise<void>;
}

/** What a test may hand in instead of the machine's own. */
export interface Surroundings {
  readonly clock?: Clock;
  readonly openStore?: (settings: Settings) => Promise<Store>;
  readonly limits?: Partial<ListenerLimits>;
  readonly drainMs?: number;
}

/** Starts the service; rejects with an Error of one line. */
export async function startService(settings: Settings, surroundings: Surroundings = {}): Promise<Service> {
  const stops: (() => Promise<void> | void)[] = [];
  const stop = async () => {
    const faults: unknown[] = [];
    for (const undo of stops.splice(0).reverse()) {
      try {
        await undo();
      } catch (error) {
        faults.push(error);
      }
    }
    if (faults.length > 0) throw faults[0];
  };
  try {
    return { ...(await start(settings, surroundings, stops)), stop };
  } catch (error) {
    // Why it did not start says more than what then failed to stop.
    await stop().catch(() => undefined);
    throw error;
  }
}

async function start(
  settings: Settings,
  {
    clock = systemClock,
    openStore: open = (chosen) => openStore(chosen.database, { exclusive: true }),
    limits = {},
    drainMs = DRAIN_MS,
  }: Surroundings,
  stops: (() => Promise<void> | void)[],
): Promise<Omit<Service, 'stop'>> {
  const { roles } = settings;
  const node = `${hostname().split('.')[0]}-${process.pid}-${randomBytes(3).toString('hex')}`;
  const log = createLog(settings.logLevel);
  stops.push(() => log.close());

  const store = await open(settings);
  stops.push(() => store.close());
  const health = watchHealth(store, clock);
  stops.push(() => health.stop());
  let dead = false;
  void store.failed.then(() => {
    dead = true;
  });
  const metrics = createMetrics({
    clock,
    queueFigures: () => store.queueFigures(),
    reasons: ERROR_CODES,
    droppedLines: log.dropped,
  });
  const report = createReporter({ log, metrics, node });

  const directory = new KeyDirectory();
  const domains = new DomainDirectory();
  await store.watchDirectory((changes) => {
    for (const account of changes.accounts) report.account(directory.account(account.id), account);
    directory.apply(changes);
    domains.apply(changes);
  });
  const accepts = groupCommit(health.watched(store.accept), {
    maxBatch: BATCH,
    now: () => performance.now(),
    observe: (size, tookMs) => metrics.committed('accept', size, tookMs),
  });

  const data = settings.database.kind === 'sqlite' ? dirname(settings.database.path) : 'data';
  const handover = openTransport(settings.transport, { clock, inboxPath: join(data, 'inbox') });
  let dispatcher: Dispatcher | null = null;
  if (roles.has('deliver')) {
    await checkSecret(settings, store);
    const recovered = await store.recover({
      now: clock.now(),
      everyLease: true,
      onUncertain: settings.onUncertain,
      by: node,
    });
    report.recovered(recovered);
    const settles = groupCommit(health.watched(store.settle), {
      maxBatch: BATCH,
      now: () => performance.now(),
      observe: (size, tookMs) => metrics.committed('settle', size, tookMs),
    });
    const marks = groupCommit(store.mark, { maxBatch: BATCH, now: () => performance.now() });
    const screens = groupCommit(store.screen, { maxBatch: BATCH, now: () => performance.now() });
    const screening = createScreening(clock, (mail) => screens.submit(mail));
    dispatcher = createDispatcher({
      node,
      clock,
      random: Math.random,
      policy: settings,
      transport: handover.transport,
      gate: createBreaker({ random: Math.random, changed: report.breaker }),
      claim: store.claim,
      release: store.release,
      settle: (settlement) => settles.submit(settlement),
      mark: (lease) => marks.submit(lease),
      prepare: outgoing({ domains, ...signing(settings), failed: report.unsigned }),
      following: (mail, { outcome }, now) =>
        outcome.kind === 'delivered' && simulatorKind(mail.to) === 'complaint' ? [simulatedComplaint(now)] : [],
      answeredHere: ({ to }) => isSimulated(to),
      heldBack: ({ accountId }) => directory.isLocked(accountId),
      wanted: (mail) => screening.wanted(mail),
      observe: {
        ...report.queue,
        attempted(mail, attempt, change) {
          screening.note(mail, change);
          report.queue.attempted(mail, attempt, change);
        },
      },
    });
    const started = dispatcher;
    stops.push(() => handover.transport.close(1_000));
    stops.push(async () => {
      await started.drain(drainMs);
    });
    stops.push(
      startSweeper({ node, clock, policy: settings, store, unrecorded: started.unrecorded, ...report.sweeper }),
    );
    stops.push(
      watchDomains({
        clock,
        list: store.listDomains,
        find: store.findDomain,
        check: domainCheck(settings, clock),
        update: store.updateDomain,
        ...report.domains,
      }),
    );
    started.start();
  }

  let operatorUrl: string | null = null;
  if (roles.has('operator')) {
    const operator = createOperatorListener({
      settings,
      clock,
      bind,
      metrics: () => metrics.scrape(),
      openApi: `${JSON.stringify(openApiDocument(), null, 2)}\n`,
      inbox: handover.inbox,
      failed: (error) => report.failed('operator', error),
    });
    stops.push(() => operator.close());
    operatorUrl = (await operator.start()).url;
  }

  let publicUrl: string | null = null;
  let firstKey: string | null = null;
  if (roles.has('api')) {
    const ids = mailIds(await store.newestId(), randomUUID);
    const listener = createListener({
      settings,
      directory,
      throttle: new Throttle(),
      submit: createIntake({
        commit: (mail) => accepts.submit(mail),
        dispatcher,
        suppressed: (recipient) => simulatorKind(recipient) === 'suppressed',
      }),
      ids,
      clock,
      load: () => {
        const waitMs = accepts.oldestWaitMs();
        return waitMs > WAIT_MAX_MS ? { shed: true, retryAfterMs: waitMs } : { shed: false };
      },
      ready: () => (dead ? 'the store has failed' : health.fault()),
      domains,
      observe: report.http,
      limits,
    });
    stops.push(() => listener.drain(drainMs / 5));
    publicUrl = (await listener.start()).url;
    // Last of all: a start that fails must not use up the one chance to show the key.
    firstKey = await firstAccount(store, directory, clock.now());
    stops.push(touchKeys(store, directory, clock, (error) => report.failed('touch keys', error)));
  }
  log.started({ node, transport: settings.transport.kind, url: publicUrl ?? operatorUrl ?? '' });
  stops.push(() => log.draining({ node }));
  const inboxPath = handover.inbox === null ? null : join(data, 'inbox');
  return { publicUrl, operatorUrl, firstKey, inboxPath, failed: store.failed };
}

/** On an empty store: the account `default` and a key, which is returned and works at once. */
async function firstAccount(store: Store, directory: KeyDirectory, now: number): Promise<string | null> {
  const { key, prefix, hash } = newApiKey(randomBytes);
  const made = await store.createFirstKey('default', { name: 'first', prefix, hash }, now);
  if (made === null) return null;
  // The watch tells the directory soon; a client may be sooner.
  directory.apply({ revision: 0, accounts: [made.account], keys: [made.key] });
  return key;
}

/** Writes down now and then when keys were last used; a last time when stopped. */
function touchKeys(
  store: Store,
  directory: KeyDirectory,
  clock: Clock,
  failed: (error: unknown) => void,
): () => Promise<void> {
  let cancel: () => void = () => undefined;
  const write = async () => {
    const used = directory.takeUsed();
    if (used.length > 0) await store.touchKeys(used).catch(failed);
  };
  let stopped = false;
  const again = () => {
    if (!stopped) cancel = clock.after(TOUCH_KEYS_MS, () => void write().then(again));
  };
  again();
  return async () => {
    stopped = true;
    cancel();
    await write();
  };
}

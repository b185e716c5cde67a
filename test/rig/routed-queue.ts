/** Nodes with several routes and one store, on a virtual clock. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { RouteLimits } from '../../src/config/settings.ts';
import type { LeasedMessage, NewMessage, Settlement } from '../../src/model/message.ts';
import type { Attempt, Outcome } from '../../src/model/outcome.ts';
import type { Routing } from '../../src/model/route.ts';
import { createDispatcher, type Dispatcher } from '../../src/queue/dispatcher.ts';
import { startParkingScanner } from '../../src/queue/parking.ts';
import { createRouteHealth } from '../../src/queue/route-health.ts';
import { createRoutes, type Routes } from '../../src/queue/routes.ts';
import { packSettlements } from '../../src/store/rules/messages.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { createEngine } from '../../src/store/sqlite/thread.ts';
import type { OutgoingMessage } from '../../src/transports/transport.ts';
import { createVirtualClock } from './clock.ts';
import { createDataFolder } from './memory-folder.ts';
import { createAttempt } from './messages.ts';
import { START } from './queue.ts';

export interface RoutedNode {
  readonly name: string;
  readonly dispatcher: Dispatcher;
  readonly routes: Routes;
  /** As a SIGKILL: nothing of this node reaches the store any more. */
  kill(): void;
}

export interface RoutedAttempt {
  readonly node: string;
  readonly route: string;
  readonly message: OutgoingMessage;
  readonly startedAt: number;
}

export interface RoutedQueueOptions {
  readonly routes: readonly string[];
  readonly respond: (attempt: RoutedAttempt) => Promise<Outcome> | Outcome;
  /** Null: the next hop answers. */
  readonly probe?: (route: string) => Promise<Outcome | null>;
  readonly limits?: (route: string) => RouteLimits;
  readonly prepare?: (route: string, message: LeasedMessage) => OutgoingMessage;
  readonly nextHop?: (route: string) => number;
  readonly concurrency?: number;
  readonly maxAgeMs?: number;
  readonly random?: () => number;
  readonly isHeld?: (message: { readonly id: string }) => boolean;
  readonly onSettle?: (settlement: Settlement, message: LeasedMessage | undefined) => void;
  /** The first choice for a message, or a later one. */
  readonly onChoose?: (
    node: string,
    message: Pick<LeasedMessage, 'id' | 'accountId' | 'route'>,
    route: string | null,
  ) => void;
}

export function createRoutedQueue(options: RoutedQueueOptions) {
  const clock = createVirtualClock(START);
  const folder = createDataFolder('postrider-routes-');
  const database = openDatabase(join(folder, 'postrider.db'));
  const store = createEngine(database).operations;
  for (const name of ['default', 'other'])
    database.exec(`INSERT INTO account (name, created_at, revision) VALUES ('${name}', ${START}, 1)`);
  const maxAgeMs = options.maxAgeMs ?? 24 * 3_600_000;
  const random = options.random ?? (() => 0.5);
  const failures: string[] = [];
  const calls = { claim: 0, release: 0, park: 0, unpark: 0, settle: 0 };
  const nodes: RoutedNode[] = [];
  const leased = new Map<string, LeasedMessage>();
  let isClosed = false;

  function addNode(name: string): RoutedNode {
    let isKilled = false;
    const never = new Promise<never>(() => undefined);
    /** Calls reach the store in a later turn, and none of a killed node does. */
    const call = async <T>(kind: keyof typeof calls, run: () => T | Promise<T>): Promise<T> => {
      await Promise.resolve();
      if (isKilled || isClosed) return never;
      calls[kind] += 1;
      return run();
    };
    const changeListeners: (() => void)[] = [];
    const roomListeners: (() => void)[] = [];
    const routes = createRoutes({
      clock,
      onChange() {
        for (const listener of changeListeners) listener();
      },
      routes: options.routes.map((route) => ({
        name: route,
        transport: {
          concurrency: options.concurrency ?? 4,
          async attempt(message): Promise<Attempt> {
            const startedAt = clock.now();
            if (isKilled) return never;
            const outcome = await options.respond({ node: name, route, message, startedAt });
            return isKilled ? never : { ...createAttempt(outcome), startedAt };
          },
          close: async () => undefined,
        },
        health: createRouteHealth({ route, random, publish: () => undefined }),
        prepare:
          options.prepare === undefined
            ? ({ id, from, to, message }) => ({
                id,
                envelope: { from, to, smtputf8: false },
                data: Buffer.from(message),
              })
            : (message) => options.prepare?.(route, message) ?? Promise.reject(new Error('no preparation')),
        limits: () => options.limits?.(route) ?? { daily: null, rampMs: null },
        nextHop: () => options.nextHop?.(route) ?? 0,
        probe: async () => (options.probe === undefined ? null : options.probe(route)),
      })),
    });
    const { choose } = routes;
    routes.choose = (message, now) => {
      const choice = choose(message, now);
      options.onChoose?.(name, message, choice.kind === 'route' ? choice.route : null);
      return choice;
    };
    const dispatcher = createDispatcher({
      node: name,
      clock,
      ages: { toCurrentClock: (at) => at },
      random,
      policy: { maxAgeMs, onUncertain: 'resend' },
      routes,
      claim: (limits, lease, now) =>
        call('claim', async () => {
          const claimed = await store.claim(limits, lease, now);
          for (const message of claimed.messages) leased.set(message.id, message);
          return claimed;
        }),
      release: (batch, now) => call('release', () => store.release(batch, now)),
      park: (batch, reason, now) => call('park', () => store.park(batch, reason, now)),
      settle: (settlement) =>
        call('settle', async () => {
          options.onSettle?.(settlement, leased.get(settlement.id));
          return (await store.settle(packSettlements([settlement])))[0] ?? 'lost';
        }),
      markTransmitting: async (lease) => store.markTransmitting([lease])[0] ?? 'lost',
      mustNotAttempt: () => false,
      mayReceive: () => true,
      isHeld: (message) => options.isHeld?.(message) ?? false,
      onRoom() {
        for (const listener of roomListeners) listener();
      },
      publish(event) {
        if (event.type === 'node.lease_lost') failures.push(`lost: ${event.id}`);
        if (event.type === 'node.operation_failed') failures.push(`${event.operation}: ${String(event.error)}`);
      },
    });
    changeListeners.push(dispatcher.reroute);
    const stopScanner = startParkingScanner({
      clock,
      nextEndAt: null,
      onChange: (listener) => void changeListeners.push(listener),
      onRoom: (listener) => void roomListeners.push(listener),
      store: {
        listParked: async (afterId, limit) => (isKilled || isClosed ? [] : store.listParked(afterId, limit)),
        unpark: (ids, now) => call('unpark', () => store.unpark(ids, now)),
      },
      isStillParked: (message) =>
        message.parked.reason === 'hold' ? (options.isHeld?.(message) ?? false) : !dispatcher.canPlace(message),
      onUnparked: dispatcher.wake,
      onError: (error) => void failures.push(`unpark: ${String(error)}`),
    });
    dispatcher.start();
    const node: RoutedNode = {
      name,
      dispatcher,
      routes,
      kill() {
        isKilled = true;
        void dispatcher.drain(0);
        void stopScanner();
        nodes.splice(nodes.indexOf(node), 1);
      },
    };
    nodes.push(node);
    return node;
  }

  async function close(): Promise<void> {
    if (isClosed) return;
    isClosed = true;
    for (const node of [...nodes]) node.kill();
    await clock.advance(1);
    database.close();
    rmSync(folder, { recursive: true });
  }
  onTestFinished(close);

  return {
    clock,
    store,
    nodes,
    addNode,
    close,
    calls,
    failures,
    accept: (messages: readonly NewMessage[]) => store.accept(messages),
    /** Also wakes the nodes, as in the service. */
    submit(message: NewMessage) {
      const result = store.accept([message]);
      for (const { dispatcher } of nodes) dispatcher.wake();
      return result;
    },
    applyRouting(routing: Routing) {
      for (const { routes } of nodes) routes.applyRouting(routing);
    },
    expire: () => store.expire(clock.now() - maxAgeMs, clock.now(), 500, 'sweeper'),
    recover: (node: string) =>
      store.recover({ now: clock.now(), includeAllLeases: true, includeDeadNodes: false, onUncertain: 'resend', node }),
    readStates(): ReadonlyMap<string, string> {
      const rows = database.prepare('SELECT id, state FROM mail_request').all();
      return new Map(rows.map((row) => [String(row.id), String(row.state)]));
    },
    countParked: () =>
      Number(
        database
          .prepare('SELECT count(*) AS n FROM mail_request WHERE state = ? AND due_at >= ?')
          .get('queued', 2 ** 51)?.n,
      ),
  };
}

import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { ServiceEvent } from '../../src/model/events.ts';
import type { LeasedMessage, NewMessage } from '../../src/model/message.ts';
import type { Attempt } from '../../src/model/outcome.ts';
import { createDispatcher, type DispatcherParts } from '../../src/queue/dispatcher.ts';
import type { RouteHealth } from '../../src/queue/route-health.ts';
import { createRoutes, type Route } from '../../src/queue/routes.ts';
import { StoreError } from '../../src/store/error.ts';
import { packSettlements } from '../../src/store/rules/messages.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { createEngine, type Operations } from '../../src/store/sqlite/thread.ts';
import type { LocalAnswer, OutgoingMessage, Transport } from '../../src/transports/transport.ts';
import { createVirtualClock } from './clock.ts';
import { createTemporaryFolder } from './folder.ts';
import { createAttempt, createMessage } from './messages.ts';

export const START = Date.UTC(2026, 0, 5);

export const CLOSED_BREAKER: RouteHealth = {
  state: 'closed',
  failingSince: null,
  isThrottled: false,
  allowsAttempt: () => true,
  getRetryAt: () => null,
  getConcurrency: (maximum) => maximum,
  getShare: () => 1,
  recordOutcome: () => undefined,
  releaseProbe: () => undefined,
  open: () => undefined,
  retryNow: () => undefined,
};

export interface AttemptRecord {
  readonly id: string;
  readonly at: number;
}

/** Calls a store operation. An error of SQLite becomes a rejection, as in the store thread of the service. */
async function runAsPromise<T>(run: () => T): Promise<T> {
  return run();
}

/** Creates a complete queue. `parts` replaces parts of the dispatcher, and `respond` simulates the next hop. */
export function createQueueRig(
  options: {
    parts?: Partial<DispatcherParts>;
    respond?: (message: OutgoingMessage, markTransmitting: (() => Promise<void>) | null) => Promise<Attempt> | Attempt;
    concurrency?: number;
    health?: RouteHealth;
    prepare?: Route['prepare'];
    localAnswer?: LocalAnswer;
  } = {},
) {
  const clock = createVirtualClock(START);
  const database = openDatabase(join(createTemporaryFolder(), 'postrider.db'));
  onTestFinished(() => database.close());
  const store: Operations = createEngine(database).operations;
  database.exec(`INSERT INTO account (name, created_at, revision) VALUES ('default', ${START}, 1)`);
  const attempts: AttemptRecord[] = [];
  const failures: string[] = [];
  const lostLeases: string[] = [];
  const publishedEvents: ServiceEvent[] = [];
  const transport: Transport = {
    concurrency: options.concurrency ?? 4,
    answerLocally: () => options.localAnswer ?? null,
    async attempt(message, markTransmitting) {
      attempts.push({ id: message.id, at: clock.now() });
      return options.respond === undefined ? createAttempt() : options.respond(message, markTransmitting);
    },
    close: async () => undefined,
  };
  const prepare = ({ id, from, to, message }: LeasedMessage): OutgoingMessage => ({
    id,
    envelope: { from, to, smtputf8: false },
    data: Buffer.from(message),
  });
  const routes = createRoutes({
    clock,
    routes: [
      {
        name: 'default',
        transport,
        health: options.health ?? CLOSED_BREAKER,
        prepare: options.prepare ?? prepare,
        limits: () => ({ daily: null, rampMs: null }),
        nextHop: () => null,
        probe: null,
      },
    ],
  });
  const dispatcher = createDispatcher({
    node: 'node-a',
    clock,
    ages: { toCurrentClock: (at) => at },
    random: () => 0.5,
    policy: { maxAgeMs: 24 * 3_600_000, onUncertain: 'resend' },
    routes,
    claim: store.claim,
    release: (batch, now) => runAsPromise(() => store.release(batch, now)),
    park: (batch, reason, now) => runAsPromise(() => store.park(batch, reason, now)),
    settle: async (settlement) => (await store.settle(packSettlements([settlement])))[0] ?? 'lost',
    markTransmitting: (lease) => runAsPromise(() => store.markTransmitting([lease])[0] ?? 'lost'),
    mustNotAttempt: () => false,
    mayReceive: () => true,
    isHeld: () => false,
    publish(event) {
      publishedEvents.push(event);
      if (event.type === 'node.lease_lost') lostLeases.push(event.id);
      if (event.type === 'node.operation_failed')
        failures.push(
          `${event.operation}: ${event.error instanceof Error ? event.error.message : String(event.error)}`,
        );
    },
    ...options.parts,
  });
  onTestFinished(async () => {
    const drainPromise = dispatcher.drain(1);
    await clock.advance(10);
    await drainPromise;
  });
  async function runMessages(count: number, advanceMs: number): Promise<readonly NewMessage[]> {
    const messages = Array.from({ length: count }, () => createMessage({ acceptedAt: START }));
    store.accept(messages);
    dispatcher.start();
    await clock.advance(advanceMs);
    return messages;
  }
  return {
    /** Like `runMessages` with one message. */
    async runMessage(advanceMs: number): Promise<NewMessage> {
      const [message] = await runMessages(1, advanceMs);
      if (message === undefined) throw new Error('no message');
      return message;
    },
    runMessages,
    endLeases: (onUncertain: 'hold' | 'resend') =>
      store.recover({ now: clock.now(), includeAllLeases: true, includeDeadNodes: false, onUncertain, node: 'node-b' }),
    readState: ({ id }: NewMessage) => database.prepare('SELECT state FROM mail_request WHERE id = ?').get(id)?.state,
    clock,
    store,
    dispatcher,
    attempts,
    failures,
    lostLeases,
    publishedEvents,
    storeError: new StoreError('the disk is full'),
  };
}

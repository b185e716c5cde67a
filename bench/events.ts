/**
 * Measures how many delivery events per second are recorded in batches of 1,000. Also measures the accept rate during a
 * stream of events, relative to the accept rate without events.
 */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { NewMessage } from '../src/model/message.ts';
import { createMessageIdGenerator } from '../src/model/submission.ts';
import { packSettlements } from '../src/store/rules/messages.ts';
import { openDatabase } from '../src/store/sqlite/database.ts';
import { createEngine } from '../src/store/sqlite/thread.ts';
import { type BenchService, createBenchFolder, findFreePort, startPostrider } from './postrider.ts';
import { startScript } from './script.ts';

const EVENTS_PER_BATCH = 1_000;
const CONNECTION_COUNT = 4;

/** The result of one run of event-load.ts. */
export interface EventLoadResult {
  readonly statuses: Readonly<Record<string, number>>;
  readonly seconds: number;
  readonly perSecond: number;
}

/** A stream of events that event-load.ts sends. */
export interface EventStream {
  /** Returns false after all requests of the stream have been answered. */
  readonly isRunning: () => boolean;
  /** Resolves when the service has answered all requests. Rejects if the service refused a request. */
  readonly result: Promise<EventLoadResult>;
}

export interface EventBench {
  readonly service: BenchService;
  /**
   * Starts to send one event for each of the next `count` messages. Resolves when the first batch has been answered.
   * A load that the caller starts afterwards is therefore not slowed down by the start of the event generator.
   */
  readonly startStream: (count: number, eventsPerSecond: number | null) => Promise<EventStream>;
}

/** Starts a service whose store contains `messageCount` delivered messages. */
export async function startEventBench(messageCount: number): Promise<EventBench> {
  const folder = createBenchFolder();
  const port = await findFreePort();
  const settings = {
    POSTRIDER_FEEDBACK_HTTP_LISTEN: `127.0.0.1:${port}`,
    POSTRIDER_EVENTS_SPARKPOST: 'bench:bench-password',
    POSTRIDER_ROLES: 'api,feedback',
  };
  const firstService = await startPostrider(settings, folder);
  await firstService.stop();
  const seededMessages = await seedDeliveredMessages(join(folder, 'data/postrider.db'), messageCount);
  const service = { ...(await startPostrider(settings, folder)), key: firstService.key };
  let nextMessageIndex = 0;
  return {
    service,
    async startStream(count, eventsPerSecond) {
      const file = join(folder, `events-${nextMessageIndex}.jsonl`);
      writeFileSync(file, formatBatches(seededMessages.slice(nextMessageIndex, nextMessageIndex + count)));
      nextMessageIndex += count;
      const load = { port, connectionCount: CONNECTION_COUNT, file, eventsPerBatch: EVENTS_PER_BATCH, eventsPerSecond };
      const generator = startScript('event-load.ts', JSON.stringify(load));
      const lines = createInterface(generator.stdout ?? process.stdin)[Symbol.asyncIterator]();
      const readLine = async (): Promise<unknown> => {
        const line = await lines.next();
        if (line.done === true) throw new Error('the event generator ended before it printed a result');
        return JSON.parse(line.value);
      };
      await readLine();
      let isRunning = true;
      const readResult = async (): Promise<EventLoadResult> => {
        const result = (await readLine()) as EventLoadResult;
        isRunning = false;
        if ((result.statuses['200'] ?? 0) * EVENTS_PER_BATCH !== count)
          throw new Error(
            `expected ${count / EVENTS_PER_BATCH} responses with status 200: ${JSON.stringify(result.statuses)}`,
          );
        return result;
      };
      return { isRunning: () => isRunning, result: readResult() };
    },
  };
}

/** Stores delivered messages of the account `default` and returns their ids and recipients. */
async function seedDeliveredMessages(path: string, count: number): Promise<readonly Pick<NewMessage, 'id' | 'to'>[]> {
  const database = openDatabase(path);
  database.exec('PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 100000');
  const { operations } = createEngine(database);
  const now = Date.now() - 3_600_000;
  const ids = createMessageIdGenerator(null, randomUUID);
  const lease = { owner: 'bench', until: now + 7_200_000 };
  const reply = { stage: 'content', code: 250, enhanced: '2.0.0', text: 'ok' } as const;
  const attempt = {
    outcome: { kind: 'delivered', reply },
    startedAt: now,
    tookMs: 5,
    remote: 'relay',
    transcript: [],
  } as const;
  const event = { at: now, verb: 'delivered', by: 'bench', detail: '250 ok', failure: null, attempt };
  const messages: NewMessage[] = [];
  for (let offset = 0; offset < count; offset += 10_000) {
    const batch = Array.from({ length: Math.min(10_000, count - offset) }, (_, index): NewMessage => {
      const to = `reader.${offset + index}@example.net`;
      return {
        ...{ id: ids.next(now), accountId: 1, keyId: 1, acceptedAt: now, to, recipient: to, from: 'shop@example.org' },
        ...{ subject: 'Your receipt', message: 'x', idempotency: null, lease, suppressedBy: null },
      };
    });
    database.exec('BEGIN');
    operations.accept(batch);
    await operations.settle(
      packSettlements(
        batch.map(({ id }) => ({
          ...{ id, owner: lease.owner, attempts: 1, refundAttempt: false },
          changes: [{ to: 'delivered', dueAt: null, event, suppress: null }] as const,
        })),
      ),
    );
    database.exec('COMMIT');
    messages.push(...batch);
  }
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
  return messages;
}

/** Returns one delivery event in the format of SparkPost for each message, one batch per line. */
function formatBatches(messages: readonly Pick<NewMessage, 'id' | 'to'>[]): string {
  const lines: string[] = [];
  for (let offset = 0; offset < messages.length; offset += EVENTS_PER_BATCH) {
    const events = messages.slice(offset, offset + EVENTS_PER_BATCH).map(({ id, to }) => ({
      msys: {
        message_event: {
          type: 'delivery',
          event_id: randomUUID(),
          timestamp: String(Math.round(Date.now() / 1_000)),
          message_id: '000443ee14578172be22',
          rcpt_to: to,
          rcpt_meta: { 'postrider-id': id },
          ip_address: '192.0.2.25',
          queue_time: '12',
        },
      },
    }));
    lines.push(JSON.stringify(events));
  }
  return lines.join('\n');
}

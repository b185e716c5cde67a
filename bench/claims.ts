/**
 * Measures claims from a queue of 1,000,000 messages of 1,000 accounts in the embedded store: the rate, and the number
 * of bytes that a claim writes. Messages of different accounts alternate, so adjacent rows belong to different
 * accounts.
 */
import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { NewMessage } from '../src/model/message.ts';
import { createMessageIdGenerator } from '../src/model/submission.ts';
import { packSettlements } from '../src/store/rules/messages.ts';
import { openDatabase } from '../src/store/sqlite/database.ts';
import { createEngine } from '../src/store/sqlite/thread.ts';
import { calculateMedian } from './median.ts';
import { createBenchFolder, removeFolder } from './postrider.ts';

const ACCOUNT_COUNT = 1_000;
const NO_LIMITS = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };
/** The limits of one claim of the dispatcher. */
const CLAIM_LIMITS = { maxMessages: 512, maxBytes: 16_777_216 };
const BATCH_SIZE = 10_000;
const HELD_ROUND_MESSAGES = 20_000;

interface ClaimRates {
  /** The number of messages that are claimed and settled per second. */
  readonly settledPerSecond: number;
  /** The number of messages that are claimed and released per second. */
  readonly releasedPerSecond: number;
  /** The number of bytes per message that a claim and its release write to the write-ahead log. */
  readonly writtenBytesPerMessage: number;
}

/** Fills the database at `path` with `queuedCount` due messages, after `heldCount` that a hold stops. */
async function seedQueue(path: string, queuedCount: number, heldCount = 0): Promise<void> {
  const database = openDatabase(path);
  database.exec('PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 100000');
  const { operations } = createEngine(database);
  const now = Date.now() - 3_600_000;
  for (let n = 1; n <= ACCOUNT_COUNT; n += 1) await operations.createAccount(`account-${n}`, NO_LIMITS, now);
  const ids = createMessageIdGenerator(null, randomUUID);
  const count = heldCount + queuedCount;
  for (let offset = 0; offset < count; offset += BATCH_SIZE) {
    const batch = Array.from({ length: Math.min(BATCH_SIZE, count - offset) }, (_, index): NewMessage => {
      const to = `reader.${offset + index}@example.net`;
      return {
        id: ids.next(now + offset + index),
        accountId: ((offset + index) % ACCOUNT_COUNT) + 1,
        keyId: 1,
        acceptedAt: now + offset + index,
        to,
        recipient: to,
        from: 'shop@example.org',
        subject: 'Your receipt',
        message: 'x'.repeat(200),
        idempotency: null,
        lease: null,
        suppressedBy: null,
        isHeld: offset + index < heldCount,
      };
    });
    database.exec('BEGIN');
    operations.accept(batch);
    database.exec('COMMIT');
  }
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
}

/** Claims and releases `messageCount` messages. Then claims and settles `messageCount` messages. */
async function measureClaimRates(path: string, messageCount: number): Promise<ClaimRates> {
  const database = openDatabase(path);
  // SQLite makes no automatic checkpoint, so the size of the write-ahead log is the number of bytes written to the log
  // since the last explicit checkpoint.
  database.exec('PRAGMA wal_autocheckpoint = 0');
  const { operations: store } = createEngine(database);
  const lease = { owner: 'bench', until: Date.now() + 3_600_000 };
  const inTransaction = async <T>(operation: () => T | Promise<T>): Promise<T> => {
    database.exec('BEGIN IMMEDIATE');
    const value = await operation();
    database.exec('COMMIT');
    return value;
  };
  let writtenBytes = 0;
  const measureRate = async (
    completeClaim: (leasedMessages: Awaited<ReturnType<typeof store.claim>>['messages'], now: number) => unknown,
  ) => {
    writtenBytes = 0;
    const startedAt = performance.now();
    let claimedCount = 0;
    let checkpointMs = 0;
    while (claimedCount < messageCount) {
      const now = Date.now() + 3_600_000;
      const { messages: leasedMessages } = await inTransaction(() =>
        store.claim(CLAIM_LIMITS, { ...lease, until: now + 600_000 }, now),
      );
      await inTransaction(() => completeClaim(leasedMessages, now));
      claimedCount += leasedMessages.length;
      const checkpointStartedAt = performance.now();
      writtenBytes += statSync(`${path}-wal`).size;
      database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      checkpointMs += performance.now() - checkpointStartedAt;
    }
    return (claimedCount * 1000) / (performance.now() - startedAt - checkpointMs);
  };
  const releasedPerSecond = await measureRate((leasedMessages, now) =>
    store.release(
      leasedMessages.map(({ id, attempts }) => ({ id, owner: lease.owner, attempts })),
      now,
    ),
  );
  const writtenBytesPerMessage = writtenBytes / messageCount;
  const settledPerSecond = await measureRate((leasedMessages, now) => {
    const event = { at: now, verb: 'delivered', by: 'bench', detail: null, failure: null, attempt: null };
    return store.settle(
      packSettlements(
        leasedMessages.map(({ id, attempts }) => ({
          id,
          owner: lease.owner,
          attempts,
          refundAttempt: false,
          changes: [{ to: 'delivered', dueAt: null, event, suppress: null }] as const,
        })),
      ),
    );
  });
  database.close();
  return { settledPerSecond, releasedPerSecond, writtenBytesPerMessage };
}

/** Fills a store. Records the rates of claims and the number of bytes that a claim writes. */
export async function benchClaims(record: (measure: string, value: number, unit: string) => void): Promise<void> {
  const folder = createBenchFolder();
  const path = join(folder, 'postrider.db');
  await seedQueue(path, 1_000_000);
  const { settledPerSecond, releasedPerSecond, writtenBytesPerMessage } = await measureClaimRates(path, 50_000);
  record('claims with settlement on the embedded store, 1,000,000 queued', settledPerSecond, '/s');
  record('claims with release on the embedded store, 1,000,000 queued', releasedPerSecond, '/s');
  record('size of the write-ahead log per message, claim with release', writtenBytesPerMessage / 1024, 'KB');
  removeFolder(folder);
}

/** Records the rate of claims beside `heldCount` held messages, relative to the rate without them. */
export async function benchHeldClaims(
  record: (measure: string, value: number, unit: string, target: string) => void,
  heldCount: number,
): Promise<void> {
  const [alone, beside] = [createBenchFolder(), createBenchFolder()];
  const paths = [alone, beside].map((folder) => join(folder, 'postrider.db'));
  const [alonePath = '', besidePath = ''] = paths;
  await seedQueue(alonePath, 4 * HELD_ROUND_MESSAGES);
  await seedQueue(besidePath, 4 * HELD_ROUND_MESSAGES, heldCount);
  const ratios: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const { settledPerSecond } = await measureClaimRates(alonePath, HELD_ROUND_MESSAGES);
    ratios.push((await measureClaimRates(besidePath, HELD_ROUND_MESSAGES)).settledPerSecond / settledPerSecond);
  }
  record(`claims beside ${heldCount} held messages, relative to none`, calculateMedian(ratios), 'ratio', '0.95');
  removeFolder(alone);
  removeFolder(beside);
}

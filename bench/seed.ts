/**
 * Fills the embedded database of the benchmark that measures a store with 1,000,000 messages. Writes accounts with
 * domains, queued and suppressed messages, and suppressions.
 */
import { randomUUID } from 'node:crypto';
import type { NewMessage } from '../src/model/message.ts';
import { createMessageIdGenerator } from '../src/model/submission.ts';
import { openDatabase } from '../src/store/sqlite/database.ts';
import { createEngine } from '../src/store/sqlite/thread.ts';

const HIGH_LIMITS = { volume: 1e12, volumeExpiresAt: null, rate: null, throttle: null };
const BATCH_SIZE = 10_000;

/** The numbers of rows. Of the messages, `queuedCount` are due in one hour, and all others are suppressed. */
export interface Seed {
  readonly accountCount: number;
  readonly messageCount: number;
  readonly queuedCount: number;
  readonly suppressionCount: number;
}

/** Fills the database at `path`. Requires that `serve` has already created the account `default` in this database. */
export async function seedStore(
  path: string,
  seed: Seed,
  onProgress: (done: number, total: number) => void,
): Promise<void> {
  const database = openDatabase(path);
  // The database is removed after the benchmark, so writes need not be durable.
  database.exec('PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 100000');
  const { operations } = createEngine(database);
  const now = Date.now() - 3_600_000;
  const rowCount = seed.accountCount + seed.messageCount + seed.suppressionCount;
  for (let n = 2; n <= seed.accountCount; n += 1) {
    await operations.createAccount(`account-${n}`, HIGH_LIMITS, now);
    await operations.addDomain(`account-${n}`, { name: `shop-${n}.example.net`, subdomains: false, keys: [] }, now);
  }
  const ids = createMessageIdGenerator(null, randomUUID);
  const message = 'Thank you for your order. It is on its way to you.\n'.repeat(40);
  for (let offset = 0; offset < seed.messageCount; offset += BATCH_SIZE) {
    const batch = Array.from({ length: Math.min(BATCH_SIZE, seed.messageCount - offset) }, (_, index): NewMessage => {
      const n = offset + index;
      const to = `reader.${n}@example.net`;
      return {
        id: ids.next(now),
        accountId: (n % seed.accountCount) + 1,
        keyId: 1,
        acceptedAt: now,
        to,
        recipient: to,
        from: 'shop@example.org',
        subject: `Your receipt ${n}`,
        message,
        idempotency: null,
        lease: null,
        suppressedBy: n >= seed.queuedCount ? 'simulator' : null,
      };
    });
    database.exec('BEGIN');
    operations.accept(batch);
    database.exec('COMMIT');
    onProgress(offset + batch.length, rowCount);
  }
  const insertSuppression = database.prepare(
    "INSERT INTO suppression (recipient, account_id, reason, source, at) VALUES (?, ?, 'manual', NULL, ?)",
  );
  for (let offset = 0; offset < seed.suppressionCount; offset += BATCH_SIZE) {
    database.exec('BEGIN');
    for (let n = offset; n < Math.min(offset + BATCH_SIZE, seed.suppressionCount); n += 1)
      insertSuppression.run(`gone.${randomUUID()}@example.net`, (n % seed.accountCount) + 1, now);
    database.exec('COMMIT');
    onProgress(seed.messageCount + offset, rowCount);
  }
  database.exec(
    "UPDATE mail_request SET due_at = due_at + 7200000 WHERE state = 'queued'; PRAGMA wal_checkpoint(TRUNCATE)",
  );
  database.close();
  onProgress(rowCount, rowCount);
}

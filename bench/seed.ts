/** Fills an embedded database for the benchmark of growth: accounts with domains, stored and queued messages, suppressions. */
import { randomUUID } from 'node:crypto';
import type { NewMessage } from '../src/model/message.ts';
import { createMessageIdGenerator } from '../src/model/submission.ts';
import { openDatabase } from '../src/store/sqlite/database.ts';
import { createEngine } from '../src/store/sqlite/thread.ts';

const LIMITS = { volume: 1e12, volumeExpiresAt: null, rate: null, throttle: null };
const BATCH = 10_000;

/** The numbers of rows. `queued` messages are due in one hour; the other messages are suppressed. */
export interface Seed {
  readonly accounts: number;
  readonly messages: number;
  readonly queued: number;
  readonly suppressions: number;
}

/** Fills the database at `path`, in which `serve` has created the account `default`. */
export function seedStore(path: string, seed: Seed, progress: (done: number, total: number) => void): void {
  const database = openDatabase(path);
  // The database is removed after the run, so writes need not be durable.
  database.exec('PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 100000');
  const { operations } = createEngine(database);
  const now = Date.now() - 3_600_000;
  const total = seed.accounts + seed.messages + seed.suppressions;
  for (let n = 2; n <= seed.accounts; n += 1) {
    operations.createAccount(`account-${n}`, LIMITS, now);
    operations.addDomain(`account-${n}`, { name: `shop-${n}.example.net`, subdomains: false, keys: [] }, now);
  }
  const ids = createMessageIdGenerator(null, randomUUID);
  const message = 'Thank you for your order. It is on its way to you.\n'.repeat(40);
  for (let offset = 0; offset < seed.messages; offset += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, seed.messages - offset) }, (_, index): NewMessage => {
      const n = offset + index;
      const to = `reader.${n}@example.net`;
      return {
        id: ids.next(now),
        accountId: (n % seed.accounts) + 1,
        keyId: 1,
        acceptedAt: now,
        to,
        recipient: to,
        from: 'shop@example.org',
        subject: `Your receipt ${n}`,
        message,
        idempotency: null,
        lease: null,
        suppressedBy: n >= seed.queued ? 'simulator' : null,
      };
    });
    database.exec('BEGIN');
    operations.accept(batch);
    database.exec('COMMIT');
    progress(offset + batch.length, total);
  }
  const insertSuppression = database.prepare(
    "INSERT INTO suppression (recipient, account_id, reason, source, at) VALUES (?, ?, 'manual', NULL, ?)",
  );
  for (let offset = 0; offset < seed.suppressions; offset += BATCH) {
    database.exec('BEGIN');
    for (let n = offset; n < Math.min(offset + BATCH, seed.suppressions); n += 1)
      insertSuppression.run(`gone.${randomUUID()}@example.net`, (n % seed.accounts) + 1, now);
    database.exec('COMMIT');
    progress(seed.messages + offset, total);
  }
  database.exec(
    "UPDATE mail_request SET due_at = due_at + 7200000 WHERE state = 'queued'; PRAGMA wal_checkpoint(TRUNCATE)",
  );
  database.close();
  progress(total, total);
}

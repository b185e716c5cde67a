import type pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../src/store/open.ts';
import { dropExpiredPartitions, ensurePartitions } from '../../../src/store/postgres/partitions.ts';
import { createMessage, createSettlement, NO_LIMITS } from '../../rig/messages.ts';
import { connectClient, createTemporaryDatabase } from '../../rig/postgres.ts';
import { createTestPool, parsePostgresUrl } from '../../rig/stores.ts';

const DAY_MS = 86_400_000;
const MONTH_MIDDLE = Date.UTC(2031, 4, 15, 12);

async function openStoreAndPool() {
  const url = await createTemporaryDatabase();
  const store = await openStore(parsePostgresUrl(url), { exclusive: true });
  onTestFinished(() => store.close());
  const pool = createTestPool(url);
  const client = await connectClient(url);
  await store.createAccount('default', NO_LIMITS, Date.now());
  return { store, pool, client };
}

async function listPartitions(client: pg.Client, parent: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    'SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = $1::text::regclass ORDER BY 1',
    [parent],
  );
  return rows.map(({ name }) => name);
}

async function countRowsByPartition(client: pg.Client, parent: string): Promise<Record<string, number>> {
  const { rows } = await client.query<{ name: string; n: number }>(
    `SELECT tableoid::regclass::text AS name, count(*)::int AS n FROM ${parent} GROUP BY 1`,
  );
  return Object.fromEntries(rows.map(({ name, n }) => [name, n]));
}

test('a start creates the partitions of the current and the next periods, by the server’s time', async () => {
  const { store, client } = await openStoreAndPool();
  const months = [0, 1, 2].map((n) => {
    const now = new Date();
    return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + n, 1))
      .toISOString()
      .slice(0, 7)
      .replace('-', '');
  });
  expect(await listPartitions(client, 'mail_request')).toEqual([
    ...months.map((month) => `mail_request_${month}`),
    'mail_request_rest',
  ]);
  expect(await listPartitions(client, 'event')).toHaveLength(4);
  expect(await listPartitions(client, 'body')).toHaveLength(4);
  await store.accept([createMessage(), createMessage({ suppressedBy: 'simulator' })]);
  expect(await countRowsByPartition(client, 'mail_request')).toEqual({ [`mail_request_${months[0]}`]: 2 });
  expect(await countRowsByPartition(client, 'event')).toEqual({ [`event_${months[0]}`]: 1 });
});

test('each partition is created once, even if many nodes create partitions at the same time', async () => {
  const { pool, client } = await openStoreAndPool();
  await Promise.all(Array.from({ length: 6 }, () => ensurePartitions(pool, MONTH_MIDDLE)));
  expect(await ensurePartitions(pool, MONTH_MIDDLE)).toBe(true);
  expect((await listPartitions(client, 'body')).filter((name) => name.startsWith('body_2031'))).toEqual([
    'body_20310515',
    'body_20310516',
    'body_20310517',
  ]);
});

test('a partition contains the first and the last id of its period, across the end of a year', async () => {
  const { store, pool, client } = await openStoreAndPool();
  const newYear = Date.UTC(2032, 0, 1);
  await ensurePartitions(pool, newYear - DAY_MS);
  for (const at of [newYear - 1, newYear]) await store.accept([createMessage({ acceptedAt: at })]);
  expect(await countRowsByPartition(client, 'mail_request')).toEqual({
    mail_request_203112: 1,
    mail_request_203201: 1,
  });
  expect(await countRowsByPartition(client, 'body')).toEqual({ body_20311231: 1, body_20320101: 1 });
});

test('accepting and reading messages does not wait while the creation of a partition waits', async () => {
  const { pool, client } = await openStoreAndPool();
  await client.query('BEGIN');
  await client.query('SELECT * FROM body_rest');
  const partitionPromise = ensurePartitions(pool, MONTH_MIDDLE);
  const readLockModes = async () => {
    const { rows } = await pool
      .query(
        {
          name: '',
          text: `SELECT array_agg(h.mode ORDER BY h.mode)::text AS rows FROM pg_locks w JOIN pg_locks h ON h.pid = w.pid
          WHERE NOT w.granted AND w.relation = 'body_rest'::regclass AND h.relation = 'body'::regclass`,
        },
        [],
      )
      .then(([row = {}]) => row);
    return rows;
  };
  // Neither of the two lock modes on `body` blocks writes to partitions other than `body_rest`.
  await expect.poll(readLockModes, { interval: 10 }).toBe('{AccessShareLock,ShareUpdateExclusiveLock}');
  await client.query('ROLLBACK');
  await partitionPromise;
});

test('a partition of bodies is dropped only after the retention time of all its messages', async () => {
  const { store, pool, client } = await openStoreAndPool();
  await ensurePartitions(pool, MONTH_MIDDLE);
  const lease = { owner: 'n', until: MONTH_MIDDLE };
  const [earlyMessage, lateMessage] = [
    createMessage({ acceptedAt: MONTH_MIDDLE, lease }),
    createMessage({ acceptedAt: MONTH_MIDDLE, lease }),
  ];
  await store.accept([earlyMessage, lateMessage]);
  const createChange = (at: number) => ({ to: 'delivered', event: { ...event, at } }) as const;
  const event = { at: 0, verb: 'delivered', by: 'n', detail: null, failure: null, attempt: null };
  await store.settle([createSettlement({ ...earlyMessage, attempts: 1, lease }, createChange(MONTH_MIDDLE + 1))]);
  const week = MONTH_MIDDLE + 7 * DAY_MS;
  expect(await dropExpiredPartitions(pool, 'body', week)).not.toContain('body_20310515');
  await store.settle([createSettlement({ ...lateMessage, attempts: 1, lease }, createChange(week))]);
  expect(await dropExpiredPartitions(pool, 'body', week - 1)).not.toContain('body_20310515');
  // The day of the partition must have ended.
  expect(await dropExpiredPartitions(pool, 'body', MONTH_MIDDLE + 2)).toEqual(
    expect.not.arrayContaining(['body_20310515', 'body_20310516']),
  );
  expect(await dropExpiredPartitions(pool, 'body', week)).toContain('body_20310515');
  expect(await listPartitions(client, 'body')).not.toContain('body_20310515');
  expect(await store.findMessage(lateMessage.id)).toMatchObject({ message: null, state: 'delivered' });
});

test('a partition of events is dropped after the retention time of all its messages, and one of messages when it is empty', async () => {
  const { store, pool } = await openStoreAndPool();
  await ensurePartitions(pool, MONTH_MIDDLE);
  const message = createMessage({ acceptedAt: MONTH_MIDDLE });
  await store.accept([message]);
  const endedAt = MONTH_MIDDLE + 31 * DAY_MS;
  await store.cancelMessage(message.id, endedAt);
  expect(await dropExpiredPartitions(pool, 'event', endedAt - 1)).not.toContain('event_203105');
  expect(await dropExpiredPartitions(pool, 'event', endedAt)).toContain('event_203105');
  expect(await dropExpiredPartitions(pool, 'mail_request', endedAt)).not.toContain('mail_request_203105');
  await store.purgeMessages({ endedBefore: endedAt, after: null, limit: 10 });
  expect(await dropExpiredPartitions(pool, 'mail_request', endedAt)).toContain('mail_request_203105');
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { NewMessage } from '../../src/model/message.ts';
import { openStore } from '../../src/store/open.ts';
import { getMinIdAt } from '../../src/store/rules/messages.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { ANY_SEARCH, createAttempt, createEntry, createMessage, createSettlement, NO_LIMITS } from '../rig/messages.ts';
import { connectClient, createTemporaryDatabase } from '../rig/postgres.ts';
import { COMPLAINT, createReport } from '../rig/reports.ts';
import { parsePostgresUrl } from '../rig/stores.ts';

const NOW = Date.UTC(2030, 0, 1);
const LEASE = { owner: 'node-a', until: NOW + 600_000 };
/** Each row of these tables belongs to a message of the test. */
const MESSAGE_TABLES = [
  ...['mail_request', 'body', 'event', 'outbox', 'webhook_delivery', 'feedback', 'provider_reference'],
];

async function openRawStore(name: 'sqlite' | 'postgres') {
  const path = join(createTemporaryFolder(), 'postrider.db');
  const url = name === 'postgres' ? await createTemporaryDatabase() : '';
  const setting = name === 'postgres' ? parsePostgresUrl(url) : ({ kind: 'sqlite', path } as const);
  const store = await openStore(setting, { exclusive: true });
  onTestFinished(() => store.close().catch(() => undefined));
  const readTables = async (): Promise<Record<string, number>> => {
    const indexTable = name === 'postgres' ? 'search' : 'search_docsize';
    const text = [...MESSAGE_TABLES, indexTable]
      .map((table) => `(SELECT count(*) FROM ${table}) AS ${table}`)
      .join(', ');
    if (name === 'postgres') {
      const client = await connectClient(url);
      const [row] = (await client.query(`SELECT ${text}`)).rows;
      await client.end();
      return Object.fromEntries(Object.entries(row).map(([table, count]) => [table, Number(count)]));
    }
    const database = new DatabaseSync(path, { readOnly: true });
    const row = database.prepare(`SELECT ${text}`).get() ?? {};
    database.close();
    return row as Record<string, number>;
  };
  return { store, path, readTables };
}

describe.each(['sqlite', 'postgres'] as const)('the %s store', (name) => {
  test('a message is purged from every table at its time and not before, and what must stay stays', async () => {
    const { store, path, readTables } = await openRawStore(name);
    await store.createAccount('default', NO_LIMITS, NOW);
    const endpoint = { url: 'https://hooks.example.com/', sealedUrl: 'sealed', account: null, name: null, sealed: 'x' };
    await store.createWebhook({ ...endpoint, events: ['message.delivered', 'message.complained'] }, NOW);
    const create = (members: Partial<NewMessage>) => createMessage({ acceptedAt: NOW, lease: LEASE, ...members });
    const gone = create({
      to: 'gone@example.com',
      subject: 'Confidential',
      idempotency: { key: 'k', fingerprint: 'aa' },
    });
    const later = create({ to: 'later@example.com' });
    const queued = create({ to: 'queued@example.com', lease: null });
    await store.accept([gone, later, queued]);
    const endAt = async (message: ReturnType<typeof createMessage>, at: number) => {
      const reply = { stage: 'content', code: 250, enhanced: '2.0.0', text: 'ok' } as const;
      const attempt = createAttempt({ kind: 'delivered', reply, reference: `test:${message.id}` });
      await store.settle([createSettlement(message, { event: createEntry('delivered', { at, attempt }) })]);
    };
    await endAt(gone, NOW + 1_000);
    await endAt(later, NOW + 2_000);
    await store.indexMessages({ horizon: getMinIdAt(NOW + 1), minMessages: 1, unindexedCount: null, now: NOW });
    await store.fanOutEvents(NOW, '0123456789abcdef', 100, 0);
    await store.recordFeedback([createReport({ id: gone.id }, COMPLAINT, { at: NOW + 1_500 })]);
    const allTables = await readTables();
    expect(Object.entries(allTables).filter(([, count]) => count === 0)).toEqual([]);

    const purge = (endedBefore: number) => store.purgeMessages({ endedBefore, after: null, limit: 10 });
    expect(await purge(NOW + 999)).toMatchObject({ purgedCount: 0, next: null });
    expect(await readTables()).toEqual(allTables);
    expect(await purge(NOW + 1_000)).toMatchObject({ purgedCount: 1, next: null });
    expect(await store.findMessage(gone.id)).toBeNull();
    expect([(await store.findMessage(later.id))?.state, (await store.findMessage(queued.id))?.state]).toEqual([
      'delivered',
      'queued',
    ]);
    expect((await store.searchMessages(ANY_SEARCH, 10_000)).messages.map(({ id }) => id).sort()).toEqual(
      [later.id, queued.id].sort(),
    );
    expect(await readTables()).toMatchObject({ provider_reference: 1, webhook_delivery: 1, outbox: 0, feedback: 0 });
    expect(await store.findSuppression('gone@example.com')).toMatchObject([{ reason: 'complaint' }]);
    expect(await store.accept([{ ...gone, lease: null }])).toMatchObject([{ kind: 'replayed', id: gone.id }]);
    expect(await store.readReputation('default', NOW + 3_000)).toMatchObject({ value: { complaints: 1 } });
    const lateReports = [{ mayBePurged: true }, { isProviderEvent: true }].map((members) =>
      createReport({ id: gone.id }, COMPLAINT, members),
    );
    expect(await store.recordFeedback(lateReports)).toEqual([{ kind: 'unrelated' }, { kind: 'unrelated' }]);
    if (name === 'sqlite')
      await expect
        .poll(() =>
          [path, `${path}-wal`].some((file) => readFileSync(file, 'latin1').toLowerCase().includes('confidential')),
        )
        .toBe(false);

    await store.cancelMessage(queued.id, NOW + 3_000);
    expect(await purge(NOW + 3_000)).toMatchObject({ purgedCount: 2, next: null });
    expect(Object.entries(await readTables()).filter(([, count]) => count > 0)).toEqual([]);
  });

  test('a pass continues behind messages that outlive those accepted after them', async () => {
    const { store } = await openRawStore(name);
    await store.createAccount('default', NO_LIMITS, NOW);
    const messages = Array.from({ length: 25 }, () => createMessage({ acceptedAt: NOW }));
    await store.accept(messages);
    for (const { id } of messages.slice(5)) await store.cancelMessage(id, NOW + 1);
    const counts: number[] = [];
    let after: string | null = null;
    do {
      const step = await store.purgeMessages({ endedBefore: NOW + 1, after, limit: 8 });
      counts.push(step.purgedCount);
      after = step.next;
    } while (after !== null);
    expect(counts).toEqual([8, 8, 4]);
    expect((await store.searchMessages(ANY_SEARCH, 10_000)).messages).toHaveLength(5);
  });

  test('an audit entry is purged at its time and not before', async () => {
    const { store } = await openRawStore(name);
    await store.createAccount('one', NO_LIMITS, NOW, { name: 'cli:test', at: NOW });
    await store.createAccount('two', NO_LIMITS, NOW, { name: 'cli:test', at: NOW + 1 });
    expect(await store.purgeAudit(NOW - 1, 10)).toBe(0);
    expect(await store.purgeAudit(NOW, 10)).toBe(1);
    expect((await store.listAudit(null, 10)).map(({ target }) => target)).toEqual(['two']);
  });
});

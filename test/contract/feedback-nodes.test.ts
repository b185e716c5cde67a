import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { FeedbackEvent } from '../../src/model/feedback.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createMessage, createMessageIdAt, createSettlement, NO_LIMITS } from '../rig/messages.ts';
import { connectClient, createTemporaryDatabase } from '../rig/postgres.ts';
import { createSeededRandom } from '../rig/random.ts';
import { createReport as createFeedbackReport, HARD_BOUNCE } from '../rig/reports.ts';
import { selectCaseCount } from '../rig/sample.ts';
import { parsePostgresUrl } from '../rig/stores.ts';

const LEASE = { owner: 'node-a', until: Date.now() + 600_000 };
const MESSAGE_COUNT = 40;
const EVENTS_PER_MESSAGE = 8;

const createSetting = {
  sqlite: async () => ({ kind: 'sqlite', path: join(createTemporaryFolder(), 'postrider.db') }) as const,
  postgres: async () => parsePostgresUrl(await createTemporaryDatabase()),
};

async function openNodes(kind: keyof typeof createSetting): Promise<readonly [Store, Store]> {
  const setting = await createSetting[kind]();
  const firstNode = await openStore(setting, { exclusive: false });
  const secondNode = await openStore(setting, { exclusive: false });
  onTestFinished(async () => {
    await firstNode.close();
    await secondNode.close();
  });
  await firstNode.createAccount('default', NO_LIMITS, Date.now());
  return [firstNode, secondNode];
}

const REACTIVATION: FeedbackEvent = { ...HARD_BOUNCE, kind: 'reactivated' };

function createReport(id: string, event: FeedbackEvent) {
  const digest = createHash('sha256').update(id).digest('hex');
  return createFeedbackReport({ id }, event, { source: 'postmark', digest, isProviderEvent: true });
}

test.each(['sqlite', 'postgres'] as const)(
  'with %s, a batch that each of two nodes receives twice, concurrently and in different orders, is applied to every message exactly once',
  async (kind) => {
    const nodes = await openNodes(kind);
    const [store] = nodes;
    const messages = Array.from({ length: MESSAGE_COUNT }, (_, n) =>
      createMessage({ to: `r${n}@example.com`, lease: LEASE }),
    );
    await store.accept(messages);
    await store.settle(messages.map((message) => createSettlement(message)));
    const batch = messages.map(({ id }) => createReport(id, HARD_BOUNCE));
    const batchOrders = [batch, batch.toReversed(), [...batch.slice(20), ...batch.slice(0, 20)], batch];
    const results = await Promise.all(batchOrders.map((order, n) => nodes[n % 2]?.recordFeedback(order) ?? []));
    const kinds = results.flat().map((result) => result.kind);
    expect(kinds.filter((result) => result === 'applied')).toHaveLength(MESSAGE_COUNT);
    expect(kinds.filter((result) => result === 'repeated')).toHaveLength(3 * MESSAGE_COUNT);
    for (const { id } of messages) {
      const message = await store.findMessage(id);
      expect([message?.state, message?.events.map(({ verb }) => verb)]).toEqual([
        'bounced',
        ['accepted', 'delivered', 'bounced'],
      ]);
    }
    const reputation = await store.readReputation('default', Date.now());
    expect(reputation.kind === 'done' ? reputation.value.bounces : null).toBe(MESSAGE_COUNT);
    const suppressions = await store.listSuppressions('default', null, 1_000);
    expect(suppressions.kind === 'done' ? suppressions.value : []).toHaveLength(MESSAGE_COUNT);
  },
);

async function openPostgresNodes(count: number) {
  const url = await createTemporaryDatabase({ content: 'empty-store' });
  const setting = parsePostgresUrl(url);
  const open = () => openStore(setting, { exclusive: false });
  const firstNode = await open();
  const nodes = [firstNode, ...(await Promise.all(Array.from({ length: count - 1 }, open)))];
  const closeAll = () => Promise.all(nodes.map((node) => node.close()));
  onTestFinished(async () => void (await closeAll()));
  await firstNode.createAccount('default', NO_LIMITS, Date.now());
  return {
    nodes,
    firstNode,
    async countDeadlocks(): Promise<unknown> {
      await closeAll();
      const client = await connectClient(url);
      const countOtherClients = async () => {
        const { rows } = await client.query(
          'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
        );
        return rows.length;
      };
      await expect.poll(countOtherClients, { timeout: 120_000 }).toBe(0);
      const { rows } = await client.query(
        'SELECT deadlocks::int AS count FROM pg_stat_database WHERE datname = current_database()',
      );
      return rows[0].count;
    },
  };
}

test('transactions with overlapping batches, some of whose events are already recorded, do not deadlock on PostgreSQL', async () => {
  const { nodes, firstNode, countDeadlocks } = await openPostgresNodes(3);
  // Each recipient has two messages, so that batches also contain the recipients in different orders.
  const messages = Array.from({ length: MESSAGE_COUNT }, (_, n) =>
    createMessage({ to: `r${n % (MESSAGE_COUNT / 2)}@example.com`, lease: LEASE }),
  );
  await firstNode.accept(messages);
  await firstNode.settle(messages.map((message) => createSettlement(message)));
  const random = createSeededRandom(28);
  const events = messages.flatMap(({ id }) =>
    Array.from({ length: EVENTS_PER_MESSAGE }, (_, n) => ({ ...createReport(id, HARD_BOUNCE), digest: `${id} ${n}` })),
  );
  const chooseBatch = () =>
    Array.from({ length: 40 }, () => events[Math.floor(random() * events.length)]).filter(
      (report) => report !== undefined,
    );
  const recordBatches = async (node: Store) => {
    for (let count = 0; count < selectCaseCount(10, 25); count += 1) await node.recordFeedback(chooseBatch());
  };
  await Promise.all(nodes.flatMap((node) => [recordBatches(node), recordBatches(node)]));
  for (const { id } of messages) {
    const message = await firstNode.findMessage(id);
    expect(message?.state).toBe('bounced');
    expect(message?.events.filter(({ verb }) => verb === 'bounced')).toHaveLength(1);
    expect(message?.events.length).toBeLessThanOrEqual(2 + EVENTS_PER_MESSAGE);
  }
  expect(await countDeadlocks()).toBe(0);
});

test('an action on many messages, newest first, and events about the same messages do not deadlock on PostgreSQL', async () => {
  const { nodes, firstNode, countDeadlocks } = await openPostgresNodes(2);
  for (let round = 0; round < selectCaseCount(5, 15); round += 1) {
    const messages = Array.from({ length: MESSAGE_COUNT }, (_, n) =>
      createMessage({ to: `r${round}.${n}@example.com` }),
    );
    await firstNode.accept(messages);
    const targets = messages.toReversed().map(({ id }) => ({ id, newId: createMessageIdAt(Date.now()) }));
    const step = { action: 'cancel', targets, filter: 'state=queued', refused: 0, entry: null, isLast: true } as const;
    const [{ outcomes }] = await Promise.all([
      firstNode.changeMessages(step, Date.now()),
      ...nodes.map((node) => node.recordFeedback(messages.map(({ id }) => createReport(id, REACTIVATION)))),
    ]);
    expect(outcomes.filter(({ kind }) => kind !== 'done')).toEqual([]);
  }
  expect(await countDeadlocks()).toBe(0);
});

test('changes of accounts and reports that lock these accounts for their reputation do not deadlock on PostgreSQL', async () => {
  const { nodes, firstNode, countDeadlocks } = await openPostgresNodes(2);
  await firstNode.createAccount('second', NO_LIMITS, Date.now());
  for (let round = 0; round < selectCaseCount(8, 15); round += 1) {
    const messages = [1, 2].map((accountId) =>
      Array.from({ length: MESSAGE_COUNT }, (_, n) =>
        createMessage({ accountId, to: `r${round}.${n}@example.com`, lease: LEASE }),
      ),
    );
    await firstNode.accept(messages.flat());
    await firstNode.settle(messages.flat().map((message) => createSettlement(message)));
    const report = (accountMessages: typeof messages) =>
      accountMessages.flat().map(({ id }) => createReport(id, HARD_BOUNCE));
    await Promise.all([
      ...nodes.flatMap((node) => [
        node.recordFeedback(report(messages)),
        node.recordFeedback(report(messages.slice(1))),
      ]),
      ...nodes.flatMap((node) =>
        ['default', 'second', 'default'].flatMap((name) => [
          node.unlockAccount(name, Date.now()),
          node.setAccount(name, { volume: null }, Date.now()),
        ]),
      ),
    ]);
    for (const name of ['default', 'second']) await firstNode.unlockAccount(name, Date.now());
  }
  expect(await countDeadlocks()).toBe(0);
});

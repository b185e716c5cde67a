import { expect, onTestFinished, test } from 'vitest';
import { toEventMask, WEBHOOK_EVENT_TYPES } from '../../../src/model/webhook.ts';
import type { Store } from '../../../src/store/contract.ts';
import { openStore } from '../../../src/store/open.ts';
import { waitForEarlierTransactions } from '../../../src/store/postgres/outbox.ts';
import { createMessage, NO_LIMITS } from '../../rig/messages.ts';
import { connectClient, createTemporaryDatabase } from '../../rig/postgres.ts';
import { parsePostgresUrl } from '../../rig/stores.ts';

const SEED = '0123456789abcdef';
const ENDPOINT = {
  url: 'https://hooks.example.com/',
  sealedUrl: 'sealed-url',
  account: null,
  name: null,
  sealed: 'unused',
};

async function openNode(url: string): Promise<Store> {
  const store = await openStore(parsePostgresUrl(url), { exclusive: true });
  onTestFinished(() => store.close());
  return store;
}

const createWebhook = (store: Store) => store.createWebhook({ ...ENDPOINT, events: WEBHOOK_EVENT_TYPES }, Date.now());
const moveEvents = (store: Store) => store.fanOutEvents(Date.now(), SEED, 100, 0);

test('an event is moved to the deliveries even if its transaction commits after later events were moved', async () => {
  const url = await createTemporaryDatabase();
  const store = await openNode(url);
  await store.createAccount('default', NO_LIMITS, Date.now());
  await createWebhook(store);
  const client = await connectClient(url);
  await client.query('BEGIN');
  await client.query(`INSERT INTO outbox (type, account_id, at, data) VALUES ('account.locked', 1, 1, '{}')`);
  await store.accept([createMessage()]);
  expect(await moveEvents(store)).toMatchObject({ events: 1, deliveries: 1 });
  await client.query('COMMIT');
  expect(await moveEvents(store)).toMatchObject({ events: 1, deliveries: 1 });
  expect(await moveEvents(store)).toMatchObject({ events: 0 });
});

test('several nodes that move events to the deliveries at the same time move each event once', async () => {
  const url = await createTemporaryDatabase();
  const nodes = await Promise.all([openNode(url), openNode(url), openNode(url)]);
  const [store] = nodes;
  await store?.createAccount('default', NO_LIMITS, Date.now());
  await store?.createWebhook({ ...ENDPOINT, events: ['message.accepted'] }, Date.now());
  await store?.accept(Array.from({ length: 90 }, () => createMessage()));
  const seeds = ['a', 'b', 'c'].map((digit) => digit.repeat(16));
  const moveAllEvents = async (node: Store, seed: string) => {
    let deliveryCount = 0;
    for (let now = Date.now(); ; now += 1) {
      const step = await node.fanOutEvents(now, seed, 10, 0);
      deliveryCount += step.deliveries;
      if (step.events === 0) return deliveryCount;
    }
  };
  const movedCounts = await Promise.all(nodes.map((node, index) => moveAllEvents(node, seeds[index] ?? '')));
  expect(movedCounts.reduce((sum, count) => sum + count, 0)).toBe(90);
  expect(await store?.readWebhookStatistics()).toMatchObject([{ pendingCount: 90 }]);
});

test('an endpoint receives the event of a transaction that read the subscriptions before the endpoint was created and that ends after the creation', async () => {
  const url = await createTemporaryDatabase();
  const store = await openNode(url);
  const client = await connectClient(url);
  await client.query('BEGIN');
  await client.query('SELECT pg_current_xact_id(), events FROM webhook_subscription');
  let isCreated = false;
  const creationPromise = createWebhook(store).then((result) => {
    isCreated = true;
    return result;
  });
  const observer = await connectClient(url);
  const countWebhooks = async () => (await observer.query('SELECT 1 FROM webhook')).rowCount;
  await expect.poll(countWebhooks).toBe(1);
  // The endpoint is committed, but the call has not resolved: the open transaction could omit its event, because it
  // read the subscriptions before the endpoint was created.
  expect(isCreated).toBe(false);
  await client.query('COMMIT');
  expect((await creationPromise).kind).toBe('done');
});

// On SQLite one transaction runs at a time, so no transaction can read the endpoint before a change and end after the
// change.
test.each([
  { name: 'moves events', startTransaction: (store: Store) => moveEvents(store), hasLease: false },
  {
    name: 'claims deliveries',
    async startTransaction(store: Store) {
      const now = Date.now();
      return store.claimDeliveries(
        { maxDeliveries: 1, freeSlots: [], defaultFreeSlots: 1, after: 0 },
        'node-a',
        now + 60_000,
        now,
      );
    },
    hasLease: true,
  },
])(
  'a change of an endpoint resolves only after the end of an earlier transaction that read the endpoint and $name',
  async ({ startTransaction, hasLease }) => {
    const url = await createTemporaryDatabase();
    const store = await openNode(url);
    await store.createAccount('default', NO_LIMITS, Date.now());
    await createWebhook(store);
    await store.accept([createMessage()]);
    if (hasLease) await moveEvents(store);
    const client = await connectClient(url);
    // When the trigger runs, the statement has taken its snapshot and has not yet changed a row.
    await client.query(`CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock_shared(17); RETURN NULL; END'`);
    await client.query(`CREATE TRIGGER wait_for_test BEFORE INSERT OR UPDATE ON webhook_delivery
    FOR EACH STATEMENT EXECUTE FUNCTION wait_for_test()`);
    await client.query('SELECT pg_advisory_lock(17)');
    const count = async (sql: string) =>
      (await client.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${sql}`)).rows[0]?.n;
    const holdPromise = startTransaction(store);
    await expect.poll(() => count(`pg_locks WHERE locktype = 'advisory' AND objid = 17 AND NOT granted`)).toBe(1);
    let isReturned = false;
    const change = store
      .updateWebhook(1, { url: 'https://hooks.example.com/new', events: ['message.bounced'] })
      .then(() => {
        isReturned = true;
      });
    // The change has either resolved or is polling for the end of the transaction.
    const isPolling = () =>
      count(`pg_stat_activity WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
      AND query LIKE '%pg_sleep(0.02)%'`);
    await expect
      .poll(async () => isReturned || (await isPolling()) === 1, { interval: 5, timeout: 120_000 })
      .toBe(true);
    expect(isReturned).toBe(false);
    await client.query('SELECT pg_advisory_unlock(17)');
    await change;
    // The writes of the earlier transaction are visible when the change resolves.
    const now = Date.now();
    if (hasLease) expect(await store.listDeliveryLeases(1, now, now + 120_000)).toHaveLength(1);
    else expect(await store.listDeliveries(1, null, null, 10)).toMatchObject({ value: [{ type: 'message.accepted' }] });
    await holdPromise;
  },
);

test('of changes that two nodes make to the endpoints at the same time, none is lost', async () => {
  const url = await createTemporaryDatabase();
  const [one, other] = await Promise.all([openNode(url), openNode(url)]);
  await one.createAccount('default', NO_LIMITS, Date.now());
  const types = ['message.accepted', 'message.bounced', 'account.locked', 'domain.failing'] as const;
  const created = await Promise.all(
    types.map((type, index) =>
      (index % 2 === 0 ? one : other).createWebhook({ ...ENDPOINT, events: [type] }, Date.now()),
    ),
  );
  const [id] = created.flatMap((result) => (result.kind === 'done' ? [result.value.id] : []));
  await Promise.all([
    one.updateWebhook(id ?? 0, { name: 'renamed' }),
    other.updateWebhook(id ?? 0, { url: 'https://hooks.example.com/new' }),
    other.disableWebhook(id ?? 0, 5),
  ]);
  expect(await one.findWebhook(id ?? 0)).toMatchObject({
    ...{ name: 'renamed', url: 'https://hooks.example.com/new', disabled: { reason: 'operator', at: 5 } },
  });
  const client = await connectClient(url);
  const { rows } = await client.query('SELECT events FROM webhook_subscription');
  expect(rows).toEqual([{ events: toEventMask(types) }]);
});

test('if an earlier transaction does not end, a change fails with a one-line error, which states that the change is recorded', async () => {
  const busyClient = { dialect: 'postgres', query: async () => [{ transaction: '3/7' }] } as const;
  await expect(
    waitForEarlierTransactions(busyClient, 'the change of endpoint wh_1 (rotate)', 'then rotate again'),
  ).rejects.toThrow(
    /^the change of endpoint wh_1 \(rotate\) is recorded, but [^\n]* still running after 30 s\. [^\n]* then rotate again\.$/,
  );
  await expect(
    waitForEarlierTransactions({ dialect: 'postgres', query: async () => [] }, 'the change', 'then repeat it'),
  ).resolves.toBeUndefined();
});

test('in a database that was restored from a dump, where transactions have smaller numbers, an endpoint receives events', async () => {
  const url = await createTemporaryDatabase();
  const store = await openNode(url);
  await store.createAccount('default', NO_LIMITS, Date.now());
  await createWebhook(store);
  const client = await connectClient(url);
  await client.query('UPDATE webhook SET start = 4000000000000');
  // The sweeper makes this call at the start of each node.
  await store.purgeDeliveries(0, 0, 10);
  await store.accept([createMessage()]);
  expect(await moveEvents(store)).toMatchObject({ events: 1, deliveries: 1 });
});

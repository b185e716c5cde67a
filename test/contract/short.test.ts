/** The stores that `npm test` otherwise leaves out; `npm run test:contract` runs the complete suites on them. */
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { ALL_FIELDS, type MessageSearch, parseSearchText } from '../../src/store/search/query.ts';
import { createMessage, createSettlement, NO_LIMITS } from '../rig/messages.ts';
import { createTemporaryDatabase, startPostgres } from '../rig/postgres.ts';
import { createReport, HARD_BOUNCE } from '../rig/reports.ts';
import { parsePostgresUrl } from '../rig/stores.ts';
import { startTransactionPooler } from '../rig/transaction-pooler.ts';

const STORES = {
  'the oldest PostgreSQL': () => startPostgres({ version: 'oldest' }).then((server) => server.createDatabase()),
  'PostgreSQL behind a pooler in transaction mode': async () => {
    const url = new URL(await createTemporaryDatabase({ version: 'newest' }));
    url.port = String((await startTransactionPooler(Number(url.port))).port);
    url.searchParams.set('pooler', 'transaction');
    return url.href;
  },
} as const;

test.each(Object.entries(STORES))(
  'with %s, a store migrates, accepts, claims, settles, records a report and searches',
  async (_name, createUrl) => {
    const setting = parsePostgresUrl(await createUrl());
    const store = await openStore(setting, { exclusive: true });
    onTestFinished(() => store.close());
    const now = Date.now();
    await store.createAccount('default', { ...NO_LIMITS, volume: 3 }, now);
    await store.addSuppressions('default', [{ address: 'gone@example.com', reason: 'manual', source: null, at: now }]);
    const idempotency = { key: 'order-1', fingerprint: 'aa' };
    const message = createMessage({ idempotency, subject: 'Grüße' });
    const batch = [
      message,
      createMessage({ idempotency }),
      createMessage({ to: 'gone@example.com' }),
      createMessage(),
      createMessage(),
    ];
    expect(await store.accept(batch)).toMatchObject([
      { kind: 'accepted', state: 'queued' },
      { kind: 'replayed', id: message.id },
      { kind: 'accepted', state: 'suppressed' },
      { kind: 'accepted', state: 'queued' },
      { kind: 'refused', reason: 'volume-exhausted' },
    ]);

    const limits = { maxMessages: 10, maxBytes: 1_000_000 };
    const claims = await Promise.all(
      ['node-a', 'node-b'].map((owner) => store.claim(limits, { owner, until: now + 60_000 }, Date.now())),
    );
    const leased = claims.flatMap(({ messages }) => messages);
    expect(leased).toHaveLength(2);
    const [claimed] = leased.filter(({ id }) => id === message.id);
    if (claimed === undefined) throw new Error('the message was not leased');
    const foreignLease = { ...claimed.lease, owner: 'node-c' };
    expect(await store.settle([createSettlement({ ...claimed, lease: foreignLease })])).toEqual(['lost']);
    expect(await store.settle([createSettlement(claimed)])).toEqual(['settled']);

    const report = createReport({ id: message.id }, HARD_BOUNCE, { isFinal: true });
    expect(await store.recordFeedback([report])).toMatchObject([{ kind: 'applied', to: 'bounced', suppressed: true }]);
    expect(await store.recordFeedback([report])).toEqual([{ kind: 'repeated' }]);
    expect(await store.accept([createMessage()])).toMatchObject([{ kind: 'refused' }]);

    const search: MessageSearch = {
      ...{
        accountIds: [],
        states: ['bounced'],
        failureClasses: ['hard'],
        failureCategories: [],
        routes: [],
        reply: null,
      },
      ...{ criteria: parseSearchText('grüs', ALL_FIELDS) ?? [], since: null, until: null, before: null, limit: 10 },
    };
    const findIds = async () => (await store.searchMessages(search, 5_000)).messages.map(({ id }) => id);
    expect(await findIds()).toEqual([message.id]);
    const step = { horizon: createMessage({ acceptedAt: now + 60_000 }).id, minMessages: 1, unindexedCount: null, now };
    expect(await store.indexMessages(step)).toMatchObject({ hasChanged: true });
    expect(await findIds()).toEqual([message.id]);

    const reopenedStore = await openStore(setting, { exclusive: true });
    onTestFinished(() => reopenedStore.close());
    expect(await reopenedStore.findMessage(message.id)).toMatchObject({ state: 'bounced', message: 'Thank you.' });
  },
);

import { expect, onTestFinished, test } from 'vitest';
import type { Store } from '../../../src/store/contract.ts';
import { openStore } from '../../../src/store/open.ts';
import { prepareAccept } from '../../../src/store/postgres/accept.ts';
import { type Database, toStatement } from '../../../src/store/postgres/session.ts';
import { createMessage, NO_LIMITS } from '../../rig/messages.ts';
import { createTemporaryDatabase } from '../../rig/postgres.ts';
import { createTestPool, parsePostgresUrl } from '../../rig/stores.ts';

interface InterceptedStore {
  readonly store: Store;
  readonly accept: Store['accept'];
  readonly texts: string[];
}

async function openInterceptedStore(
  beforeStatement: (text: string, store: Store) => Promise<void>,
): Promise<InterceptedStore> {
  const url = await createTemporaryDatabase();
  const store = await openStore(parsePostgresUrl(url), { exclusive: true });
  onTestFinished(() => store.close());
  const pool = createTestPool(url);
  const texts: string[] = [];
  const database: Database = {
    dialect: 'postgres',
    slot: 0,
    query: pool.query,
    transaction: (work, stored) =>
      pool.transaction((transaction) => {
        // Statements run one after another, so that `beforeStatement` is called after all earlier statements have
        // completed.
        let previousStatement: Promise<unknown> = Promise.resolve();
        return work({
          // The slot differs from those of the store's connections, because `beforeStatement` waits for the store.
          slot: transaction.slot + 10_000,
          dialect: 'postgres',
          query(sql, values) {
            const { text } = toStatement(sql);
            texts.push(text);
            const result = previousStatement
              .catch(() => undefined)
              .then(() => beforeStatement(text, store))
              .then(() => transaction.query(sql, values));
            previousStatement = result;
            return result;
          },
        });
      }, stored),
  };
  return { store, accept: prepareAccept(database), texts };
}

test('if a limit is set after the accounts are locked and before an account is read, the transaction is retried with the lock', async () => {
  let isDone = false;
  const { store, accept, texts } = await openInterceptedStore(async (text, interceptedStore) => {
    if (!text.includes('AS subscribed FROM') || isDone) return;
    isDone = true;
    await interceptedStore.setAccount('default', { rate: { limit: 3, periodMs: 3_600_000 } }, Date.now());
    await interceptedStore.accept([createMessage(), createMessage()]);
  });
  await store.createAccount('default', NO_LIMITS, Date.now());
  const results = await accept([createMessage(), createMessage()]);
  expect(results.map(({ kind }) => kind)).toEqual(['accepted', 'refused']);
  expect(texts.filter((text) => text.includes('FOR NO KEY UPDATE'))).toHaveLength(2);
  expect((await store.listAccounts())[0]).toMatchObject({ volumeUsed: 3, rateUsed: 3 });
});

test('if another node stores a message with the same idempotency key after the lookup of the key, the result contains the id of that message', async () => {
  const concurrentMessage = createMessage({ idempotency: { key: 'k', fingerprint: 'f' } });
  let isDone = false;
  const { store, accept } = await openInterceptedStore(async (text, interceptedStore) => {
    if (!text.includes('INSERT INTO idempotency') || isDone) return;
    isDone = true;
    await interceptedStore.accept([concurrentMessage]);
  });
  await store.createAccount('default', NO_LIMITS, Date.now());
  const repeatedMessage = createMessage({ idempotency: { key: 'k', fingerprint: 'f' } });
  const otherMessage = createMessage();
  const results = await accept([repeatedMessage, otherMessage]);
  expect(results).toMatchObject([{ kind: 'replayed', id: concurrentMessage.id }, { kind: 'accepted' }]);
  expect(await store.findMessage(repeatedMessage.id)).toBeNull();
  expect((await store.findMessage(otherMessage.id))?.state).toBe('queued');
  expect((await store.listAccounts())[0]?.volumeUsed).toBe(2);
});

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../../src/store/sqlite/database.ts';
import { acquireServeLock } from '../../../src/store/sqlite/files.ts';
import { openSqliteStore } from '../../../src/store/sqlite/store.ts';
import { createEngine, openGuardedDatabase } from '../../../src/store/sqlite/thread.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createMessage, NO_LIMITS } from '../../rig/messages.ts';

const worker = new URL('./dying-worker.ts', import.meta.url);

async function openStoreRig() {
  const path = join(createTemporaryFolder(), 'postrider.db');
  const store = await openSqliteStore({ path, exclusive: true, worker });
  return { path, store, kill: () => writeFileSync(`${path}-die`, ''), cancelKill: () => rmSync(`${path}-die`) };
}

test('the connection of a thread syncs every commit', () => {
  const connections: DatabaseSync[] = [];
  const guardedDatabase = openGuardedDatabase({
    path: join(createTemporaryFolder(), 'postrider.db'),
    holdsServeLock: false,
    cacheKib: 2_048,
    open(path, holdsServeLock) {
      const connection = openDatabase(path, holdsServeLock);
      connections.push(connection);
      return connection;
    },
    monotonic: () => 0,
    onFilesFault: () => undefined,
  });
  onTestFinished(guardedDatabase.close);
  expect(connections.map((connection) => connection.prepare('PRAGMA synchronous').get())).toEqual([{ synchronous: 2 }]);
});

test('a failed write is rolled back completely, and the other writes of its group are committed', async () => {
  const database = openDatabase(join(createTemporaryFolder(), 'postrider.db'));
  onTestFinished(() => database.close());
  const { operations, run } = createEngine(database);
  await operations.createAccount('shop', NO_LIMITS, 1);
  const [storedMessage, newMessage, otherMessage] = [createMessage(), createMessage(), createMessage()];
  operations.accept([storedMessage]);
  const replies = await run([
    { number: 1, name: 'accept', args: [[newMessage, storedMessage]] },
    { number: 2, name: 'accept', args: [[otherMessage]] },
  ]);
  expect(replies.map(({ number, ok }) => [number, ok])).toEqual([
    [1, false],
    [2, true],
  ]);
  const found = await Promise.all([newMessage, otherMessage].map(({ id }) => operations.findMessage(id)));
  expect(found.map((message) => message?.id)).toEqual([undefined, otherMessage.id]);
});

test('an event of an operation is recorded for an endpoint that an earlier operation of the group created', async () => {
  const database = openDatabase(join(createTemporaryFolder(), 'postrider.db'));
  onTestFinished(() => database.close());
  const { operations, run } = createEngine(database);
  await operations.createAccount('shop', NO_LIMITS, 1);
  const endpoint = { url: 'https://hooks.example.com/', sealedUrl: '', account: null, name: null, sealed: '' };
  await run([
    { number: 1, name: 'accept', args: [[createMessage()]] },
    { number: 2, name: 'createWebhook', args: [{ ...endpoint, events: ['message.accepted'] }, 1] },
    { number: 3, name: 'accept', args: [[createMessage()]] },
  ]);
  expect(await operations.fanOutEvents(1, '0123456789abcdef', 10, 0)).toMatchObject({ events: 1, deliveries: 1 });
});

test('an operation that waits for more than statements fails, and a second group waits for the first one', async () => {
  const database = openDatabase(join(createTemporaryFolder(), 'postrider.db'));
  onTestFinished(() => database.close());
  const { operations, run } = createEngine(database);
  Object.assign(operations, { probe: () => new Promise((resolve) => setTimeout(resolve, 1)) });
  const message = createMessage();
  const groups = await Promise.all([
    run([{ number: 1, name: 'probe', args: [] }]),
    run([{ number: 2, name: 'createAccount', args: ['shop', NO_LIMITS, 1] }]),
    run([{ number: 3, name: 'accept', args: [[message]] }]),
  ]);
  expect(groups.flat().map(({ ok }) => ok)).toEqual([false, true, true]);
  expect((await operations.findMessage(message.id))?.id).toBe(message.id);
});

test('the end of the writer thread is reported, every call rejects, and closing releases the lock', async () => {
  const { path, store, kill } = await openStoreRig();
  kill();
  await expect(store.listAccounts()).rejects.toThrow("the store's thread has ended");
  expect((await store.failed).message).toContain("the store's thread has ended");
  await expect(store.probe()).rejects.toThrow("the store's thread has ended");
  await store.close();
  acquireServeLock(path)();
});

test('closing the store is not reported as a failure, and a closed store rejects every call', async () => {
  const { store } = await openStoreRig();
  const failures: string[] = [];
  void store.failed.then(({ message }) => failures.push(message));
  await store.close();
  // A reader thread that started later would prevent the process from ending.
  for (const call of [store.probe, store.readQueueStatistics])
    await expect(call()).rejects.toThrow('the store is closed');
  expect(failures).toEqual([]);
});

test('a reader thread that could not start, or has ended, is replaced by the next read', async () => {
  const { path, store, kill, cancelKill } = await openStoreRig();
  kill();
  await expect(store.readQueueStatistics()).rejects.toThrow();
  cancelKill();
  expect((await store.readQueueStatistics()).queued).toBe(0);
  kill();
  await expect(store.readQueueStatistics()).rejects.toThrow();
  cancelKill();
  await expect.poll(() => store.readQueueStatistics().then(({ queued }) => queued, String)).toBe(0);
  kill();
  await expect(store.readQueueStatistics()).rejects.toThrow();
  cancelKill();
  await store.close();
  acquireServeLock(path)();
});

test('the writer closes its connection last, so that SQLite writes the log into the database even if the log file was deleted', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  const store = await openSqliteStore({
    path,
    exclusive: true,
    worker: new URL('./close-order-worker.ts', import.meta.url),
  });
  await store.readQueueStatistics();
  await store.indexMessages({ horizon: 'f'.repeat(36), minMessages: 1, unindexedCount: null, now: 0 });
  rmSync(`${path}-wal`);
  await store.close();
  expect(readFileSync(`${path}-closed`, 'utf8')).toBe('other\nwriter\n');
  const database = new DatabaseSync(path);
  onTestFinished(() => database.close());
  expect(database.prepare("SELECT name FROM sqlite_schema WHERE name = 'mail_request'").get()).toBeDefined();
});

test('a store that cannot be opened releases the lock', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  writeFileSync(`${path}-die`, '');
  await expect(openSqliteStore({ path, exclusive: true, worker })).rejects.toThrow('has ended');
  acquireServeLock(path)();
});

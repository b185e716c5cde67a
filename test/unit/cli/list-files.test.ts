/** Suppression lists as files: what the routes are told of a store that is away, and of a stop in the middle. */
import { expect, test } from 'vitest';
import { createPace, gentle } from '../../../src/cli/gentle-add.ts';
import { listFiles } from '../../../src/cli/list-files.ts';
import { type Clock, systemClock } from '../../../src/clock.ts';
import type { Store } from '../../../src/store/contract.ts';
import { StoreError } from '../../../src/store/error.ts';
import { commandRig } from './command-rig.ts';

async function* bytes(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}
const rows = (count: number) => Array.from({ length: count }, (_, n) => `user${n}@example.com\n`).join('');

test('a store that is away is told as on every other route, in its own line', async () => {
  const { store } = await commandRig();
  const away = () => Promise.reject(new StoreError('PostgreSQL db:5432/x: nothing listens there.'));
  const files = listFiles({ ...store, listSuppressions: away }, systemClock);
  const broken = { ok: false, fault: 'broken', message: 'PostgreSQL db:5432/x: nothing listens there.' };
  expect(await files.read('acme')).toEqual(broken);
  expect(await files.receive(bytes(rows(1)), 'acme', undefined, 'page')).toEqual(broken);
});

test('an upload of commas alone is refused after the bound of a line, and the rest of it is not read', async () => {
  const { store } = await commandRig();
  let count = 0;
  async function* commas(): AsyncGenerator<Buffer> {
    yield Buffer.from('ada@example.com\n');
    for (; count < 40_000_000; count += 16_384) yield Buffer.alloc(16_384, ',');
  }
  const received = await listFiles(store, systemClock).receive(commas(), 'acme', undefined, 'page');
  expect(received).toMatchObject({ ok: false, fault: 'misused', message: expect.stringMatching(/ from line 2 on: /) });
  expect(count).toBeLessThanOrEqual(2 * 65_536);
  expect(await store.listSuppressions('acme', null, 1)).toEqual({ kind: 'done', value: [] });
});

test('an import that cannot be written into the audit log adds nothing', async () => {
  const { store } = await commandRig();
  const files = listFiles(
    { ...store, writeAudit: () => Promise.reject(new StoreError('the disk is full.')) },
    systemClock,
  );
  const received = await files.receive(bytes(rows(10)), 'acme', undefined, 'page');
  expect(received.ok && (await received.load(() => undefined))).toEqual({
    result: 'error',
    message: 'the disk is full.',
  });
  expect(await store.listSuppressions('acme', null, 1)).toEqual({ kind: 'done', value: [] });
});

test('a stop breaks an import off between two batches, and resolves when the audit log has what was added', async () => {
  const { store } = await commandRig();
  let batches = 0;
  const second = Promise.withResolvers<void>();
  const slow: Store = {
    ...store,
    async addSuppressions(list, entries) {
      batches += 1;
      if (batches === 2) second.resolve();
      return store.addSuppressions(list, entries);
    },
  };
  const files = listFiles(slow, systemClock);
  const received = await files.receive(bytes(rows(5_000)), 'acme', undefined, 'page');
  if (!received.ok) throw new Error(received.message);
  const result = received.load(() => undefined);
  await second.promise;
  await files.stop();
  const audit = (await store.listAudit(null, 10)).map(({ action, after }) => [action, JSON.parse(after ?? '')]);
  expect(audit).toEqual([
    ['suppression.import', { added: 1_000, stopped: true }],
    ['suppression.import', { begins: true, bytes: rows(5_000).length }],
  ]);
  expect(await result).toEqual({
    result: 'error',
    message: expect.stringMatching(/^the service is stopping \(1,000 addresses were added before; import it again/),
  });
  const late = await files.receive(bytes(rows(1)), 'acme', undefined, 'page');
  expect(late.ok && (await late.load(() => undefined))).toEqual({
    result: 'error',
    message: 'the service is stopping; nothing was added',
  });
});

test('a command adds a page at once where nothing runs, and in small parts beside a service', async () => {
  const { store } = await commandRig();
  const sizes: number[] = [];
  const counted: Store = {
    ...store,
    addSuppressions(list, entries) {
      sizes.push(entries.length);
      return store.addSuppressions(list, entries);
    },
  };
  const entry = (n: number) => ({ address: `u${n}@example.com`, reason: 'manual' as const, source: null, at: 1 });
  const page = (from: number) => Array.from({ length: 1_200 }, (_, n) => entry(from + n));
  const beside = gentle(counted, systemClock);
  expect(await beside.addSuppressions('acme', page(0))).toEqual({ kind: 'done', value: 1_200 });
  await store.beat({ name: 'a', roles: ['api'], version: '1' }, 60_000, Date.now());
  expect(await beside.addSuppressions('acme', page(1_000))).toEqual({ kind: 'done', value: 1_000 });
  expect(await beside.addSuppressions('nobody', page(0))).toEqual({ kind: 'missing' });
  expect(sizes).toEqual([1_200, 500, 500, 200, 500]);
});

test('parts grow to a page without rests while no mail is accepted, and mail makes them small again', async () => {
  let now = 0;
  let newest = 'a';
  let rests = 0;
  const clock: Clock = {
    now: () => now,
    after: (_, run) => {
      rests += 1;
      run();
      return () => undefined;
    },
  };
  const pace = createPace({ newestId: () => Promise.resolve(newest) }, clock);
  const seen: (readonly [number, number])[] = [];
  for (const [at, id] of [
    [0, 'a'],
    [999, 'a'],
    [1_000, 'a'],
    [1_100, 'a'],
    [1_200, 'b'],
    [2_199, 'b'],
    [2_200, 'b'],
  ] as const) {
    now = at;
    newest = id;
    await pace.step(() => Promise.resolve());
    seen.push([pace.rows(), rests]);
  }
  expect(seen).toEqual([
    [500, 1],
    [500, 2],
    [5_000, 2],
    [5_000, 2],
    [500, 3],
    [500, 4],
    [5_000, 4],
  ]);
});

test('where nobody can say whether mail is accepted, some is taken to be', async () => {
  let now = 1_000_000;
  let newest = () => Promise.reject<string | null>(new Error('the disk is full.'));
  const clock: Clock = {
    now: () => now,
    after: (_, run) => {
      run();
      return () => undefined;
    },
  };
  const pace = createPace({ newestId: () => newest() }, clock);
  const rowsAfter = async (ms: number) => {
    now += ms;
    expect(await pace.step(() => Promise.resolve('added'))).toBe('added');
    return pace.rows();
  };
  expect([await rowsAfter(0), await rowsAfter(5_000)]).toEqual([500, 500]);
  newest = () => Promise.resolve(null);
  expect([await rowsAfter(10), await rowsAfter(999), await rowsAfter(1)]).toEqual([500, 500, 5_000]);
});

test('imports at the same time take turns, also behind one that fails', async () => {
  const pace = createPace({ newestId: () => Promise.resolve('a') }, systemClock);
  let running = 0;
  let most = 0;
  const add = async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise(setImmediate);
    running -= 1;
  };
  const failed = pace.step(() => Promise.reject(new Error('the disk is full.')));
  const others = [pace.step(add), pace.step(add), pace.step(add)];
  await expect(failed).rejects.toThrow('the disk is full.');
  await Promise.all(others);
  expect(most).toBe(1);
});

test('a rest ends with the service, and none begins after that', async () => {
  const stopped = Promise.withResolvers<void>();
  let resting = 0;
  let cancelled = 0;
  const clock: Clock = {
    now: () => 0,
    after: () => {
      resting += 1;
      return () => {
        cancelled += 1;
      };
    },
  };
  const pace = createPace({ newestId: () => Promise.resolve('a') }, clock, stopped.promise);
  const step = pace.step(() => Promise.resolve(1));
  await expect.poll(() => resting).toBe(1);
  stopped.resolve();
  expect(await step).toBe(1);
  expect(await pace.step(() => Promise.resolve(2))).toBe(2);
  expect([resting, cancelled]).toEqual([1, 1]);
});

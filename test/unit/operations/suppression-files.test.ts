/** Imports of suppression lists: what a failing store, a stop or a broken file leave behind, and how an import leaves room for mail. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Clock, systemClock } from '../../../src/clock.ts';
import {
  type FileContent,
  performDownload,
  performUpload,
  type UploadObserver,
} from '../../../src/operations/file-operation.ts';
import { exportSuppressions, importSuppressions } from '../../../src/operations/suppression-files.ts';
import { createImportScheduler } from '../../../src/operations/suppressions/import-scheduler.ts';
import type { ImportProgress } from '../../../src/operations/suppressions/schemas.ts';
import type { OperatorStore } from '../../../src/store/contract.ts';
import { StoreError } from '../../../src/store/error.ts';
import { type OperationRig, operationRig } from './operation-rig.ts';

const rows = (count: number) => Array.from({ length: count }, (_, n) => `user${n}@example.com\n`).join('');

/** A file that can be read only once, in chunks. */
function contentOf(...chunks: readonly string[]): FileContent {
  async function* bytes(): AsyncGenerator<Buffer> {
    for (const chunk of chunks) yield Buffer.from(chunk);
  }
  const open = async () => ({ bytes: bytes(), reread: null, close: async () => undefined });
  return { name: 'the file', open };
}

const UNWATCHED: UploadObserver<ImportProgress> = { onRowsRead: () => undefined, onProgress: () => undefined };

/** The import of `content` into the list of `acme`, into a store with some methods replaced. */
function imported(
  { context }: OperationRig,
  content: FileContent,
  { store = {}, ...more }: { readonly store?: Partial<OperatorStore>; readonly imports?: typeof context.imports } = {},
  watch = UNWATCHED,
) {
  const given = { ...context, ...more, store: { ...context.store, ...store } };
  return performUpload(importSuppressions, { account: 'acme' }, content, given, watch);
}

/** What the audit log has after each import, the newest first. */
async function shown({ store }: OperationRig): Promise<readonly unknown[]> {
  const entries = await store.listAudit(null, 99);
  return entries.map(({ who, action, subject, after }) => [`${who} ${action} ${subject}`, JSON.parse(after ?? 'null')]);
}

const ENTRY = 'cli:tester suppression.import acme';

test('rows are added in batches and counted, with one audit log entry', async () => {
  const rig = await operationRig();
  const sizes: number[] = [];
  const progress: ImportProgress[] = [];
  const watch = { onRowsRead: () => undefined, onProgress: (at: ImportProgress) => progress.push(at) };
  const counted: Partial<OperatorStore> = {
    importSuppressions(list, entries, step) {
      sizes.push(entries.length);
      return rig.context.store.importSuppressions(list, entries, step);
    },
  };
  const text = `${rows(6_000)}nonsense\n`;
  const skipped = [{ line: 6_001, reason: '"nonsense" is not an email address' }];
  expect(await imported(rig, contentOf(text), { store: counted }, watch)).toEqual({
    ok: true,
    value: { read: 6_001, added: 6_000, known: 0, skipped, skippedCount: 1 },
    warnings: [],
  });
  expect(sizes).toEqual([500, 5_000, 500]);
  const counts = { read: 6_001, added: 6_000, known: 0, skipped: 1 };
  expect(progress[0]).toEqual({ read: 0, added: 0, known: 0, skipped: 0, bytes: 0, total: text.length });
  expect(progress.at(-1)).toEqual({ ...counts, bytes: text.length, total: text.length });
  expect(await shown(rig)).toEqual([[ENTRY, { ...counts, bytes: text.length }]]);
});

test('an import that is killed between two batches has one entry with the counts of the committed batches', async () => {
  const rig = await operationRig();
  const third = Promise.withResolvers<void>();
  const over = Promise.withResolvers<never>();
  let batches = 0;
  // As a process that ends there: the batch never returns, and nothing after it runs.
  const killed: Partial<OperatorStore> = {
    importSuppressions(list, entries, step) {
      batches += 1;
      if (batches < 3) return rig.context.store.importSuppressions(list, entries, step);
      third.resolve();
      return over.promise;
    },
  };
  const text = `nonsense\n${rows(12_000)}`;
  const running = imported(rig, contentOf(text), { store: killed });
  await third.promise;
  const counts = { read: 5_501, added: 5_500, known: 0, skipped: 1, bytes: text.length };
  expect(await shown(rig)).toEqual([[ENTRY, { ...counts, unfinished: true }]]);
  // What the test has opened is closed.
  over.reject(new StoreError('the test is over.'));
  await running;
});

test('a store error ends the import, and its entry is stopped with the counts of the added rows', async () => {
  const rig = await operationRig();
  let batches = 0;
  const failing: Partial<OperatorStore> = {
    importSuppressions(list, entries, step) {
      batches += 1;
      return batches === 2
        ? Promise.reject(new StoreError('the disk is full.'))
        : rig.context.store.importSuppressions(list, entries, step);
    },
  };
  expect(await imported(rig, contentOf(rows(9_000)), { store: failing })).toMatchObject({
    ok: false,
    error: {
      code: 'unavailable',
      message: expect.stringMatching(/disk is full\. \(500 addresses were added before that/),
    },
  });
  const counts = { read: 500, added: 500, known: 0, skipped: 0, bytes: rows(9_000).length };
  expect(await shown(rig)).toEqual([[ENTRY, { ...counts, stopped: true }]]);
  // The rest is added by importing the file again.
  expect(await imported(rig, contentOf(rows(9_000)))).toMatchObject({ ok: true, value: { added: 8_500, known: 500 } });
});

test('an import whose first batch fails has no entry and adds nothing', async () => {
  const rig = await operationRig();
  const full: Partial<OperatorStore> = {
    importSuppressions: () => Promise.reject(new StoreError('the disk is full.')),
  };
  expect(await imported(rig, contentOf(rows(10)), { store: full })).toMatchObject({
    ok: false,
    error: { code: 'unavailable', message: 'the import of the file stopped: the disk is full.' },
  });
  expect(await shown(rig)).toEqual([]);
  expect(await rig.store.listSuppressions('acme', null, 1)).toEqual({ kind: 'done', value: [] });
});

test('import and export are unavailable while the store does not answer', async () => {
  const rig = await operationRig();
  const store = { listSuppressions: () => Promise.reject(new StoreError('no server listens there.')) };
  const away = { ok: false, error: { code: 'unavailable', message: 'no server listens there.' } };
  expect(await imported(rig, contentOf(rows(1)), { store })).toMatchObject(away);
  const context = { ...rig.context, store: { ...rig.context.store, ...store } };
  expect(await performDownload(exportSuppressions, { account: 'acme' }, context)).toMatchObject(away);
});

test.each([
  ['a quote that never closes', '"open\n', /from line 14 on: a quote in this line is not closed/],
  ['binary data', '\0\0\n', /line 14 contains binary data/],
])('a file that ends in %s adds nothing at all', async (_, end, message) => {
  const rig = await operationRig();
  expect(await imported(rig, contentOf(`bad\n${rows(12)}${end}`))).toMatchObject({
    ok: false,
    error: { code: 'invalid', field: null, message: expect.stringMatching(message) },
  });
  expect(await rig.store.listSuppressions('acme', null, 1)).toEqual({ kind: 'done', value: [] });
  expect(await shown(rig)).toEqual([]);
});

test('an unknown list and an unknown reason name the member at fault, and the file is not opened', async () => {
  const { context } = await operationRig();
  const content = { name: 'the file', open: () => Promise.reject(new Error('it is opened')) };
  const asked = (given: object) => performUpload(importSuppressions, { ...given }, content, context, UNWATCHED);
  expect(await asked({ account: 'nobody' })).toMatchObject({ error: { code: 'not-found', field: 'account' } });
  expect(await asked({ account: 'acme', reason: 'spite' })).toMatchObject({
    error: { code: 'invalid', field: 'reason' },
  });
});

test('an upload of commas is refused at the limit of a line, and its rest is not read', async () => {
  const rig = await operationRig();
  let count = 0;
  async function* commas(): AsyncGenerator<Buffer> {
    yield Buffer.from('ada@example.com\n');
    for (; count < 40_000_000; count += 16_384) yield Buffer.alloc(16_384, ',');
  }
  const open = async () => ({ bytes: commas(), reread: null, close: async () => undefined });
  expect(await imported(rig, { name: 'the file', open })).toMatchObject({
    ok: false,
    error: { code: 'invalid', message: expect.stringMatching(/ from line 2 on: /) },
  });
  expect(count).toBeLessThanOrEqual(2 * 65_536);
});

test('a temporary folder without space is a conflict with its remedy, and no address is added', async () => {
  const rig = await operationRig();
  vi.stubEnv('TMPDIR', '/no/such/folder');
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(await imported(rig, contentOf(rows(1)))).toMatchObject({
    ok: false,
    error: { code: 'conflict', field: null, message: expect.stringMatching(/\(ENOENT\); set TMPDIR to a folder/) },
  });
  expect(await shown(rig)).toEqual([]);
});

test('a shutdown ends an import between two batches, and waits for its audit log entry', async () => {
  const rig = await operationRig();
  let batches = 0;
  const second = Promise.withResolvers<void>();
  const slow: Partial<OperatorStore> = {
    importSuppressions(list, entries, step) {
      batches += 1;
      if (batches === 2) second.resolve();
      return rig.context.store.importSuppressions(list, entries, step);
    },
  };
  const running = imported(rig, contentOf(rows(12_000)), { store: slow });
  await second.promise;
  await rig.context.imports.stop();
  const counts = { read: 5_500, added: 5_500, known: 0, skipped: 0, bytes: rows(12_000).length };
  expect(await shown(rig)).toEqual([[ENTRY, { ...counts, stopped: true }]]);
  expect(await running).toMatchObject({
    ok: false,
    error: {
      code: 'unavailable',
      message: expect.stringMatching(
        /^the service is shutting down \(5,500 addresses were added before that; import the file again/,
      ),
    },
  });
  expect(await imported(rig, contentOf(rows(1)))).toMatchObject({
    ok: false,
    error: { code: 'unavailable', message: 'the service is shutting down; no address was added' },
  });
  expect(await shown(rig)).toHaveLength(1);
});

test('an import adds large batches if no node is alive, and small ones while a service accepts messages', async () => {
  const rig = await operationRig();
  const sizes: number[] = [];
  const counted: Partial<OperatorStore> = {
    importSuppressions(list, entries, step) {
      sizes.push(entries.length);
      return rig.context.store.importSuppressions(list, entries, step);
    },
  };
  const fresh = () => ({ store: counted, imports: createImportScheduler(rig.context.store, rig.context.clock) });
  await imported(rig, contentOf(rows(1_200)), fresh());
  await rig.store.recordHeartbeat({ name: 'a', roles: ['api'], version: '1' }, 60_000, rig.now);
  await imported(rig, contentOf(rows(1_200)), fresh());
  expect(sizes).toEqual([500, 700, 500, 500, 200]);
});

/** A node that is alive whatever the time. */
const NODE = {
  name: 'a',
  roles: ['api'],
  version: '1',
  startedAt: 0,
  seenAt: 0,
  aliveUntil: Number.MAX_SAFE_INTEGER,
} as const;
const listNodes = () => Promise.resolve([NODE]);

test('batches are large and without pauses while no message is accepted, and small while messages are accepted', async () => {
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
  const pace = createImportScheduler({ newestId: () => Promise.resolve(newest), listNodes }, clock);
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
    await pace.runBatch(() => Promise.resolve());
    seen.push([pace.batchRows(), rests]);
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

test('messages count as accepted while that is unknown', async () => {
  let now = 1_000_000;
  let newest = () => Promise.reject<string | null>(new Error('the disk is full.'));
  const clock: Clock = {
    now: () => now,
    after: (_, run) => {
      run();
      return () => undefined;
    },
  };
  const pace = createImportScheduler({ newestId: () => newest(), listNodes }, clock);
  const rowsAfter = async (ms: number) => {
    now += ms;
    expect(await pace.runBatch(() => Promise.resolve('added'))).toBe('added');
    return pace.batchRows();
  };
  expect([await rowsAfter(0), await rowsAfter(5_000)]).toEqual([500, 500]);
  newest = () => Promise.resolve(null);
  expect([await rowsAfter(10), await rowsAfter(999), await rowsAfter(1)]).toEqual([500, 500, 5_000]);
});

test('the batches of concurrent imports run one at a time, also after one that fails', async () => {
  const pace = createImportScheduler({ newestId: () => Promise.resolve('a'), listNodes }, systemClock);
  let running = 0;
  let most = 0;
  const add = async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise(setImmediate);
    running -= 1;
  };
  const failed = pace.runBatch(() => Promise.reject(new Error('the disk is full.')));
  const others = [pace.runBatch(add), pace.runBatch(add), pace.runBatch(add)];
  await expect(failed).rejects.toThrow('the disk is full.');
  await Promise.all(others);
  expect(most).toBe(1);
});

test('a shutdown ends a pause, and none begins after it', async () => {
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
  const pace = createImportScheduler({ newestId: () => Promise.resolve('a'), listNodes }, clock);
  const step = pace.runBatch(() => Promise.resolve(1));
  await expect.poll(() => resting).toBe(1);
  void pace.stop();
  expect(await step).toBe(1);
  expect(await pace.runBatch(() => Promise.resolve(2))).toBe(2);
  expect([resting, cancelled]).toEqual([1, 1]);
});

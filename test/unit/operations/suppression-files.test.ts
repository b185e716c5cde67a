import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/clock.ts';
import { type FileContent, performUpload, type UploadObserver } from '../../../src/operations/operation.ts';
import { createImportScheduler, importSuppressions } from '../../../src/operations/suppression-files.ts';
import type { ImportProgress } from '../../../src/operations/suppressions.ts';
import type { OperatorStore } from '../../../src/store/contract.ts';
import { StoreError } from '../../../src/store/error.ts';
import { createOperationRig, type OperationRig } from './operation-rig.ts';

const createRows = (count: number) =>
  Array.from({ length: count }, (_, index) => `user${index}@example.com\n`).join('');

/** Returns a file that can be read only once, in chunks. */
function toFileContent(...chunks: readonly string[]): FileContent {
  async function* generateBytes(): AsyncGenerator<Buffer> {
    for (const chunk of chunks) yield Buffer.from(chunk);
  }
  const open = async () => ({ bytes: generateBytes(), reread: null, close: async () => undefined });
  return { name: 'the file', open };
}

const NO_OBSERVER: UploadObserver<ImportProgress> = { onRowsRead: () => undefined, onProgress: () => undefined };

function runImport(
  { context }: OperationRig,
  content: FileContent,
  {
    store = {},
    ...otherMembers
  }: { readonly store?: Partial<OperatorStore>; readonly imports?: typeof context.imports } = {},
  observer = NO_OBSERVER,
) {
  const importContext = { ...context, ...otherMembers, store: { ...context.store, ...store } };
  return performUpload(importSuppressions, { account: 'acme' }, content, importContext, observer);
}

async function listAuditEntries({ store }: OperationRig): Promise<readonly unknown[]> {
  const entries = await store.listAudit(null, 99);
  return entries.map(({ actor, action, target, after }) => [
    `${actor} ${action} ${target}`,
    JSON.parse(after ?? 'null'),
  ]);
}

const ENTRY_TEXT = 'cli:tester suppression.import acme';

test('rows are added in batches and counted, with one audit log entry', async () => {
  const rig = await createOperationRig();
  const batchSizes: number[] = [];
  const progress: ImportProgress[] = [];
  const observer = {
    onRowsRead: () => undefined,
    onProgress: (progressReport: ImportProgress) => progress.push(progressReport),
  };
  const countingStore: Partial<OperatorStore> = {
    importSuppressions(list, entries, step) {
      batchSizes.push(entries.length);
      return rig.context.store.importSuppressions(list, entries, step);
    },
  };
  const text = `${createRows(6_000)}nonsense\n`;
  const skippedRows = [{ line: 6_001, reason: '"nonsense" is not an email address' }];
  expect(await runImport(rig, toFileContent(text), { store: countingStore }, observer)).toEqual({
    ok: true,
    value: {
      read: 6_001,
      added: 6_000,
      known: 0,
      skipped: skippedRows,
      skippedCount: 1,
      excluded: [],
      reasons: [{ reason: 'manual', count: 6_000 }],
      format: null,
      dryRun: false,
    },
    warnings: [],
  });
  expect(batchSizes).toEqual([500, 5_000, 500]);
  const counts = { read: 6_001, added: 6_000, known: 0, skipped: 1 };
  expect(progress[0]).toEqual({ read: 0, added: 0, known: 0, skipped: 0, bytes: 0, total: text.length });
  expect(progress.at(-1)).toEqual({ ...counts, bytes: text.length, total: text.length });
  expect(await listAuditEntries(rig)).toEqual([[ENTRY_TEXT, { ...counts, bytes: text.length }]]);
});

test('after a store error, the audit log entry of the import has `stopped: true` and the counts of the added rows', async () => {
  const rig = await createOperationRig();
  let batchCount = 0;
  const failingStore: Partial<OperatorStore> = {
    importSuppressions(list, entries, step) {
      batchCount += 1;
      return batchCount === 2
        ? Promise.reject(new StoreError('the disk is full.'))
        : rig.context.store.importSuppressions(list, entries, step);
    },
  };
  expect(await runImport(rig, toFileContent(createRows(9_000)), { store: failingStore })).toMatchObject({
    ok: false,
    error: {
      code: 'unavailable',
      message: expect.stringMatching(/disk is full\. \(500 addresses were added before that/),
    },
  });
  const counts = { read: 500, added: 500, known: 0, skipped: 0, bytes: createRows(9_000).length };
  expect(await listAuditEntries(rig)).toEqual([[ENTRY_TEXT, { ...counts, stopped: true }]]);
  // Importing the file again adds the remaining rows.
  expect(await runImport(rig, toFileContent(createRows(9_000)))).toMatchObject({
    ok: true,
    value: { added: 8_500, known: 500 },
  });
});

test.each([
  ['an unclosed quote', '"open\n', /from line 14 on: a quote in this line is not closed/],
  ['binary data', '\0\0\n', /line 14 contains binary data/],
])('a file that ends in %s adds nothing', async (_, ending, message) => {
  const rig = await createOperationRig();
  expect(await runImport(rig, toFileContent(`bad\n${createRows(12)}${ending}`))).toMatchObject({
    ok: false,
    error: { code: 'invalid', field: null, message: expect.stringMatching(message) },
  });
  expect(await rig.store.listSuppressions('acme', null, 1)).toEqual({ kind: 'done', value: [] });
  expect(await listAuditEntries(rig)).toEqual([]);
});

const NODE = {
  name: 'a',
  roles: ['api'],
  version: '1',
  startedAt: 0,
  seenAt: 0,
  aliveUntil: Number.MAX_SAFE_INTEGER,
  isAlive: true,
  delivery: null,
  refusedReports: [],
} as const;
const listNodes = () => Promise.resolve([NODE]);

test('batches are large and without pauses while no message is accepted, and small with pauses while messages are accepted', async () => {
  let now = 0;
  let newestId = 'a';
  let pauseCount = 0;
  const clock: Clock = {
    now: () => now,
    after: (_, run) => {
      pauseCount += 1;
      run();
      return () => undefined;
    },
  };
  const scheduler = createImportScheduler({ findNewestId: () => Promise.resolve(newestId), listNodes }, clock);
  const batchResults: (readonly [number, number])[] = [];
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
    newestId = id;
    await scheduler.runBatch(() => Promise.resolve());
    batchResults.push([scheduler.getMaxBatchRows(), pauseCount]);
  }
  expect(batchResults).toEqual([
    [500, 1],
    [500, 2],
    [5_000, 2],
    [5_000, 2],
    [500, 3],
    [500, 4],
    [5_000, 4],
  ]);
});

test('the batches of concurrent imports run one at a time, even after a failed batch', async () => {
  const scheduler = createImportScheduler({ findNewestId: () => Promise.resolve('a'), listNodes }, systemClock);
  let runningCount = 0;
  let maxConcurrentBatches = 0;
  const add = async () => {
    runningCount += 1;
    maxConcurrentBatches = Math.max(maxConcurrentBatches, runningCount);
    await new Promise(setImmediate);
    runningCount -= 1;
  };
  const failedBatch = scheduler.runBatch(() => Promise.reject(new Error('the disk is full.')));
  const otherBatches = [scheduler.runBatch(add), scheduler.runBatch(add), scheduler.runBatch(add)];
  await expect(failedBatch).rejects.toThrow('the disk is full.');
  await Promise.all(otherBatches);
  expect(maxConcurrentBatches).toBe(1);
});

test('a shutdown ends a pause between batches, and no pause begins after the shutdown', async () => {
  let pausingCount = 0;
  let cancelledCount = 0;
  const clock: Clock = {
    now: () => 0,
    after: () => {
      pausingCount += 1;
      return () => {
        cancelledCount += 1;
      };
    },
  };
  const scheduler = createImportScheduler({ findNewestId: () => Promise.resolve('a'), listNodes }, clock);
  const step = scheduler.runBatch(() => Promise.resolve(1));
  await expect.poll(() => pausingCount).toBe(1);
  void scheduler.stop();
  expect(await step).toBe(1);
  expect(await scheduler.runBatch(() => Promise.resolve(2))).toBe(2);
  expect([pausingCount, cancelledCount]).toEqual([1, 1]);
});

test('a given reason applies only to an export without a column for the reason', async () => {
  const rig = await createOperationRig();
  const importWith = (text: string) =>
    performUpload(
      importSuppressions,
      { account: 'acme', reason: 'complaint' },
      toFileContent(text),
      rig.context,
      NO_OBSERVER,
    );
  expect(await importWith('email,created\nada@example.com,1790083507\n')).toMatchObject({
    value: { format: 'unsubscribes of SendGrid', reasons: [{ reason: 'complaint', count: 1 }] },
  });
  expect(await importWith('EmailAddress,Reason\nbob@example.com,BOUNCE\n')).toMatchObject({
    value: { format: 'suppression list of Amazon SES', reasons: [{ reason: 'bounce', count: 1 }] },
  });
});

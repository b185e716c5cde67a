/**
 * An import validates the whole file first, then adds batches at a limited rate, in one transaction each. Each batch
 * updates its audit log entry: `unfinished` if the process is killed, `stopped` by the store or a shutdown.
 */

import type { Clock } from '../clock.ts';
import type { ImportStep } from '../model/audit.ts';
import { SUPPRESSION_REASONS, type Suppression } from '../model/suppression.ts';
import { describeError } from '../printing/escape.ts';
import { formatCount } from '../printing/text.ts';
import type { OperatorStore, SuppressionStore } from '../store/contract.ts';
import {
  createAccountNotFound,
  createConflict,
  createInvalid,
  createUnavailable,
  type ErrorResult,
  ok,
  type Result,
} from './errors.ts';
import {
  changes,
  defineDownload,
  defineUpload,
  type ImportContext,
  type ImportScheduler,
  readsContent,
  type UploadObserver,
} from './operation.ts';
import { ContentError, openRereadableContent, type RereadableContent, SpoolError } from './rereadable-content.ts';
import { ListName, Type } from './schemas.ts';
import { EXCLUSIONS } from './suppression-formats.ts';
import type { ListHooks } from './suppression-reader.ts';
import type { ListRow } from './suppression-rows.ts';
import {
  CSV_HEADER,
  formatCsvRow,
  ImportProgress,
  ImportResult,
  type SkippedRow,
  SuppressionEntry,
  toSuppressionEntry,
} from './suppressions.ts';

const PAGE_SIZE = 5_000;
const MAX_LISTED_ROWS = 100;
/** A file without a header row is refused if it begins with this number of invalid rows. */
const MAX_LEADING_INVALID_ROWS = 1_000;
const SHUTDOWN_TEXT = 'the service is shutting down';

const CSV = 'text/csv';

export const exportSuppressions = defineDownload({
  name: 'suppression.export',
  id: 'exportSuppressions',
  summary: 'Export a suppression list as CSV',
  ...readsContent('support'),
  input: Type.Object({ account: ListName }),
  downloadType: CSV,
  result: Type.Array(SuppressionEntry),
  errors: ['not-found'],
  header: CSV_HEADER,
  formatPage: (entries) => entries.map(formatCsvRow).join(''),
  async run({ account }, { store }) {
    const firstPage = await store.listSuppressions(account, null, PAGE_SIZE);
    return firstPage.kind === 'done' ? ok(readPages(store, account, firstPage.value)) : createAccountNotFound(account);
  },
});

async function* readPages(
  store: Pick<SuppressionStore, 'listSuppressions'>,
  account: string,
  firstPage: readonly Suppression[],
): AsyncGenerator<SuppressionEntry[]> {
  for (let page = firstPage; ; ) {
    yield page.map(toSuppressionEntry);
    const lastEntry = page.at(-1);
    if (lastEntry === undefined || page.length < PAGE_SIZE) return;
    const nextPage = await store.listSuppressions(account, lastEntry.address, PAGE_SIZE);
    // The account still exists, because accounts are never removed.
    page = nextPage.kind === 'done' ? nextPage.value : [];
  }
}

/** An existing entry keeps its reason and time. With `dryRun`, the rows are only read and counted. */
export const importSuppressions = defineUpload({
  name: 'suppression.import',
  id: 'importSuppressions',
  summary: 'Add the addresses of a file to a suppression list; an invalid file adds none',
  ...changes('support'),
  input: Type.Object({
    account: ListName,
    reason: Type.Optional(
      Type.Enum(
        SUPPRESSION_REASONS,
        'The reason of rows that contain no reason. The default is `manual` or, for an export of a provider, the reason that its format defines.',
      ),
    ),
    dryRun: Type.Flag('Read and count the rows without adding an address.'),
  }),
  uploadType: CSV,
  progress: ImportProgress,
  result: ImportResult,
  errors: ['not-found', 'conflict'],
  async run({ account, reason = null, dryRun }, content, context, observer) {
    const { store, imports, clock } = context;
    if ((await store.listSuppressions(account, null, 1)).kind !== 'done') return createAccountNotFound(account);
    const { name } = content;
    const options = { reason, now: clock.now() };
    let rereadableContent: RereadableContent | null = null;
    try {
      rereadableContent = await openRereadableContent(content);
      // The parser is loaded only for an import, so that other commands do not load it.
      const { readSuppressionList } = await import('./suppression-reader.ts');
      const validationBytes = rereadableContent.bytes;
      const readRows = (hooks: ListHooks) => readSuppressionList(validationBytes, name, options, hooks);
      const { total, counts, format } = await validateFile(readRows, name, observer);
      if (dryRun) return ok({ read: counts.read, added: 0, known: 0, ...counts.result(), format, dryRun });
      if (imports.isStopping()) return createUnavailable(`${SHUTDOWN_TEXT}; no address was added`);
      const bytes = rereadableContent.reread(total);
      const file = {
        name,
        total,
        format,
        readRows: (hooks: ListHooks) => readSuppressionList(bytes, name, options, hooks),
      };
      return await imports.runImport(() => addRows(account, file, context, observer));
    } catch (error) {
      return toContentError(error);
    } finally {
      await rereadableContent?.close();
    }
  },
});

interface FileSummary {
  readonly total: number;
  readonly counts: RowCounts;
  readonly format: string | null;
}

/** @throws ContentError */
async function validateFile(
  readRows: ValidFile['readRows'],
  name: string,
  { onRowsRead }: UploadObserver<ImportProgress>,
): Promise<FileSummary> {
  let format: string | null = null;
  let hasColumnNames = false;
  let total = 0;
  const counts = new RowCounts();
  const hooks: ListHooks = {
    onBytes(count) {
      total += count;
      onRowsRead(counts.read);
    },
    onColumns(columns) {
      hasColumnNames = true;
      format = columns.kind === 'export' ? columns.format.label : null;
    },
  };
  let isTruncated = false;
  for await (const row of readRows(hooks)) {
    counts.add(row);
    isTruncated = !hasColumnNames && counts.invalid === counts.read && counts.read === MAX_LEADING_INVALID_ROWS;
    if (isTruncated) break;
  }
  if (counts.invalid === counts.read && counts.read > 0) throw createNoValidRowError(name, isTruncated, counts);
  return { total, counts, format };
}

interface ValidFile {
  readonly name: string;
  readonly total: number;
  readonly format: string | null;
  readonly readRows: (hooks: ListHooks) => AsyncIterable<ListRow>;
}

async function addRows(
  account: string,
  { name, total, format, readRows }: ValidFile,
  { store, imports }: ImportContext,
  { onProgress }: UploadObserver<ImportProgress>,
): Promise<Result<ImportResult>> {
  const counts = new RowCounts();
  let batch: Suppression[] = [];
  let [bytesRead, addedCount] = [0, 0];
  let auditEntryId: number | null = null;
  let [recordedRows, recordedSkipped] = [0, 0];

  const writeBatch = async (end: ImportStep['end']): Promise<ErrorResult | null> => {
    const stepCounts = { rowCount: counts.read - recordedRows, skippedCount: counts.skipped - recordedSkipped };
    const result = await store.importSuppressions(account, batch, {
      entry: auditEntryId,
      fileBytes: total,
      ...stepCounts,
      end,
    });
    if (result.kind !== 'done') return createAccountNotFound(account);
    auditEntryId = result.value.entry;
    addedCount += result.value.added;
    [recordedRows, recordedSkipped] = [counts.read, counts.skipped];
    batch = [];
    return null;
  };
  const scheduleBatch = (end: ImportStep['end']): Promise<ErrorResult | null> =>
    imports.runBatch(() =>
      imports.isStopping() ? Promise.resolve(createUnavailable(SHUTDOWN_TEXT)) : writeBatch(end),
    );
  const reportProgress = () => {
    const { read, skipped } = counts;
    const knownCount = read - skipped - batch.length - addedCount;
    onProgress({ read, added: addedCount, known: knownCount, skipped, bytes: bytesRead, total });
  };
  const onBytes = (size: number) => {
    bytesRead += size;
  };

  const addAllRows = async (): Promise<ErrorResult | null> => {
    reportProgress();
    for await (const row of readRows({ onBytes })) {
      counts.add(row);
      if (row.kind === 'entry' && batch.push(row.entry) >= imports.getMaxBatchRows()) {
        const failure = await scheduleBatch(null);
        if (failure !== null) return failure;
      }
      reportProgress();
    }
    return scheduleBatch('complete');
  };
  const failure = await addAllRows().catch((error: unknown) => toImportError(error, name));
  if (failure === null) {
    reportProgress();
    const knownCount = counts.read - counts.skipped - addedCount;
    return ok({ read: counts.read, added: addedCount, known: knownCount, ...counts.result(), format, dryRun: false });
  }
  if (auditEntryId === null) return failure;
  batch = [];
  const lastStep = { entry: auditEntryId, fileBytes: total, rowCount: 0, skippedCount: 0, end: 'stopped' } as const;
  // If this write fails, the audit log entry remains `unfinished`, with the counts of the added batches.
  await store.importSuppressions(account, [], lastStep).catch(() => undefined);
  return { ok: false, error: { ...failure.error, message: `${failure.error.message}${formatAddedCount(addedCount)}` } };
}

class RowCounts {
  readonly #rows: SkippedRow[] = [];
  readonly #reasons = new Map<string, number>();
  readonly #exclusions = new Map<string, number>();
  read = 0;
  invalid = 0;
  skipped = 0;

  add(row: ListRow): void {
    this.read += 1;
    switch (row.kind) {
      case 'entry':
        this.#reasons.set(row.entry.reason, (this.#reasons.get(row.entry.reason) ?? 0) + 1);
        return;
      case 'excluded':
        this.skipped += 1;
        this.#exclusions.set(row.exclusion, (this.#exclusions.get(row.exclusion) ?? 0) + 1);
        return;
      case 'invalid': {
        const { record, line, lastLine, fault } = row;
        this.skipped += 1;
        this.invalid += 1;
        if (this.#rows.length >= MAX_LISTED_ROWS) return;
        this.#rows.push({
          line,
          ...(lastLine > line ? { lastLine } : {}),
          ...(record === undefined ? {} : { record }),
          reason: fault,
        });
      }
    }
  }

  getFirstInvalidRow(): SkippedRow | undefined {
    return this.#rows[0];
  }

  result(): Pick<ImportResult, 'skipped' | 'skippedCount' | 'excluded' | 'reasons'> {
    return {
      skipped: [...this.#rows],
      skippedCount: this.skipped,
      excluded: EXCLUSIONS.flatMap((kind) => {
        const count = this.#exclusions.get(kind);
        return count === undefined ? [] : [{ kind, count }];
      }),
      reasons: SUPPRESSION_REASONS.flatMap((reason) => {
        const count = this.#reasons.get(reason);
        return count === undefined ? [] : [{ reason, count }];
      }),
    };
  }
}

/** `line 7`, `lines 7 to 9`, or `record 3 (line 1)` for a record of a JSON list. */
export function formatLines({ line, lastLine = line, record }: SkippedRow): string {
  const lines = line === lastLine ? `line ${line}` : `lines ${line} to ${lastLine}`;
  return record === undefined ? lines : `record ${record} (${lines})`;
}

function createNoValidRowError(name: string, isTruncated: boolean, counts: RowCounts): ContentError {
  const firstInvalidRow = counts.getFirstInvalidRow();
  const firstFault =
    firstInvalidRow === undefined ? '' : ` (${formatLines(firstInvalidRow)}: ${firstInvalidRow.reason})`;
  const summary =
    counts.invalid === 1
      ? 'its only row is invalid'
      : `all of its ${isTruncated ? 'first ' : ''}${formatCount(counts.invalid)} rows are invalid`;
  return new ContentError(
    `${name} contains no address to import: ${summary}${firstFault}; give a CSV file with the columns address, reason, at`,
  );
}

function toContentError(error: unknown): ErrorResult {
  if (error instanceof ContentError) return createInvalid(null, error.message);
  if (error instanceof SpoolError) return createConflict(null, error.message);
  throw error;
}

function toImportError(error: unknown, name: string): ErrorResult {
  return error instanceof Error && error.name === 'StoreError'
    ? createUnavailable(`the import of ${name} stopped: ${describeError(error)}`)
    : toContentError(error);
}

function formatAddedCount(count: number): string {
  const addressCountText = `${formatCount(count)} ${count === 1 ? 'address was' : 'addresses were'}`;
  return count === 0 ? '' : ` (${addressCountText} added before that; import the file again to add the rest)`;
}

/** While no message is accepted. */
const MAX_BATCH_ROWS = 5_000;
/** While messages are accepted. */
const MIN_BATCH_ROWS = 500;
/** If no message was accepted during this time, no message is expected during the next batch. */
const IDLE_MS = 1_000;

export function createImportScheduler(
  store: Pick<OperatorStore, 'findNewestId' | 'listNodes'>,
  clock: Clock,
): ImportScheduler {
  const runningImports = new Set<Promise<unknown>>();
  let nextBatchRows = MIN_BATCH_ROWS;
  let newestId: string | null | undefined;
  let newestChangedAt = 0;
  let lastBatch: Promise<unknown> = Promise.resolve();
  let isStopRequested = false;
  let endPause: () => void = () => undefined;

  async function addBatch<T>(add: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const result = await add();
    const durationMs = performance.now() - startedAt;
    nextBatchRows = (await isAccepting()) ? MIN_BATCH_ROWS : MAX_BATCH_ROWS;
    if (nextBatchRows === MIN_BATCH_ROWS && !isStopRequested) await pause(durationMs);
    return result;
  }

  /** Also true if that is unknown because the store does not answer. */
  async function isAccepting(): Promise<boolean> {
    const id = await store.findNewestId().catch(() => undefined);
    const now = clock.now();
    if (id === undefined || id !== newestId) newestChangedAt = now;
    newestId = id;
    if (now - newestChangedAt >= IDLE_MS) return false;
    const nodes = await store.listNodes(now).catch(() => null);
    return nodes === null || nodes.some(({ aliveUntil }) => aliveUntil > now);
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancelTimer = clock.after(Math.ceil(ms), resolve);
      endPause = () => {
        cancelTimer();
        resolve();
      };
    });
  }

  return {
    getMaxBatchRows: () => nextBatchRows,
    runBatch(add) {
      const batch = lastBatch.then(() => addBatch(add));
      lastBatch = batch.catch(() => undefined);
      return batch;
    },
    isStopping: () => isStopRequested,
    async runImport(work) {
      const importPromise = work();
      const importEnd = importPromise.catch(() => undefined);
      runningImports.add(importEnd);
      void importEnd.then(() => runningImports.delete(importEnd));
      return importPromise;
    },
    async stop() {
      isStopRequested = true;
      endPause();
      await Promise.all(runningImports);
    },
  };
}

/**
 * Export and import of suppression lists as CSV files of any size. An import validates the whole file before it adds an
 * address, so an invalid file adds no address. Then it adds batches in one transaction each, at a rate that leaves
 * capacity for deliveries. An import has one audit log entry, which each batch updates. The entry remains `unfinished`
 * if the process is killed. It is `stopped` if the store or a shutdown ends the import early. Importing the file again
 * adds the remaining addresses.
 */
import type { ImportStep } from '../model/audit.ts';
import { Type } from '../model/schema.ts';
import type { Suppression } from '../model/suppression.ts';
import { SUPPRESSION_REASONS } from '../model/suppression.ts';
import { describeError } from '../printing/error-line.ts';
import { formatCount } from '../printing/text.ts';
import type { SuppressionStore } from '../store/contract.ts';
import type { ImportContext } from './context.ts';
import { accountNotFound, conflict, type ErrorResult, invalid, ok, type Result, unavailable } from './errors.ts';
import { downloadOperation, type UploadObserver, uploadOperation } from './file-operation.ts';
import { createStringEnum, ListName } from './schemas.ts';
import type { CsvHooks, CsvRow } from './suppressions/csv-reader.ts';
import { CSV_HEADER, formatCsvRow } from './suppressions/csv-writer.ts';
import { ContentError, makeRereadable, type RereadableContent, SpoolError } from './suppressions/rereadable-content.ts';
import { ImportProgress, ImportResult, type SkippedRow, SuppressionEntry } from './suppressions/schemas.ts';
import { toSuppressionEntry } from './suppressions.ts';

/** The number of entries per page of an export. */
const PAGE_ENTRIES = 5_000;
/** The maximum number of skipped rows that a result lists. */
const MAX_LISTED_ROWS = 100;
/** The number of invalid rows at the beginning of a file without a header row after which the file is refused. */
const MAX_LEADING_INVALID_ROWS = 1_000;
const SHUTDOWN_TEXT = 'the service is shutting down';

const CSV = 'text/csv';

/** Exports a whole suppression list in alphabetical order. */
export const exportSuppressions = downloadOperation({
  name: 'suppression.export',
  id: 'exportSuppressions',
  summary: 'Export a suppression list as CSV',
  changes: false,
  input: Type.Object({ account: ListName }),
  downloadType: CSV,
  result: Type.Array(SuppressionEntry),
  errors: ['not-found'],
  header: CSV_HEADER,
  formatPage: (entries) => entries.map(formatCsvRow).join(''),
  async run({ account }, { store }) {
    const first = await store.listSuppressions(account, null, PAGE_ENTRIES);
    return first.kind === 'done' ? ok(readPages(store, account, first.value)) : accountNotFound(account);
  },
});

/** Reads one page at a time, so the memory does not depend on the size of the list. */
async function* readPages(
  store: Pick<SuppressionStore, 'listSuppressions'>,
  account: string,
  first: readonly Suppression[],
): AsyncGenerator<SuppressionEntry[]> {
  for (let page = first; ; ) {
    yield page.map(toSuppressionEntry);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE_ENTRIES) return;
    const next = await store.listSuppressions(account, last.address, PAGE_ENTRIES);
    // Accounts are never removed.
    page = next.kind === 'done' ? next.value : [];
  }
}

/** Adds the addresses of a CSV file to a list. An existing entry keeps its reason and time. */
export const importSuppressions = uploadOperation({
  name: 'suppression.import',
  id: 'importSuppressions',
  summary: 'Add the addresses of a CSV file to a suppression list; an invalid file adds none',
  changes: true,
  input: Type.Object({
    account: ListName,
    reason: createStringEnum(SUPPRESSION_REASONS, {
      default: 'manual',
      description: 'The reason of rows without one: `bounce`, `complaint` or `manual`; the default is `manual`.',
    }),
  }),
  uploadType: CSV,
  progress: ImportProgress,
  result: ImportResult,
  errors: ['not-found', 'conflict'],
  async run({ account, reason }, content, context, observer) {
    const { store, imports, clock } = context;
    if ((await store.listSuppressions(account, null, 1)).kind !== 'done') return accountNotFound(account);
    const { name } = content;
    const options = { reason, now: clock.now() };
    let rereadable: RereadableContent | null = null;
    try {
      rereadable = await makeRereadable(content);
      // The parser is loaded here, so that other commands do not load it.
      const { readCsv } = await import('./suppressions/csv-reader.ts');
      const firstPass = rereadable.bytes;
      const total = await validateFile((hooks) => readCsv(firstPass, name, options, hooks), name, observer);
      if (imports.isStopping()) return unavailable(`${SHUTDOWN_TEXT}; no address was added`);
      const bytes = rereadable.reread(total);
      const file = { name, total, rows: (hooks: CsvHooks) => readCsv(bytes, name, options, hooks) };
      return await imports.runImport(() => addRows(account, file, context, observer));
    } catch (error) {
      return toContentError(error);
    } finally {
      await rereadable?.close();
    }
  },
});

/** Validates the whole file; resolves to its size in bytes. @throws ContentError */
async function validateFile(
  readRows: ValidFile['rows'],
  name: string,
  { onRowsRead }: UploadObserver<ImportProgress>,
): Promise<number> {
  let hasHeader = false;
  let isTruncated = false;
  let total = 0;
  let rowCount = 0;
  const skipped = new SkippedRows();
  const onBytes = (count: number) => {
    total += count;
    onRowsRead(rowCount);
  };
  const onHeader = () => {
    hasHeader = true;
  };
  for await (const row of readRows({ onBytes, onHeader })) {
    rowCount += 1;
    if (row.kind === 'invalid') skipped.add(row);
    isTruncated = !hasHeader && skipped.count === rowCount && rowCount === MAX_LEADING_INVALID_ROWS;
    if (isTruncated) break;
  }
  if (skipped.count === rowCount && rowCount > 0) throw createNoValidRowError(name, isTruncated, skipped);
  return total;
}

interface ValidFile {
  readonly name: string;
  /** The size of the file in bytes. */
  readonly total: number;
  readonly rows: (hooks: CsvHooks) => AsyncIterable<CsvRow>;
}

/** Adds the rows of a file in batches. */
async function addRows(
  account: string,
  { name, total, rows: readRows }: ValidFile,
  { store, imports }: ImportContext,
  { onProgress }: UploadObserver<ImportProgress>,
): Promise<Result<ImportResult>> {
  const skipped = new SkippedRows();
  let batch: Suppression[] = [];
  let [bytesRead, rows, addedCount] = [0, 0, 0];
  /** The id of the audit log entry, and the counts that it contains. */
  let auditEntryId: number | null = null;
  let [recordedRows, recordedSkipped] = [0, 0];

  const writeBatch = async (end: ImportStep['end']): Promise<ErrorResult | null> => {
    const read = { read: rows - recordedRows, skipped: skipped.count - recordedSkipped };
    const result = await store.importSuppressions(account, batch, { entry: auditEntryId, bytes: total, ...read, end });
    if (result.kind !== 'done') return accountNotFound(account);
    auditEntryId = result.value.entry;
    addedCount += result.value.added;
    [recordedRows, recordedSkipped] = [rows, skipped.count];
    batch = [];
    return null;
  };
  const scheduleBatch = (end: ImportStep['end']): Promise<ErrorResult | null> =>
    imports.runBatch(() => (imports.isStopping() ? Promise.resolve(unavailable(SHUTDOWN_TEXT)) : writeBatch(end)));
  const reportProgress = () => {
    const known = rows - skipped.count - batch.length - addedCount;
    onProgress({ read: rows, added: addedCount, known, skipped: skipped.count, bytes: bytesRead, total });
  };
  const onBytes = (size: number) => {
    bytesRead += size;
  };

  const addAllRows = async (): Promise<ErrorResult | null> => {
    reportProgress();
    for await (const row of readRows({ onBytes })) {
      rows += 1;
      if (row.kind === 'invalid') skipped.add(row);
      else if (batch.push(row.entry) >= imports.batchRows()) {
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
    return ok({ read: rows, added: addedCount, known: rows - skipped.count - addedCount, ...skipped.result() });
  }
  if (auditEntryId === null) return failure;
  // The counts exclude the rows of a batch that was not added.
  [batch, rows, skipped.count] = [[], recordedRows, recordedSkipped];
  // If this write fails, the entry remains unfinished, with the counts of the added batches.
  await writeBatch('stopped').catch(() => undefined);
  return { ok: false, error: { ...failure.error, message: `${failure.error.message}${formatAddedCount(addedCount)}` } };
}

/** Counts the skipped rows and stores the first of them. */
class SkippedRows {
  readonly #rows: SkippedRow[] = [];
  count = 0;

  add({ line, lastLine, fault }: Extract<CsvRow, { kind: 'invalid' }>): void {
    this.count += 1;
    if (this.#rows.length >= MAX_LISTED_ROWS) return;
    this.#rows.push({ line, ...(lastLine > line ? { lastLine } : {}), reason: fault });
  }

  result(): Pick<ImportResult, 'skipped' | 'skippedCount'> {
    return { skipped: this.#rows, skippedCount: this.count };
  }
}

/** Returns `line 7`, or `lines 7 to 9` for a row of several lines. */
export function formatLines({ line, lastLine = line }: SkippedRow): string {
  return line === lastLine ? `line ${line}` : `lines ${line} to ${lastLine}`;
}

function createNoValidRowError(name: string, isTruncated: boolean, skipped: SkippedRows): ContentError {
  const [firstSkipped] = skipped.result().skipped;
  const firstFault = firstSkipped === undefined ? '' : ` (${formatLines(firstSkipped)}: ${firstSkipped.reason})`;
  const summary =
    skipped.count === 1
      ? 'its only row is invalid'
      : `all of its ${isTruncated ? 'first ' : ''}${formatCount(skipped.count)} rows are invalid`;
  return new ContentError(
    `${name} contains no address to import: ${summary}${firstFault}; give a CSV file with the columns address, reason, at`,
  );
}

/** Returns the error of unreadable content or of the temporary folder. Throws any other error. */
function toContentError(error: unknown): ErrorResult {
  if (error instanceof ContentError) return invalid(null, error.message);
  if (error instanceof SpoolError) return conflict(null, error.message);
  throw error;
}

function toImportError(error: unknown, name: string): ErrorResult {
  return error instanceof Error && error.name === 'StoreError'
    ? unavailable(`the import of ${name} stopped: ${describeError(error)}`)
    : toContentError(error);
}

function formatAddedCount(count: number): string {
  const addresses = `${formatCount(count)} ${count === 1 ? 'address was' : 'addresses were'}`;
  return count === 0 ? '' : ` (${addresses} added before that; import the file again to add the rest)`;
}

/**
 * Export and import of suppression lists as CSV files of any size. An import validates the whole file before it adds an address, so
 * an invalid file adds none. It then adds batches, one transaction each, at a rate that leaves capacity for deliveries. An import has
 * one audit log entry, which each batch updates: it remains `unfinished` if the process is killed, and is `stopped` if the store or a
 * shutdown ends the import early. Importing the file again adds the remaining addresses.
 */
import type { ImportStep } from '../model/audit.ts';
import { Type } from '../model/schema.ts';
import type { Suppression } from '../model/suppression.ts';
import { describeError } from '../printing/error-line.ts';
import { formatCount } from '../printing/text.ts';
import type { SuppressionStore } from '../store/contract.ts';
import type { ImportContext } from './context.ts';
import { accountNotFound, conflict, type Failed, invalid, ok, type Result, unavailable } from './errors.ts';
import { downloadOperation, type UploadObserver, uploadOperation } from './file-operation.ts';
import { ListName, oneOf, SUPPRESSION_REASONS } from './schemas.ts';
import type { CsvHooks, CsvRow } from './suppressions/csv-reader.ts';
import { CSV_HEADER, csvRow } from './suppressions/csv-writer.ts';
import { ContentError, makeRereadable, type RereadableContent, SpoolError } from './suppressions/rereadable-content.ts';
import { ImportProgress, ImportResult, type SkippedRow, SuppressionEntry } from './suppressions/schemas.ts';
import { toSuppressionEntry } from './suppressions.ts';

/** Entries per page of an export. */
const PAGE_ENTRIES = 5_000;
/** Maximum number of skipped rows that a result lists. */
const MAX_NAMED_ROWS = 100;
/** A file without a header row that begins with this many invalid rows is rejected. */
const MAX_BAD_ROWS_FIRST = 1_000;
const STOPPING = 'the service is shutting down';

const CSV = 'text/csv';

/** Exports a whole list in alphabetical order. */
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
  formatPage: (entries) => entries.map(csvRow).join(''),
  async run({ account }, { store }) {
    const first = await store.listSuppressions(account, null, PAGE_ENTRIES);
    return first.kind === 'done' ? ok(pages(store, account, first.value)) : accountNotFound(account);
  },
});

/** Reads one page at a time, so that a list of any size takes bounded memory. */
async function* pages(
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
    reason: oneOf(SUPPRESSION_REASONS, {
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
    let kept: RereadableContent | null = null;
    try {
      kept = await makeRereadable(content);
      // Loaded here, so that other commands do not load the parser.
      const { readCsv } = await import('./suppressions/csv-reader.ts');
      const first = kept.bytes;
      const total = await validate((hooks) => readCsv(first, name, options, hooks), name, observer);
      if (imports.isStopping()) return unavailable(`${STOPPING}; no address was added`);
      const bytes = kept.reread(total);
      const file = { name, total, rows: (hooks: CsvHooks) => readCsv(bytes, name, options, hooks) };
      return await imports.runImport(() => addRows(account, file, context, observer));
    } catch (error) {
      return contentFailure(error);
    } finally {
      await kept?.close();
    }
  },
});

/** Validates the whole file; resolves to its size in bytes. @throws ContentError */
async function validate(
  rowsOf: ValidFile['rows'],
  name: string,
  { onRowsRead }: UploadObserver<ImportProgress>,
): Promise<number> {
  let header = false;
  let cut = false;
  let total = 0;
  let rows = 0;
  const skipped = new SkippedRows();
  const onBytes = (count: number) => {
    total += count;
    onRowsRead(rows);
  };
  const onHeader = () => {
    header = true;
  };
  for await (const row of rowsOf({ onBytes, onHeader })) {
    rows += 1;
    if (row.kind === 'bad') skipped.add(row);
    cut = !header && skipped.count === rows && rows === MAX_BAD_ROWS_FIRST;
    if (cut) break;
  }
  if (skipped.count === rows && rows > 0) throw noValidRow(name, cut, skipped);
  return total;
}

interface ValidFile {
  readonly name: string;
  /** In bytes. */
  readonly total: number;
  readonly rows: (hooks: CsvHooks) => AsyncIterable<CsvRow>;
}

/** Adds the rows of a file in batches. */
async function addRows(
  account: string,
  { name, total, rows: rowsOf }: ValidFile,
  { store, imports }: ImportContext,
  { onProgress }: UploadObserver<ImportProgress>,
): Promise<Result<ImportResult>> {
  const skipped = new SkippedRows();
  let batch: Suppression[] = [];
  let [bytesRead, rows, count] = [0, 0, 0];
  /** The number of the audit log entry, and the counts that it has. */
  let entry: number | null = null;
  let [rowsNoted, skippedNoted] = [0, 0];

  const write = async (end: ImportStep['end']): Promise<Failed | null> => {
    const read = { read: rows - rowsNoted, skipped: skipped.count - skippedNoted };
    const answer = await store.importSuppressions(account, batch, { entry, bytes: total, ...read, end });
    if (answer.kind !== 'done') return accountNotFound(account);
    entry = answer.value.entry;
    count += answer.value.added;
    [rowsNoted, skippedNoted] = [rows, skipped.count];
    batch = [];
    return null;
  };
  const flush = (end: ImportStep['end']): Promise<Failed | null> =>
    imports.runBatch(() => (imports.isStopping() ? Promise.resolve(unavailable(STOPPING)) : write(end)));
  const report = () => {
    const known = rows - skipped.count - batch.length - count;
    onProgress({ read: rows, added: count, known, skipped: skipped.count, bytes: bytesRead, total });
  };
  const onBytes = (size: number) => {
    bytesRead += size;
  };

  const work = async (): Promise<Failed | null> => {
    report();
    for await (const row of rowsOf({ onBytes })) {
      rows += 1;
      if (row.kind === 'bad') skipped.add(row);
      else if (batch.push(row.entry) >= imports.batchRows()) {
        const failed = await flush(null);
        if (failed !== null) return failed;
      }
      report();
    }
    return flush('complete');
  };
  const failed = await work().catch((error: unknown) => addingFailure(error, name));
  if (failed === null) {
    report();
    return ok({ read: rows, added: count, known: rows - skipped.count - count, ...skipped.result() });
  }
  if (entry === null) return failed;
  // The counts exclude the rows of the batch that was not added.
  [batch, rows, skipped.count] = [[], rowsNoted, skippedNoted];
  // If this write fails, the entry remains unfinished, with the counts of the added batches.
  await write('stopped').catch(() => undefined);
  return { ok: false, error: { ...failed.error, message: `${failed.error.message}${addedBefore(count)}` } };
}

/** Counts the skipped rows and keeps the first of them. */
class SkippedRows {
  readonly #rows: SkippedRow[] = [];
  count = 0;

  add({ line, lastLine, fault }: Extract<CsvRow, { kind: 'bad' }>): void {
    this.count += 1;
    if (this.#rows.length >= MAX_NAMED_ROWS) return;
    this.#rows.push({ line, ...(lastLine > line ? { lastLine } : {}), reason: fault });
  }

  result(): Pick<ImportResult, 'skipped' | 'skippedCount'> {
    return { skipped: this.#rows, skippedCount: this.count };
  }
}

/** `line 7`, or `lines 7 to 9` for a quoted row of several lines. */
export function formatLines({ line, lastLine = line }: SkippedRow): string {
  return line === lastLine ? `line ${line}` : `lines ${line} to ${lastLine}`;
}

function noValidRow(name: string, cut: boolean, skipped: SkippedRows): ContentError {
  const [first] = skipped.result().skipped;
  const why = first === undefined ? '' : ` (${formatLines(first)}: ${first.reason})`;
  const which =
    skipped.count === 1
      ? 'its only row is invalid'
      : `all of its ${cut ? 'first ' : ''}${formatCount(skipped.count)} rows are invalid`;
  return new ContentError(
    `${name} contains no address to import: ${which}${why}; give a CSV file with the columns address, reason, at`,
  );
}

/** The error of unreadable content, or of the temporary folder. Throws any other error. */
function contentFailure(error: unknown): Failed {
  if (error instanceof ContentError) return invalid(null, error.message);
  if (error instanceof SpoolError) return conflict(null, error.message);
  throw error;
}

function addingFailure(error: unknown, name: string): Failed {
  return error instanceof Error && error.name === 'StoreError'
    ? unavailable(`the import of ${name} stopped: ${describeError(error)}`)
    : contentFailure(error);
}

function addedBefore(count: number): string {
  const addresses = `${formatCount(count)} ${count === 1 ? 'address was' : 'addresses were'}`;
  return count === 0 ? '' : ` (${addresses} added before that; import the file again to add the rest)`;
}

/**
 * Suppression lists as files: export and import as CSV, however long. An import is read to its end before it adds anything, so a
 * file that is no list adds nothing; then it adds in batches, each one transaction, at a pace that leaves room for mail. It has
 * one entry in the audit log, written with the first batch and true after each: one that is killed keeps `unfinished`, one
 * that the store or a stop ends early is `stopped`. Importing the file again adds the rest.
 */
import type { ImportStep } from '../model/audit.ts';
import { Type } from '../model/schema.ts';
import type { Suppression } from '../model/suppression.ts';
import { describeError } from '../printing/error-line.ts';
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

/** Entries read from the store at a time. */
const PAGE_ENTRIES = 5_000;
/** Skipped rows that a result names. */
const MAX_NAMED_ROWS = 100;
/** A file without a header row that begins with so many bad rows is no list of addresses. */
const MAX_BAD_ROWS_FIRST = 1_000;
const STOPPING = 'the service is stopping';

const CSV = 'text/csv';

/** A whole list, in order of address. */
export const exportSuppressions = downloadOperation({
  name: 'suppression.export',
  id: 'exportSuppressions',
  summary: 'A whole list as CSV, which import reads',
  changes: false,
  input: Type.Object({ account: ListName }),
  gives: CSV,
  result: Type.Array(SuppressionEntry),
  errors: ['not-found'],
  header: CSV_HEADER,
  formatPage: (entries) => entries.map(csvRow).join(''),
  async run({ account }, { store }) {
    const first = await store.listSuppressions(account, null, PAGE_ENTRIES);
    return first.kind === 'done' ? ok(pages(store, account, first.value)) : accountNotFound(account);
  },
});

/** A page at a time: a list of any length is never in memory as a whole. */
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

/** Puts the addresses of a CSV file on a list. An address that is on the list keeps its first reason and time. */
export const importSuppressions = uploadOperation({
  name: 'suppression.import',
  id: 'importSuppressions',
  summary: 'Put the addresses of a CSV file on a list; a file that cannot be read to its end adds nothing',
  changes: true,
  input: Type.Object({
    account: ListName,
    reason: oneOf(SUPPRESSION_REASONS, {
      default: 'manual',
      description: 'Of rows that name none: `bounce`, `complaint` or `manual`; `manual` unless given.',
    }),
  }),
  takes: CSV,
  progress: ImportProgress,
  result: ImportResult,
  errors: ['not-found', 'conflict'],
  async run({ account, reason }, content, context, watch) {
    const { store, imports, clock } = context;
    if ((await store.listSuppressions(account, null, 1)).kind !== 'done') return accountNotFound(account);
    const { name } = content;
    const options = { reason, now: clock.now() };
    let kept: RereadableContent | null = null;
    try {
      kept = await makeRereadable(content);
      // Loaded here, so that no other command waits for the parser.
      const { readCsv } = await import('./suppressions/csv-reader.ts');
      const first = kept.bytes;
      const total = await checked((hooks) => readCsv(first, name, options, hooks), name, watch);
      if (imports.isStopping()) return unavailable(`${STOPPING}; nothing was added`);
      const bytes = kept.reread(total);
      const file = { name, total, rows: (hooks: CsvHooks) => readCsv(bytes, name, options, hooks) };
      return await imports.runImport(() => added(account, file, context, watch));
    } catch (error) {
      return contentFailure(error);
    } finally {
      await kept?.close();
    }
  },
});

/** Reads the file to its end and adds nothing; resolves to its size in bytes. @throws ContentError */
async function checked(
  rowsOf: CheckedFile['rows'],
  name: string,
  { reading }: Pick<UploadObserver<ImportProgress>, 'reading'>,
): Promise<number> {
  let header = false;
  let cut = false;
  let total = 0;
  let rows = 0;
  const skipped = new SkippedRows();
  const onBytes = (count: number) => {
    total += count;
    reading(rows);
  };
  const onHeader = () => {
    header = true;
  };
  for await (const row of rowsOf({ onBytes, onHeader })) {
    rows += 1;
    if (row.kind === 'bad') skipped.take(row);
    cut = !header && skipped.count === rows && rows === MAX_BAD_ROWS_FIRST;
    if (cut) break;
  }
  if (skipped.count === rows && rows > 0) throw nothingGood(name, cut, skipped);
  return total;
}

interface CheckedFile {
  readonly name: string;
  /** In bytes. */
  readonly total: number;
  readonly rows: (hooks: CsvHooks) => AsyncIterable<CsvRow>;
}

/** Adds the rows of a file, batch by batch. */
async function added(
  account: string,
  { name, total, rows: rowsOf }: CheckedFile,
  { store, imports }: ImportContext,
  { progress }: Pick<UploadObserver<ImportProgress>, 'progress'>,
): Promise<Result<ImportResult>> {
  const skipped = new SkippedRows();
  let batch: Suppression[] = [];
  let [bytesRead, rows, count] = [0, 0, 0];
  /** What the audit log entry has. */
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
    progress({ read: rows, added: count, known, skipped: skipped.count, bytes: bytesRead, total });
  };
  const onBytes = (size: number) => {
    bytesRead += size;
  };

  const work = async (): Promise<Failed | null> => {
    report();
    for await (const row of rowsOf({ onBytes })) {
      rows += 1;
      if (row.kind === 'bad') skipped.take(row);
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
    return ok({ read: rows, added: count, known: rows - skipped.count - count, ...skipped.told() });
  }
  if (entry === null) return failed;
  // The rows of the batch that was not added are not in the counts.
  [batch, rows, skipped.count] = [[], rowsNoted, skippedNoted];
  // Where this cannot be written the entry stays unfinished, with the counts of what was added.
  await write('stopped').catch(() => undefined);
  return { ok: false, error: { ...failed.error, message: `${failed.error.message}${addedBefore(count)}` } };
}

/** The first of them are kept, all are counted. */
class SkippedRows {
  readonly #rows: SkippedRow[] = [];
  count = 0;

  take({ line, lastLine, fault }: Extract<CsvRow, { kind: 'bad' }>): void {
    this.count += 1;
    if (this.#rows.length >= MAX_NAMED_ROWS) return;
    this.#rows.push({ line, ...(lastLine > line ? { lastLine } : {}), reason: fault });
  }

  told(): Pick<ImportResult, 'skipped' | 'skippedCount'> {
    return { skipped: this.#rows, skippedCount: this.count };
  }
}

/** `line 7`, or `lines 7 to 9` where a quote makes one row of them. */
export function formatLines({ line, lastLine = line }: SkippedRow): string {
  return line === lastLine ? `line ${line}` : `lines ${line} to ${lastLine}`;
}

/** `1,000,000`, whatever the machine's language. */
function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

function nothingGood(name: string, cut: boolean, skipped: SkippedRows): ContentError {
  const [first] = skipped.told().skipped;
  const why = first === undefined ? '' : ` (${formatLines(first)}: ${first.reason})`;
  const which =
    skipped.count === 1
      ? 'its only row could not'
      : `none of its ${cut ? 'first ' : ''}${grouped(skipped.count)} rows could`;
  return new ContentError(
    `${name} holds nothing to import: ${which} be taken${why}; give a CSV file with the columns address, reason, at`,
  );
}

/** The failure of a content or of the folder that keeps it; anything else is thrown on. */
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
  const addresses = `${grouped(count)} ${count === 1 ? 'address was' : 'addresses were'}`;
  return count === 0 ? '' : ` (${addresses} added before; import it again when that is put right)`;
}

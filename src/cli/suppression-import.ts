/**
 * The import of one CSV file into a suppression list: a pass that only reads, so that a file which cannot be read to its
 * end adds nothing, then a pass that adds in batches, each one transaction. What can be read only once is kept in a
 * temporary file meanwhile. Bad rows are told by their line and skipped. Fails with a CommandFailure of one line that
 * says how many rows were added before it.
 */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { quote } from '../config/units.ts';
import type { Suppression, SuppressionReason } from '../store/trust.ts';
import { CommandFailure, describeError } from './failure.ts';
import { grouped, type ProgressStream, RowProgress, StatusLine } from './progress.ts';
import { CsvFault, type CsvOptions, type CsvRow, readCsv } from './suppression-csv.ts';
import { printable } from './text.ts';

/** Bad rows told one by one. */
const MOST_TOLD = 100;
/** A file without a header row that begins with so many bad rows is no list of addresses. */
const MOST_BEFORE_FIRST = 1_000;
/** Read at a time. */
const CHUNK_BYTES = 262_144;

export interface ImportParts {
  /** A path, or `-` for standard input. */
  readonly file: string;
  /** For rows that name none. */
  readonly reason: SuppressionReason;
  readonly batchSize: number;
  /** Resolves to how many were new. */
  readonly add: (entries: readonly Suppression[]) => Promise<number>;
  /** Where bad rows are told and progress is shown. */
  readonly terminal: ProgressStream;
  readonly now: () => number;
}

/** `read` is the sum of the three others. */
export interface ImportSummary {
  readonly read: number;
  readonly added: number;
  readonly known: number;
  readonly skipped: number;
}

type BadRow = Extract<CsvRow, { kind: 'bad' }>;

/** Runs the import to its end. */
export async function importFile(parts: ImportParts): Promise<ImportSummary> {
  const { file, reason, terminal, now } = parts;
  const name = file === '-' ? 'standard input' : quote(file);
  const line = new StatusLine(terminal);
  const options = { reason, now: now() };
  const input = await openInput(file, name);
  try {
    const size = await checkRows(input.first, name, options, line);
    return await addRows(parts, name, { bytes: input.again(size), size }, options, line);
  } finally {
    line.end();
    await input.close();
  }
}

/**
 * Reads it to its end and adds nothing; resolves to its size in bytes. Throws a CommandFailure where it is no CSV or
 * holds no row that can be taken.
 */
async function checkRows(
  source: AsyncIterable<Buffer>,
  name: string,
  options: CsvOptions,
  line: StatusLine,
): Promise<number> {
  let header = false;
  let cut = false;
  let bytes = 0;
  let rows = 0;
  const bad = new BadRows(line);
  const onBytes = (count: number) => {
    bytes += count;
    line.show(`reading ${name}: ${grouped(rows)} rows`);
  };
  const onHeader = () => {
    header = true;
  };
  try {
    for await (const row of readCsv(source, { ...options, onBytes, onHeader })) {
      rows += 1;
      if (row.kind === 'bad') bad.take(row);
      cut = !header && bad.count === rows && rows === MOST_BEFORE_FIRST;
      if (cut) break;
    }
  } catch (error) {
    throw importFailure(error, name, 0);
  }
  if (bad.count === rows && rows > 0) throw nothingGood(name, cut, bad);
  return bytes;
}

async function addRows(
  { batchSize, add, now }: ImportParts,
  name: string,
  { bytes: source, size }: { readonly bytes: AsyncIterable<Buffer>; readonly size: number },
  options: CsvOptions,
  line: StatusLine,
): Promise<ImportSummary> {
  const progress = new RowProgress(line, now);
  let bytes = 0;
  let rows = 0;
  let added = 0;
  let batch: Suppression[] = [];
  const bad = new BadRows(line);
  const onBytes = (count: number) => {
    bytes += count;
  };
  const flush = async (): Promise<void> => {
    added += await add(batch);
    batch = [];
  };
  try {
    for await (const row of readCsv(source, { ...options, onBytes })) {
      rows += 1;
      if (row.kind === 'bad') bad.take(row);
      else if (batch.push(row.entry) === batchSize) await flush();
      progress.update(rows, size === 0 ? null : bytes / size);
    }
    if (batch.length > 0) await flush();
  } catch (error) {
    bad.tell();
    throw importFailure(error, name, added);
  }
  line.end();
  bad.tell();
  return { read: rows, added, known: rows - bad.count - added, skipped: bad.count };
}

/** Kept until the end, so that what is wrong with the whole is told alone. */
class BadRows {
  readonly #line: StatusLine;
  readonly #told: BadRow[] = [];
  count = 0;

  constructor(line: StatusLine) {
    this.#line = line;
  }

  get first(): BadRow | undefined {
    return this.#told[0];
  }

  take(row: BadRow): void {
    this.count += 1;
    if (this.#told.length < MOST_TOLD) this.#told.push(row);
  }

  tell(): void {
    for (const row of this.#told) this.#line.note(printable(`${place(row)}: ${row.fault}; skipped`));
    const more = this.count - this.#told.length;
    if (more > 0) this.#line.note(`and ${grouped(more)} more bad ${more === 1 ? 'row' : 'rows'}, skipped`);
  }
}

function place({ line, lastLine }: BadRow): string {
  return line === lastLine ? `line ${line}` : `lines ${line} to ${lastLine}`;
}

function nothingGood(name: string, cut: boolean, bad: BadRows): CommandFailure {
  const { first } = bad;
  const why = first === undefined ? '' : ` (${place(first)}: ${first.fault})`;
  const which =
    bad.count === 1 ? 'its only row could not' : `none of its ${cut ? 'first ' : ''}${grouped(bad.count)} rows could`;
  return new CommandFailure(
    `${name} holds nothing to import: ${which} be taken${why}; give a CSV file with the columns address, reason, at`,
  );
}

function importFailure(error: unknown, name: string, added: number): CommandFailure {
  const what =
    error instanceof CsvFault
      ? `${name} ${error.message}`
      : error instanceof CommandFailure
        ? error.message
        : `the import of ${name} stopped: ${describeError(error)}`;
  const before = `${grouped(added)} ${added === 1 ? 'address was' : 'addresses were'} added before; import it again when that is put right`;
  return new CommandFailure(added === 0 ? what : `${what} (${before})`);
}

interface Input {
  /** From its beginning to its end, once. */
  readonly first: AsyncIterable<Buffer>;
  /** Its first `size` bytes once more. */
  again(size: number): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

async function openInput(file: string, name: string): Promise<Input> {
  if (file === '-') {
    if (process.stdin.isTTY) {
      throw new CommandFailure('standard input is a terminal; pipe a CSV file into it, or give its name', 2);
    }
    return spooled(process.stdin, () => Promise.resolve());
  }
  try {
    const handle = await open(file, constants.O_RDONLY);
    const found = await handle.stat();
    if (found.isDirectory()) {
      await handle.close();
      throw new CommandFailure(`${name} is a folder; give the name of a CSV file`);
    }
    // A named pipe, such as a shell's <(…), gives what it has only once.
    if (!found.isFile()) {
      return await spooled(handle.createReadStream({ autoClose: false }), () => handle.close());
    }
    return { first: bytesOf(handle), again: (size) => bytesOf(handle, size), close: () => handle.close() };
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const code = codeOf(error);
    throw new CommandFailure(
      code === 'ENOENT'
        ? `there is no file ${name}; give the name of a CSV file, or - for standard input`
        : `${name} cannot be read (${code}); make it readable for this user`,
    );
  }
}

/** Up to `size` bytes of a file. */
function bytesOf(handle: FileHandle, size = Number.POSITIVE_INFINITY): AsyncIterable<Buffer> {
  return handle.createReadStream({ autoClose: false, highWaterMark: CHUNK_BYTES, start: 0, end: size - 1 });
}

/** Kept, as it is read for the first time, in a file that has no name any more and so goes with this process. */
async function spooled(source: AsyncIterable<Buffer>, close: () => Promise<void>): Promise<Input> {
  let spool: FileHandle;
  const path = join(tmpdir(), `postrider-import-${randomUUID()}`);
  try {
    spool = await open(path, 'wx+', 0o600);
    await unlink(path);
  } catch (error) {
    await close();
    throw spoolFailure(error);
  }
  async function* kept(): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      try {
        await spool.writeFile(chunk);
      } catch (error) {
        throw spoolFailure(error);
      }
      yield chunk;
    }
  }
  return {
    first: kept(),
    again: (size) => bytesOf(spool, size),
    close: async () => {
      await spool.close();
      await close();
    },
  };
}

function spoolFailure(error: unknown): CommandFailure {
  return new CommandFailure(
    `what is to be imported cannot be kept in ${tmpdir()} (${codeOf(error)}); set TMPDIR to a folder with room for it`,
  );
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
}

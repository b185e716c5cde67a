/**
 * The import of one CSV file into a suppression list, in batches, each one transaction. Bad rows are told by their line
 * and skipped. Fails with a CommandFailure of one line that says how many rows were added before it.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { quote } from '../config/units.ts';
import type { Suppression, SuppressionReason } from '../store/trust.ts';
import { CommandFailure, describeError } from './failure.ts';
import { grouped, type ProgressStream, RowProgress, StatusLine } from './progress.ts';
import { CsvFault, type CsvRow, readCsv } from './suppression-csv.ts';
import { printable } from './text.ts';

/** Bad rows told one by one. */
const MOST_TOLD = 100;
/** A file without a header row that begins with so many bad rows is no list of addresses. */
const MOST_BEFORE_FIRST = 1_000;

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
  const { file, reason, batchSize, add, terminal, now } = parts;
  const name = file === '-' ? 'standard input' : quote(file);
  const input = await openInput(file, name);
  const line = new StatusLine(terminal);
  const progress = new RowProgress(line, now);
  let header = false;
  let cut = false;
  let bytes = 0;
  let rows = 0;
  let added = 0;
  let batch: Suppression[] = [];
  const bad = new BadRows(line);

  const flush = async (): Promise<void> => {
    added += await add(batch);
    batch = [];
  };
  const options = {
    reason,
    now: now(),
    onBytes: (count: number) => {
      bytes += count;
    },
    onHeader: () => {
      header = true;
    },
  };
  try {
    for await (const row of readCsv(input.bytes, options)) {
      rows += 1;
      if (row.kind === 'bad') bad.take(row);
      else if (batch.push(row.entry) === batchSize) await flush();
      cut = !header && bad.count === rows && rows === MOST_BEFORE_FIRST;
      if (cut) break;
      progress.update(rows, input.size === null ? null : bytes / input.size);
    }
    if (bad.count === rows && rows > 0) throw nothingGood(name, cut, bad);
    if (batch.length > 0) await flush();
  } catch (error) {
    // What is wrong with the whole is told first and alone where nothing of it was any good.
    if (bad.count < rows) bad.tell();
    throw importFailure(error, name, added);
  } finally {
    line.end();
    await input.close();
  }
  bad.tell();
  return { read: rows, added, known: rows - bad.count - added, skipped: bad.count };
}

/** Kept until there is a good row, so that a file that is no list gets one line and not a hundred. */
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
  readonly bytes: AsyncIterable<Buffer>;
  /** In bytes; null where it has no end that is known. */
  readonly size: number | null;
  close(): Promise<void>;
}

async function openInput(file: string, name: string): Promise<Input> {
  if (file === '-') {
    if (process.stdin.isTTY) {
      throw new CommandFailure('standard input is a terminal; pipe a CSV file into it, or give its name', 2);
    }
    return { bytes: process.stdin, size: null, close: () => Promise.resolve() };
  }
  try {
    const handle = await open(file, constants.O_RDONLY);
    const found = await handle.stat();
    if (found.isDirectory()) {
      await handle.close();
      throw new CommandFailure(`${name} is a folder; give the name of a CSV file`);
    }
    return {
      bytes: handle.createReadStream({ autoClose: false, highWaterMark: 262_144 }),
      size: found.isFile() ? found.size : null,
      close: () => handle.close(),
    };
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
    throw new CommandFailure(
      code === 'ENOENT'
        ? `there is no file ${name}; give the name of a CSV file, or - for standard input`
        : `${name} cannot be read (${code}); make it readable for this user`,
    );
  }
}

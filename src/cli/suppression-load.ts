/**
 * The two passes over a CSV file that is put on a suppression list, for the command and the operator API alike: one that only
 * reads, so that what cannot be read to its end adds nothing, and one that adds in batches, each one transaction. Bad rows
 * are counted and kept by their lines. Fails with a CommandFailure of one line that says how many rows were added before it.
 */

import type { Suppression } from '../model/suppression.ts';
import { describeError } from '../printing/error-line.ts';
import { CommandFailure } from './failure.ts';
import { grouped } from './progress.ts';
import { CsvFault, type CsvOptions, type CsvRow, readCsv } from './suppression-csv.ts';

/** Bad rows told one by one. */
const MOST_TOLD = 100;
/** A file without a header row that begins with so many bad rows is no list of addresses. */
const MOST_BEFORE_FIRST = 1_000;

export type BadRow = Extract<CsvRow, { kind: 'bad' }>;

/** `read` is the sum of the three others. */
export interface ImportSummary {
  readonly read: number;
  readonly added: number;
  readonly known: number;
  readonly skipped: number;
}

/** Where a pass stands, in bytes and rows. */
export interface Passed {
  readonly bytes: number;
  readonly rows: number;
  readonly added: number;
  readonly bad: number;
  /** Read, and not yet given to the store. */
  readonly waiting: number;
}

export interface Adding {
  /** Asked before each row. */
  readonly batchSize: () => number;
  /** Resolves to how many were new. */
  readonly add: (entries: readonly Suppression[]) => Promise<number>;
  /** Told after every row. */
  readonly passed: (at: Passed) => void;
}

/**
 * Reads it to its end and adds nothing; resolves to its size in bytes. `name` is what its lines call the file. Throws a
 * CommandFailure where it is no CSV or holds no row that can be taken.
 */
export async function checkRows(
  source: AsyncIterable<Buffer>,
  name: string,
  options: CsvOptions,
  passed: (rows: number) => void,
): Promise<number> {
  let header = false;
  let cut = false;
  let bytes = 0;
  let rows = 0;
  const bad = new BadRows();
  const onBytes = (count: number) => {
    bytes += count;
    passed(rows);
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

/** Adds the rows; `bad` is filled meanwhile, also where it fails. */
export async function addRows(
  { batchSize, add, passed }: Adding,
  source: AsyncIterable<Buffer>,
  name: string,
  options: CsvOptions,
  bad: BadRows,
): Promise<ImportSummary> {
  let bytes = 0;
  let rows = 0;
  let added = 0;
  let batch: Suppression[] = [];
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
      else if (batch.push(row.entry) >= batchSize()) await flush();
      passed({ bytes, rows, added, bad: bad.count, waiting: batch.length });
    }
    if (batch.length > 0) await flush();
    passed({ bytes, rows, added, bad: bad.count, waiting: 0 });
  } catch (error) {
    throw importFailure(error, name, added);
  }
  return { read: rows, added, known: rows - bad.count - added, skipped: bad.count };
}

/** The first of them are kept, all are counted. */
export class BadRows {
  readonly told: BadRow[] = [];
  count = 0;

  take(row: BadRow): void {
    this.count += 1;
    if (this.told.length < MOST_TOLD) this.told.push(row);
  }
}

/** `line 7`, or `lines 7 to 9` where a quote makes one row of them. */
export function place({ line, lastLine }: BadRow): string {
  return line === lastLine ? `line ${line}` : `lines ${line} to ${lastLine}`;
}

function nothingGood(name: string, cut: boolean, bad: BadRows): CommandFailure {
  const [first] = bad.told;
  const why = first === undefined ? '' : ` (${place(first)}: ${first.fault})`;
  const which =
    bad.count === 1 ? 'its only row could not' : `none of its ${cut ? 'first ' : ''}${grouped(bad.count)} rows could`;
  return new CommandFailure(
    `${name} holds nothing to import: ${which} be taken${why}; give a CSV file with the columns address, reason, at`,
  );
}

function importFailure(error: unknown, name: string, added: number): CommandFailure {
  // It says all there is to say, and its kind matters.
  if (added === 0 && error instanceof CommandFailure) return error;
  const what =
    error instanceof CsvFault
      ? `${name} ${error.message}`
      : error instanceof CommandFailure
        ? error.message
        : `the import of ${name} stopped: ${describeError(error)}`;
  const before = `${grouped(added)} ${added === 1 ? 'address was' : 'addresses were'} added before; import it again when that is put right`;
  return new CommandFailure(added === 0 ? what : `${what} (${before})`);
}

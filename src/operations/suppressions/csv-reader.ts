/**
 * Reads suppression lists as CSV (RFC 4180): exports of Postrider, lists of addresses, and exports of Postmark, SES and
 * SendGrid. The reader streams the file with limited memory and a limited cost per byte.
 *
 * Guarantees: the reader yields each row once, in order, as an entry or as a fault with its line. It fails with a
 * ContentError if the file is not CSV or cannot be parsed to its end.
 */
import { pipeline } from 'node:stream/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { type Parser, parse } from 'csv-parse';
import { parseTimestamp, quote } from '../../config/units.ts';
import { parseAddress, toCanonicalAddress } from '../../model/address.ts';
import { isMessageId } from '../../model/submission.ts';
import type { Suppression, SuppressionReason } from '../../model/suppression.ts';
import { ContentError } from './rereadable-content.ts';

/** A fault of the whole file. The message is a predicate that follows the name of the file. */
class CsvFault extends Error {}

/** Lines are counted from 1. `lastLine` is greater than `line` if a quoted cell contains line breaks. */
export type CsvRow =
  | { readonly kind: 'entry'; readonly entry: Suppression }
  | { readonly kind: 'invalid'; readonly line: number; readonly lastLine: number; readonly fault: string };

export interface CsvOptions {
  /** The reason for rows that contain no reason. */
  readonly reason: SuppressionReason;
  readonly now: number;
}

export interface CsvHooks {
  /** Receives the size of each chunk read. */
  readonly onBytes?: (count: number) => void;
  /** Reports that a header row names the columns. */
  readonly onHeader?: () => void;
}

/**
 * The maximum size of one row. Without this limit, the reader would read the whole file into memory after an unclosed
 * quote.
 */
const MAX_ROW_BYTES = 65_536;
/**
 * The maximum size of one line including delimiters. Without this limit, a line of commas would become a row of
 * millions of cells.
 */
const MAX_LINE_BYTES = 65_536;
/**
 * The maximum number of cells of one row, which may span many lines within quotes. The rows of exports have fewer than
 * one hundred cells.
 */
const MAX_ROW_CELLS = 1_000;
/** The maximum size of one write to the parser: about a thousand of the shortest rows. */
const MAX_PARSER_WRITE_BYTES = 2_048;
/** The tolerance for a time in the future, because clocks differ. */
const MAX_CLOCK_DIFFERENCE_MS = 86_400_000;

/** Normalized column names: lower case, letters and digits only. */
const ADDRESS_COLUMN_NAMES = [
  'address',
  'email',
  'emailaddress',
  'recipient',
  'recipientaddress',
  'recipientemail',
  'mail',
];
const REASON_COLUMN_NAMES = ['reason', 'suppressionreason', 'type', 'bouncetype', 'event'];
const TIME_COLUMN_NAMES = ['at', 'created', 'createdat', 'lastupdatetime', 'bouncedat', 'date', 'time', 'timestamp'];

const REASONS: Readonly<Record<string, SuppressionReason>> = {
  bounce: 'bounce',
  bounced: 'bounce',
  hardbounce: 'bounce',
  hardbounced: 'bounce',
  permanent: 'bounce',
  invalid: 'bounce',
  bademailaddress: 'bounce',
  complaint: 'complaint',
  complained: 'complaint',
  spam: 'complaint',
  spamcomplaint: 'complaint',
  spamreport: 'complaint',
  abuse: 'complaint',
  manual: 'manual',
  manualsuppression: 'manual',
  unsub: 'manual',
  unsubscribe: 'manual',
  unsubscribed: 'manual',
};

/** The column index of each value, or -1 without such a column. */
interface Columns {
  readonly address: number;
  readonly reason: number;
  readonly at: number;
  readonly source: number;
  /**
   * True if the file also has a status column, like SendGrid's list of bounces. The reason column then contains the reply of the
   * server.
   */
  readonly isBounceList: boolean;
}

/** The columns of a file without a header row. */
const DEFAULT_COLUMNS: Columns = { address: 0, reason: 1, at: 2, source: 3, isBounceList: false };

/**
 * Yields the rows of `source`; `name` is its name in error messages. Reads at most one chunk beyond a fault.
 * @throws ContentError, and what `source` throws
 */
export async function* readCsv(
  source: AsyncIterable<Buffer>,
  name: string,
  options: CsvOptions,
  hooks: CsvHooks = {},
): AsyncGenerator<CsvRow> {
  try {
    yield* parseRows(source, { ...options, ...hooks });
  } catch (error) {
    throw error instanceof CsvFault ? new ContentError(`${name} ${error.message}`) : error;
  }
}

async function* parseRows(source: AsyncIterable<Buffer>, options: CsvOptions & CsvHooks): AsyncGenerator<CsvRow> {
  const chunks = checkChunks(source, options)[Symbol.asyncIterator]();
  const firstChunk = await chunks.next();
  if (firstChunk.done === true) throw new CsvFault('is empty; give rows such as ada@example.com,bounce');
  const parseState: { fault: ParseFault | null } = { fault: null };
  const parser: Parser = parse({
    bom: true,
    delimiter: detectDelimiter(firstChunk.value),
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    // A quote inside a cell is an ordinary character: `"ada lovelace"@example.com` needs no doubled quotes.
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: MAX_ROW_BYTES,
    info: true,
    // For each row whose number of cells differs from that of the first row, the parser creates an error with a stack
    // and copies of its state, even if it accepts the row. This takes 10 s for 1 MB. If `records` is 0, the parser
    // treats each row as the first row.
    on_record: (row) => {
      Object.assign(parser.info, { records: 0 });
      return row;
    },
    // A fault that ends the parser would discard the valid rows before the fault. The fault is recorded here and thrown
    // after those rows.
    skip_records_with_error: true,
    on_skip: (error) => {
      if (error !== undefined) {
        parseState.fault ??= { code: error.code, line: Number(error.lines), emptyLines: Number(error.empty_lines) };
      }
      return undefined;
    },
    cast: (cell, { index, lines, empty_lines }) => {
      if (index >= MAX_ROW_CELLS) parseState.fault ??= { code: TOO_MANY_CELLS, line: lines, emptyLines: empty_lines };
      return cell;
    },
  });
  // An error of the source destroys the parser, and the loop below throws it.
  pipeline(
    splitChunks(firstChunk.value, chunks, () => parseState.fault !== null),
    parser,
  ).catch(() => undefined);
  let columns: Columns | null = null;
  let line = 1;
  let emptyLines = 0;
  for await (const row of parser as AsyncIterable<ParsedRow>) {
    const { lines, empty_lines } = row.info;
    if (parseState.fault !== null && lines >= parseState.fault.line) break;
    const startLine = line + (empty_lines - emptyLines);
    emptyLines = empty_lines;
    line = lines + 1;
    const cells = row.record.map((cell) => cell.trim());
    if (columns === null) {
      columns = parseHeader(cells);
      if (columns !== null) {
        options.onHeader?.();
        continue;
      }
      columns = DEFAULT_COLUMNS;
    }
    if (cells.every((cell) => cell === '')) continue;
    const entry = parseEntry(cells, columns, options);
    yield typeof entry === 'string'
      ? {
          kind: 'invalid',
          line: startLine,
          lastLine: lines,
          fault: lines > startLine ? `${OPEN_QUOTE_FAULT}${entry}` : entry,
        }
      : { kind: 'entry', entry };
  }
  const { fault } = parseState;
  if (fault !== null) throw toCsvFault(fault, line + fault.emptyLines - emptyLines);
}

interface ParsedRow {
  readonly record: readonly string[];
  readonly info: { readonly lines: number; readonly empty_lines: number };
}

/** The first fault in the file. `line` and `emptyLines` are the line counters of the parser at the fault. */
interface ParseFault {
  readonly code: string;
  readonly line: number;
  readonly emptyLines: number;
}

const OPEN_QUOTE_FAULT = 'a quoted cell joins these lines into one row; ';

const TOO_MANY_CELLS = 'TOO_MANY_CELLS';

function toCsvFault({ code }: ParseFault, line: number): CsvFault {
  switch (code) {
    case 'CSV_MAX_RECORD_SIZE':
      return createUnreadableFault(line, `the row has more than ${MAX_ROW_BYTES} bytes; check for an unclosed quote`);
    case TOO_MANY_CELLS:
      return createUnreadableFault(line, `the row has more than ${MAX_ROW_CELLS} cells; give one address per line`);
    default:
      return createUnreadableFault(line, 'a quote in this line is not closed; correct the line');
  }
}

function createUnreadableFault(line: number, reason: string): CsvFault {
  return new CsvFault(`cannot be read from line ${line} on: ${reason}`);
}

async function* checkChunks(source: AsyncIterable<Buffer>, { onBytes }: CsvHooks): AsyncGenerator<Buffer> {
  let line = 1;
  let hasStarted = false;
  const lineLength = new LineLength();
  for await (const chunk of source) {
    if (chunk.length === 0) continue;
    const fault = hasStarted ? null : detectOtherFormat(chunk);
    if (fault !== null) throw new CsvFault(fault);
    hasStarted = true;
    const nulIndex = chunk.indexOf(0);
    if (nulIndex !== -1) {
      line += countLines(chunk.subarray(0, nulIndex));
      throw new CsvFault(`is not CSV: line ${line} contains binary data; give a text file in UTF-8`);
    }
    const excessIndex = lineLength.findExcess(chunk);
    if (excessIndex !== null) {
      line += countLines(chunk.subarray(0, excessIndex));
      throw createUnreadableFault(line, `the line has more than ${MAX_LINE_BYTES} bytes; give one address per line`);
    }
    line += countLines(chunk);
    onBytes?.(chunk.length);
    yield chunk;
  }
}

/**
 * Finds lines that exceed MAX_LINE_BYTES, across chunks. The search does not visit each line: a window of that size
 * either contains a line end or belongs to a line that is too long.
 */
class LineLength {
  /** The length of the line that continues in the next chunk. */
  #open = 0;

  /** Returns the index in `chunk` at which a line exceeds the limit, or null. */
  findExcess(chunk: Buffer): number | null {
    let start = 0;
    for (;;) {
      const window = chunk.subarray(start, start + MAX_LINE_BYTES + 1 - this.#open);
      const end = Math.max(window.lastIndexOf(LINE_FEED), window.lastIndexOf(CARRIAGE_RETURN));
      if (end !== -1) {
        start += end + 1;
        this.#open = 0;
      } else if (this.#open + window.length > MAX_LINE_BYTES) {
        return start;
      } else {
        this.#open += window.length;
        return null;
      }
    }
  }
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/**
 * Yields the chunks in small pieces, because the parser creates all rows of a piece at once. The event loop runs other work between
 * two pieces. Ends when `isStopped` returns true, so that nothing after a fault is read.
 */
async function* splitChunks(
  firstChunk: Buffer,
  remaining: AsyncIterator<Buffer>,
  isStopped: () => boolean,
): AsyncGenerator<Buffer> {
  try {
    for (let chunk = firstChunk; ; ) {
      for (let start = 0; start < chunk.length; start += MAX_PARSER_WRITE_BYTES) {
        if (isStopped()) return;
        yield chunk.subarray(start, start + MAX_PARSER_WRITE_BYTES);
        await turn();
      }
      const next = isStopped() ? null : await remaining.next();
      if (next === null || next.done === true) return;
      chunk = next.value;
    }
  } finally {
    await remaining.return?.();
  }
}

function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let index = bytes.indexOf(10); index !== -1; index = bytes.indexOf(10, index + 1)) lines += 1;
  return lines;
}

/** Detects other file formats by their first bytes. */
function detectOtherFormat(firstChunk: Buffer): string | null {
  const startsWithBytes = (...bytes: readonly number[]) => bytes.every((byte, index) => firstChunk[index] === byte);
  if (startsWithBytes(0xff, 0xfe) || startsWithBytes(0xfe, 0xff)) return 'is UTF-16 text; save it as CSV in UTF-8';
  if (startsWithBytes(0x50, 0x4b, 3, 4)) return 'is a spreadsheet or ZIP archive; save it as CSV in UTF-8';
  if (startsWithBytes(0x1f, 0x8b)) return 'is compressed; decompress it first';
  return null;
}

/**
 * Returns the most frequent delimiter outside quotes in the first line: comma, semicolon (spreadsheets in much of
 * Europe) or tab.
 */
function detectDelimiter(chunk: Buffer): string {
  const counts: Record<string, number> = { ',': 0, ';': 0, '\t': 0 };
  let isQuoted = false;
  for (const character of chunk.toString('latin1')) {
    if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (character === '\n' || character === '\r')) break;
    else if (!isQuoted && character in counts) counts[character] = (counts[character] ?? 0) + 1;
  }
  return Object.keys(counts).reduce((mostFrequent, delimiter) =>
    (counts[delimiter] ?? 0) > (counts[mostFrequent] ?? 0) ? delimiter : mostFrequent,
  );
}

/** Returns the columns that a header row names; null for a row that is not a header. */
function parseHeader(cells: readonly string[]): Columns | null {
  const names = cells.map(normalizeWord);
  const findColumn = (columnNames: readonly string[]) =>
    columnNames.map((name) => names.indexOf(name)).find((index) => index !== -1) ?? -1;
  const address = findColumn(ADDRESS_COLUMN_NAMES);
  if (address === -1) return null;
  return {
    address,
    reason: findColumn(REASON_COLUMN_NAMES),
    at: findColumn(TIME_COLUMN_NAMES),
    source: findColumn(['source']),
    isBounceList: findColumn(['status']) !== -1 && findColumn(REASON_COLUMN_NAMES) !== -1,
  };
}

/** Normalizes a word, so that `Email-Address` and `EmailAddress` are equal. */
function normalizeWord(text: string): string {
  let word = '';
  for (const character of text.slice(0, 40).toLowerCase()) {
    if ((character >= 'a' && character <= 'z') || (character >= '0' && character <= '9')) word += character;
  }
  return word;
}

/** Returns the entry of a row, or the fault of the row. */
function parseEntry(cells: readonly string[], columns: Columns, options: CsvOptions): Suppression | string {
  const cell = (at: number): string => (at === -1 ? '' : (cells[at] ?? ''));
  const addressText = cell(columns.address);
  if (addressText === '') return 'the row has no address';
  if (addressText.includes('\uFFFD')) return `${quote(addressText)} is not UTF-8 text`;
  const address = parseAddress(addressText);
  if (address === null) return `${quote(addressText)} is not an email address`;
  const reason = parseReason(cell(columns.reason), columns.isBounceList, options.reason);
  if (reason === null) return `the reason ${quote(cell(columns.reason))} is not bounce, complaint or manual`;
  const time = cell(columns.at);
  const at = time === '' ? options.now : parseTime(time);
  if (at === null) return `${quote(time)} is not a time such as 2030-12-31T18:00:00Z`;
  if (at > options.now + MAX_CLOCK_DIFFERENCE_MS) return `the time ${quote(time)} is in the future`;
  const source = cell(columns.source).toLowerCase();
  return { address: toCanonicalAddress(address), reason, source: isMessageId(source) ? source : null, at };
}

/**
 * Parses a reason in the spelling of any provider. Returns null for an unknown reason. If `isBounceList` is true, the
 * reason column contains the reply of the server.
 */
export function parseReason(
  text: string,
  isBounceList: boolean,
  defaultReason: SuppressionReason,
): SuppressionReason | null {
  const word = normalizeWord(text);
  if (Object.hasOwn(REASONS, word)) return REASONS[word] ?? null;
  if (isBounceList) return 'bounce';
  return text === '' ? defaultReason : null;
}

/**
 * Parses a time in ISO 8601 format, also with a space instead of the T or without a zone (UTC), or in seconds or
 * milliseconds since 1970.
 */
function parseTime(text: string): number | null {
  if (/^\d{9,10}$/.test(text)) return Number(text) * 1000;
  if (/^\d{12,13}$/.test(text)) return Number(text);
  const parts = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(\.\d{1,9})? ?(Z|UTC|[+-]\d\d:?\d\d)?)?$/.exec(text);
  if (parts === null) return null;
  const [, date = '', clockTime, fraction = '', zone = 'Z'] = parts;
  if (clockTime === undefined) return parseIsoTime(date);
  const offset = zone === 'UTC' ? 'Z' : zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone;
  const seconds = clockTime.length === 5 ? `${clockTime}:00` : clockTime;
  return parseIsoTime(`${date}T${seconds}${fraction.slice(0, 4)}${offset}`);
}

function parseIsoTime(text: string): number | null {
  const parsed = parseTimestamp(text, 0, 'back');
  return parsed.ok ? parsed.value : null;
}

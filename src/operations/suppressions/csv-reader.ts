/**
 * Reads suppression lists as CSV (RFC 4180): Postrider's own exports, plain lists of addresses, and what Postmark, SES and
 * SendGrid export. As a stream, in bounded memory, at a bounded cost per byte.
 *
 * Guarantees: every row comes out once, in order, as an entry or as a fault with its line. Fails with a ContentError of one line where
 * the file is no CSV, or cannot be read from some line on.
 */
import { pipeline } from 'node:stream/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { type Parser, parse } from 'csv-parse';
import { parseTimestamp, quote } from '../../config/units.ts';
import { canonicalAddress, parseAddress } from '../../model/address.ts';
import { isMessageId } from '../../model/submission.ts';
import type { Suppression, SuppressionReason } from '../../model/suppression.ts';
import { ContentError } from './rereadable-content.ts';

/** What is wrong with the file as a whole; the message is a predicate for its name. */
class CsvFault extends Error {}

/** Lines are counted from 1; `lastLine` is another one where a quoted cell holds line breaks. */
export type CsvRow =
  | { readonly kind: 'entry'; readonly entry: Suppression }
  | { readonly kind: 'bad'; readonly line: number; readonly lastLine: number; readonly fault: string };

export interface CsvOptions {
  /** For rows that name no reason. */
  readonly reason: SuppressionReason;
  readonly now: number;
}

export interface CsvHooks {
  /** Called with the size of each chunk read. */
  readonly onBytes?: (count: number) => void;
  /** Called where a header row names the columns. */
  readonly onHeader?: () => void;
}

/** Bound of the text in one row. A quote that is never closed would otherwise take the file into memory. */
const MAX_ROW_BYTES = 65_536;
/** Bound of one line. Delimiters are no text of a row: a line of commas would otherwise become a row of millions of cells. */
const MAX_LINE_BYTES = 65_536;
/** Bound of the cells of one row, whose lines may be many where quotes hold line breaks. Exports have a few dozen. */
const MAX_ROW_CELLS = 1_000;
/** What the parser is given at once: some thousand rows of the shortest kind. */
const PIECE_BYTES = 2_048;
/** Clocks differ; a time further ahead than this was written wrongly. */
const AHEAD_MS = 86_400_000;

/** Column names as they are compared: lower case, letters and digits alone. */
const ADDRESS_NAMES = ['address', 'email', 'emailaddress', 'recipient', 'recipientaddress', 'recipientemail', 'mail'];
const REASON_NAMES = ['reason', 'suppressionreason', 'type', 'bouncetype', 'event'];
const TIME_NAMES = ['at', 'created', 'createdat', 'lastupdatetime', 'bouncedat', 'date', 'time', 'timestamp'];

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

/** Where each value stands in a row; -1 for nowhere. */
interface Columns {
  readonly address: number;
  readonly reason: number;
  readonly at: number;
  readonly source: number;
  /** There is an enhanced status code beside it, as in SendGrid's list of bounces: the reason is the server's reply. */
  readonly bounces: boolean;
}

/** Without a header row. */
const BY_PLACE: Columns = { address: 0, reason: 1, at: 2, source: 3, bounces: false };

/**
 * The rows of `source`, which messages call `name`. Reads no further than one chunk beyond what it refuses. Throws a ContentError,
 * or the fault of the source itself.
 */
export async function* readCsv(
  source: AsyncIterable<Buffer>,
  name: string,
  options: CsvOptions,
  hooks: CsvHooks = {},
): AsyncGenerator<CsvRow> {
  try {
    yield* rowsOf(source, { ...options, ...hooks });
  } catch (error) {
    throw error instanceof CsvFault ? new ContentError(`${name} ${error.message}`) : error;
  }
}

async function* rowsOf(source: AsyncIterable<Buffer>, options: CsvOptions & CsvHooks): AsyncGenerator<CsvRow> {
  const chunks = textChunks(source, options)[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) throw new CsvFault('is empty; give rows such as ada@example.com,bounce');
  const noted: { fault: ParseFault | null } = { fault: null };
  const parser: Parser = parse({
    bom: true,
    delimiter: delimiterOf(first.value),
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    // A quote inside a cell is a character like any other: `"ada lovelace"@example.com` needs no doubled quotes.
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: MAX_ROW_BYTES,
    info: true,
    // The parser makes an error, with a stack and copies of its state, of each row whose cells are not as many as those of the first
    // one, also where it accepts the row: 10 s for 1 MB. A row that it takes for the first one is compared with nothing.
    on_record: (row) => {
      Object.assign(parser.info, { records: 0 });
      return row;
    },
    // A fault that ends the parser takes the good rows before it along; noted instead, it comes when its turn does.
    skip_records_with_error: true,
    on_skip: (error) => {
      if (error !== undefined) {
        noted.fault ??= { code: error.code, line: Number(error.lines), emptyLines: Number(error.empty_lines) };
      }
      return undefined;
    },
    cast: (cell, { index, lines, empty_lines }) => {
      if (index >= MAX_ROW_CELLS) noted.fault ??= { code: TOO_MANY_CELLS, line: lines, emptyLines: empty_lines };
      return cell;
    },
  });
  // The parser is destroyed with whatever goes wrong before it, so that the loop below hears of it.
  pipeline(
    joined(first.value, chunks, () => noted.fault !== null),
    parser,
  ).catch(() => undefined);
  let columns: Columns | null = null;
  let line = 1;
  let emptyLines = 0;
  for await (const row of parser as AsyncIterable<ParsedRow>) {
    const { lines, empty_lines } = row.info;
    if (noted.fault !== null && lines >= noted.fault.line) break;
    const start = line + (empty_lines - emptyLines);
    emptyLines = empty_lines;
    line = lines + 1;
    const cells = row.record.map((cell) => cell.trim());
    if (columns === null) {
      columns = headerOf(cells);
      if (columns !== null) {
        options.onHeader?.();
        continue;
      }
      columns = BY_PLACE;
    }
    if (cells.every((cell) => cell === '')) continue;
    const entry = entryOf(cells, columns, options);
    yield typeof entry === 'string'
      ? { kind: 'bad', line: start, lastLine: lines, fault: lines > start ? `${OPEN_QUOTE}${entry}` : entry }
      : { kind: 'entry', entry };
  }
  const { fault } = noted;
  if (fault !== null) throw csvFault(fault, line + fault.emptyLines - emptyLines);
}

interface ParsedRow {
  readonly record: readonly string[];
  readonly info: { readonly lines: number; readonly empty_lines: number };
}

/** What the parser could not go on from, and the counts of lines when it noticed. */
interface ParseFault {
  readonly code: string;
  readonly line: number;
  readonly emptyLines: number;
}

const OPEN_QUOTE = 'a quote makes one row of these lines; ';

const TOO_MANY_CELLS = 'TOO_MANY_CELLS';

function csvFault({ code }: ParseFault, line: number): CsvFault {
  switch (code) {
    case 'CSV_MAX_RECORD_SIZE':
      return unreadable(line, `the row has more than ${MAX_ROW_BYTES} bytes; is a quote left open there?`);
    case TOO_MANY_CELLS:
      return unreadable(line, `the row has more than ${MAX_ROW_CELLS} cells; give one address per line`);
    default:
      return unreadable(line, 'a quote opens there and never closes; correct that line');
  }
}

function unreadable(line: number, why: string): CsvFault {
  return new CsvFault(`cannot be read from line ${line} on: ${why}`);
}

async function* textChunks(source: AsyncIterable<Buffer>, { onBytes }: CsvHooks): AsyncGenerator<Buffer> {
  let line = 1;
  let begun = false;
  const length = new LineLength();
  for await (const chunk of source) {
    if (chunk.length === 0) continue;
    const fault = begun ? null : foreignFormat(chunk);
    if (fault !== null) throw new CsvFault(fault);
    begun = true;
    const nul = chunk.indexOf(0);
    if (nul !== -1) {
      line += countLines(chunk.subarray(0, nul));
      throw new CsvFault(`is no CSV: line ${line} holds binary data; give a text file in UTF-8`);
    }
    const tooLong = length.exceededAt(chunk);
    if (tooLong !== null) {
      line += countLines(chunk.subarray(0, tooLong));
      throw unreadable(line, `the line has more than ${MAX_LINE_BYTES} bytes; give one address per line`);
    }
    line += countLines(chunk);
    onBytes?.(chunk.length);
    yield chunk;
  }
}

/** Measures lines across chunks, without a step per line: a window of the bound either holds a line end or is too long. */
class LineLength {
  /** Bytes of the line that the chunks so far have left open. */
  #open = 0;

  /** The index in `chunk` at which a line is longer than the bound, or null. */
  exceededAt(chunk: Buffer): number | null {
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
 * The chunks in pieces, since the parser makes all rows of one before the first is read. Other work of the process has its turn
 * between two pieces, also where no row of them comes out. `stopped` is asked before each piece; what follows a fault is not read.
 */
async function* joined(first: Buffer, rest: AsyncIterator<Buffer>, stopped: () => boolean): AsyncGenerator<Buffer> {
  try {
    for (let chunk = first; ; ) {
      for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
        if (stopped()) return;
        yield chunk.subarray(at, at + PIECE_BYTES);
        await turn();
      }
      const next = stopped() ? null : await rest.next();
      if (next === null || next.done === true) return;
      chunk = next.value;
    }
  } finally {
    await rest.return?.();
  }
}

function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) lines += 1;
  return lines;
}

/** What people give instead of CSV, told by its first bytes. */
function foreignFormat(first: Buffer): string | null {
  const starts = (...bytes: readonly number[]) => bytes.every((byte, at) => first[at] === byte);
  if (starts(0xff, 0xfe) || starts(0xfe, 0xff)) return 'is UTF-16 text; save it as CSV in UTF-8';
  if (starts(0x50, 0x4b, 3, 4)) return 'is a spreadsheet or ZIP archive; save it as CSV in UTF-8';
  if (starts(0x1f, 0x8b)) return 'is compressed; unpack it first';
  return null;
}

/** Comma, semicolon (spreadsheets in much of Europe) or tab: whichever the first line has most of outside quotes. */
function delimiterOf(chunk: Buffer): string {
  const counts: Record<string, number> = { ',': 0, ';': 0, '\t': 0 };
  let quoted = false;
  for (const character of chunk.toString('latin1')) {
    if (character === '"') quoted = !quoted;
    else if (!quoted && (character === '\n' || character === '\r')) break;
    else if (!quoted && character in counts) counts[character] = (counts[character] ?? 0) + 1;
  }
  return Object.keys(counts).reduce((best, next) => ((counts[next] ?? 0) > (counts[best] ?? 0) ? next : best));
}

/** The columns that a header row names, or null where the row is none. */
function headerOf(cells: readonly string[]): Columns | null {
  const names = cells.map(plainWord);
  const place = (known: readonly string[]) => known.map((name) => names.indexOf(name)).find((at) => at !== -1) ?? -1;
  const address = place(ADDRESS_NAMES);
  if (address === -1) return null;
  return {
    address,
    reason: place(REASON_NAMES),
    at: place(TIME_NAMES),
    source: place(['source']),
    bounces: place(['status']) !== -1 && place(REASON_NAMES) !== -1,
  };
}

/** `Email-Address` and `EmailAddress` are one. */
function plainWord(text: string): string {
  let word = '';
  for (const character of text.slice(0, 40).toLowerCase()) {
    if ((character >= 'a' && character <= 'z') || (character >= '0' && character <= '9')) word += character;
  }
  return word;
}

/** The row's entry, or what is wrong with it. */
function entryOf(cells: readonly string[], columns: Columns, options: CsvOptions): Suppression | string {
  const cell = (at: number): string => (at === -1 ? '' : (cells[at] ?? ''));
  const written = cell(columns.address);
  if (written === '') return 'there is no address in it';
  if (written.includes('\uFFFD')) return `${quote(written)} is not UTF-8 text`;
  const address = parseAddress(written);
  if (address === null) return `${quote(written)} is not an email address`;
  const reason = parseReason(cell(columns.reason), columns.bounces, options.reason);
  if (reason === null) return `the reason ${quote(cell(columns.reason))} is not bounce, complaint or manual`;
  const time = cell(columns.at);
  const at = time === '' ? options.now : parseTime(time);
  if (at === null) return `${quote(time)} is not a time such as 2030-12-31T18:00:00Z`;
  if (at > options.now + AHEAD_MS) return `the time ${quote(time)} lies ahead`;
  const source = cell(columns.source).toLowerCase();
  return { address: canonicalAddress(address), reason, source: isMessageId(source) ? source : null, at };
}

/**
 * A word for a reason in any of the providers' spellings; null where it is none. `bounces` is the list of bounces, whose
 * reason is the server's reply.
 */
export function parseReason(text: string, bounces: boolean, otherwise: SuppressionReason): SuppressionReason | null {
  const word = plainWord(text);
  if (Object.hasOwn(REASONS, word)) return REASONS[word] ?? null;
  if (bounces) return 'bounce';
  return text === '' ? otherwise : null;
}

/** ISO 8601, with a space for the T and without a zone (UTC) too; seconds or milliseconds since 1970. */
function parseTime(text: string): number | null {
  if (/^\d{9,10}$/.test(text)) return Number(text) * 1000;
  if (/^\d{12,13}$/.test(text)) return Number(text);
  const parts = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(\.\d{1,9})? ?(Z|UTC|[+-]\d\d:?\d\d)?)?$/.exec(text);
  if (parts === null) return null;
  const [, date = '', clock, fraction = '', zone = 'Z'] = parts;
  if (clock === undefined) return moment(date);
  const offset = zone === 'UTC' ? 'Z' : zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone;
  const seconds = clock.length === 5 ? `${clock}:00` : clock;
  return moment(`${date}T${seconds}${fraction.slice(0, 4)}${offset}`);
}

function moment(text: string): number | null {
  const parsed = parseTimestamp(text, 0, 'back');
  return parsed.ok ? parsed.value : null;
}

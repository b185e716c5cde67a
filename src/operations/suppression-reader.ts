/**
 * Reads suppression lists of every supported format (export-formats.ts) from a file of any size, as CSV or JSON.
 *
 * Guarantees: the reader yields each row once, in order. It fails with a ContentError if the file is not a suppression
 * list or cannot be read to its end.
 */

import { pipeline } from 'node:stream/promises';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { type Parser, parse } from 'csv-parse';
import { quote } from '../config/units.ts';
import { unescapeCsvText } from '../printing/csv.ts';
import { ContentError } from './rereadable-content.ts';
import { FORMAT_NAMES, normalizeName } from './suppression-formats.ts';
import { type Columns, findColumns, interpretRow, type ListRow, type RowOptions } from './suppression-rows.ts';

export interface ListHooks {
  /** Receives the size of each chunk read. */
  readonly onBytes?: (count: number) => void;
  /**
   * Receives the columns that are named by a header row or by the first JSON record with an address member. Not called
   * for a file without column names.
   */
  readonly onColumns?: (columns: Columns) => void;
}

/**
 * Yields the rows of `source`; `name` is its name in error messages. Reads at most one chunk after the chunk with a
 * fault.
 * @throws ContentError, and what `source` throws
 */
export async function* readSuppressionList(
  source: AsyncIterable<Buffer>,
  name: string,
  options: RowOptions,
  { onBytes, onColumns }: ListHooks = {},
): AsyncGenerator<ListRow> {
  try {
    const text = readText(source, onBytes);
    const firstResult = await text.next();
    if (firstResult.done === true) throw new ListFault('is empty; give rows such as ada@example.com,bounce');
    const chunks = prependChunk(firstResult.value, text);
    yield* isJsonStart(firstResult.value) ? readJson(chunks, options, onColumns) : readCsv(chunks, options, onColumns);
  } catch (error) {
    throw error instanceof ListFault ? new ContentError(`${name} ${error.message}`) : error;
  }
}

async function* prependChunk(firstChunk: Buffer, laterChunks: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield firstChunk;
    yield* laterChunks;
  } finally {
    await laterChunks.return(undefined);
  }
}

/** A fault of the whole file. The message is a predicate that follows the name of the file. */
export class ListFault extends Error {}

/** The first chunk has at least this size, or is the whole file, so that the format can be detected in it. */
const MIN_FIRST_CHUNK_BYTES = 8_192;
const LINE_FEED = 10;

/**
 * Yields the file in UTF-8, without empty chunks. `onBytes` receives the size of each chunk of `source`. @throws
 * ListFault, and what `source` throws
 */
export async function* readText(
  source: AsyncIterable<Buffer>,
  onBytes: (count: number) => void = () => undefined,
): AsyncGenerator<Buffer> {
  let line = 1;
  let decoder: InstanceType<typeof TextDecoder> | null = null;
  let isFirstChunk = true;
  for await (const bytes of joinFirstChunks(source, onBytes)) {
    if (isFirstChunk) {
      isFirstChunk = false;
      decoder = createUtf16Decoder(bytes);
      const fault = detectOtherFormat(bytes);
      if (fault !== null) throw new ListFault(fault);
    }
    const chunk = decoder === null ? bytes : Buffer.from(decoder.decode(bytes, { stream: true }));
    const nulIndex = chunk.indexOf(0);
    if (nulIndex !== -1) {
      line += countLines(chunk.subarray(0, nulIndex));
      throw new ListFault(`is not CSV: line ${line} contains binary data; give a text file in UTF-8`);
    }
    line += countLines(chunk);
    if (chunk.length > 0) yield chunk;
  }
}

/** Joins the first chunks into one chunk that has at least MIN_FIRST_CHUNK_BYTES or is the whole file. */
async function* joinFirstChunks(
  source: AsyncIterable<Buffer>,
  onBytes: (count: number) => void,
): AsyncGenerator<Buffer> {
  let firstChunk: Buffer | null = Buffer.alloc(0);
  for await (const chunk of source) {
    onBytes(chunk.length);
    if (firstChunk === null) {
      yield chunk;
      continue;
    }
    firstChunk = firstChunk.length === 0 ? chunk : Buffer.concat([firstChunk, chunk]);
    if (firstChunk.length >= MIN_FIRST_CHUNK_BYTES) {
      yield firstChunk;
      firstChunk = null;
    }
  }
  if (firstChunk !== null && firstChunk.length > 0) yield firstChunk;
}

/** Returns a decoder if the file begins with the byte order mark of UTF-16. The decoder removes the mark. */
function createUtf16Decoder(firstChunk: Buffer): InstanceType<typeof TextDecoder> | null {
  if (startsWithBytes(firstChunk, 0xff, 0xfe)) return new TextDecoder('utf-16le');
  return startsWithBytes(firstChunk, 0xfe, 0xff) ? new TextDecoder('utf-16be') : null;
}

/** Returns a fault if the first bytes are those of a ZIP archive or a gzip file; otherwise null. */
function detectOtherFormat(firstChunk: Buffer): string | null {
  if (startsWithBytes(firstChunk, 0x50, 0x4b, 3, 4)) {
    return 'is a spreadsheet or ZIP archive; save it as CSV in UTF-8, or extract the CSV file';
  }
  if (startsWithBytes(firstChunk, 0x1f, 0x8b)) return 'is compressed; decompress it first';
  return null;
}

function startsWithBytes(bytes: Buffer, ...expected: readonly number[]): boolean {
  return expected.every((byte, index) => bytes[index] === byte);
}

/** Returns the number of line feeds. */
export function countLines(bytes: Buffer): number {
  let lineCount = 0;
  for (let index = bytes.indexOf(LINE_FEED); index !== -1; index = bytes.indexOf(LINE_FEED, index + 1)) lineCount += 1;
  return lineCount;
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
/** Receives the columns from the header row. Called once, before the first row. */
export type OnColumns = (columns: Columns) => void;

/** The columns of a file without a header row. */
const DEFAULT_NAMES: readonly string[] = ['address', 'reason', 'at', 'source'];
const DEFAULT_COLUMNS: Columns = {
  kind: 'plain',
  columns: { address: 'address', reason: 'reason', time: 'at' },
};

/** Yields the rows of UTF-8 text. @throws ListFault, and the errors that `text` throws */
export async function* readCsv(
  text: AsyncIterable<Buffer>,
  options: RowOptions,
  onColumns: OnColumns = () => undefined,
): AsyncGenerator<ListRow> {
  const chunks = checkLines(text)[Symbol.asyncIterator]();
  const firstChunk = await chunks.next();
  if (firstChunk.done === true) return;
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
  // An error of the source destroys the parser, and the loop below throws the error.
  pipeline(
    splitChunks(firstChunk.value, chunks, () => parseState.fault !== null),
    parser,
  ).catch(() => undefined);
  let header: Header | null = null;
  let line = 1;
  let emptyLines = 0;
  for await (const row of parser as AsyncIterable<ParsedRow>) {
    const { lines, empty_lines } = row.info;
    if (parseState.fault !== null && lines >= parseState.fault.line) break;
    const startLine = line + (empty_lines - emptyLines);
    emptyLines = empty_lines;
    line = lines + 1;
    const cells = row.record.map((cell) => unescapeCsvText(cell.trim()));
    if (header === null) {
      const parsedHeader = parseHeader(cells);
      header = parsedHeader ?? { columns: DEFAULT_COLUMNS, names: DEFAULT_NAMES };
      if (parsedHeader !== null) {
        onColumns(parsedHeader.columns);
        continue;
      }
    }
    if (cells.every((cell) => cell === '')) continue;
    const { names } = header;
    const content = interpretRow((name) => cells[names.indexOf(name)] ?? '', header.columns, options);
    yield content.kind !== 'invalid'
      ? content
      : {
          kind: 'invalid',
          line: startLine,
          lastLine: lines,
          fault: lines > startLine ? `${OPEN_QUOTE_FAULT}${content.fault}` : content.fault,
        };
  }
  const { fault } = parseState;
  if (fault !== null) throw toListFault(fault, line + fault.emptyLines - emptyLines);
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

function toListFault({ code }: ParseFault, line: number): ListFault {
  switch (code) {
    case 'CSV_MAX_RECORD_SIZE':
      return createUnreadableFault(line, `the row has more than ${MAX_ROW_BYTES} bytes; check for an unclosed quote`);
    case TOO_MANY_CELLS:
      return createUnreadableFault(line, `the row has more than ${MAX_ROW_CELLS} cells; give one address per line`);
    default:
      return createUnreadableFault(line, 'a quote in this line is not closed; correct the line');
  }
}

function createUnreadableFault(line: number, reason: string): ListFault {
  return new ListFault(`cannot be read from line ${line} on: ${reason}`);
}

/** Yields the chunks. @throws ListFault for a line that is too long */
async function* checkLines(text: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let line = 1;
  const lineLength = new LineLength();
  for await (const chunk of text) {
    const excessIndex = lineLength.findExcess(chunk);
    if (excessIndex !== null) {
      line += countLines(chunk.subarray(0, excessIndex));
      throw createUnreadableFault(line, `the line has more than ${MAX_LINE_BYTES} bytes; give one address per line`);
    }
    line += countLines(chunk);
    yield chunk;
  }
}

/**
 * Finds lines that exceed MAX_LINE_BYTES, across chunks. The search does not visit each line: a window of
 * MAX_LINE_BYTES either contains a line end or belongs to a line that is too long.
 */
class LineLength {
  /** The length of the line that continues in the next chunk. */
  #openLineLength = 0;

  /**
   * Returns the start in `chunk` of the first line that exceeds the limit, or null. Returns 0 if this line began in an
   * earlier chunk.
   */
  findExcess(chunk: Buffer): number | null {
    let start = 0;
    for (;;) {
      const searchWindow = chunk.subarray(start, start + MAX_LINE_BYTES + 1 - this.#openLineLength);
      const lineEndIndex = Math.max(searchWindow.lastIndexOf(LINE_FEED), searchWindow.lastIndexOf(CARRIAGE_RETURN));
      if (lineEndIndex !== -1) {
        start += lineEndIndex + 1;
        this.#openLineLength = 0;
      } else if (this.#openLineLength + searchWindow.length > MAX_LINE_BYTES) {
        return start;
      } else {
        this.#openLineLength += searchWindow.length;
        return null;
      }
    }
  }
}

const CARRIAGE_RETURN = 13;

/**
 * Yields the chunks in small pieces, because the parser creates all rows of a piece at once. The event loop runs other
 * work between two pieces. Ends when `isStopped` returns true, so that nothing after a fault is read.
 */
async function* splitChunks(
  firstChunk: Buffer,
  laterChunks: AsyncIterator<Buffer>,
  isStopped: () => boolean,
): AsyncGenerator<Buffer> {
  try {
    for (let chunk = firstChunk; ; ) {
      for (let start = 0; start < chunk.length; start += MAX_PARSER_WRITE_BYTES) {
        if (isStopped()) return;
        yield chunk.subarray(start, start + MAX_PARSER_WRITE_BYTES);
        await yieldToEventLoop();
      }
      const nextResult = isStopped() ? null : await laterChunks.next();
      if (nextResult === null || nextResult.done === true) return;
      chunk = nextResult.value;
    }
  } finally {
    await laterChunks.return?.();
  }
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

/** The columns of a file, and the normalized name of each cell of a row. */
interface Header {
  readonly columns: Columns;
  readonly names: readonly string[];
}

/** The maximum number of characters of an unknown header that an error message quotes. */
const MAX_QUOTED_HEADER = 100;

/**
 * Returns the header in the first row, or null if the row is not a header. A row of several cells without an `@` is a
 * header.
 * @throws ListFault for an unknown header
 */
function parseHeader(cells: readonly string[]): Header | null {
  const names = cells.map(normalizeName);
  const columns = findColumns(names);
  if (columns !== null) return { columns, names };
  const isHeader = cells.length > 1 && cells.every((cell) => cell !== '' && !cell.includes('@'));
  if (!isHeader) return null;
  throw new ListFault(
    `has an unknown header, ${quote(cells.join(',').slice(0, MAX_QUOTED_HEADER))}; name a column "address", or give an export of one of these formats: ${FORMAT_NAMES}`,
  );
}

/** The maximum size of one record, and of the part of a document that precedes its list of records. */
const MAX_RECORD_BYTES = 65_536;
/** The maximum nesting depth of objects and arrays. */
const MAX_DEPTH = 32;
/** The number of bytes that are scanned before the event loop runs other work. */
const MAX_SCANNED_BYTES = 16_384;
/** The maximum number of members of a record that are read. */
const MAX_MEMBERS = 200;

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
const BYTE_ORDER_MARK = Buffer.of(0xef, 0xbb, 0xbf);

/** Returns true if the text begins as a JSON array or object. An address can begin with `{` too, but not with `{"`. */
export function isJsonStart(firstChunk: Buffer): boolean {
  const start = firstChunk.subarray(firstChunk.indexOf(BYTE_ORDER_MARK) === 0 ? BYTE_ORDER_MARK.length : 0);
  return /^\s*(?:\{\s*["}]|\[\s*[[{"\]])/.test(start.toString('latin1'));
}

/** Yields the records of UTF-8 text. @throws ListFault, and what `text` throws */
export async function* readJson(
  text: AsyncIterable<Buffer>,
  options: RowOptions,
  onColumns: (columns: Columns) => void = () => undefined,
): AsyncGenerator<ListRow> {
  const scanner = new RecordScanner();
  let hasColumns = false;
  let isFirstChunk = true;
  for await (const chunk of text) {
    const start = isFirstChunk && chunk.indexOf(BYTE_ORDER_MARK) === 0 ? BYTE_ORDER_MARK.length : 0;
    isFirstChunk = false;
    for (let offset = start; offset < chunk.length; offset += MAX_SCANNED_BYTES) {
      const records = scanner.scan(chunk.subarray(offset, Math.min(chunk.length, offset + MAX_SCANNED_BYTES)));
      for (const record of records) {
        const row = toRow(record, options);
        if (row === null) continue;
        if (!hasColumns && row.columns !== null) {
          hasColumns = true;
          onColumns(row.columns);
        }
        yield row.row;
      }
      await yieldToEventLoop();
    }
  }
  scanner.end();
}

interface RawRecord {
  /** `document`: a whole document without a list of records. */
  readonly kind: 'element' | 'document';
  readonly text: string;
  /** The number of the record in the text, from 1. */
  readonly recordNumber: number;
  readonly line: number;
  readonly lastLine: number;
}

/** Finds the records without parsing the whole text. */
class RecordScanner {
  /** The bytes of the brackets that are not yet closed. */
  readonly #openBrackets: number[] = [];
  #isInString = false;
  #isEscaped = false;
  #line = 1;
  /** The number of scanned bytes of the current line. */
  #lineBytes = 0;
  #recordCount = 0;
  /** The record that is being scanned. `depth` is the number of open brackets before the record. */
  #record: { readonly kind: RawRecord['kind']; readonly depth: number; readonly line: number } | null = null;
  /** The parts of the record in earlier chunks, and their size. */
  #parts: Buffer[] = [];
  #partBytes = 0;

  /** Returns the records that end in this chunk. @throws ListFault */
  scan(chunk: Buffer): readonly RawRecord[] {
    const records: RawRecord[] = [];
    let start = 0;
    const beginRecord = (kind: RawRecord['kind'], index: number) => {
      this.#record = { kind, depth: this.#openBrackets.length, line: this.#line };
      [this.#parts, this.#partBytes, start] = [[], 0, index];
    };
    const endRecord = (index: number) => {
      if (this.#record === null) return;
      const bytes = Buffer.concat([...this.#parts, chunk.subarray(start, index + 1)]);
      if (bytes.length > MAX_RECORD_BYTES) this.#throwOversizedRecord();
      const { kind, line } = this.#record;
      this.#recordCount += 1;
      const recordNumber = this.#recordCount;
      records.push({ kind, text: bytes.toString('utf8'), recordNumber, line, lastLine: this.#line });
      this.#record = null;
    };
    for (let index = 0; index < chunk.length; index++) {
      const byte = chunk[index] as number;
      this.#lineBytes += 1;
      if (byte === LINE_FEED) {
        this.#line += 1;
        this.#lineBytes = 0;
      }
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) {
          this.#isInString = false;
          // A string that is an element of the list is a complete record.
          if (this.#record?.kind === 'element' && this.#record.depth === this.#openBrackets.length) endRecord(index);
        }
        continue;
      }
      switch (byte) {
        case QUOTE:
          if (this.#openBrackets.length === 0) this.#throwInvalidJson();
          if (this.#record === null && this.#openBrackets.length === 1 && this.#openBrackets[0] === OPEN_ARRAY)
            beginRecord('element', index);
          this.#isInString = true;
          break;
        case OPEN_OBJECT:
          if (this.#openBrackets.length === 0) beginRecord('document', index);
          else if (this.#isInList()) beginRecord('element', index);
          this.#pushOpenBracket(byte);
          break;
        case OPEN_ARRAY:
          this.#pushOpenBracket(byte);
          break;
        case CLOSE_OBJECT:
        case CLOSE_ARRAY:
          if (this.#openBrackets.pop() !== (byte === CLOSE_OBJECT ? OPEN_OBJECT : OPEN_ARRAY)) this.#throwInvalidJson();
          if (this.#record !== null && this.#record.depth === this.#openBrackets.length) endRecord(index);
          break;
        default:
          if (this.#openBrackets.length === 0 && !isWhiteSpace(byte)) this.#throwInvalidJson();
      }
    }
    if (this.#record !== null) {
      const part = Buffer.from(chunk.subarray(start));
      this.#parts.push(part);
      this.#partBytes += part.length;
      if (this.#partBytes > MAX_RECORD_BYTES) this.#throwOversizedRecord();
    }
    return records;
  }

  /** @throws ListFault if a document is not complete */
  end(): void {
    if (this.#openBrackets.length > 0) {
      throw new ListFault(`ends in ${this.#describePosition()}, before its last bracket is closed; export it again`);
    }
  }

  /**
   * Returns true at the position of an element: in the array of the document, or in an array that is a member of the
   * document.
   */
  #isInList(): boolean {
    if (this.#record?.kind === 'element') return false;
    const [first, second] = this.#openBrackets;
    return (
      (this.#openBrackets.length === 1 && first === OPEN_ARRAY) ||
      (this.#openBrackets.length === 2 && first === OPEN_OBJECT && second === OPEN_ARRAY)
    );
  }

  #pushOpenBracket(byte: number): void {
    this.#openBrackets.push(byte);
    if (this.#openBrackets.length > MAX_DEPTH) {
      throw new ListFault(
        `has more than ${MAX_DEPTH} nested brackets in ${this.#describePosition()}; give the export of a list`,
      );
    }
  }

  /** The export of a provider can be one line, so the line number alone does not locate a record. */
  #describePosition(): string {
    return `line ${this.#line}, byte ${this.#lineBytes}`;
  }

  #throwInvalidJson(): never {
    throw new ListFault(`is not JSON: unexpected character at ${this.#describePosition()}; export it again`);
  }

  #throwOversizedRecord(): never {
    throw new ListFault(
      `has a record of more than ${MAX_RECORD_BYTES} bytes that ends at or after ${this.#describePosition()}; give the export of a list`,
    );
  }
}

function isWhiteSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === LINE_FEED || byte === 0x0d;
}

/** Returns the row of a record, or null for a document without records. */
function toRow(
  { kind, text, recordNumber, line, lastLine }: RawRecord,
  options: RowOptions,
): { readonly row: ListRow; readonly columns: Columns | null } | null {
  const createInvalidRow = (fault: string) => ({
    row: { kind: 'invalid', record: recordNumber, line, lastLine, fault } as const,
    columns: null,
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return createInvalidRow('the record is not valid JSON');
  }
  const cells = toCells(value);
  const columns = findColumns([...cells.keys()]);
  if (columns === null) {
    // The last page of a list can be empty.
    if (kind === 'document' && hasEmptyList(value)) return null;
    return createInvalidRow(
      `the record has no member with an address; give an export of one of these formats: ${FORMAT_NAMES}`,
    );
  }
  const content = interpretRow((name) => cells.get(name) ?? '', columns, options);
  return { row: content.kind === 'invalid' ? { ...content, record: recordNumber, line, lastLine } : content, columns };
}

function hasEmptyList(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).some((member) => Array.isArray(member) && member.length === 0)
  );
}

/**
 * Returns the members of a record as texts, by normalized name. The name of a member of a nested object begins with the
 * name of that object: `reason.code` is `reasoncode`.
 */
function toCells(value: unknown): ReadonlyMap<string, string> {
  if (typeof value === 'string') return new Map([['address', value.trim()]]);
  const cells = new Map<string, string>();
  for (const [name, member] of listMembers(value)) {
    if (typeof member !== 'object' || member === null || Array.isArray(member))
      cells.set(normalizeName(name), toCell(member));
    else
      for (const [innerName, inner] of listMembers(member)) cells.set(normalizeName(name + innerName), toCell(inner));
  }
  return cells;
}

function listMembers(value: unknown): readonly (readonly [string, unknown])[] {
  return typeof value === 'object' && value !== null ? Object.entries(value).slice(0, MAX_MEMBERS) : [];
}

/** Returns the text of a value. The values of an array are separated by commas. */
function toCell(value: unknown): string {
  if (typeof value === 'string') return value.trim();
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return Array.isArray(value) ? value.map((element) => (typeof element === 'string' ? element : '')).join(',') : '';
}

/** Limits memory and the cost per byte for files of any size. Each row is yielded once and in order. */
import { pipeline } from 'node:stream/promises';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { type Parser, parse } from 'csv-parse';
import { quote } from '../config/units.ts';
import { unescapeCsvText } from '../printing/text.ts';
import { ContentError } from './rereadable-content.ts';
import { FORMAT_NAMES, normalizeName } from './suppression-formats.ts';
import { type Columns, findColumns, interpretRow, type ListRow, type RowOptions } from './suppression-rows.ts';

export interface ListHooks {
  readonly onBytes?: (count: number) => void;
  readonly onColumns?: (columns: Columns) => void;
}

/** A fault of the whole file. The message is a predicate that follows the name of the file. */
class ListFault extends Error {}

const [LINE_FEED, CARRIAGE_RETURN] = [0x0a, 0x0d];

/** `name` is the name of the source in errors. @throws ContentError, and what `source` throws */
export async function* readSuppressionList(
  source: AsyncIterable<Buffer>,
  name: string,
  options: RowOptions,
  { onBytes = () => undefined, onColumns = () => undefined }: ListHooks = {},
): AsyncGenerator<ListRow> {
  try {
    const text = readText(source, onBytes);
    const { value: firstChunk, done } = await text.next();
    if (done === true) throw new ListFault('is empty; give rows such as ada@example.com,bounce');
    const chunks = prependChunk(firstChunk, text);
    yield* isJsonStart(firstChunk)
      ? readJson(chunks, options, onColumns)
      : readCsv(chunks, detectDelimiter(firstChunk), options, onColumns);
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

/** Yields the file in UTF-8, without byte order mark and empty chunks. @throws ListFault, and what `source` throws */
async function* readText(source: AsyncIterable<Buffer>, onBytes: (count: number) => void): AsyncGenerator<Buffer> {
  let line = 1;
  let decoder: InstanceType<typeof TextDecoder> | null = null;
  let isFirstChunk = true;
  for await (const bytes of joinFirstChunks(source, onBytes)) {
    let chunk = bytes;
    if (isFirstChunk) {
      isFirstChunk = false;
      const startsWith = (...start: readonly number[]) => start.every((byte, index) => bytes[index] === byte);
      if (startsWith(0x50, 0x4b, 3, 4))
        throw new ListFault('is a spreadsheet or ZIP archive; save it as CSV in UTF-8, or extract the CSV file');
      if (startsWith(0x1f, 0x8b)) throw new ListFault('is compressed; decompress it first');
      if (startsWith(0xff, 0xfe)) decoder = new TextDecoder('utf-16le');
      else if (startsWith(0xfe, 0xff)) decoder = new TextDecoder('utf-16be');
      else if (startsWith(0xef, 0xbb, 0xbf)) chunk = bytes.subarray(3);
    }
    if (decoder !== null) chunk = Buffer.from(decoder.decode(bytes, { stream: true }));
    const nulIndex = chunk.indexOf(0);
    if (nulIndex !== -1) {
      line += countLines(chunk.subarray(0, nulIndex));
      throw new ListFault(`is not CSV: line ${line} contains binary data; give a text file in UTF-8`);
    }
    line += countLines(chunk);
    if (chunk.length > 0) yield chunk;
  }
}

/** The format is detected in the first chunk, which has at least this size, or is the whole file. */
const MIN_FIRST_CHUNK_BYTES = 8_192;

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

/** Yields the chunks in pieces, between which the event loop runs other work, until `isStopped` returns true. */
async function* splitChunks(
  chunks: AsyncIterable<Buffer>,
  size: number,
  isStopped: () => boolean = () => false,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.length && !isStopped(); start += size) {
      yield chunk.subarray(start, start + size);
      await yieldToEventLoop();
    }
    if (isStopped()) return;
  }
}

function countLines(bytes: Buffer): number {
  let lineCount = 0;
  for (let index = bytes.indexOf(LINE_FEED); index !== -1; index = bytes.indexOf(LINE_FEED, index + 1)) lineCount += 1;
  return lineCount;
}

/** Without this limit, the reader would read the whole file into memory after an unclosed quote. */
const MAX_ROW_BYTES = 65_536;
/** Without this limit, a line of commas would become a row of millions of cells. */
const MAX_LINE_BYTES = 65_536;
/** A row may span many lines within quotes. The rows of exports have fewer than one hundred cells. */
const MAX_ROW_CELLS = 1_000;
/** The parser creates all rows of one write at once: about a thousand of the shortest rows. */
const MAX_PARSER_WRITE_BYTES = 2_048;

interface ParsedRow {
  readonly record: readonly string[];
  readonly info: { readonly lines: number; readonly empty_lines: number };
}

interface ParseFault {
  readonly reason: string;
  readonly line: number;
  readonly emptyLines: number;
}

async function* readCsv(
  text: AsyncIterable<Buffer>,
  delimiter: string,
  options: RowOptions,
  onColumns: (columns: Columns) => void,
): AsyncGenerator<ListRow> {
  const state: { fault: ParseFault | null } = { fault: null };
  const parser: Parser = parse({
    delimiter,
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
      if (error === undefined) return undefined;
      const reason =
        error.code === 'CSV_MAX_RECORD_SIZE'
          ? `the row has more than ${MAX_ROW_BYTES} bytes; check for an unclosed quote`
          : 'a quote in this line is not closed; correct the line';
      state.fault ??= { reason, line: Number(error.lines), emptyLines: Number(error.empty_lines) };
      return undefined;
    },
    cast: (cell, { index, lines, empty_lines }) => {
      const reason = `the row has more than ${MAX_ROW_CELLS} cells; give one address per line`;
      if (index >= MAX_ROW_CELLS) state.fault ??= { reason, line: lines, emptyLines: empty_lines };
      return cell;
    },
  });
  const pieces = splitChunks(checkLines(text), MAX_PARSER_WRITE_BYTES, () => state.fault !== null);
  // An error of the source destroys the parser, and the loop below throws the error.
  pipeline(pieces, parser).catch(() => undefined);
  let header: Header | null = null;
  let line = 1;
  let emptyLines = 0;
  for await (const row of parser as AsyncIterable<ParsedRow>) {
    const { lines, empty_lines } = row.info;
    if (state.fault !== null && lines >= state.fault.line) break;
    const startLine = line + (empty_lines - emptyLines);
    emptyLines = empty_lines;
    line = lines + 1;
    const cells = row.record.map((cell) => unescapeCsvText(cell.trim()));
    if (header === null) {
      const parsedHeader = parseHeader(cells);
      header = parsedHeader ?? DEFAULT_HEADER;
      if (parsedHeader !== null) {
        onColumns(parsedHeader.columns);
        continue;
      }
    }
    if (cells.every((cell) => cell === '')) continue;
    const { names } = header;
    const content = interpretRow((name) => cells[names.indexOf(name)] ?? '', header.columns, options);
    const joined = lines > startLine ? 'a quoted cell joins these lines into one row; ' : '';
    yield content.kind === 'invalid'
      ? { kind: 'invalid', line: startLine, lastLine: lines, fault: joined + content.fault }
      : content;
  }
  const { fault } = state;
  if (fault !== null) throw createUnreadableFault(line + fault.emptyLines - emptyLines, fault.reason);
}

function createUnreadableFault(line: number, reason: string): ListFault {
  return new ListFault(`cannot be read from line ${line} on: ${reason}`);
}

/** Not each line is visited: a window contains a line end or belongs to a line that is too long. @throws ListFault */
async function* checkLines(text: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let line = 1;
  /** The length of the line that continues in the next window. */
  let openLineLength = 0;
  for await (const chunk of text) {
    for (let start = 0; start < chunk.length; ) {
      const window = chunk.subarray(start, start + MAX_LINE_BYTES + 1 - openLineLength);
      const lineEndIndex = Math.max(window.lastIndexOf(LINE_FEED), window.lastIndexOf(CARRIAGE_RETURN));
      if (lineEndIndex === -1 && openLineLength + window.length > MAX_LINE_BYTES)
        throw createUnreadableFault(
          line + countLines(chunk.subarray(0, start)),
          `the line has more than ${MAX_LINE_BYTES} bytes; give one address per line`,
        );
      openLineLength = lineEndIndex === -1 ? openLineLength + window.length : 0;
      start += lineEndIndex === -1 ? window.length : lineEndIndex + 1;
    }
    line += countLines(chunk);
    yield chunk;
  }
}

/** Returns the most frequent of comma, semicolon (spreadsheets in much of Europe) and tab in the first line. */
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

interface Header {
  readonly columns: Columns;
  readonly names: readonly string[];
}

const DEFAULT_HEADER: Header = {
  columns: { kind: 'plain', columns: { address: 'address', reason: 'reason', time: 'at' } },
  names: ['address', 'reason', 'at', 'source'],
};

const MAX_QUOTED_HEADER = 100;

/** Returns null if the row is not a header, which has several cells without an `@`. @throws ListFault if it is unknown */
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

// A record is an object in an array, or a document without one (JSON Lines). A string in a top array is an address. The
// file may contain several documents. No library reads past an invalid record and names its line.

const MAX_RECORD_BYTES = 65_536;
const MAX_DEPTH = 32;
const MAX_SCANNED_BYTES = 16_384;
const MAX_MEMBERS = 200;

const [QUOTE, BACKSLASH, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];

const WHITE_SPACE = [0x20, 0x09, LINE_FEED, CARRIAGE_RETURN];

/** An address can begin with `{` too, but not with `{"`. */
function isJsonStart(firstChunk: Buffer): boolean {
  return /^\s*(?:\{\s*["}]|\[\s*[[{"\]])/.test(firstChunk.toString('latin1'));
}

async function* readJson(
  text: AsyncIterable<Buffer>,
  options: RowOptions,
  onColumns: (columns: Columns) => void,
): AsyncGenerator<ListRow> {
  let hasColumns = false;
  for await (const record of scanRecords(text)) {
    const row = toRow(record, options);
    if (row === null) continue;
    if (!hasColumns && row.columns !== null) {
      hasColumns = true;
      onColumns(row.columns);
    }
    yield row.row;
  }
}

interface RawRecord {
  readonly kind: 'element' | 'document';
  readonly text: string;
  readonly record: number;
  readonly line: number;
  readonly lastLine: number;
}

async function* scanRecords(text: AsyncIterable<Buffer>): AsyncGenerator<RawRecord> {
  /** The bytes of the brackets that are not yet closed. */
  const openBrackets: number[] = [];
  let [isInString, isEscaped] = [false, false];
  let [line, lineBytes, recordCount] = [1, 0, 0];
  /** The record that is being scanned: the number of open brackets before it, and its parts in earlier pieces. */
  let current: { kind: RawRecord['kind']; depth: number; line: number; parts: Buffer[]; bytes: number } | null = null;

  // The export of a provider can be one line, so the line number alone does not locate a record.
  const describePosition = () => `line ${line}, byte ${lineBytes}`;
  const createSyntaxFault = () =>
    new ListFault(`is not JSON: unexpected character at ${describePosition()}; export it again`);
  const addPart = (record: NonNullable<typeof current>, part: Buffer) => {
    record.parts.push(part);
    record.bytes += part.length;
    if (record.bytes > MAX_RECORD_BYTES)
      throw new ListFault(
        `has a record of more than ${MAX_RECORD_BYTES} bytes that ends at or after ${describePosition()}; give the export of a list`,
      );
  };
  /** Returns the kind of a record that begins with an object or a string at this position, or null. */
  const findRecordKind = (byte: number): RawRecord['kind'] | null => {
    if (openBrackets.length === 0) return 'document';
    if (current?.kind === 'element') return null;
    if (openBrackets.length === 1) return openBrackets[0] === OPEN_ARRAY ? 'element' : null;
    const isInMemberList =
      openBrackets.length === 2 && openBrackets[0] === OPEN_OBJECT && openBrackets[1] === OPEN_ARRAY;
    return isInMemberList && byte === OPEN_OBJECT ? 'element' : null;
  };

  for await (const piece of splitChunks(text, MAX_SCANNED_BYTES)) {
    let start = 0;
    for (let index = 0; index < piece.length; index++) {
      const byte = piece[index] as number;
      lineBytes += 1;
      if (byte === LINE_FEED) {
        line += 1;
        lineBytes = 0;
      }
      let endsValue = false;
      if (isInString) {
        if (isEscaped) isEscaped = false;
        else if (byte === BACKSLASH) isEscaped = true;
        else if (byte === QUOTE) {
          isInString = false;
          endsValue = current?.kind === 'element';
        }
      } else if (byte === QUOTE || byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        if (byte === QUOTE && openBrackets.length === 0) throw createSyntaxFault();
        const kind = byte === OPEN_ARRAY ? null : findRecordKind(byte);
        if (kind !== null) {
          current = { kind, depth: openBrackets.length, line, parts: [], bytes: 0 };
          start = index;
        }
        if (byte === QUOTE) isInString = true;
        else openBrackets.push(byte);
        if (openBrackets.length > MAX_DEPTH)
          throw new ListFault(
            `has more than ${MAX_DEPTH} nested brackets in ${describePosition()}; give the export of a list`,
          );
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
        if (openBrackets.pop() !== (byte === CLOSE_OBJECT ? OPEN_OBJECT : OPEN_ARRAY)) throw createSyntaxFault();
        endsValue = true;
      } else if (openBrackets.length === 0 && !WHITE_SPACE.includes(byte)) throw createSyntaxFault();
      if (!endsValue || current === null || current.depth !== openBrackets.length) continue;
      addPart(current, piece.subarray(start, index + 1));
      recordCount += 1;
      const { kind, parts } = current;
      yield {
        kind,
        text: Buffer.concat(parts).toString('utf8'),
        record: recordCount,
        line: current.line,
        lastLine: line,
      };
      current = null;
    }
    if (current !== null) addPart(current, piece.subarray(start));
  }
  if (openBrackets.length > 0)
    throw new ListFault(`ends in ${describePosition()}, before its last bracket is closed; export it again`);
}

function toRow(
  { kind, text, ...position }: RawRecord,
  options: RowOptions,
): { readonly row: ListRow; readonly columns: Columns | null } | null {
  const createInvalidRow = (fault: string) => ({
    row: { kind: 'invalid', ...position, fault } as const,
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
    if (kind === 'document' && listMembers(value).some(([, member]) => Array.isArray(member) && member.length === 0))
      return null;
    return createInvalidRow(
      `the record has no member with an address; give an export of one of these formats: ${FORMAT_NAMES}`,
    );
  }
  const content = interpretRow((name) => cells.get(name) ?? '', columns, options);
  return { row: content.kind === 'invalid' ? { ...content, ...position } : content, columns };
}

function toCells(value: unknown): ReadonlyMap<string, string> {
  if (typeof value === 'string') return new Map([['address', value.trim()]]);
  return new Map(
    listMembers(value).flatMap(([name, member]) =>
      Array.isArray(member) || typeof member !== 'object' || member === null
        ? [[normalizeName(name), toCell(member)] as const]
        : listMembers(member).map(([innerName, inner]) => [normalizeName(name + innerName), toCell(inner)] as const),
    ),
  );
}

function listMembers(value: unknown): readonly (readonly [string, unknown])[] {
  return typeof value === 'object' && value !== null ? Object.entries(value).slice(0, MAX_MEMBERS) : [];
}

function toCell(value: unknown): string {
  if (typeof value === 'string') return value.trim();
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return Array.isArray(value) ? value.map((element) => (typeof element === 'string' ? element : '')).join(',') : '';
}

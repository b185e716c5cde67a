/**
 * Reads suppression lists as CSV (RFC 4180): exports of Postrider and of providers (export-formats.ts), and lists of
 * addresses. The reader streams the file with limited memory and a limited cost per byte.
 *
 * Guarantees: the reader yields each row once and in order. It yields an invalid row with the line number of the row.
 * It fails with a ListFault if the file cannot be parsed to its end, or if the header row is unknown.
 */
import { pipeline } from 'node:stream/promises';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { type Parser, parse } from 'csv-parse';
import { quote } from '../../config/units.ts';
import { unescapeCsvText } from '../../printing/csv.ts';
import { FORMAT_NAMES, normalizeName } from './export-formats.ts';
import { type Columns, findColumns, interpretRow, type ListRow, type RowOptions } from './list-row.ts';
import { countLines, ListFault } from './list-text.ts';

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

const LINE_FEED = 10;
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

/**
 * Reads suppression lists in JSON, such as the responses of provider APIs (export-formats.ts). A record is an object in
 * an array, and the array is a whole document or a member of a document. If a document has no such array, the document
 * is the record (JSON Lines). If an array is a whole document, each string in the array is an address. The file may
 * contain several documents, such as the pages of a list. The reader streams the file with limited memory and a limited
 * cost per byte.
 *
 * Guarantees: the reader yields each record once and in order, and adds the line number to an invalid record. The
 * reader fails with a ListFault if the file ends within a document or is not JSON.
 */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { FORMAT_NAMES, normalizeName } from './export-formats.ts';
import { type Columns, findColumns, interpretRow, type ListRow, type RowOptions } from './list-row.ts';
import { ListFault } from './list-text.ts';

/** The maximum size of one record, and of the part of a document that precedes its list of records. */
const MAX_RECORD_BYTES = 65_536;
/** The maximum nesting depth of objects and arrays. */
const MAX_DEPTH = 32;
/** The number of bytes that are scanned before the event loop runs other work. */
const MAX_SCANNED_BYTES = 16_384;
/** The maximum number of members of a record that are read. */
const MAX_MEMBERS = 200;

const [QUOTE, BACKSLASH, LINE_FEED] = [0x22, 0x5c, 0x0a];
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

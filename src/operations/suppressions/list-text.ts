/**
 * Reads the bytes of an imported file as UTF-8 text: detects archives and compressed files by their first bytes, and
 * converts UTF-16. Fails with a ListFault if the file is not text. Reads at most one chunk after the chunk with a
 * fault.
 */

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

/**
 * Reads suppression lists of every supported format (export-formats.ts) from a file of any size, as CSV or JSON.
 *
 * Guarantees: the reader yields each row once, in order. It fails with a ContentError if the file is not a suppression
 * list or cannot be read to its end.
 */
import { readCsv } from './csv-reader.ts';
import { isJsonStart, readJson } from './json-reader.ts';
import type { Columns, ListRow, RowOptions } from './list-row.ts';
import { ListFault, readText } from './list-text.ts';
import { ContentError } from './rereadable-content.ts';

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

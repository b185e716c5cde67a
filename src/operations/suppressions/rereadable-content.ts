/**
 * The content of a file that an operation reads twice. What can be read only once, such as an upload or a pipe, is kept in a
 * temporary file meanwhile; that file has no name, so it goes with this process. A content that cannot be read fails with a
 * ContentError, a folder that cannot keep it with a SpoolError, each of one line.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeError } from '../../printing/error-line.ts';
import type { FileContent } from '../file-operation.ts';

/** Read at a time. */
const CHUNK_BYTES = 262_144;

/** The content cannot be read to its end, or is not what it should be; the message is one line. */
export class ContentError extends Error {
  override readonly name = 'ContentError';
}

/** The machine has no room for the content, which is no fault of the content. */
export class SpoolError extends Error {
  override readonly name = 'SpoolError';
}

/** A content that can be read twice. */
export interface RereadableContent {
  /** From its beginning to its end, once. */
  readonly bytes: AsyncIterable<Buffer>;
  /** Its first `size` bytes once more. */
  reread(size: number): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

/** Opens a content so that it can be read twice. @throws SpoolError, or what the opening throws */
export async function makeRereadable({ name, open: openContent }: FileContent): Promise<RereadableContent> {
  const { bytes, again, close } = await openContent();
  const first = readable(bytes, name);
  if (again !== null) return { bytes: first, reread: (size) => readable(again(size), name), close };
  let spool: FileHandle;
  try {
    spool = await openSpool();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    bytes: copied(first, spool),
    reread: (size) => readable(fileBytes(spool, size), name),
    async close() {
      await spool.close();
      await close();
    },
  };
}

/** Up to `size` bytes of a file, from its beginning. The file stays open. */
export function fileBytes(handle: FileHandle, size = Number.POSITIVE_INFINITY): AsyncIterable<Buffer> {
  return handle.createReadStream({ autoClose: false, highWaterMark: CHUNK_BYTES, start: 0, end: size - 1 });
}

async function* readable(bytes: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer> {
  try {
    yield* bytes;
  } catch (error) {
    throw new ContentError(`the import of ${name} stopped: ${describeError(error)}`);
  }
}

async function openSpool(): Promise<FileHandle> {
  const path = join(tmpdir(), `postrider-import-${randomUUID()}`);
  try {
    const spool = await open(path, 'wx+', 0o600);
    await unlink(path);
    return spool;
  } catch (error) {
    throw spoolError(error);
  }
}

async function* copied(source: AsyncIterable<Buffer>, spool: FileHandle): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    try {
      await spool.writeFile(chunk);
    } catch (error) {
      throw spoolError(error);
    }
    yield chunk;
  }
}

function spoolError(error: unknown): SpoolError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
  return new SpoolError(
    `what is to be imported cannot be kept in ${tmpdir()} (${code}); set TMPDIR to a folder with room for it`,
  );
}

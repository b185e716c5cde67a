/**
 * Provides the content of a file that an operation reads twice. Content that can be read only once, such as an upload
 * or a pipe, is copied to a temporary file. The temporary file is unlinked immediately after it is opened, so it does
 * not remain after the end of the process. Unreadable content causes a ContentError. A temporary folder that cannot
 * store the content causes a SpoolError. The message of each error is one line.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeError } from '../printing/error-line.ts';
import type { FileContent } from './operation.ts';

/** The size of one read. */
const CHUNK_BYTES = 262_144;

/** The content cannot be read to its end, or is invalid. The message is one line. */
export class ContentError extends Error {
  override readonly name = 'ContentError';
}

/** The temporary folder cannot store the content. */
export class SpoolError extends Error {
  override readonly name = 'SpoolError';
}

/** Content that can be read twice. */
export interface RereadableContent {
  /** The whole content. This stream can be read only once. */
  readonly bytes: AsyncIterable<Buffer>;
  /** Reads the first `size` bytes a second time. */
  reread(size: number): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

/** Opens content so that it can be read twice. @throws SpoolError, and what `open` throws */
export async function openRereadableContent({ name, open: openContent }: FileContent): Promise<RereadableContent> {
  const { bytes, reread, close } = await openContent();
  const firstPass = withContentErrors(bytes, name);
  if (reread !== null) return { bytes: firstPass, reread: (size) => withContentErrors(reread(size), name), close };
  let spoolFile: FileHandle;
  try {
    spoolFile = await openSpool();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    bytes: copyToSpool(firstPass, spoolFile),
    reread: (size) => withContentErrors(readFileBytes(spoolFile, size), name),
    async close() {
      await spoolFile.close();
      await close();
    },
  };
}

/** Reads up to `size` bytes from the beginning of a file. The file remains open. */
export function readFileBytes(handle: FileHandle, size = Number.POSITIVE_INFINITY): AsyncIterable<Buffer> {
  return handle.createReadStream({ autoClose: false, highWaterMark: CHUNK_BYTES, start: 0, end: size - 1 });
}

async function* withContentErrors(bytes: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer> {
  try {
    yield* bytes;
  } catch (error) {
    throw new ContentError(`the import of ${name} stopped: ${describeError(error)}`);
  }
}

async function openSpool(): Promise<FileHandle> {
  const path = join(tmpdir(), `postrider-import-${randomUUID()}`);
  try {
    const spoolFile = await open(path, 'wx+', 0o600);
    await unlink(path);
    return spoolFile;
  } catch (error) {
    throw toSpoolError(error);
  }
}

async function* copyToSpool(source: AsyncIterable<Buffer>, spoolFile: FileHandle): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    try {
      await spoolFile.writeFile(chunk);
    } catch (error) {
      throw toSpoolError(error);
    }
    yield chunk;
  }
}

function toSpoolError(error: unknown): SpoolError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  return new SpoolError(
    `the file to import cannot be stored in ${tmpdir()} (${code}); set TMPDIR to a folder with enough space`,
  );
}

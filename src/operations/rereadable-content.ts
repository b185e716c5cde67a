/** A copy of content that can be read only once is unlinked when opened, so it does not outlive the process. */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeError } from '../printing/escape.ts';
import type { FileContent } from './operation.ts';

const CHUNK_BYTES = 262_144;

export class ContentError extends Error {
  override readonly name = 'ContentError';
}

export class SpoolError extends Error {
  override readonly name = 'SpoolError';
}

export interface RereadableContent {
  readonly bytes: AsyncIterable<Buffer>;
  reread(size: number): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

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

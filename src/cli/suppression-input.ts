/**
 * What an import reads twice: a file where there is one, and what comes only once kept in a temporary file meanwhile. Fails
 * with a CommandFailure of one line.
 */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CommandFailure } from './failure.ts';

/** Read at a time. */
const CHUNK_BYTES = 262_144;

export interface Input {
  /** From its beginning to its end, once. */
  readonly first: AsyncIterable<Buffer>;
  /** Its first `size` bytes once more. */
  again(size: number): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

/** A path, or `-` for standard input; `name` is what lines call it. */
export async function openInput(file: string, name: string): Promise<Input> {
  if (file === '-') {
    if (process.stdin.isTTY) {
      throw new CommandFailure('standard input is a terminal; pipe a CSV file into it, or give its name', 2);
    }
    return spooled(process.stdin, () => Promise.resolve());
  }
  try {
    const handle = await open(file, constants.O_RDONLY);
    const found = await handle.stat();
    if (found.isDirectory()) {
      await handle.close();
      throw new CommandFailure(`${name} is a folder; give the name of a CSV file`);
    }
    // A named pipe, such as a shell's <(…), gives what it has only once.
    if (!found.isFile()) {
      return await spooled(handle.createReadStream({ autoClose: false }), () => handle.close());
    }
    return { first: bytesOf(handle), again: (size) => bytesOf(handle, size), close: () => handle.close() };
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const code = codeOf(error);
    throw new CommandFailure(
      code === 'ENOENT'
        ? `there is no file ${name}; give the name of a CSV file, or - for standard input`
        : `${name} cannot be read (${code}); make it readable for this user`,
    );
  }
}

/** Up to `size` bytes of a file. */
function bytesOf(handle: FileHandle, size = Number.POSITIVE_INFINITY): AsyncIterable<Buffer> {
  return handle.createReadStream({ autoClose: false, highWaterMark: CHUNK_BYTES, start: 0, end: size - 1 });
}

/** Kept, as it is read for the first time, in a file that has no name any more and so goes with this process. */
export async function spooled(source: AsyncIterable<Buffer>, close: () => Promise<void>): Promise<Input> {
  let spool: FileHandle;
  const path = join(tmpdir(), `postrider-import-${randomUUID()}`);
  try {
    spool = await open(path, 'wx+', 0o600);
    await unlink(path);
  } catch (error) {
    await close();
    throw spoolFailure(error);
  }
  async function* kept(): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      try {
        await spool.writeFile(chunk);
      } catch (error) {
        throw spoolFailure(error);
      }
      yield chunk;
    }
  }
  return {
    first: kept(),
    again: (size) => bytesOf(spool, size),
    close: async () => {
      await spool.close();
      await close();
    },
  };
}

/** The machine has no room for it, which is no fault of what is imported. */
export class SpoolFailure extends CommandFailure {}

function spoolFailure(error: unknown): SpoolFailure {
  return new SpoolFailure(
    `what is to be imported cannot be kept in ${tmpdir()} (${codeOf(error)}); set TMPDIR to a folder with room for it`,
  );
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
}

/**
 * Creates an output file of a command. The file receives its name only after it is complete and synced to disk.
 *
 * Guarantees: an existing file or link is never overwritten, followed or used, even if another user creates it at the
 * same time. Only the owner can read the new file. After a failure or a signal that ends the process, no file remains.
 * After a SIGKILL, the folder `.postrider-…` remains, which an operator may remove. On a file system without hard
 * links, the temporary file is copied to its final name, and a signal during the copy leaves an incomplete file. Fails
 * with a CommandFailure of one line.
 */
import { constants, rmSync } from 'node:fs';
import { copyFile, link, lstat, mkdtemp, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CommandFailure } from './context.ts';

/** Error codes of `link` on file systems without hard links. */
const NO_LINK_ERROR_CODES: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Signals with which users, terminals and service managers end a process. */
const TERMINATION_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The file system calls that a test replaces in order to simulate a file system without hard links. */
export interface FileOperations {
  readonly link: (from: string, to: string) => Promise<void>;
}

/**
 * Creates an empty temporary file, calls `writeContent` to fill the file, and gives it the name `file`. The temporary
 * file is in a folder with a random name beside `file`. Only this user may enter the folder, so that no other user can
 * replace the temporary file.
 */
export async function writeNewFile<T>(
  file: string,
  writeContent: (temporaryFile: string) => Promise<T>,
  fileOperations: FileOperations = { link },
): Promise<T> {
  if (await lstat(file).catch(() => null)) throw createFileExistsFailure(file);
  const folder = dirname(file);
  let temporaryFolder: string | null = null;
  const removeSignalHandlers = runOnTermination(() => {
    if (temporaryFolder !== null) rmSync(temporaryFolder, { recursive: true, force: true, maxRetries: 3 });
  });
  try {
    // mkdtemp(3) creates a folder with an unused name and mode 0700.
    temporaryFolder = await mkdtemp(join(folder, '.postrider-'));
    const temporaryFile = join(temporaryFolder, 'draft');
    await (await open(temporaryFile, 'wx', 0o600)).close();
    const result = await writeContent(temporaryFile);
    await syncPath(temporaryFile);
    await linkOrCopy(temporaryFile, file, fileOperations);
    await syncPath(folder);
    return result;
  } catch (error) {
    throw toWriteFailure(file, error);
  } finally {
    if (temporaryFolder !== null) await rm(temporaryFolder, { recursive: true, force: true });
    removeSignalHandlers();
  }
}

/**
 * Calls `cleanUp` when a termination signal arrives. The signal then ends the process. The returned function removes
 * the signal handlers.
 */
function runOnTermination(cleanUp: () => void): () => void {
  const handleSignal = (signal: NodeJS.Signals): void => {
    cleanUp();
    removeHandlers();
    // If the signal has other handlers, they determine whether the process ends.
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  };
  const removeHandlers = (): void => {
    for (const signal of TERMINATION_SIGNALS) process.off(signal, handleSignal);
  };
  for (const signal of TERMINATION_SIGNALS) process.on(signal, handleSignal);
  return removeHandlers;
}

async function linkOrCopy(temporaryFile: string, file: string, fileOperations: FileOperations): Promise<void> {
  try {
    await fileOperations.link(temporaryFile, file);
  } catch (error) {
    if (!NO_LINK_ERROR_CODES.has(getErrorCode(error) ?? '')) throw error;
    await copyExclusively(temporaryFile, file);
  }
}

/** Copies the temporary file to `file` on a file system without hard links. Removes `file` if the copy fails. */
async function copyExclusively(temporaryFile: string, file: string): Promise<void> {
  // The copy has the mode of the temporary file, 0600. The call fails if `file` exists.
  const copyPromise = copyFile(temporaryFile, file, constants.COPYFILE_EXCL);
  await copyPromise.catch(async (error: unknown) => {
    if (getErrorCode(error) !== 'EEXIST') await rm(file, { force: true });
    throw error;
  });
  await syncPath(file);
}

async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function createFileExistsFailure(file: string): CommandFailure {
  return new CommandFailure(`${file} already exists; give the name of a new file`);
}

function toWriteFailure(file: string, error: unknown): unknown {
  const code = getErrorCode(error);
  if (code === 'EEXIST') return createFileExistsFailure(file);
  if (code === null || code.startsWith('ERR_')) return error;
  const remedy =
    code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG'
      ? 'free space, or give a file on another disk'
      : 'give a file in an existing folder that this user may write to';
  return new CommandFailure(`cannot write ${file} (${code}); ${remedy}`);
}

function getErrorCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}

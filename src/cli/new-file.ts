/**
 * Creates an output file of a command. The file gets its name only when it is complete and on disk.
 *
 * Guarantees: it never overwrites, follows or uses an existing file, even if another user creates the file at the same
 * time. Only the owner can read the file. Fails with a CommandFailure of one line. After a failure or a signal that
 * ends the process, no file remains. A SIGKILL leaves the folder `.postrider-…`, which may be removed.
 */
import { constants, rmSync } from 'node:fs';
import { copyFile, link, lstat, mkdtemp, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CommandFailure } from './failure.ts';

/** Error codes of file systems without hard links. */
const NO_LINK_ERROR_CODES: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Signals by which users, terminals and service managers end a process. */
const TERMINATION_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The file system calls that a test replaces, to simulate a file system without hard links. */
export interface FileOperations {
  readonly link: (from: string, to: string) => Promise<void>;
}

/**
 * Creates an empty draft, calls `write` to fill it, and gives it the name `file`. The draft is in a folder with a random name
 * next to `file` that only this user may enter, so that no other user can replace it.
 */
export async function writeNewFile<T>(
  file: string,
  write: (draft: string) => Promise<T>,
  fileOperations: FileOperations = { link },
): Promise<T> {
  if (await lstat(file).catch(() => null)) throw alreadyExistsFailure(file);
  const folder = dirname(file);
  let draftFolder: string | null = null;
  const removeSignalHandlers = onTerminationSignal(() => {
    if (draftFolder !== null) rmSync(draftFolder, { recursive: true, force: true, maxRetries: 3 });
  });
  try {
    // Mode 0700, and an unused name: mkdtemp(3).
    draftFolder = await mkdtemp(join(folder, '.postrider-'));
    const draft = join(draftFolder, 'draft');
    await (await open(draft, 'wx', 0o600)).close();
    const result = await write(draft);
    await sync(draft);
    await publish(draft, file, fileOperations);
    await sync(folder);
    return result;
  } catch (error) {
    throw toWriteFailure(file, error);
  } finally {
    if (draftFolder !== null) await rm(draftFolder, { recursive: true, force: true });
    removeSignalHandlers();
  }
}

/**
 * Calls `cleanUp` when a signal is about to end the process, which then ends by that signal. The returned function removes the
 * signal handlers.
 */
function onTerminationSignal(cleanUp: () => void): () => void {
  const handle = (signal: NodeJS.Signals): void => {
    cleanUp();
    stop();
    // If other handlers exist, they decide whether the process ends.
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  };
  const stop = (): void => {
    for (const signal of TERMINATION_SIGNALS) process.off(signal, handle);
  };
  for (const signal of TERMINATION_SIGNALS) process.on(signal, handle);
  return stop;
}

async function publish(draft: string, file: string, fileOperations: FileOperations): Promise<void> {
  try {
    await fileOperations.link(draft, file);
  } catch (error) {
    if (!NO_LINK_ERROR_CODES.has(errorCode(error) ?? '')) throw error;
    await copyExclusively(draft, file);
  }
}

/** Copies the draft on a file system without hard links. Creates the file first, and removes it if the copy fails. */
async function copyExclusively(draft: string, file: string): Promise<void> {
  // The copy has the mode of the draft, 0600. Fails if the file exists.
  const copied = copyFile(draft, file, constants.COPYFILE_EXCL);
  await copied.catch(async (error: unknown) => {
    if (errorCode(error) !== 'EEXIST') await rm(file, { force: true });
    throw error;
  });
  await sync(file);
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function alreadyExistsFailure(file: string): CommandFailure {
  return new CommandFailure(`${file} already exists; give the name of a new file`);
}

function toWriteFailure(file: string, error: unknown): unknown {
  const code = errorCode(error);
  if (code === 'EEXIST') return alreadyExistsFailure(file);
  if (code === null || code.startsWith('ERR_')) return error;
  const remedy =
    code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG'
      ? 'free space, or give a file on another disk'
      : 'give a file in an existing folder that this user may write to';
  return new CommandFailure(`cannot write ${file} (${code}); ${remedy}`);
}

function errorCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}

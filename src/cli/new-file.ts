/**
 * The file gets its name only when complete and synced; an existing file or link is never overwritten or followed.
 * After a SIGKILL, the folder `.postrider-…` remains. Without hard links, the file is copied to its name, and a signal
 * during the copy leaves an incomplete file.
 */
import { constants, rmSync } from 'node:fs';
import { copyFile, link, lstat, mkdtemp, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncPath } from '../folder.ts';
import { getErrorCode } from '../printing/text.ts';
import { CommandFailure } from './context.ts';

/** On file systems without hard links. */
const NO_LINK_ERROR_CODES: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

const TERMINATION_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export interface FileOperations {
  readonly link: (from: string, to: string) => Promise<void>;
}

/** Only this user may enter the folder of the new file, so that no other user can replace it. */
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
    syncPath(temporaryFile);
    await linkOrCopy(temporaryFile, file, fileOperations);
    syncPath(folder);
    return result;
  } catch (error) {
    throw toWriteFailure(file, error);
  } finally {
    if (temporaryFolder !== null) await rm(temporaryFolder, { recursive: true, force: true });
    removeSignalHandlers();
  }
}

/**
 * Calls `cleanUp` when a termination signal arrives, which then ends the process. Returns the removal of the handlers.
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
    return await fileOperations.link(temporaryFile, file);
  } catch (error) {
    if (!NO_LINK_ERROR_CODES.has(getErrorCode(error) ?? '')) throw error;
  }
  try {
    // The copy has the mode of the temporary file, 0600. The call fails if `file` exists.
    await copyFile(temporaryFile, file, constants.COPYFILE_EXCL);
  } catch (error) {
    if (getErrorCode(error) !== 'EEXIST') await rm(file, { force: true });
    throw error;
  }
  syncPath(file);
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

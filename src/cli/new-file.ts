/**
 * A file that a command writes for a person: it has its name only once it is whole and on disk.
 *
 * Guarantees: nothing that is there is written over, followed or used, also not what another user puts there meanwhile; the
 * file is readable by its owner alone. Fails with a CommandFailure of one line, and leaves nothing behind, also where a signal
 * ends the process. A SIGKILL leaves the folder `.postrider-…`, which may be removed.
 */
import { constants, rmSync } from 'node:fs';
import { copyFile, link, lstat, mkdtemp, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CommandFailure } from './failure.ts';

/** What file systems without hard links answer. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Signals by which people, terminals and service managers end a process. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** What publishing needs of the file system, so that a test can take hard links away. */
export interface FileOperations {
  readonly link: (from: string, to: string) => Promise<void>;
}

/**
 * Makes an empty draft, lets `write` fill it, and publishes it as `file`. The draft lies in a folder of random name beside
 * `file` that only this user may enter, so that nobody can put another in its place.
 */
export async function writeNewFile<T>(
  file: string,
  write: (draft: string) => Promise<T>,
  publishing: FileOperations = { link },
): Promise<T> {
  if (await lstat(file).catch(() => null)) throw taken(file);
  const folder = dirname(file);
  let hidden: string | null = null;
  const stopWatching = onEnd(() => {
    if (hidden !== null) rmSync(hidden, { recursive: true, force: true, maxRetries: 3 });
  });
  try {
    // Mode 0700, and a name that is free: mkdtemp(3).
    hidden = await mkdtemp(join(folder, '.postrider-'));
    const draft = join(hidden, 'draft');
    await (await open(draft, 'wx', 0o600)).close();
    const result = await write(draft);
    await sync(draft);
    await publish(draft, file, publishing);
    await sync(folder);
    return result;
  } catch (error) {
    throw cannotWrite(file, error);
  } finally {
    if (hidden !== null) await rm(hidden, { recursive: true, force: true });
    stopWatching();
  }
}

/** Runs `clean` where a signal is about to end the process; the process then ends by that signal. Gives what ends the watch. */
function onEnd(clean: () => void): () => void {
  const handle = (signal: NodeJS.Signals): void => {
    clean();
    stop();
    // Where others handle the signal, the end of the process is their matter.
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  };
  const stop = (): void => {
    for (const signal of ENDING) process.off(signal, handle);
  };
  for (const signal of ENDING) process.on(signal, handle);
  return stop;
}

async function publish(draft: string, file: string, publishing: FileOperations): Promise<void> {
  try {
    await publishing.link(draft, file);
  } catch (error) {
    if (!NO_LINKS.has(codeOf(error) ?? '')) throw error;
    await copyExclusively(draft, file);
  }
}

/** Where there are no hard links: the name is taken first, and is given back where the copy fails. */
async function copyExclusively(draft: string, file: string): Promise<void> {
  // With the mode of the draft, 0600; fails where there is a file.
  const made = copyFile(draft, file, constants.COPYFILE_EXCL);
  await made.catch(async (error: unknown) => {
    if (codeOf(error) !== 'EEXIST') await rm(file, { force: true });
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

function taken(file: string): CommandFailure {
  return new CommandFailure(`${file} is there already; give a name that is not`);
}

function cannotWrite(file: string, error: unknown): unknown {
  const code = codeOf(error);
  if (code === 'EEXIST') return taken(file);
  if (code === null || code.startsWith('ERR_')) return error;
  const remedy =
    code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG'
      ? 'free space, or give a file on another disk'
      : 'give a file in a folder that is there and that this user may write';
  return new CommandFailure(`cannot write ${file} (${code}); ${remedy}`);
}

function codeOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}

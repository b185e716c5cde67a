/**
 * Reads the value of a flag from a file. Private keys are read from files because every user of the machine can see a
 * command line (`ps`). Fails with a CommandFailure of one line, which contains no part of the file.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { quote } from '../config/units.ts';
import { CommandFailure } from './failure.ts';

/** The maximum size of the file. */
const MAX_FILE_BYTES = 16_384;

/**
 * Returns the text of the file. `flag` is the name of the flag in error messages. Calls `warn` if other users of the
 * machine can access the file. @throws CommandFailure
 */
export async function readInputFile(flag: string, file: string, warn: (message: string) => void): Promise<string> {
  let handle: FileHandle;
  try {
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
    throw new CommandFailure(
      code === 'ENOENT'
        ? `${flag}: there is no file ${quote(file)}; give the name of a file`
        : `${flag}: ${quote(file)} cannot be read (${code}); make it readable for this user`,
      2,
    );
  }
  try {
    const status = await handle.stat();
    if (!status.isFile())
      throw new CommandFailure(`${flag}: ${quote(file)} is not a regular file; give a regular file`, 2);
    const content = Buffer.alloc(MAX_FILE_BYTES + 1);
    const { bytesRead } = await handle.read(content, 0, content.length, 0);
    if (bytesRead > MAX_FILE_BYTES)
      throw new CommandFailure(
        `${flag}: ${quote(file)} has more than ${MAX_FILE_BYTES} bytes; give the file of one key`,
        2,
      );
    if (bytesRead === 0) throw new CommandFailure(`${flag}: ${quote(file)} is empty; give the file of a key`, 2);
    const permissions = status.mode & 0o777;
    if ((permissions & 0o077) !== 0) {
      const modeText = permissions.toString(8).padStart(4, '0');
      warn(`other users can access the file ${quote(file)} (mode ${modeText}); run: chmod 600 ${file}`);
    }
    const text = content.toString('utf8', 0, bytesRead);
    content.fill(0);
    return text;
  } finally {
    await handle.close();
  }
}

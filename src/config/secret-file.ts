/**
 * Reads the file of a secret setting (`NAME_FILE`).
 *
 * Refuses a file of more than `MAX_SECRET_FILE_BYTES` and a file that is not UTF-8 text. Refuses a device or a pipe
 * without waiting for its data. Errors contain no part of the content.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

export const MAX_SECRET_FILE_BYTES = 65_536;

/** The message states the problem and the remedy, but not the name of the file. */
export class SecretFileError extends Error {
  override readonly name = 'SecretFileError';
}

/** Without a byte order mark. @throws SecretFileError, or an Error of Node.js with a code */
export function readSecretText(path: string): string {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!fstatSync(file).isFile()) throw new SecretFileError('is not a file; give the path of a file');
    return decodeUtf8(readBoundedContent(file));
  } finally {
    closeSync(file);
  }
}

/** Until the end of the file, because the reported size is 0 below /proc. */
function readBoundedContent(file: number): Buffer {
  const content = Buffer.alloc(MAX_SECRET_FILE_BYTES + 1);
  let length = 0;
  for (;;) {
    const count = readSync(file, content, length, content.length - length, null);
    length += count;
    if (length > MAX_SECRET_FILE_BYTES)
      throw new SecretFileError(
        `is larger than ${MAX_SECRET_FILE_BYTES} bytes; give the path of the file with the value`,
      );
    if (count === 0) return content.subarray(0, length);
  }
}

function decodeUtf8(content: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch {
    throw new SecretFileError('is not UTF-8 text; write the value into it as UTF-8 text');
  }
}

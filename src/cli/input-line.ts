/**
 * Reads one line of standard input. Secrets are read from standard input because every user of the machine can see a
 * command line (`ps`). The function rejects with a CommandFailure if there is no line, or if the line is longer than
 * `MAX_LINE_BYTES`.
 */
import { CommandFailure } from './failure.ts';

const MAX_LINE_BYTES = 8_192;

/**
 * Reads the first line without its line end. `name` stands for the value in error messages, such as `the key` or
 * `--key -`.
 */
export async function readInputLine(name: string, input: AsyncIterable<Buffer | string>): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk);
    const lineEnd = bytes.indexOf(0x0a);
    chunks.push(lineEnd === -1 ? bytes : bytes.subarray(0, lineEnd));
    sizeBytes += bytes.length;
    if (lineEnd !== -1 || sizeBytes > MAX_LINE_BYTES) break;
  }
  const line = Buffer.concat(chunks).toString('utf8').trim();
  if (line === '') throw new CommandFailure(`${name}: standard input has no line; write the value to it`, 2);
  if (line.length > MAX_LINE_BYTES)
    throw new CommandFailure(`${name}: the line on standard input is longer than ${MAX_LINE_BYTES} bytes`, 2);
  return line;
}

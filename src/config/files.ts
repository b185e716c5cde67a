/**
 * Reads `.env` with parseEnv, which ignores malformed lines, so each line is checked first. An error contains the
 * number of the line and never its text.
 */

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { SettingsError } from './settings.ts';

const NAME_PATTERN = /^[A-Za-z_][A-Za-z0-9_.-]*$/;

/** @throws SettingsError that names the first malformed line */
export function readDotEnv(content: string): Readonly<Record<string, string>> {
  const text = (content.startsWith('\uFEFF') ? content.slice(1) : content).replaceAll('\r\n', '\n');
  checkLines(text);
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(parseEnv(text))) if (value !== undefined) values[name] = value;
  return values;
}

function createFault(line: number, problem: string): SettingsError {
  return new SettingsError(`.env line ${line}: ${problem}`);
}

function checkLines(text: string): void {
  const lineByName = new Map<string, number>();
  let line = 1;
  let position = 0;
  while (position < text.length) {
    const lineEnd = findLineEnd(text, position);
    const content = text.slice(position, lineEnd);
    let nextPosition = lineEnd;
    if (content.trim() !== '' && !content.trimStart().startsWith('#')) {
      const equalsIndex = content.indexOf('=');
      const name = content
        .slice(0, Math.max(0, equalsIndex))
        .trim()
        .replace(/^export /, '')
        .trim();
      if (!NAME_PATTERN.test(name))
        throw createFault(line, 'the line is not NAME=value, such as POSTRIDER_LISTEN=127.0.0.1:8080');
      const earlierLine = lineByName.get(name);
      if (earlierLine !== undefined && name.startsWith('POSTRIDER_')) {
        throw createFault(line, `${name} is already set in line ${earlierLine}; remove one of them`);
      }
      lineByName.set(name, line);
      nextPosition = checkValue(text, position + equalsIndex + 1, line, name);
    }
    line += text.slice(position, nextPosition).split('\n').length;
    position = nextPosition + 1;
  }
}

function findLineEnd(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end === -1 ? text.length : end;
}

/** Returns the end of the last line of the value. @throws SettingsError */
function checkValue(text: string, from: number, line: number, name: string): number {
  const end = findLineEnd(text, from);
  const value = text.slice(from, end);
  const quote = value.trimStart()[0];
  if (quote === '"' || quote === "'" || quote === '`') {
    const openIndex = text.indexOf(quote, from);
    const closeIndex = text.indexOf(quote, openIndex + 1);
    if (closeIndex === -1) throw createFault(line, `the value of ${name} has no closing ${quote}; add it`);
    const lastLineEnd = findLineEnd(text, closeIndex);
    const trailingText = text.slice(closeIndex + 1, lastLineEnd).trim();
    if (trailingText !== '' && !trailingText.startsWith('#')) {
      throw createFault(
        line,
        `text follows the closing ${quote} of the value of ${name}; enclose the whole value in one pair of quotes`,
      );
    }
    return lastLineEnd;
  }
  // parseEnv removes the text after a #, which would truncate a password without an error.
  if (name.startsWith('POSTRIDER_') && /\S#/.test(value)) {
    throw createFault(line, `a # starts a comment and truncates ${name}; enclose the value in double quotes`);
  }
  return end;
}

// Reads the file of a secret setting: UTF-8 text, no device and no pipe. Errors contain no part of it.

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

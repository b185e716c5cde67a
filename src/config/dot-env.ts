/**
 * Reads `.env` with parseEnv, which ignores malformed lines, so each line is checked first. An error contains the
 * number of the line and never its text.
 */
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

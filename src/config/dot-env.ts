/**
 * Reads the `.env` file with parseEnv of node:util. parseEnv ignores malformed lines, so each line is checked here
 * first by the same grammar: `NAME=value`, `export NAME=value`, comments, and values in `"`, `'` or backticks, which
 * may span lines. An error contains the line number and never the line.
 */
import { parseEnv } from 'node:util';
import { SettingsError } from './settings.ts';

const NAME_PATTERN = /^[A-Za-z_][A-Za-z0-9_.-]*$/;

/** Parses the text of a `.env` file. @throws SettingsError that names the first malformed line. */
export function readDotEnv(content: string): Readonly<Record<string, string>> {
  const text = (content.startsWith('\uFEFF') ? content.slice(1) : content).replaceAll('\r\n', '\n');
  checkLines(text);
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(parseEnv(text))) if (value !== undefined) values[name] = value;
  return values;
}

function fault(line: number, problem: string): SettingsError {
  return new SettingsError(`.env line ${line}: ${problem}`);
}

function checkLines(text: string): void {
  const seen = new Map<string, number>();
  let line = 1;
  let at = 0;
  while (at < text.length) {
    const end = lineEnd(text, at);
    const content = text.slice(at, end);
    let next = end;
    if (content.trim() !== '' && !content.trimStart().startsWith('#')) {
      const equals = content.indexOf('=');
      const name = content
        .slice(0, Math.max(0, equals))
        .trim()
        .replace(/^export /, '')
        .trim();
      if (!NAME_PATTERN.test(name))
        throw fault(line, 'the line is not NAME=value, such as POSTRIDER_LISTEN=127.0.0.1:8080');
      const earlier = seen.get(name);
      if (earlier !== undefined && name.startsWith('POSTRIDER_')) {
        throw fault(line, `${name} is already set in line ${earlier}; remove one of them`);
      }
      seen.set(name, line);
      next = checkValue(text, at + equals + 1, line, name);
    }
    line += text.slice(at, next).split('\n').length;
    at = next + 1;
  }
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end === -1 ? text.length : end;
}

/** Returns the index at which the last line of the value ends. */
function checkValue(text: string, from: number, line: number, name: string): number {
  const end = lineEnd(text, from);
  const value = text.slice(from, end);
  const quote = value.trimStart()[0];
  if (quote === '"' || quote === "'" || quote === '`') {
    const open = text.indexOf(quote, from);
    const close = text.indexOf(quote, open + 1);
    if (close === -1) throw fault(line, `the value of ${name} has no closing ${quote}; add it`);
    const last = lineEnd(text, close);
    const trailing = text.slice(close + 1, last).trim();
    if (trailing !== '' && !trailing.startsWith('#')) {
      throw fault(line, `text follows the closing ${quote} of ${name}; enclose the whole value in one pair of quotes`);
    }
    return last;
  }
  // parseEnv drops everything after a #, which would truncate a password without an error.
  if (name.startsWith('POSTRIDER_') && /\S#/.test(value)) {
    throw fault(line, `a # starts a comment and truncates ${name}; enclose the value in double quotes`);
  }
  return end;
}

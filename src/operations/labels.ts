/** Parses names and reasons in the input of operators. Pure. */
import { quote } from '../config/units.ts';
import { createInvalid, ok, type Result } from './errors.ts';

/** The maximum length of the name of an account, a key or a token. */
const MAX_NAME_LENGTH = 64;

/**
 * Parses a name, which is visible text. A leading hyphen is refused, because a command would read the name as an
 * option.
 */
export function parseName(field: string, text: string): Result<string> {
  const parsed = parseVisibleText(field, text, MAX_NAME_LENGTH);
  if (parsed.ok && text.startsWith('-')) return createInvalid(field, `${quote(text)} begins with a hyphen`);
  return parsed;
}

/** Parses text of 1 to `maxLength` visible characters without leading or trailing spaces. */
export function parseVisibleText(field: string, text: string, maxLength = MAX_NAME_LENGTH): Result<string> {
  const isValid = text.length >= 1 && text.length <= maxLength && text.trim() === text && !/\p{C}/u.test(text);
  return isValid ? ok(text) : createInvalid(field, `${quote(text)} is not 1 to ${maxLength} visible characters`);
}

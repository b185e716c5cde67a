/** Names and reasons that an operator writes. Pure. */
import { quote } from '../config/units.ts';
import { invalid, ok, type Result } from './errors.ts';

/** The longest name of an account, a key or a token. */
const MAX_NAME_LENGTH = 64;

/** A name that can be typed again and that no terminal misreads; it begins with no hyphen, as a flag does. */
export function parseName(field: string, text: string): Result<string> {
  const visible = parseVisibleText(field, text, MAX_NAME_LENGTH);
  if (visible.ok && text.startsWith('-')) return invalid(field, `${quote(text)} begins with a hyphen`);
  return visible;
}

/** Text of 1 to `maxLength` visible characters, without a space at either end. */
export function parseVisibleText(field: string, text: string, maxLength = MAX_NAME_LENGTH): Result<string> {
  const fits = text.length >= 1 && text.length <= maxLength && text.trim() === text && !/\p{C}/u.test(text);
  return fits ? ok(text) : invalid(field, `${quote(text)} is not 1 to ${maxLength} visible characters`);
}

/** Finds the placeholders of common template languages that remain in a message. Pure. */

/** The delimiters of the placeholders of common template languages. */
const PLACEHOLDER_DELIMITERS = [
  ['{{', '}}'],
  ['{%', '%}'],
  ['${', '}'],
  ['*|', '|*'],
] as const;
/** The string to which JavaScript converts a plain object. */
const OBJECT_TEXT = '[object Object]';
const MAX_PLACEHOLDER_CHARACTERS = 100;

/** Yields the placeholders in text order. A placeholder has at most 100 characters, so the time is linear. */
export function* findPlaceholders(text: string): Generator<{ readonly text: string; readonly at: number }> {
  for (let at = 0; at < text.length; at++) {
    const end = findPlaceholderEnd(text, at);
    if (end === null) continue;
    yield { text: text.slice(at, end), at };
    at = end - 1;
  }
}

function findPlaceholderEnd(text: string, at: number): number | null {
  switch (text.charCodeAt(at)) {
    case 0x7b: // {
    case 0x24: // $
    case 0x2a: {
      // *
      const delimiters = PLACEHOLDER_DELIMITERS.find(([begin]) => text.startsWith(begin, at));
      if (delimiters === undefined) return null;
      const [begin, end] = delimiters;
      const content = text.slice(at + begin.length, at + MAX_PLACEHOLDER_CHARACTERS);
      const length = content.indexOf(end);
      // Delimiters with only white space between them are not a placeholder.
      return length < 0 || content.slice(0, length).trim() === '' ? null : at + begin.length + length + end.length;
    }
    case 0x5b: // [
      return text.startsWith(OBJECT_TEXT, at) ? at + OBJECT_TEXT.length : null;
    default:
      return null;
  }
}

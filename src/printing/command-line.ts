/**
 * Formats commands for operators to copy: quoted for a POSIX shell, and with `npx` in a checkout, where `postrider` is not in the
 * PATH.
 */

/** Returns `postrider WORD…`. Each word that a shell would change is quoted. */
export function commandLine(words: readonly string[]): string {
  const firstDashIndex = words.findIndex((word, index) => index > 1 && word.startsWith('-'));
  // A later word that begins with a dash is a value, not a flag.
  const allWords = firstDashIndex === -1 ? words : [...words.slice(0, 2), '--', ...words.slice(2)];
  return `postrider ${allWords.map(quoteForShell).join(' ')}`;
}

/** Quotes a word in single quotes, in which no character is special (POSIX shell, section 2.2.2). */
function quoteForShell(word: string): string {
  const isPlain = word !== '' && [...word].every((character) => UNQUOTED_CHARACTERS.includes(character));
  return isPlain ? word : `'${word.replaceAll("'", () => "'\\''")}'`;
}

const UNQUOTED_CHARACTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/@%+=';

/** Values of `npm_lifecycle_event` in a process that npm started in a checkout. */
const CHECKOUT_EVENTS = ['npx', 'start', 'demo'];

/**
 * Puts `npx` before each printed command (in backticks, or at the beginning of a line) if npm started this process in a checkout.
 */
export function withCommandPrefix(text: string, environment: Readonly<Record<string, string | undefined>>): string {
  if (!CHECKOUT_EVENTS.includes(environment.npm_lifecycle_event ?? '')) return text;
  return text.replaceAll(/(^|`)( *)postrider (?=[a-z])/gm, '$1$2npx postrider ');
}

/**
 * Commands as they are printed for people to copy: quoted for a POSIX shell, and called as this process was. In a checkout
 * `postrider` is on nobody's PATH, and npx finds it.
 */

/** `postrider WORD…`, each word quoted where a shell would read it otherwise. */
export function commandLine(words: readonly string[]): string {
  const firstDashIndex = words.findIndex((word, index) => index > 1 && word.startsWith('-'));
  // What begins with a dash is a value, not a flag.
  const allWords = firstDashIndex === -1 ? words : [...words.slice(0, 2), '--', ...words.slice(2)];
  return `postrider ${allWords.map(quoteForShell).join(' ')}`;
}

/** POSIX shell, section 2.2.2: between single quotes every character is itself. */
function quoteForShell(word: string): string {
  const isPlain = word !== '' && [...word].every((character) => UNQUOTED_CHARACTERS.includes(character));
  return isPlain ? word : `'${word.replaceAll("'", () => "'\\''")}'`;
}

const UNQUOTED_CHARACTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/@%+=';

/** What npm calls the script that this process runs under where it is one of a checkout. */
const CHECKOUT_EVENTS = ['npx', 'start', 'demo'];

/** The text with `npx` before each printed command (in backticks, or at the begin of a line) where this is a checkout's process. */
export function withCommandPrefix(text: string, environment: Readonly<Record<string, string | undefined>>): string {
  if (!CHECKOUT_EVENTS.includes(environment.npm_lifecycle_event ?? '')) return text;
  return text.replaceAll(/(^|`)( *)postrider (?=[a-z])/gm, '$1$2npx postrider ');
}

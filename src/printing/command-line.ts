/** Commands that operators can copy: quoted for a POSIX shell, with the name by which this process was started. */

export function formatCommandLine(words: readonly string[]): string {
  const firstDashIndex = words.findIndex((word, index) => index > 1 && word.startsWith('-'));
  // The first two words are the command. A later word that begins with a dash is a value, not an option.
  const allWords = firstDashIndex === -1 ? words : [...words.slice(0, 2), '--', ...words.slice(2)];
  return `postrider ${allWords.map(quoteForShell).join(' ')}`;
}

/** POSIX shell, section 2.2.2: no character is special in single quotes. */
function quoteForShell(word: string): string {
  const isPlain = word !== '' && [...word].every((character) => UNQUOTED_CHARACTERS.includes(character));
  return isPlain ? word : `'${word.replaceAll("'", () => "'\\''")}'`;
}

const UNQUOTED_CHARACTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/@%+=';

/**
 * By `npm_lifecycle_event`, which npm sets in `npm start`, `npm run demo` and `npx`, and the file `postrider` of a
 * checkout.
 */
const COMMAND_NAMES = new Map([
  ['start', './postrider'],
  ['demo', './postrider'],
  ['postrider', './postrider'],
  ['npx', 'npx postrider'],
]);

/** In backticks or at the beginning of a line, if `postrider` is not in the PATH. */
export function replaceCommandName(text: string, environment: Readonly<Record<string, string | undefined>>): string {
  const name = COMMAND_NAMES.get(environment.npm_lifecycle_event ?? '');
  return name === undefined ? text : text.replaceAll(/(^|`)( *)postrider (?=[a-z-])/gm, `$1$2${name} `);
}

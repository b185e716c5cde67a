/**
 * Formats commands that operators can copy. The words are quoted for a POSIX shell, and the command has the name with
 * which this process was started.
 */

/** Returns the command `postrider WORD…`. Each word that a shell would change is quoted. */
export function formatCommandLine(words: readonly string[]): string {
  const firstDashIndex = words.findIndex((word, index) => index > 1 && word.startsWith('-'));
  // The first two words are the command. A later word that begins with a dash is a value, not an option.
  const allWords = firstDashIndex === -1 ? words : [...words.slice(0, 2), '--', ...words.slice(2)];
  return `postrider ${allWords.map(quoteForShell).join(' ')}`;
}

/** Quotes a word in single quotes, in which no character is special (POSIX shell, section 2.2.2). */
function quoteForShell(word: string): string {
  const isPlain = word !== '' && [...word].every((character) => UNQUOTED_CHARACTERS.includes(character));
  return isPlain ? word : `'${word.replaceAll("'", () => "'\\''")}'`;
}

const UNQUOTED_CHARACTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/@%+=';

/**
 * The name with which a command can be started, by the value of `npm_lifecycle_event`. npm sets this variable in `npm
 * start` and `npm run demo`, which exist only in a checkout, and in `npx`. The file `postrider` of a checkout sets it
 * to `postrider`.
 */
const COMMAND_NAMES = new Map([
  ['start', './postrider'],
  ['demo', './postrider'],
  ['postrider', './postrider'],
  ['npx', 'npx postrider'],
]);

/**
 * Replaces the name in each printed command (in backticks, or at the beginning of a line) if `postrider` is not in the
 * PATH. The name becomes `./postrider` in a checkout, and `npx postrider` if npx runs a package that is not installed.
 */
export function replaceCommandName(text: string, environment: Readonly<Record<string, string | undefined>>): string {
  const name = COMMAND_NAMES.get(environment.npm_lifecycle_event ?? '');
  return name === undefined ? text : text.replaceAll(/(^|`)( *)postrider (?=[a-z-])/gm, `$1$2${name} `);
}

export function getErrorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Such as `ENOENT`, of Node or the operating system. */
export function getErrorCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}

export function shortenText(text: string, maxLength: number): string {
  const characters = [...text];
  return characters.length <= maxLength ? text : `${characters.slice(0, maxLength - 1).join('')}…`;
}

export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

/** With milliseconds, as every time in `--json` output. */
export function formatIsoTime(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

export function formatIsoTimeOrNull(timeMs: number | null): string | null {
  return timeMs === null ? null : formatIsoTime(timeMs);
}

export function formatTimeOr(ms: number | null, defaultText: string): string {
  return ms === null ? defaultText : formatTime(ms);
}

export function formatDuration(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : formatSpan(ms);
}

export function formatSpan(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000);
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const;
  const firstUnitIndex = parts.findIndex(([count]) => count > 0);
  if (firstUnitIndex === -1) return '0 s';
  return parts
    .slice(firstUnitIndex, firstUnitIndex + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

export function toSentence(text: string): string {
  return ['.', '?', '!'].some((punctuation) => text.endsWith(punctuation)) ? text : `${text}.`;
}

/** Formats a count as `1,000,000`, independent of the locale of the machine. */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

// Commands that operators can copy: quoted for a POSIX shell, with the name by which this process was started.

export function formatCommandLine(words: readonly string[]): string {
  const firstDashIndex = words.findIndex((word, index) => index > 1 && word.startsWith('-'));
  // The first two words are the command. A later word that begins with a dash is a value, not an option.
  const allWords = firstDashIndex === -1 ? words : [...words.slice(0, 2), '--', ...words.slice(2)];
  return `postrider ${allWords.map(quoteForShell).join(' ')}`;
}

/** POSIX shell, section 2.2.2: no character is special in single quotes. */
export function quoteForShell(word: string): string {
  const isPlain = word !== '' && [...word].every((character) => UNQUOTED_CHARACTERS.includes(character));
  return isPlain ? word : `'${word.replaceAll("'", () => "'\\''")}'`;
}

const UNQUOTED_CHARACTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/@%+=';

/** By `npm_lifecycle_event`, which npm and the file `postrider` of a checkout set. */
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

// What a spreadsheet would evaluate as a formula gets a leading apostrophe (OWASP, CSV injection).

/** Also with leading apostrophes, so that `unescapeCsvText` restores every text. */
const FORMULA = /^'*[=+\-@\t\r]/;
const ESCAPED_FORMULA = /^'+[=+\-@\t\r]/;

/** RFC 4180 section 2, rules 5 to 7. */
export function formatCsvCell(text: string): string {
  const safeText = FORMULA.test(text) ? `'${text}` : text;
  return /[,"\n\r]/.test(safeText) ? `"${safeText.replaceAll('"', '""')}"` : safeText;
}

export function unescapeCsvText(text: string): string {
  return ESCAPED_FORMULA.test(text) ? text.slice(1) : text;
}

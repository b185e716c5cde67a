/**
 * Makes text safe to print: control characters are made visible, secrets are hidden.
 *
 * Control characters are those that change how a terminal displays text: C0 and C1 controls and DEL, line and paragraph
 * separators, controls of the Unicode bidirectional algorithm (UAX 9), lone surrogates. The functions run in linear time and never
 * throw.
 *
 * `escapeJson` does not change the parsed value. `printable` replaces each control character by U+FFFD.
 */

/** Returns true for a UTF-16 code unit that must not be printed. The callers check surrogates, which come in pairs. */
export function isUnprintable(unit: number): boolean {
  if (unit < 0x7f) return unit < 0x20;
  if (unit <= 0x9f) return true;
  if (unit < 0x061c) return false;
  return (
    unit === 0x061c ||
    unit === 0x200e ||
    unit === 0x200f ||
    (unit >= 0x2028 && unit <= 0x202e) ||
    (unit >= 0x2066 && unit <= 0x2069)
  );
}

/**
 * Escapes each control character in JSON text as `\\uXXXX`. The parsed value does not change: outside of strings JSON contains only
 * ASCII, and inside strings JSON.stringify has already escaped C0 controls and lone surrogates (RFC 8259
 * section 7). Line feeds and other white space between values do not change.
 */
export function escapeJson(json: string): string {
  return replaceCodeUnits(
    json,
    (unit) => unit >= 0x7f && isUnprintable(unit),
    (unit) => `\\u${unit.toString(16).padStart(4, '0')}`,
  );
}

/** Replaces each control character, including line breaks, by U+FFFD. */
export function printable(text: string): string {
  return replaceCodeUnits(text.toWellFormed(), isUnprintable, () => '\uFFFD');
}

/**
 * Replaces control characters like `printable`, except line feeds, tabs and the escape character of the program's
 * colours.
 */
export function printableLines(text: string): string {
  return replaceCodeUnits(
    text.toWellFormed(),
    (unit) => isUnprintable(unit) && unit !== 0x0a && unit !== 0x09 && unit !== 0x1b,
    () => '\uFFFD',
  );
}

function replaceCodeUnits(
  text: string,
  isReplaced: (unit: number) => boolean,
  replacement: (unit: number) => string,
): string {
  let replaced = '';
  let from = 0;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (!isReplaced(unit)) continue;
    replaced += text.slice(from, index) + replacement(unit);
    from = index + 1;
  }
  return from === 0 ? text : replaced + text.slice(from);
}

// The functions below replace secrets by stars before a text is printed: passwords of URLs, API keys, operator tokens.
//
// `maskUrl` masks a whole setting. The setting may be mistyped, so it hides more than necessary rather than less.
// `maskSecrets` masks a line of prose and hides only text in the format of a secret. Both run in linear time, never throw, and do
// not change text that is already masked.

export const MASK = '********';

/** Number of layers of percent-encoding that are decoded. Text with more layers is hidden as a whole. */
const MAX_ENCODING_LAYERS = 3;
/** Schemes of files and folders, which contain no password. */
const FILE_SCHEMES = ['sqlite', 'capture', 'file'];
/** Parts of the names of parameters that contain a secret. */
const SECRET_NAME_PARTS = ['pass', 'pwd', 'secret', 'token', 'credential', 'signature'];
const KEY_PREFIXES = ['pr_', 'po_', 'por_'];
/** Number of characters of a key that are shown, as in `key list`. A word shorter than MIN_KEY_CHARS is not a key. */
const SHOWN_KEY_CHARS = 10;
const MIN_KEY_CHARS = 24;

/** Masks every part of a URL or another setting that may be a password, even if the setting is mistyped. */
export function maskUrl(text: string): string {
  return maskLayers(text, MAX_ENCODING_LAYERS);
}

/** Masks the logins of URLs, secret parameters, API keys and tokens in a line. */
export function maskSecrets(line: string): string {
  if (!line.includes('//') && !KEY_PREFIXES.some((prefix) => line.includes(prefix))) return line;
  let masked = '';
  let from = 0;
  while (from < line.length) {
    let end = from;
    while (end < line.length && !isWordEnd(line.charCodeAt(end))) end += 1;
    masked += maskWord(line.slice(from, end));
    if (end < line.length) masked += line[end];
    from = end + 1;
  }
  return masked;
}

function maskLayers(text: string, layers: number): string {
  const masked = maskParameters(maskLogin(text), layers);
  if (masked !== text) return masked;
  // `postgres%3A%2F%2Fuser%3Apassword%40host`: encoded as a whole.
  const inner = decodePercent(text);
  if (inner === text) return text;
  return layers === 0 || maskLayers(inner, layers - 1) !== inner ? MASK : text;
}

/** Hides the login before the last `@`. Without an `@` it hides an invalid port and the text after it. */
function maskLogin(text: string): string {
  const scheme = parseScheme(text);
  const remainder = text.slice(scheme.length);
  if (isFileScheme(scheme)) return scheme + maskPath(remainder);
  const start = scheme.length + (remainder.startsWith('//') ? 2 : 0);
  const at = text.lastIndexOf('@');
  if (at >= start) {
    const colon = text.indexOf(':', start);
    const from = colon === -1 || colon > at ? start : colon + 1;
    return text.slice(0, from) + MASK + maskInvalidPort(text, at);
  }
  if (start > scheme.length) return text.slice(0, start) + maskInvalidPort(text, start);
  // `smtp:user:password` and `user:password`: user and password cannot be distinguished.
  if (scheme !== '') return remainder === '' || isPort(remainder) ? text : scheme + MASK;
  const slashes = text.indexOf('//');
  return slashes === -1 ? text : text.slice(0, slashes) + maskInvalidPort(text, slashes + 2);
}

/** Masks the text after `sqlite:`, which is a path or, by mistake, a URL. */
function maskPath(path: string): string {
  const scheme = parseScheme(path);
  if (isFileScheme(scheme)) return MASK;
  const isDrive = scheme.length === 2 && '/\\'.includes(path.charAt(2)) && !path.startsWith('//', 2);
  const colon = path.indexOf(':');
  const hasLogin = colon !== -1 && path.lastIndexOf('@') > colon;
  return hasLogin || (scheme !== '' && !isDrive) ? maskLogin(path) : path;
}

function isFileScheme(scheme: string): boolean {
  return FILE_SCHEMES.includes(scheme.slice(0, -1).toLowerCase());
}

/**
 * Returns `text` from `start` with an invalid port masked. `start` is the beginning of the hosts of an authority: `host`,
 * `host:5432`, `[::1]:25`, or several with commas.
 */
function maskInvalidPort(text: string, start: number): string {
  let end = start;
  while (end < text.length && !'/?#'.includes(text.charAt(end))) end += 1;
  let from = start;
  for (const host of text.slice(start, end).split(',')) {
    const colon = host.indexOf(':', host.lastIndexOf(']') + 1);
    const port = colon === -1 ? '' : host.slice(colon + 1);
    // An invalid port may be the password of a URL without a host.
    if (port !== '' && !isPort(port)) return text.slice(start, from + colon + 1) + MASK;
    from += host.length + 1;
  }
  return text.slice(start);
}

function isPort(text: string): boolean {
  return text.length <= 5 && [...text].every(isDigit) && text !== '';
}

/** Hides the values of parameters that are named like a secret, and values that are URLs with a password. */
function maskParameters(text: string, layers: number): string {
  if (!text.includes('=')) return text;
  const masked: string[] = [];
  for (const part of text.split('&')) {
    // The end of a secret is unknown, so all following text is hidden.
    const secret = findSecretValue(part);
    if (secret !== -1) return [...masked, part.slice(0, secret) + MASK].join('&');
    const equals = part.indexOf('=');
    const value = equals === -1 ? '' : part.slice(equals + 1);
    const inner = decodePercent(value);
    const isHidden = inner !== value && (layers === 0 || maskLayers(inner, layers - 1) !== inner);
    masked.push(isHidden ? part.slice(0, equals + 1) + MASK : part);
  }
  return masked.join('&');
}

/**
 * Returns the index at which the value of the first secret begins, as in `host=h password=p`; -1 if there is no secret.
 */
function findSecretValue(part: string): number {
  for (let equals = part.indexOf('='); equals !== -1; equals = part.indexOf('=', equals + 1)) {
    let nameStart = equals;
    while (nameStart > 0 && isNamePart(part.charCodeAt(nameStart - 1))) nameStart -= 1;
    if (isSecretName(part.slice(nameStart, equals))) return equals + 1;
  }
  return -1;
}

function isSecretName(name: string): boolean {
  const decodedName = decodePercent(name).toLowerCase();
  return SECRET_NAME_PARTS.some((part) => decodedName.includes(part));
}

/** Masks one word of a line. Text before a URL in the word does not change. */
function maskWord(word: string): string {
  const slashes = word.indexOf('//');
  if (slashes === -1) return maskKeys(word);
  const at = word.lastIndexOf('@');
  const colon = word.indexOf(':', slashes);
  const slash = word.indexOf('/', slashes + 2);
  const hasLogin =
    at > slashes && ((colon !== -1 && colon < at) || slash === -1 || at < slash) && !isPlainLink(word, slashes);
  if (!hasLogin) return maskKeys(maskParameters(word, MAX_ENCODING_LAYERS));
  const from = colon !== -1 && colon < at ? colon + 1 : slashes + 2;
  return word.slice(0, from) + MASK + maskParameters(word.slice(at), MAX_ENCODING_LAYERS);
}

/**
 * Returns true for an `http` or `https` link whose authority is only a host (RFC 3986 section 3.2): a later `@` is then
 * part of the path or query. Other URLs are settings, in which an apparent port may be the beginning of a password.
 */
function isPlainLink(word: string, slashes: number): boolean {
  const urlScheme = word.slice(0, slashes).toLowerCase();
  if (!urlScheme.endsWith('http:') && !urlScheme.endsWith('https:')) return false;
  let end = slashes + 2;
  while (end < word.length && !'/?#'.includes(word.charAt(end))) end += 1;
  const authority = word.slice(slashes + 2, end);
  const colon = authority.indexOf(':', authority.startsWith('[') ? authority.indexOf(']') + 1 : 0);
  return !authority.includes('@') && (colon === -1 || isPort(authority.slice(colon + 1)));
}

/** Hides each API key or token in a word, except its first characters, which identify it. */
function maskKeys(word: string): string {
  let masked = '';
  let from = 0;
  let at = 0;
  while (at < word.length) {
    let end = at;
    while (end < word.length && isKeyPart(word.charCodeAt(end))) end += 1;
    const keyCharacters = word.slice(at, end);
    const prefixIndexes = KEY_PREFIXES.map((prefix) => keyCharacters.indexOf(prefix)).filter((start) => start !== -1);
    const start = prefixIndexes.length === 0 ? keyCharacters.length : Math.min(...prefixIndexes);
    if (keyCharacters.length - start >= MIN_KEY_CHARS) {
      masked += word.slice(from, at + start + SHOWN_KEY_CHARS) + MASK;
      from = end;
    }
    at = end + 1;
  }
  return masked + word.slice(from);
}

/** Returns the scheme with its colon, such as `postgres:` of `postgres://…`; empty if the text has no scheme. */
function parseScheme(text: string): string {
  const colon = text.indexOf(':');
  const scheme = text.slice(0, Math.max(0, colon));
  return scheme !== '' && [...scheme].every((character) => isSchemePart(character)) ? `${scheme}:` : '';
}

function isSchemePart(character: string): boolean {
  return isLetter(character) || isDigit(character) || '+.-'.includes(character);
}

function isNamePart(unit: number): boolean {
  const character = String.fromCharCode(unit);
  return isLetter(character) || isDigit(character) || '_-.%'.includes(character);
}

function isKeyPart(unit: number): boolean {
  const character = String.fromCharCode(unit);
  return isLetter(character) || isDigit(character) || character === '_' || character === '-';
}

function isLetter(character: string): boolean {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z');
}

function isDigit(character: string): boolean {
  return character >= '0' && character <= '9';
}

/** Returns true for white space, quotes and angle brackets. */
function isWordEnd(unit: number): boolean {
  return unit <= 0x20 || unit === 0x22 || unit === 0x27 || unit === 0x60 || unit === 0x3c || unit === 0x3e;
}

/** Returns the text with each valid `%XX` decoded as Latin 1, which is sufficient to recognise a URL. Never throws. */
function decodePercent(text: string): string {
  if (!text.includes('%')) return text;
  let decoded = '';
  for (let index = 0; index < text.length; index += 1) {
    const digits = text.slice(index + 1, index + 3);
    const isCode = text[index] === '%' && digits.length === 2 && [...digits].every(isHexDigit);
    decoded += isCode ? String.fromCharCode(Number.parseInt(digits, 16)) : text.charAt(index);
    if (isCode) index += 2;
  }
  return decoded;
}

function isHexDigit(character: string): boolean {
  const lower = character.toLowerCase();
  return isDigit(character) || (lower >= 'a' && lower <= 'f');
}

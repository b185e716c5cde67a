/**
 * Makes text safe to print: replaces control characters and masks secrets.
 *
 * The control characters are C0 and C1 controls, DEL, line and paragraph separators, controls of the Unicode
 * bidirectional algorithm (UAX 9) and lone surrogates. The functions run in linear time and never throw.
 *
 * `escapeJson` does not change the parsed value. `toPrintable` replaces each control character with U+FFFD.
 */

/** For a code unit of well-formed text: a single code unit does not show whether a surrogate is lone. */
export function isUnprintable(codeUnit: number): boolean {
  if (codeUnit < 0x7f) return codeUnit < 0x20;
  if (codeUnit <= 0x9f) return true;
  if (codeUnit < 0x061c) return false;
  return (
    codeUnit === 0x061c ||
    codeUnit === 0x200e ||
    codeUnit === 0x200f ||
    (codeUnit >= 0x2028 && codeUnit <= 0x202e) ||
    (codeUnit >= 0x2066 && codeUnit <= 0x2069)
  );
}

/**
 * The parsed value does not change: outside of strings JSON is ASCII, and JSON.stringify has escaped C0 controls and
 * lone surrogates in strings (RFC 8259 section 7).
 */
export function escapeJson(json: string): string {
  return replaceCodeUnits(
    json,
    (codeUnit) => codeUnit >= 0x7f && isUnprintable(codeUnit),
    (codeUnit) => `\\u${codeUnit.toString(16).padStart(4, '0')}`,
  );
}

/** Replaces each control character, including line breaks, with U+FFFD. */
export function toPrintable(text: string): string {
  return replaceCodeUnits(text.toWellFormed(), isUnprintable, () => '\uFFFD');
}

/** Except line feeds, tabs and the escape character of terminal colors. */
export function toPrintableLines(text: string): string {
  return replaceCodeUnits(
    text.toWellFormed(),
    (codeUnit) => isUnprintable(codeUnit) && codeUnit !== 0x0a && codeUnit !== 0x09 && codeUnit !== 0x1b,
    () => '\uFFFD',
  );
}

function replaceCodeUnits(
  text: string,
  isReplaced: (codeUnit: number) => boolean,
  replacement: (codeUnit: number) => string,
): string {
  let replacedText = '';
  let copiedEnd = 0;
  for (let index = 0; index < text.length; index += 1) {
    const codeUnit = text.charCodeAt(index);
    if (!isReplaced(codeUnit)) continue;
    replacedText += text.slice(copiedEnd, index) + replacement(codeUnit);
    copiedEnd = index + 1;
  }
  return copiedEnd === 0 ? text : replacedText + text.slice(copiedEnd);
}

// The functions below replace secrets with asterisks before a text is printed: passwords of URLs, API keys and operator
// tokens.
//
// `maskUrl` processes a setting, which may be mistyped, so `maskUrl` may mask more text than necessary. `maskSecrets`
// processes a line of prose, in which it masks only text in the format of a secret. Both functions run in linear time,
// never throw, and do not change text that is already masked.

export const MASK = '********';

/** The number of layers of percent-encoding that are decoded. Text with more layers is masked completely. */
const MAX_ENCODING_LAYERS = 3;
/** The schemes of files and folders, whose URLs contain no password. */
const FILE_SCHEMES = ['sqlite', 'capture', 'file'];
/** Substrings that occur in the names of parameters with a secret value. */
const SECRET_NAME_PARTS = ['pass', 'pwd', 'secret', 'token', 'credential', 'signature'];
const KEY_PREFIXES = ['pr_', 'po_', 'por_', 'poc_', 'pom_'];
/**
 * The number of characters of a key that are printed, as in `key list`. A word shorter than MIN_KEY_CHARS is not a key.
 */
const SHOWN_KEY_CHARS = 10;
const MIN_KEY_CHARS = 24;

/** Masks every substring that may be a password in a URL or in any other setting, even if the setting is mistyped. */
export function maskUrl(text: string): string {
  return maskLayers(text, MAX_ENCODING_LAYERS);
}

/** Masks API keys, tokens, and the logins and secret parameters of URLs in a line. */
export function maskSecrets(line: string): string {
  if (!line.includes('//') && !KEY_PREFIXES.some((prefix) => line.includes(prefix))) return line;
  let maskedText = '';
  let wordStart = 0;
  while (wordStart < line.length) {
    let end = wordStart;
    while (end < line.length && !isWordEnd(line.charCodeAt(end))) end += 1;
    maskedText += maskWord(line.slice(wordStart, end));
    if (end < line.length) maskedText += line[end];
    wordStart = end + 1;
  }
  return maskedText;
}

function maskLayers(text: string, layers: number): string {
  const maskedText = maskParameters(maskLogin(text), layers);
  if (maskedText !== text) return maskedText;
  // The whole URL may be percent-encoded, for example `postgres%3A%2F%2Fuser%3Apassword%40host`.
  const decodedText = decodePercent(text);
  if (decodedText === text) return text;
  return layers === 0 || maskLayers(decodedText, layers - 1) !== decodedText ? MASK : text;
}

/**
 * Masks the password before the last `@`, or the whole login if it has no colon. Without an `@`, masks an invalid port
 * and the text after the port.
 */
function maskLogin(text: string): string {
  const scheme = parseScheme(text);
  const textAfterScheme = text.slice(scheme.length);
  if (isFileScheme(scheme)) return scheme + maskPath(textAfterScheme);
  const start = scheme.length + (textAfterScheme.startsWith('//') ? 2 : 0);
  const atIndex = text.lastIndexOf('@');
  if (atIndex >= start) {
    const colonIndex = text.indexOf(':', start);
    const maskStart = colonIndex === -1 || colonIndex > atIndex ? start : colonIndex + 1;
    return text.slice(0, maskStart) + MASK + maskInvalidPort(text, atIndex);
  }
  if (start > scheme.length) return text.slice(0, start) + maskInvalidPort(text, start);
  // In `smtp:user:password` and `user:password`, a scheme cannot be distinguished from a user name, so all text after
  // the first colon is masked.
  if (scheme !== '') return textAfterScheme === '' || isPort(textAfterScheme) ? text : scheme + MASK;
  const slashesIndex = text.indexOf('//');
  return slashesIndex === -1 ? text : text.slice(0, slashesIndex) + maskInvalidPort(text, slashesIndex + 2);
}

/** Masks a possible password in the text after the scheme of a file. The text is a path or, by mistake, a URL. */
function maskPath(path: string): string {
  const scheme = parseScheme(path);
  if (isFileScheme(scheme)) return MASK;
  const hasDriveLetter = scheme.length === 2 && '/\\'.includes(path.charAt(2)) && !path.startsWith('//', 2);
  const colonIndex = path.indexOf(':');
  const hasLogin = colonIndex !== -1 && path.lastIndexOf('@') > colonIndex;
  return hasLogin || (scheme !== '' && !hasDriveLetter) ? maskLogin(path) : path;
}

function isFileScheme(scheme: string): boolean {
  return FILE_SCHEMES.includes(scheme.slice(0, -1).toLowerCase());
}

/**
 * Returns the part of `text` from `start` on. An invalid port and all text after the port are masked. At `start`, the
 * hosts of an authority begin: `host`, `host:5432`, `[::1]:25`, or several hosts separated by commas.
 */
function maskInvalidPort(text: string, start: number): string {
  let end = start;
  while (end < text.length && !'/?#'.includes(text.charAt(end))) end += 1;
  let hostStart = start;
  for (const host of text.slice(start, end).split(',')) {
    const colonIndex = host.indexOf(':', host.lastIndexOf(']') + 1);
    const port = colonIndex === -1 ? '' : host.slice(colonIndex + 1);
    // An invalid port may be the password of a URL without a host.
    if (port !== '' && !isPort(port)) return text.slice(start, hostStart + colonIndex + 1) + MASK;
    hostStart += host.length + 1;
  }
  return text.slice(start);
}

function isPort(text: string): boolean {
  return text.length <= 5 && [...text].every(isDigit) && text !== '';
}

/** Masks the values of parameters whose names indicate a secret, and values that are URLs with a password. */
function maskParameters(text: string, layers: number): string {
  if (!text.includes('=')) return text;
  const maskedText: string[] = [];
  for (const part of text.split('&')) {
    // The end of a secret is unknown, so all following text is masked.
    const secretStart = findSecretValue(part);
    if (secretStart !== -1) return [...maskedText, part.slice(0, secretStart) + MASK].join('&');
    const equalsIndex = part.indexOf('=');
    const value = equalsIndex === -1 ? '' : part.slice(equalsIndex + 1);
    const decodedText = decodePercent(value);
    const hasSecret = decodedText !== value && (layers === 0 || maskLayers(decodedText, layers - 1) !== decodedText);
    maskedText.push(hasSecret ? part.slice(0, equalsIndex + 1) + MASK : part);
  }
  return maskedText.join('&');
}

/**
 * Returns the index at which the value of the first secret begins, as in `host=h password=p`. Returns -1 if there is no
 * secret.
 */
function findSecretValue(part: string): number {
  for (let equalsIndex = part.indexOf('='); equalsIndex !== -1; equalsIndex = part.indexOf('=', equalsIndex + 1)) {
    let nameStart = equalsIndex;
    while (nameStart > 0 && isNamePart(part.charCodeAt(nameStart - 1))) nameStart -= 1;
    if (isSecretName(part.slice(nameStart, equalsIndex))) return equalsIndex + 1;
  }
  return -1;
}

function isSecretName(name: string): boolean {
  const decodedName = decodePercent(name).toLowerCase();
  return SECRET_NAME_PARTS.some((part) => decodedName.includes(part));
}

/** Masks one word of a line. The text before a URL in the word does not change. */
function maskWord(word: string): string {
  const slashesIndex = word.indexOf('//');
  if (slashesIndex === -1) return maskKeys(word);
  const atIndex = word.lastIndexOf('@');
  const colonIndex = word.indexOf(':', slashesIndex);
  const slashIndex = word.indexOf('/', slashesIndex + 2);
  const hasLogin =
    atIndex > slashesIndex &&
    ((colonIndex !== -1 && colonIndex < atIndex) || slashIndex === -1 || atIndex < slashIndex) &&
    !isPlainLink(word, slashesIndex);
  if (!hasLogin) return maskKeys(maskParameters(word, MAX_ENCODING_LAYERS));
  const maskStart = colonIndex !== -1 && colonIndex < atIndex ? colonIndex + 1 : slashesIndex + 2;
  return word.slice(0, maskStart) + MASK + maskParameters(word.slice(atIndex), MAX_ENCODING_LAYERS);
}

/**
 * Returns true for an `http` or `https` link whose authority is a host without a login (RFC 3986 section 3.2). A later
 * `@` of such a link is part of the path or the query. Other URLs are settings, in which an apparent port may be the
 * beginning of a password.
 */
function isPlainLink(word: string, slashesIndex: number): boolean {
  const urlScheme = word.slice(0, slashesIndex).toLowerCase();
  if (!urlScheme.endsWith('http:') && !urlScheme.endsWith('https:')) return false;
  let end = slashesIndex + 2;
  while (end < word.length && !'/?#'.includes(word.charAt(end))) end += 1;
  const authority = word.slice(slashesIndex + 2, end);
  const colonIndex = authority.indexOf(':', authority.startsWith('[') ? authority.indexOf(']') + 1 : 0);
  return !authority.includes('@') && (colonIndex === -1 || isPort(authority.slice(colonIndex + 1)));
}

/** Masks each API key or token in a word, except its first characters, which identify the key or token. */
function maskKeys(word: string): string {
  let maskedText = '';
  let copiedEnd = 0;
  let index = 0;
  while (index < word.length) {
    let end = index;
    while (end < word.length && isKeyPart(word.charCodeAt(end))) end += 1;
    const keyCharacters = word.slice(index, end);
    const prefixIndexes = KEY_PREFIXES.map((prefix) => keyCharacters.indexOf(prefix)).filter((start) => start !== -1);
    const start = prefixIndexes.length === 0 ? keyCharacters.length : Math.min(...prefixIndexes);
    if (keyCharacters.length - start >= MIN_KEY_CHARS) {
      maskedText += word.slice(copiedEnd, index + start + SHOWN_KEY_CHARS) + MASK;
      copiedEnd = end;
    }
    index = end + 1;
  }
  return maskedText + word.slice(copiedEnd);
}

/**
 * Returns the scheme with its colon, such as `postgres:` of `postgres://…`. Returns an empty string if the text has no
 * scheme.
 */
function parseScheme(text: string): string {
  const colonIndex = text.indexOf(':');
  const scheme = text.slice(0, Math.max(0, colonIndex));
  return scheme !== '' && [...scheme].every((character) => isSchemePart(character)) ? `${scheme}:` : '';
}

function isSchemePart(character: string): boolean {
  return isLetter(character) || isDigit(character) || '+.-'.includes(character);
}

function isNamePart(codeUnit: number): boolean {
  const character = String.fromCharCode(codeUnit);
  return isLetter(character) || isDigit(character) || '_-.%'.includes(character);
}

function isKeyPart(codeUnit: number): boolean {
  const character = String.fromCharCode(codeUnit);
  return isLetter(character) || isDigit(character) || character === '_' || character === '-';
}

function isLetter(character: string): boolean {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z');
}

function isDigit(character: string): boolean {
  return character >= '0' && character <= '9';
}

/** Returns true for white space, quotes and angle brackets. */
function isWordEnd(codeUnit: number): boolean {
  return (
    codeUnit <= 0x20 ||
    codeUnit === 0x22 ||
    codeUnit === 0x27 ||
    codeUnit === 0x60 ||
    codeUnit === 0x3c ||
    codeUnit === 0x3e
  );
}

/**
 * Returns the text with each valid `%XX` decoded as Latin 1, which is sufficient to recognize a URL. It never throws.
 */
function decodePercent(text: string): string {
  if (!text.includes('%')) return text;
  let decodedText = '';
  for (let index = 0; index < text.length; index += 1) {
    const digits = text.slice(index + 1, index + 3);
    const isCode = text[index] === '%' && digits.length === 2 && [...digits].every(isHexDigit);
    decodedText += isCode ? String.fromCharCode(Number.parseInt(digits, 16)) : text.charAt(index);
    if (isCode) index += 2;
  }
  return decodedText;
}

function isHexDigit(character: string): boolean {
  const lowerCaseCharacter = character.toLowerCase();
  return isDigit(character) || (lowerCaseCharacter >= 'a' && lowerCaseCharacter <= 'f');
}

// Formats errors as one printable line without secrets.

/** The description of a listener error contains a remedy. */
export function describeError(error: unknown): string {
  return toPrintable(maskSecrets(joinLines(getErrorMessage(error))));
}

export function joinLines(text: string): string {
  const lines = text.split(/[\r\n]/).map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ');
}

function getErrorMessage(error: unknown): string {
  if (!(error instanceof Error)) return `unexpected fault: ${String(error)}`;
  if (error.name === 'CommandFailure' || error.name === 'SettingsError' || error.name === 'StoreError')
    return error.message;
  if ('code' in error && typeof error.code === 'string') {
    const listener = 'address' in error && 'port' in error ? `${String(error.address)}:${String(error.port)}` : null;
    if (listener !== null) return describeListenerError(error.code, listener);
    return error.message === '' ? error.code : error.message;
  }
  return error.message === '' ? `unexpected fault: ${error.name}` : error.message;
}

function describeListenerError(code: string, listener: string): string {
  const settings = 'POSTRIDER_LISTEN or POSTRIDER_OPERATOR_LISTEN';
  switch (code) {
    case 'EADDRINUSE':
      return `${listener} is in use by another program; stop that program, or set another port in ${settings}`;
    case 'EACCES':
      return `this user may not listen on ${listener}; set a port of 1024 or higher in ${settings}`;
    case 'EADDRNOTAVAIL':
      return `${listener} is not an address of this machine; set another address in ${settings}`;
    default:
      return `cannot listen on ${listener} (${code}); set another address in ${settings}`;
  }
}

// Masks what may be secret in the URL of a webhook or of a notification.

/** The maximum length of a URL in an error message. */
const MAX_SHOWN_LENGTH = 200;

/** Path and query may contain a secret of the receiver. */
export function maskTargetPath({ href, origin, pathname, search }: URL): string {
  return pathname === '/' && search === '' ? href : `${origin}/${MASK}`;
}

/** For an error message: without credentials and query. A text that is not a URL is masked up to its last `@`. */
export function maskTargetUrl(text: string): string {
  const queryStart = text.indexOf('?');
  const urlWithoutQuery = queryStart === -1 ? text : text.slice(0, queryStart);
  const maskedUrl = maskCredentials(urlWithoutQuery) + (queryStart === -1 ? '' : `?${MASK}`);
  return maskedUrl.length <= MAX_SHOWN_LENGTH ? maskedUrl : `${maskedUrl.slice(0, MAX_SHOWN_LENGTH)}…`;
}

function maskCredentials(text: string): string {
  const url = URL.parse(text);
  const atIndex = text.lastIndexOf('@');
  const isAtSignInPath = url !== null && url.hostname !== '' && url.username === '' && url.password === '';
  if (atIndex === -1 || isAtSignInPath) return text;
  const slashesIndex = text.indexOf('//');
  const credentialsStart = slashesIndex === -1 || slashesIndex > atIndex ? 0 : slashesIndex + 2;
  return text.slice(0, credentialsStart) + MASK + text.slice(atIndex);
}

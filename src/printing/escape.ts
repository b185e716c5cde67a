/**
 * Makes text safe to print, in linear time. Control characters are C0, C1, DEL, line and paragraph separators, controls
 * of the bidirectional algorithm (UAX 9) and lone surrogates.
 */

const UNPRINTABLE = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
const UNPRINTABLE_IN_JSON = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The value is unchanged: outside of strings JSON is ASCII, and strings are escaped (RFC 8259 section 7). */
export function escapeJson(json: string): string {
  return json.replace(UNPRINTABLE_IN_JSON, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export function toPrintable(text: string): string {
  return text.toWellFormed().replace(UNPRINTABLE, '\uFFFD');
}

/** Except line feeds, tabs and the escape character of terminal colors. */
export function toPrintableLines(text: string): string {
  const replace = (character: string) => ('\n\t\u001b'.includes(character) ? character : '\uFFFD');
  return text.toWellFormed().replace(UNPRINTABLE, replace);
}

export const MASK = '********';

/** Layers of percent-encoding that are decoded. Text with more layers is masked. */
const MAX_ENCODING_LAYERS = 3;
/** The URLs of files and folders contain no login. */
const FILE_SCHEMES = ['sqlite:', 'capture:', 'file:'];
const SECRET_NAME = /pass|pwd|secret|token|credential|signature/;
/** The first characters of API keys and operator tokens identify them in lists. */
const KEY_PREFIX = /p(?:r|o|or|oc|om)_/;
const MIN_KEY_CHARS = 24;
const SHOWN_KEY_CHARS = 10;

/** A value that may be mistyped is masked after its scheme, because a password may be anywhere in it. */
export function maskUrl(text: string): string {
  const [scheme = ''] = /^[a-z][a-z0-9+.-]*:/i.exec(text) ?? [];
  const rest = text.slice(scheme.length);
  if (scheme === '') return /^[\w.-]*$/.test(text) ? text : MASK;
  if (FILE_SCHEMES.includes(scheme.toLowerCase()))
    return rest.includes(':', /^[a-z]:[\\/](?!\/)/i.test(rest) ? 2 : 0) ? scheme + MASK : text;
  if (!rest.startsWith('//')) return /^(?:\d{1,5})?$/.test(rest) ? text : scheme + MASK;
  const [authority = ''] = rest.slice(2).split(/[/?#]/, 1);
  const tail = rest.slice(2 + authority.length);
  const [hosts = '', login, ...others] = authority.split('@').reverse();
  const isCorrect =
    others.length === 0 &&
    hosts.split(',').every(isHostAndPort) &&
    !/[\s#@]/.test(tail) &&
    !hasEncodedLogin(hosts + tail) &&
    findSecretValue(tail) === -1;
  if (!isCorrect) return `${scheme}//${MASK}`;
  if (login === undefined) return text;
  return `${scheme}//${login.slice(0, login.indexOf(':') + 1)}${MASK}@${hosts}${tail}`;
}

/** Masks API keys, tokens, and the logins and secret parameters of URLs in a line of prose. */
export function maskSecrets(line: string): string {
  return line.replace(/[^\s"'`<>]+/g, maskWord);
}

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
  if (!hasLogin) return maskKeys(maskParameters(word));
  const maskStart = colonIndex !== -1 && colonIndex < atIndex ? colonIndex + 1 : slashesIndex + 2;
  return word.slice(0, maskStart) + MASK + maskParameters(word.slice(atIndex));
}

/** A later `@` is part of path or query. In other URLs an apparent port may be the beginning of a password. */
function isPlainLink(word: string, slashesIndex: number): boolean {
  const scheme = /https?:$/i.exec(word.slice(Math.max(0, slashesIndex - 6), slashesIndex))?.[0];
  const url = scheme === undefined ? null : URL.parse(scheme + word.slice(slashesIndex));
  return url !== null && url.username === '' && url.password === '';
}

/** Masks the first secret value and all following text, because the end of a secret is unknown. */
function maskParameters(text: string): string {
  let start = 0;
  for (const part of text.split('&')) {
    const equalsIndex = part.indexOf('=');
    const hasLogin = equalsIndex !== -1 && hasEncodedLogin(part.slice(equalsIndex + 1));
    const secretStart = hasLogin ? equalsIndex + 1 : findSecretValue(part);
    if (secretStart !== -1) return text.slice(0, start + secretStart) + MASK;
    start += part.length + 1;
  }
  return text;
}

/** The index at which the first value with the name of a secret begins, as in `host=h password=p`, or -1. */
function findSecretValue(text: string): number {
  for (let equalsIndex = text.indexOf('='); equalsIndex !== -1; equalsIndex = text.indexOf('=', equalsIndex + 1)) {
    let nameStart = equalsIndex;
    while (nameStart > 0 && /[\w.%-]/.test(text.charAt(nameStart - 1))) nameStart -= 1;
    if (SECRET_NAME.test(decodePercent(text.slice(nameStart, equalsIndex)).toLowerCase())) return equalsIndex + 1;
  }
  return -1;
}

/** An encoded `@` or colon may belong to a login. */
function hasEncodedLogin(text: string): boolean {
  let decodedText = text;
  for (let layer = 0; layer < MAX_ENCODING_LAYERS; layer += 1) decodedText = decodePercent(decodedText);
  return decodedText.split(/[@:]/).length > text.split(/[@:]/).length || decodePercent(decodedText) !== decodedText;
}

function isHostAndPort(text: string): boolean {
  const colonIndex = text.indexOf(':', text.lastIndexOf(']') + 1);
  const [host, port] = colonIndex === -1 ? [text, ''] : [text.slice(0, colonIndex), text.slice(colonIndex + 1)];
  return /^[\w.%:[\]-]*$/.test(host) && /^\d{0,5}$/.test(port);
}

function maskKeys(word: string): string {
  return word.replace(/[\w-]+/g, (text) => {
    const start = text.search(KEY_PREFIX);
    return start === -1 || text.length - start < MIN_KEY_CHARS ? text : text.slice(0, start + SHOWN_KEY_CHARS) + MASK;
  });
}

function decodePercent(text: string): string {
  return text.replace(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
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

/**
 * POSTRIDER_TRANSPORT: the way messages leave, as one URL. Nothing of a URL is ignored: an unknown scheme, parameter
 * or a stray path is a fault. A fault never quotes the password.
 */
import { hostname } from 'node:os';
import { maskUrl } from '../printing/escape.ts';
import { isHost, isHostName } from './host.ts';
import { didYouMean } from './nearest.ts';
import type { TransportSetting } from './settings.ts';
import { invalid, type Parsed, parseCount, quote, valid } from './units.ts';

type Smtp = Extract<TransportSetting, { kind: 'smtp' }>;
type Fault = { readonly ok: false; readonly fault: string };

const EXAMPLE = 'smtp://user:password@smtp.example.com:587?tls=required';
const DEFAULT_CONNECTIONS = 20;
const MOST_CONNECTIONS = 1000;
/** Schemes that product.md names and whose code is not in this version. */
const LATER = ['mx'];
const SES_EXAMPLE = 'ses://eu-west-1?configuration-set=transactional';

/** The EHLO name (RFC 5321 section 4.1.1.1): the machine's host name, or an address literal where that is no name. */
export function defaultEhloName(): string {
  const name = hostname();
  return isHostName(name) ? name : '[127.0.0.1]';
}

export function parseTransport(text: string): Parsed<TransportSetting> {
  const colon = text.indexOf(':');
  const scheme = colon === -1 ? text : text.slice(0, colon);
  const rest = text.slice(scheme.length + 1);
  switch (scheme.toLowerCase()) {
    case 'capture':
      if (colon === -1) return invalid(`${quote(maskUrl(text))} needs its colon: capture:`);
      return rest === ''
        ? valid({ kind: 'capture' })
        : invalid(`${quote(text)} takes nothing after the colon: capture:`);
    case 'smtp':
    case 'smtps':
      return parseSmtp(scheme.toLowerCase() === 'smtps', rest, quote(maskUrl(text)));
    default: {
      if (scheme.toLowerCase() === 'ses') return parseSes(rest, quote(maskUrl(text)));
      if (LATER.includes(scheme.toLowerCase())) {
        return invalid(
          `the scheme ${scheme}: is not supported by this version; use capture:, smtp://, smtps:// or ses://`,
        );
      }
      const hint = didYouMean(scheme, ['capture', 'smtp', 'smtps', 'ses']);
      return invalid(
        `the scheme of ${quote(maskUrl(text))} is unknown${hint}; use capture:, or a URL such as ${EXAMPLE}`,
      );
    }
  }
}

const SES_PARAMETERS = ['endpoint', 'configuration-set'];

/** `ses://REGION[?configuration-set=NAME&endpoint=URL]`; credentials are found where the SDK finds them, and never in here. */
function parseSes(rest: string, shown: string): Parsed<TransportSetting> {
  if (!rest.startsWith('//')) return invalid(`${shown} needs // after the scheme, as in ${SES_EXAMPLE}`);
  const mark = rest.indexOf('?');
  const region = rest.slice(2, mark === -1 ? undefined : mark).replace(/\/$/, '');
  if (region.includes('@'))
    return invalid(`${shown} takes no user or key; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`);
  if (!/^[a-z0-9]+(?:-[a-z0-9]+)+$/.test(region)) return invalid(`${shown} names no region, as in ${SES_EXAMPLE}`);
  const given = new Map<string, string>();
  for (const part of mark === -1 ? [] : rest.slice(mark + 1).split('&')) {
    const equals = part.indexOf('=');
    const name = equals === -1 ? part : part.slice(0, equals);
    const value = percentDecode(equals === -1 ? '' : part.slice(equals + 1)) ?? '';
    if (!SES_PARAMETERS.includes(name)) {
      return unknownParameter(shown, name, SES_PARAMETERS);
    }
    if (given.has(name)) return invalid(`${shown} has the parameter ${name} twice`);
    given.set(name, value);
  }
  const endpoint = given.get('endpoint') ?? null;
  if (endpoint !== null && !isEndpoint(endpoint)) {
    return invalid(`${shown}: endpoint is an http or https URL without a path, as in ?endpoint=http://127.0.0.1:8005`);
  }
  const configurationSet = given.get('configuration-set') ?? null;
  if (configurationSet !== null && !/^[A-Za-z0-9_-]{1,64}$/.test(configurationSet)) {
    return invalid(`${shown}: configuration-set is a name of letters, digits, - and _, at most 64`);
  }
  return valid({ kind: 'ses', region, endpoint, configurationSet });
}

/** Names the parameter where it is a plain word: in a mistyped URL it may be a part of the password. */
function unknownParameter(shown: string, name: string, known: readonly string[]): Fault {
  const hint = didYouMean(name, known);
  const named =
    hint !== '' || /^[a-z-]{1,40}$/.test(name) ? `the unknown parameter ${quote(name)}` : 'an unknown parameter';
  return invalid(`${shown} has ${named}${hint}; there are ${known.join(', ')}`);
}

function isEndpoint(text: string): boolean {
  const url = URL.parse(text);
  return (
    url !== null &&
    (url.protocol === 'http:' || url.protocol === 'https:') &&
    url.username === '' &&
    url.pathname === '/'
  );
}

/** `rest` is all after the scheme's colon; `shown` is the whole text, safe to print. */
function parseSmtp(implicit: boolean, rest: string, shown: string): Parsed<TransportSetting> {
  if (!rest.startsWith('//')) return invalid(`${shown} needs // after the scheme, as in ${EXAMPLE}`);
  if (hasSpaceOrControl(rest)) return invalid(`${shown} holds a space or control character; percent-encode it`);
  // The user part may hold anything but an @, so it is cut off before a ? or / is looked for.
  const at = rest.lastIndexOf('@');
  const auth = parseCredentials(at === -1 ? null : rest.slice(2, at), shown);
  if (!auth.ok) return auth;
  const tail = at === -1 ? rest.slice(2) : rest.slice(at + 1);
  if (tail.includes('#'))
    return invalid(`${shown} has a #; percent-encode it as %23 where it belongs to a name or password`);
  const mark = tail.indexOf('?');
  const place = mark === -1 ? tail : tail.slice(0, mark);
  const where = parsePlace(place.endsWith('/') ? place.slice(0, -1) : place, implicit ? 465 : 25, shown);
  if (!where.ok) return where;
  return parseParameters(mark === -1 ? '' : tail.slice(mark + 1), shown, {
    kind: 'smtp',
    ...where.value,
    tls: implicit ? 'implicit' : 'offered',
    auth: auth.value,
    connections: DEFAULT_CONNECTIONS,
    verifyCertificate: true,
    name: defaultEhloName(),
  });
}

function hasSpaceOrControl(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code <= 0x20 || code === 0x7f) return true;
  }
  return false;
}

function percentDecode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function parseCredentials(written: string | null, shown: string): Parsed<Smtp['auth']> {
  if (written === null) return valid(null);
  const colon = written.indexOf(':');
  if (colon === -1) return invalid(`${shown} has a user name and no password; write user:password@, percent-encoded`);
  const user = percentDecode(written.slice(0, colon));
  const pass = percentDecode(written.slice(colon + 1));
  if (user === null || pass === null) {
    return invalid(`${shown} has a user name or password that is not percent-encoded; write % as %25 and @ as %40`);
  }
  if (user === '' || pass === '') return invalid(`${shown} has an empty user name or password`);
  // RFC 4954, RFC 4616: no NUL may stand in either, and a line break would end the command.
  for (const text of [user, pass]) {
    if ([...text].some((character) => character === '\0' || character === '\r' || character === '\n')) {
      return invalid(`${shown} has a NUL or line break in its user name or password`);
    }
  }
  return valid({ user, pass });
}

function parsePlace(place: string, defaultPort: number, shown: string): Parsed<{ host: string; port: number }> {
  if (place.includes('/')) return invalid(`${shown} has a path, and an SMTP relay has none; give ${EXAMPLE}`);
  const bracket = place.startsWith('[') ? place.indexOf(']') : -1;
  const colon = place.indexOf(':', bracket + 1);
  const written = colon === -1 ? place : place.slice(0, colon);
  const host = bracket > 0 ? written.slice(1, -1) : written;
  if (host === '') return invalid(`${shown} has no host; give one, as in ${EXAMPLE}`);
  if (!isHost(host)) return invalid(`${shown} has no valid host; give a name or an address, as in ${EXAMPLE}`);
  const port = colon === -1 ? valid(defaultPort) : parseCount(place.slice(colon + 1), 1, 65535);
  if (!port.ok) return invalid(`${shown} has no port from 1 to 65535, as in ${EXAMPLE}`);
  return valid({ host, port: port.value });
}

const PARAMETERS = ['tls', 'connections', 'verify', 'name'];

function parseParameters(query: string, shown: string, base: Smtp): Parsed<Smtp> {
  let smtp = base;
  const seen = new Set<string>();
  for (const part of query === '' ? [] : query.split('&')) {
    const equals = part.indexOf('=');
    const name = equals === -1 ? part : part.slice(0, equals);
    const value = percentDecode(equals === -1 ? '' : part.slice(equals + 1)) ?? '';
    if (seen.has(name)) return invalid(`${shown} has the parameter ${name} twice`);
    seen.add(name);
    const next = applyParameter(smtp, name, value, shown);
    if ('ok' in next) return next;
    smtp = next;
  }
  if (!smtp.verifyCertificate && (smtp.tls === 'offered' || smtp.tls === 'never')) {
    return invalid(`${shown} has verify=no, which means something only with ?tls=required or smtps://`);
  }
  return valid(smtp);
}

function applyParameter(smtp: Smtp, name: string, value: string, shown: string): Smtp | Fault {
  switch (name) {
    case 'tls':
      if (value !== 'required' && value !== 'never')
        return invalid(`${shown}: tls is required or never, as in ?tls=required`);
      if (smtp.tls === 'implicit')
        return invalid(`${shown}: smtps:// is TLS from the first byte, so tls= is not for it`);
      return { ...smtp, tls: value };
    case 'connections': {
      const connections = parseCount(value, 1, MOST_CONNECTIONS);
      if (!connections.ok)
        return invalid(`${shown}: connections is a number from 1 to ${MOST_CONNECTIONS}, as in ?connections=20`);
      return { ...smtp, connections: connections.value };
    }
    case 'verify':
      if (value !== 'no' && value !== 'yes') return invalid(`${shown}: verify is yes or no, as in ?verify=no`);
      return { ...smtp, verifyCertificate: value === 'yes' };
    case 'name':
      if (!isHostName(value)) return invalid(`${shown}: name is a host name, as in ?name=mail.example.com`);
      return { ...smtp, name: value };
    default:
      return unknownParameter(shown, name, PARAMETERS);
  }
}

/** Parses POSTRIDER_TRANSPORT. Every part is checked, and an error never contains the password. */
import { hostname } from 'node:os';
import { maskUrl } from '../printing/escape.ts';
import type { RelayParameter } from '../providers/provider.ts';
import { findProvider, findProviderByHost, PROVIDERS } from '../providers/providers.ts';
import { decodePercentEncoding, isHost, isHostName } from './host.ts';
import { NO_ROUTE_LIMITS, type RouteLimits, type TransportSetting } from './settings.ts';
import {
  createFault,
  createParseResult,
  formatSuggestion,
  isRelayParameterValue,
  type ParseResult,
  parseCount,
  parseDuration,
  quote,
  RELAY_PARAMETER_FORM_TEXT,
} from './units.ts';

type SmtpSetting = Extract<TransportSetting, { kind: 'smtp' }>;
type Fault = { readonly ok: false; readonly fault: string };

const EXAMPLE_URL = 'smtp://user:password@smtp.example.com:587?tls=required';
const DEFAULT_CONNECTIONS = 20;
const MAX_CONNECTIONS = 1000;
/** Planned, and not supported by this version. */
const PLANNED_SCHEMES = ['mx'];
const SES_EXAMPLE = 'ses://eu-west-1?configuration-set=transactional';

/** The host name of the machine, or an address literal (RFC 5321 section 4.1.1.1). */
export function getDefaultEhloName(): string {
  const name = hostname();
  return isHostName(name) ? name : '[127.0.0.1]';
}

export function parseTransport(text: string): ParseResult<TransportSetting> {
  const colonIndex = text.indexOf(':');
  const scheme = colonIndex === -1 ? text : text.slice(0, colonIndex);
  const afterScheme = text.slice(scheme.length + 1);
  switch (scheme.toLowerCase()) {
    case 'capture':
      if (colonIndex === -1) return createFault(`${quote(maskUrl(text))} needs a colon; write capture:`);
      return afterScheme === ''
        ? createParseResult({ kind: 'capture' })
        : createFault(`${quote(text)} has text after the colon; write capture:`);
    case 'smtp':
    case 'smtps':
      return parseSmtp(scheme.toLowerCase() === 'smtps', afterScheme, quote(maskUrl(text)));
    default: {
      if (scheme.toLowerCase() === 'ses') return parseSes(afterScheme, quote(maskUrl(text)));
      if (PLANNED_SCHEMES.includes(scheme.toLowerCase())) {
        return createFault(
          `the scheme ${scheme}: is not supported by this version; use capture:, smtp://, smtps:// or ses://`,
        );
      }
      const hint = formatSuggestion(scheme, ['capture', 'smtp', 'smtps', 'ses']);
      return createFault(
        `the scheme of ${quote(maskUrl(text))} is unknown${hint}; use capture:, or a URL such as ${EXAMPLE_URL}`,
      );
    }
  }
}

/** A further route is no inbox: `capture:` would end the messages that should be sent. */
export function parseRouteTransport(text: string): ParseResult<TransportSetting> {
  return text.toLowerCase().startsWith('capture:')
    ? createFault('capture: is valid only in POSTRIDER_TRANSPORT; give the URL of a relay, or remove this route')
    : parseTransport(text);
}

const LIMIT_PARAMETERS = ['daily', 'ramp'];
const MAX_DAILY = 1_000_000_000;
const MAX_RAMP_MS = 366 * 86_400_000;

function applyLimit(limits: RouteLimits, name: string, value: string, maskedUrl: string): RouteLimits | Fault {
  if (name === 'daily') {
    const daily = parseCount(value, 1, MAX_DAILY);
    return daily.ok
      ? { ...limits, daily: daily.value }
      : createFault(`${maskedUrl}: daily must be a number of messages from 1 to ${MAX_DAILY}, as in ?daily=500`);
  }
  const ramp = parseDuration(value);
  return ramp.ok && ramp.value <= MAX_RAMP_MS
    ? { ...limits, rampMs: ramp.value }
    : createFault(`${maskedUrl}: ramp must be a duration of up to 366 days, as in ?ramp=14d`);
}

const SES_PARAMETERS = ['endpoint', 'configuration-set', ...LIMIT_PARAMETERS];

/** The AWS SDK finds the credentials, and the URL never contains them. */
function parseSes(afterScheme: string, maskedUrl: string): ParseResult<TransportSetting> {
  if (!afterScheme.startsWith('//')) return createFault(`${maskedUrl} needs // after the scheme, as in ${SES_EXAMPLE}`);
  const queryIndex = afterScheme.indexOf('?');
  const region = afterScheme.slice(2, queryIndex === -1 ? undefined : queryIndex).replace(/\/$/, '');
  if (region.includes('@'))
    return createFault(`${maskedUrl} must not contain credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`);
  if (!/^[a-z0-9]+(?:-[a-z0-9]+)+$/.test(region))
    return createFault(`${maskedUrl} names no region; give one, as in ${SES_EXAMPLE}`);
  const query = parseQuery(queryIndex === -1 ? '' : afterScheme.slice(queryIndex + 1), maskedUrl);
  if (!query.ok) return query;
  const parameters = query.value;
  const unknownName = [...parameters.keys()].find((name) => !SES_PARAMETERS.includes(name));
  if (unknownName !== undefined) return createUnknownParameterFault(maskedUrl, unknownName, SES_PARAMETERS);
  const endpoint = parameters.get('endpoint') ?? null;
  if (endpoint !== null && !isEndpoint(endpoint)) {
    return createFault(
      `${maskedUrl}: endpoint must be an http or https URL without a path, as in ?endpoint=http://127.0.0.1:8005`,
    );
  }
  const configurationSet = parameters.get('configuration-set') ?? null;
  if (configurationSet !== null && !isRelayParameterValue(configurationSet)) {
    return createFault(`${maskedUrl}: configuration-set must be ${RELAY_PARAMETER_FORM_TEXT}`);
  }
  let limits = NO_ROUTE_LIMITS;
  for (const name of LIMIT_PARAMETERS) {
    const value = parameters.get(name);
    if (value === undefined) continue;
    const limited = applyLimit(limits, name, value, maskedUrl);
    if ('ok' in limited) return limited;
    limits = limited;
  }
  return createParseResult({
    kind: 'ses',
    region,
    endpoint,
    configurationSet,
    ...(limits === NO_ROUTE_LIMITS ? {} : { limits }),
  });
}

/** In a mistyped URL the name may be a part of the password, so only plain words are named. */
function createUnknownParameterFault(maskedUrl: string, name: string, knownParameters: readonly string[]): Fault {
  const hint = formatSuggestion(name, knownParameters);
  const parameterPhrase =
    hint !== '' || /^[a-z-]{1,40}$/.test(name) ? `the unknown parameter ${quote(name)}` : 'an unknown parameter';
  return createFault(`${maskedUrl} has ${parameterPhrase}${hint}; the parameters are ${knownParameters.join(', ')}`);
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

function parseSmtp(usesImplicitTls: boolean, afterScheme: string, maskedUrl: string): ParseResult<TransportSetting> {
  if (!afterScheme.startsWith('//')) return createFault(`${maskedUrl} needs // after the scheme, as in ${EXAMPLE_URL}`);
  if (/[\p{Cc} ]/u.test(afterScheme))
    return createFault(`${maskedUrl} contains a space or control character; percent-encode it`);
  // The credentials may contain ? and /.
  const atSignIndex = afterScheme.lastIndexOf('@');
  const auth = parseCredentials(atSignIndex === -1 ? null : afterScheme.slice(2, atSignIndex), maskedUrl);
  if (!auth.ok) return auth;
  const afterCredentials = atSignIndex === -1 ? afterScheme.slice(2) : afterScheme.slice(atSignIndex + 1);
  if (afterCredentials.includes('#'))
    return createFault(`${maskedUrl} has a #; write %23 if it belongs to a user name or password`);
  const queryIndex = afterCredentials.indexOf('?');
  const authority = queryIndex === -1 ? afterCredentials : afterCredentials.slice(0, queryIndex);
  const hostPort = parseHostPort(
    authority.endsWith('/') ? authority.slice(0, -1) : authority,
    usesImplicitTls ? 465 : 25,
    maskedUrl,
  );
  if (!hostPort.ok) return hostPort;
  return parseParameters(queryIndex === -1 ? '' : afterCredentials.slice(queryIndex + 1), maskedUrl, {
    kind: 'smtp',
    ...hostPort.value,
    tls: usesImplicitTls ? 'implicit' : 'offered',
    auth: auth.value,
    connections: DEFAULT_CONNECTIONS,
    verifyCertificate: true,
    name: getDefaultEhloName(),
    provider: null,
    relayParameters: {},
  });
}

function parseQuery(query: string, maskedUrl: string): ParseResult<ReadonlyMap<string, string>> {
  const parameters = new Map<string, string>();
  for (const text of query === '' ? [] : query.split('&')) {
    const [name = '', ...values] = text.split('=');
    if (parameters.has(name)) return createFault(`${maskedUrl} has the parameter ${name} twice; remove one`);
    parameters.set(name, decodePercentEncoding(values.join('=')) ?? '');
  }
  return createParseResult(parameters);
}

function parseCredentials(credentials: string | null, maskedUrl: string): ParseResult<SmtpSetting['auth']> {
  if (credentials === null) return createParseResult(null);
  const colonIndex = credentials.indexOf(':');
  if (colonIndex === -1)
    return createFault(`${maskedUrl} has a user name without a password; write user:password@, percent-encoded`);
  const user = decodePercentEncoding(credentials.slice(0, colonIndex));
  const password = decodePercentEncoding(credentials.slice(colonIndex + 1));
  if (user === null || password === null) {
    return createFault(
      `${maskedUrl} has a user name or password that is not percent-encoded; write % as %25 and @ as %40`,
    );
  }
  if (user === '' || password === '')
    return createFault(`${maskedUrl} has an empty user name or password; set both, or remove them`);
  // RFC 4954 and RFC 4616 forbid NUL in the user name and the password. A line break would end the SMTP command.
  for (const text of [user, password]) {
    if ([...text].some((character) => character === '\0' || character === '\r' || character === '\n')) {
      return createFault(`${maskedUrl} has a NUL or line break in its user name or password; remove it`);
    }
  }
  return createParseResult({ user, pass: password });
}

function parseHostPort(
  text: string,
  defaultPort: number,
  maskedUrl: string,
): ParseResult<{ host: string; port: number }> {
  if (text.includes('/')) return createFault(`${maskedUrl} has a path; remove it, as in ${EXAMPLE_URL}`);
  const bracketIndex = text.startsWith('[') ? text.indexOf(']') : -1;
  const colonIndex = text.indexOf(':', bracketIndex + 1);
  const hostText = colonIndex === -1 ? text : text.slice(0, colonIndex);
  const host = bracketIndex > 0 ? hostText.slice(1, -1) : hostText;
  if (host === '') return createFault(`${maskedUrl} has no host; add one, as in ${EXAMPLE_URL}`);
  if (!isHost(host))
    return createFault(`${maskedUrl} has no valid host; give a name or an address, as in ${EXAMPLE_URL}`);
  const port = colonIndex === -1 ? createParseResult(defaultPort) : parseCount(text.slice(colonIndex + 1), 1, 65535);
  if (!port.ok) return createFault(`${maskedUrl} has no port from 1 to 65535; give one, as in ${EXAMPLE_URL}`);
  return createParseResult({ host, port: port.value });
}

const PARAMETERS = ['tls', 'connections', 'verify', 'name', 'provider', ...LIMIT_PARAMETERS];
const RELAY_PROVIDERS: readonly string[] = PROVIDERS.flatMap(({ name, relay }) => (relay === null ? [] : [name]));

function parseParameters(query: string, maskedUrl: string, defaults: SmtpSetting): ParseResult<SmtpSetting> {
  const parsedQuery = parseQuery(query, maskedUrl);
  if (!parsedQuery.ok) return parsedQuery;
  const parameters = parsedQuery.value;
  // The provider determines the default of `connections` and the parameters that the relay accepts.
  const relay = applyProvider(defaults, parameters.get('provider') ?? null, maskedUrl);
  if ('ok' in relay) return relay;
  let smtp = relay;
  for (const [name, value] of parameters) {
    const parameterResult = applyParameter(smtp, name, value, maskedUrl);
    if ('ok' in parameterResult) return parameterResult;
    smtp = parameterResult;
  }
  if (!smtp.verifyCertificate && (smtp.tls === 'offered' || smtp.tls === 'never')) {
    return createFault(
      `${maskedUrl} has verify=no, which is valid only with ?tls=required or smtps://; add one of them, or remove verify=no`,
    );
  }
  return createParseResult(smtp);
}

/** Without `?provider=`, the host name determines the provider. */
function applyProvider(smtp: SmtpSetting, name: string | null, maskedUrl: string): SmtpSetting | Fault {
  if (name !== null && !RELAY_PROVIDERS.includes(name)) {
    const hint = formatSuggestion(name, RELAY_PROVIDERS);
    return createFault(`${maskedUrl}: provider is not known${hint}; the providers are ${RELAY_PROVIDERS.join(', ')}`);
  }
  const provider = name === null ? findProviderByHost(smtp.host) : findProvider(name);
  const connections = provider?.relay?.connections ?? smtp.connections;
  return { ...smtp, provider: provider?.name ?? null, connections };
}

function applyParameter(smtp: SmtpSetting, name: string, value: string, maskedUrl: string): SmtpSetting | Fault {
  switch (name) {
    case 'tls':
      if (value !== 'required' && value !== 'never')
        return createFault(`${maskedUrl}: tls must be required or never, as in ?tls=required`);
      if (smtp.tls === 'implicit') return createFault(`${maskedUrl}: smtps:// always uses TLS; remove tls=`);
      return { ...smtp, tls: value };
    case 'connections': {
      const connections = parseCount(value, 1, MAX_CONNECTIONS);
      if (!connections.ok)
        return createFault(
          `${maskedUrl}: connections must be a number from 1 to ${MAX_CONNECTIONS}, as in ?connections=20`,
        );
      return { ...smtp, connections: connections.value };
    }
    case 'verify':
      if (value !== 'no' && value !== 'yes')
        return createFault(`${maskedUrl}: verify must be yes or no, as in ?verify=no`);
      return { ...smtp, verifyCertificate: value === 'yes' };
    case 'name':
      if (!isHostName(value))
        return createFault(`${maskedUrl}: name must be a host name, as in ?name=mail.example.com`);
      return { ...smtp, name: value };
    case 'provider':
      return smtp;
    case 'daily':
    case 'ramp': {
      const limits = applyLimit(smtp.limits ?? NO_ROUTE_LIMITS, name, value, maskedUrl);
      return 'ok' in limits ? limits : { ...smtp, limits };
    }
    default:
      return applyRelayParameter(smtp, name, value, maskedUrl);
  }
}

function applyRelayParameter(smtp: SmtpSetting, name: string, value: string, maskedUrl: string): SmtpSetting | Fault {
  const acceptedParameters: readonly RelayParameter[] = findProvider(smtp.provider)?.relay?.parameters ?? [];
  const parameter = acceptedParameters.find((candidate) => candidate === name);
  if (parameter === undefined)
    return createUnknownParameterFault(maskedUrl, name, [...PARAMETERS, ...acceptedParameters]);
  if (!isRelayParameterValue(value))
    return createFault(`${maskedUrl}: ${parameter} must be ${RELAY_PARAMETER_FORM_TEXT}`);
  return { ...smtp, relayParameters: { ...smtp.relayParameters, [parameter]: value } };
}

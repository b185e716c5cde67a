/**
 * Parses a PostgreSQL URL of libpq (postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS), also with
 * several hosts or `?host=` as the folder of a socket. Every part is checked, and an error never contains the password.
 */

import { userInfo } from 'node:os';
import type { HostPort } from '../model/listen-address.ts';
import { maskUrl } from '../printing/escape.ts';
import { decodePercentEncoding, isHost } from './host.ts';
import type { PostgresSetting } from './settings.ts';
import { createFault, createParseResult, formatSuggestion, type ParseResult, quote } from './units.ts';

const EXAMPLE_URL = 'postgres://postrider:password@db.example.com/postrider';
const DEFAULT_PORT = 5432;
const PARAMETERS = [
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'schema',
  'pooler',
  'prepared',
  'host',
  'port',
  'options',
  'target_session_attrs',
  'application_name',
];
/** PostgreSQL permits more names. A comma separates the schemas of a search path. */
const SCHEMA_NAME = /^[A-Za-z_][A-Za-z0-9_$-]{0,62}$/;
const TLS_MODES: Readonly<Record<string, PostgresSetting['tls']>> = {
  disable: 'never',
  allow: 'preferred',
  prefer: 'preferred',
  require: 'required',
  'verify-ca': 'verified-chain',
  'verify-full': 'verified',
};

export function isDatabaseUrl(text: string): boolean {
  return /^postgres(ql)?:/i.test(text);
}

/** Without a user the name of the operating system user is used, as in libpq. */
export function parseDatabaseUrl(text: string): ParseResult<PostgresSetting> {
  const maskedUrl = quote(maskUrl(text));
  const createUrlFault = (problem: string) => createFault(`${maskedUrl} ${problem}; use the form ${EXAMPLE_URL}`);
  const schemeEnd = text.indexOf('://');
  if (schemeEnd < 0) return createUrlFault('needs // after the colon');
  const afterScheme = text.slice(schemeEnd + 3);
  const queryIndex = afterScheme.indexOf('?');
  const beforeQuery = queryIndex < 0 ? afterScheme : afterScheme.slice(0, queryIndex);
  const slashIndex = beforeQuery.indexOf('/');
  // The password contains an unencoded / or ?, and the errors below would contain parts of it.
  if (slashIndex >= 0 && beforeQuery.includes('@', slashIndex))
    return createUrlFault('has an @ after its first /; write / as %2F and @ as %40');
  const authority = slashIndex < 0 ? beforeQuery : beforeQuery.slice(0, slashIndex);
  const database = slashIndex < 0 ? '' : decodePercentEncoding(beforeQuery.slice(slashIndex + 1));
  if (database === null || database === '' || database.includes('/'))
    return createUrlFault('names no database after the host');
  const atSignIndex = authority.lastIndexOf('@');
  const credentials = atSignIndex < 0 ? '' : authority.slice(0, atSignIndex);
  const colonIndex = credentials.indexOf(':');
  const user = decodePercentEncoding(colonIndex < 0 ? credentials : credentials.slice(0, colonIndex));
  const password = colonIndex < 0 ? null : decodePercentEncoding(credentials.slice(colonIndex + 1));
  if (user === null || (colonIndex >= 0 && password === null))
    return createUrlFault('has a % in its user or password that is not percent-encoded; write %25');

  const parameters = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(queryIndex < 0 ? '' : afterScheme.slice(queryIndex + 1))) {
    if (!PARAMETERS.includes(name)) return createFault(describeUnknownParameter(maskedUrl, name));
    if (parameters.has(name)) return createFault(`${maskedUrl} has the parameter ${name} twice; remove one`);
    parameters.set(name, value);
  }
  const tls = TLS_MODES[parameters.get('sslmode') ?? 'prefer'];
  if (tls === undefined)
    return createFault(`${maskedUrl}: sslmode must be one of ${Object.keys(TLS_MODES).join(', ')}`);
  const certificates = parseTlsParameters(parameters, tls);
  if (typeof certificates === 'string') return createFault(`${maskedUrl}: ${certificates}`);
  const schema = parameters.get('schema') ?? null;
  const options = parameters.get('options') ?? null;
  if (schema !== null && !SCHEMA_NAME.test(schema))
    return createFault(`${maskedUrl}: schema must be one name of at most 63 letters, digits, _, - and $`);
  if (schema !== null && options !== null && /search[-_]path/i.test(options))
    return createFault(`${maskedUrl}: schema and search_path in options are both set; remove one of them`);
  const pooler = parameters.get('pooler') ?? null;
  if (pooler !== null && pooler !== 'transaction')
    return createFault(`${maskedUrl}: pooler must be transaction; a pooler in session mode needs no parameter`);
  if (pooler !== null && options !== null)
    return createFault(
      `${maskedUrl}: a pooler in transaction mode refuses options; set them with ALTER ROLE, or remove them`,
    );
  const preparedText = parameters.get('prepared') ?? 'no';
  if (preparedText !== 'yes' && preparedText !== 'no') return createFault(`${maskedUrl}: prepared must be yes or no`);
  if (preparedText === 'yes' && pooler === null)
    return createFault(
      `${maskedUrl}: prepared=yes needs pooler=transaction; without a pooler, statements are always prepared`,
    );
  const sessionAttributes = parameters.get('target_session_attrs') ?? 'read-write';
  if (sessionAttributes !== 'read-write' && sessionAttributes !== 'primary' && sessionAttributes !== 'any') {
    return createFault(
      `${maskedUrl}: target_session_attrs must be read-write or primary, because Postrider writes to the database`,
    );
  }
  const hosts = parseHosts(parameters.get('host') ?? authority.slice(atSignIndex + 1), parameters.get('port'));
  if (typeof hosts === 'string') return createFault(`${maskedUrl}: ${hosts}`);
  return createParseResult({
    kind: 'postgres',
    hosts,
    user: user === '' ? userInfo().username : user,
    password,
    database,
    tls: hosts.every(({ host }) => host.startsWith('/')) ? 'never' : certificates.tls,
    tlsFiles: certificates.files,
    schema,
    options,
    pooler,
    tracksStatements: preparedText === 'yes',
    direct: null,
  });
}

/** As in libpq, `require` with `sslrootcert` checks the certificate chain. Returns an error as text. */
function parseTlsParameters(
  parameters: ReadonlyMap<string, string>,
  tls: PostgresSetting['tls'],
): { readonly tls: PostgresSetting['tls']; readonly files: PostgresSetting['tlsFiles'] } | string {
  const [rootCert = null, cert = null, key = null] = ['sslrootcert', 'sslcert', 'sslkey'].map((name) =>
    parameters.get(name),
  );
  const emptyParameter = ['sslrootcert', 'sslcert', 'sslkey'].find((name) => parameters.get(name) === '');
  if (emptyParameter !== undefined) return `${emptyParameter} is empty; give the path of a PEM file`;
  if (rootCert !== null && (tls === 'never' || tls === 'preferred'))
    return 'sslrootcert needs sslmode=verify-full, which checks the certificate of the server';
  if ((cert === null) !== (key === null))
    return 'sslcert and sslkey can only be set together; set both, or remove both';
  if (cert !== null && tls === 'never') return 'sslcert needs TLS; set sslmode=verify-full';
  return { tls: tls === 'required' && rootCert !== null ? 'verified-chain' : tls, files: { rootCert, cert, key } };
}

/** In a mistyped URL the name may be a part of the password, so only plain words are named. */
function describeUnknownParameter(maskedUrl: string, name: string): string {
  const hint = formatSuggestion(name, PARAMETERS);
  if (hint !== '' || /^[a-z_]{1,40}$/.test(name)) return `${maskedUrl} has the unknown parameter ${name}${hint}`;
  return `${maskedUrl} has an unknown parameter; the parameters are ${PARAMETERS.join(', ')}`;
}

function parseHosts(text: string, port: string | undefined): readonly HostPort[] | string {
  const hosts: HostPort[] = [];
  for (const hostAndPort of (text === '' ? '127.0.0.1' : text).split(',')) {
    const socket = decodePercentEncoding(hostAndPort) ?? hostAndPort;
    const hostEnd = hostAndPort.startsWith('[')
      ? hostAndPort.indexOf(']') + 1
      : hostAndPort.includes(':')
        ? hostAndPort.lastIndexOf(':')
        : hostAndPort.length;
    const isSocket = socket.startsWith('/');
    const host = isSocket ? socket : hostAndPort.slice(0, hostEnd).replace(/^\[|\]$/g, '');
    const portText =
      isSocket || hostEnd >= hostAndPort.length ? (port ?? String(DEFAULT_PORT)) : hostAndPort.slice(hostEnd + 1);
    const parsedPort = /^\d{1,5}$/.test(portText) ? Number(portText) : 0;
    // Without the host and the port, because in a mistyped URL both may be parts of the password.
    if (!isSocket && !isHost(host)) return 'the host is not a host name or address; give one such as db.example.com';
    if (parsedPort < 1 || parsedPort > 65_535)
      return `the port is not a number from 1 to 65535; give a port such as ${DEFAULT_PORT}`;
    hosts.push({ host, port: parsedPort });
  }
  return hosts;
}

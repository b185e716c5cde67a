/**
 * Parses POSTRIDER_DATABASE as a PostgreSQL URL in the form of libpq
 * (postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS): a URL can have several hosts for failover,
 * and `?host=` can be the folder of a socket. No part of a URL is ignored: an unknown parameter is an error. An error
 * never contains the password.
 */

import { userInfo } from 'node:os';
import type { HostPort } from '../model/listen-address.ts';
import { maskUrl } from '../printing/escape.ts';
import { isHost } from './host.ts';
import { didYouMean } from './nearest.ts';
import type { PostgresSetting } from './settings.ts';
import { invalid, type Parsed, quote, valid } from './units.ts';

const EXAMPLE = 'postgres://postrider:password@db.example.com/postrider';
const DEFAULT_PORT = 5432;
const PARAMETERS = [
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'schema',
  'pooler',
  'host',
  'port',
  'options',
  'target_session_attrs',
  'application_name',
];
/** A part of the names that PostgreSQL permits: no comma, which separates schemas, and no space. */
const SCHEMA_NAME = /^[A-Za-z_][A-Za-z0-9_$-]{0,62}$/;
const TLS_MODES: Readonly<Record<string, PostgresSetting['tls']>> = {
  disable: 'never',
  allow: 'preferred',
  prefer: 'preferred',
  require: 'required',
  'verify-ca': 'verified-chain',
  'verify-full': 'verified',
};

/** Returns true if the text is the URL of a PostgreSQL server. */
export function isDatabaseUrl(text: string): boolean {
  return /^postgres(ql)?:/i.test(text);
}

/** Parses `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?sslmode=…`. */
export function parseDatabaseUrl(text: string): Parsed<PostgresSetting> {
  const shown = quote(maskUrl(text));
  const invalidUrl = (problem: string) => invalid(`${shown} ${problem}; use the form ${EXAMPLE}`);
  const start = text.indexOf('://');
  if (start < 0) return invalidUrl('needs // after the colon');
  const afterScheme = text.slice(start + 3);
  const queryIndex = afterScheme.indexOf('?');
  const beforeQuery = queryIndex < 0 ? afterScheme : afterScheme.slice(0, queryIndex);
  const slash = beforeQuery.indexOf('/');
  // An @ after the first / is part of a password with an unencoded / or ?. The errors below would contain parts of the
  // password.
  if (slash >= 0 && beforeQuery.includes('@', slash))
    return invalidUrl('has an @ after its first /; write / as %2F and @ as %40');
  const authority = slash < 0 ? beforeQuery : beforeQuery.slice(0, slash);
  const database = slash < 0 ? '' : percentDecode(beforeQuery.slice(slash + 1));
  if (database === null || database === '' || database.includes('/'))
    return invalidUrl('names no database after the host');
  const at = authority.lastIndexOf('@');
  const credentials = at < 0 ? '' : authority.slice(0, at);
  const colon = credentials.indexOf(':');
  const user = percentDecode(colon < 0 ? credentials : credentials.slice(0, colon));
  const password = colon < 0 ? null : percentDecode(credentials.slice(colon + 1));
  if (user === null || (colon >= 0 && password === null))
    return invalidUrl('has a % in its user or password that is not percent-encoded; write %25');

  const parameters = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(queryIndex < 0 ? '' : afterScheme.slice(queryIndex + 1))) {
    if (!PARAMETERS.includes(name)) return invalid(unknownParameter(shown, name));
    if (parameters.has(name)) return invalid(`${shown} has the parameter ${name} twice; remove one`);
    parameters.set(name, value);
  }
  const tls = TLS_MODES[parameters.get('sslmode') ?? 'prefer'];
  if (tls === undefined) return invalid(`${shown}: sslmode must be one of ${Object.keys(TLS_MODES).join(', ')}`);
  const certificates = parseCertificates(parameters, tls);
  if (typeof certificates === 'string') return invalid(`${shown}: ${certificates}`);
  const schema = parameters.get('schema') ?? null;
  const options = parameters.get('options') ?? null;
  if (schema !== null && !SCHEMA_NAME.test(schema))
    return invalid(`${shown}: schema must be one name of at most 63 letters, digits, _, - and $`);
  if (schema !== null && options !== null && /search[-_]path/i.test(options))
    return invalid(`${shown}: schema and search_path in options are both set; remove one of them`);
  const pooler = parameters.get('pooler') ?? null;
  if (pooler !== null && pooler !== 'transaction')
    return invalid(`${shown}: pooler must be transaction; a pooler in session mode needs no parameter`);
  if (pooler !== null && options !== null)
    return invalid(`${shown}: a pooler in transaction mode refuses options; set them with ALTER ROLE, or remove them`);
  const attributes = parameters.get('target_session_attrs') ?? 'read-write';
  if (attributes !== 'read-write' && attributes !== 'primary' && attributes !== 'any') {
    return invalid(`${shown}: target_session_attrs must be read-write or primary, because Postrider writes`);
  }
  const hosts = parseHosts(parameters.get('host') ?? authority.slice(at + 1), parameters.get('port'));
  if (typeof hosts === 'string') return invalid(`${shown}: ${hosts}`);
  return valid({
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
    direct: null,
  });
}

/**
 * Returns the files and the mode of TLS, or the error as text. As in libpq, `require` with `sslrootcert` checks the
 * certificate chain.
 */
function parseCertificates(
  parameters: ReadonlyMap<string, string>,
  tls: PostgresSetting['tls'],
): { readonly tls: PostgresSetting['tls']; readonly files: PostgresSetting['tlsFiles'] } | string {
  const [rootCert = null, cert = null, key = null] = ['sslrootcert', 'sslcert', 'sslkey'].map((name) =>
    parameters.get(name),
  );
  const empty = ['sslrootcert', 'sslcert', 'sslkey'].find((name) => parameters.get(name) === '');
  if (empty !== undefined) return `${empty} is empty; give the path of a PEM file`;
  if (rootCert !== null && (tls === 'never' || tls === 'preferred'))
    return 'sslrootcert needs sslmode=verify-full, which checks the certificate of the server';
  if ((cert === null) !== (key === null)) return 'sslcert and sslkey need each other; set both, or remove both';
  if (cert !== null && tls === 'never') return 'sslcert needs TLS; set sslmode=verify-full';
  return { tls: tls === 'required' && rootCert !== null ? 'verified-chain' : tls, files: { rootCert, cert, key } };
}

/**
 * Returns the error. It contains the parameter only if that is a plain word, because in a mistyped URL it may be part
 * of the password.
 */
function unknownParameter(shown: string, name: string): string {
  const hint = didYouMean(name, PARAMETERS);
  if (hint !== '' || /^[a-z_]{1,40}$/.test(name)) return `${shown} has the unknown parameter ${name}${hint}`;
  return `${shown} has an unknown parameter; the parameters are ${PARAMETERS.join(', ')}`;
}

/** Returns the hosts, or the error as text. */
function parseHosts(text: string, port: string | undefined): readonly HostPort[] | string {
  const hosts: HostPort[] = [];
  for (const part of (text === '' ? '127.0.0.1' : text).split(',')) {
    const socket = percentDecode(part) ?? part;
    const end = part.startsWith('[') ? part.indexOf(']') + 1 : part.includes(':') ? part.lastIndexOf(':') : part.length;
    const isSocket = socket.startsWith('/');
    const host = isSocket ? socket : part.slice(0, end).replace(/^\[|\]$/g, '');
    const portText = isSocket || end >= part.length ? (port ?? String(DEFAULT_PORT)) : part.slice(end + 1);
    const number = /^\d{1,5}$/.test(portText) ? Number(portText) : 0;
    // The errors contain neither the host nor the port, because in a mistyped URL they may be part of the password.
    if (!isSocket && !isHost(host)) return 'its host is not a host name or address; give one such as db.example.com';
    if (number < 1 || number > 65_535)
      return `its port is not a number from 1 to 65535; give a port such as ${DEFAULT_PORT}`;
    hosts.push({ host, port: number });
  }
  return hosts;
}

/** Returns the percent-decoded text, or null if it is malformed. */
function percentDecode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

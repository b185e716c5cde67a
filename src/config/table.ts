/**
 * Defines the table of settings: name, default, parser, meaning. The loader, the check for unknown names, `postrider config`
 * and docs/configuration.md are derived from the table. A test compares the page with the table.
 */
import { type Stats, statSync } from 'node:fs';
import { parseAddress } from '../model/address.ts';
import { MASK, maskUrl } from '../printing/escape.ts';
import { isDatabaseUrl, parseDatabaseUrl } from './database-url.ts';
import { parseHttpListen, parseListen, parseNetworks, parseResolver } from './host.ts';
import { didYouMean } from './nearest.ts';
import type { DatabaseSetting, PostgresSetting, Role, Settings } from './settings.ts';
import { parseTransport } from './transport-url.ts';
import {
  duplicateFault,
  formatDuration,
  formatSize,
  invalid,
  type Parsed,
  parseDuration,
  parseSize,
  quote,
  valid,
} from './units.ts';

/** The values of a setting. */
interface ValueKind<T> {
  readonly parse: (text: string) => Parsed<T>;
  /** The type of the value, such as `duration`; docs/configuration.md explains the types. */
  readonly type: string;
  /** The accepted values as text. Null if the type implies the values. */
  readonly range: string | null;
}

/** `whole`: the value is a secret. `password`: the value is a URL that may contain a password. */
type Secrecy = 'no' | 'password' | 'whole';

export interface SettingSpec<T> extends ValueKind<T> {
  readonly name: string;
  /** The text of the default; null if the setting has no default. */
  readonly default: string | null;
  readonly meaning: string;
  /** An example that the parser accepts. */
  readonly example: string;
  readonly secret: Secrecy;
  /** The value as it is printed, with secrets masked. */
  readonly show: (text: string) => string;
}

const ROLES: readonly Role[] = ['api', 'deliver', 'feedback', 'operator'];
const SECOND_MS = 1000;
const DAY_MS = 86_400_000;

const FORMATTERS: { readonly [secrecy in Secrecy]: (text: string) => string } = {
  no: (text) => text,
  password: maskUrl,
  whole: () => MASK,
};

/** Creates the specification of a setting. */
function spec<T>(
  name: string,
  value: { readonly default: string | null; readonly example: string; readonly secret?: Secrecy },
  kind: ValueKind<T>,
  meaning: string,
): SettingSpec<T> {
  const secret = value.secret ?? 'no';
  return { ...kind, name, default: value.default, meaning, example: value.example, secret, show: FORMATTERS[secret] };
}

function kind<T>(type: string, parse: (text: string) => Parsed<T>, range: string | null = null): ValueKind<T> {
  return { type, parse, range };
}

function parseOneOf<const T extends string>(choices: readonly T[]): (text: string) => Parsed<T> {
  return (text) => {
    const choice = choices.find((known) => known === text);
    return choice === undefined
      ? invalid(`${quote(text)} is not one of ${choices.join(', ')}${didYouMean(text, choices)}`)
      : valid(choice);
  };
}

function oneOf<const T extends string>(choices: readonly T[]): ValueKind<T> {
  return kind('word', parseOneOf(choices), choices.map((choice) => `\`${choice}\``).join(', '));
}

function durationBetween(minMs: number, maxMs: number): ValueKind<number> {
  const [min, max] = [formatDuration(minMs), formatDuration(maxMs)];
  const parse = (text: string): Parsed<number> => {
    const parsed = parseDuration(text);
    if (!parsed.ok || (parsed.value >= minMs && parsed.value <= maxMs)) return parsed;
    return invalid(`${quote(text)} is not between ${min} and ${max}`);
  };
  return kind('duration', parse, `\`${min}\` to \`${max}\``);
}

function sizeBetween(minBytes: number, maxBytes: number): ValueKind<number> {
  const [min, max] = [formatSize(minBytes), formatSize(maxBytes)];
  const parse = (text: string): Parsed<number> => {
    const parsed = parseSize(text);
    if (!parsed.ok || (parsed.value >= minBytes && parsed.value <= maxBytes)) return parsed;
    return invalid(`${quote(text)} is not between ${min} and ${max}`);
  };
  return kind('size', parse, `\`${min}\` to \`${max}\``);
}

/** Parses POSTRIDER_DATABASE, or another setting of its kind. */
export function parseDatabase(text: string): Parsed<DatabaseSetting> {
  const example = 'sqlite:./data/postrider.db';
  if (isDatabaseUrl(text)) return parseDatabaseUrl(text);
  const shown = quote(maskUrl(text));
  if (!text.startsWith('sqlite:')) return invalid(`${shown} is not a database such as ${example}`);
  const path = text.slice('sqlite:'.length);
  // `sqlite:postgres://user:password@host/mail` would create folders with this name, which contains the password.
  if (path.includes('://') || /^[^/]*:[^/]*@/.test(path))
    return invalid(`${shown} has a URL after sqlite:; remove sqlite:, or give a path such as ${example}`);
  if (path.trim() === '' || path.endsWith('/'))
    return invalid(`${shown} names no file; give a file, such as ${example}`);
  // An accepted message must survive the end of the process.
  if (path === ':memory:') return invalid(`${shown} would lose accepted messages; give a file, such as ${example}`);
  if (path.startsWith('//') && !path.startsWith('///')) {
    return invalid(`${shown} names a host; give sqlite:/absolute/path or ${example}`);
  }
  if (path.includes('?'))
    return invalid(`${shown} has parameters, which sqlite: does not support; give a file, such as ${example}`);
  return valid({ kind: 'sqlite', path: path.startsWith('///') ? path.slice(2) : path });
}

/** Parses POSTRIDER_DATABASE_DIRECT. */
function parseDirect(text: string): Parsed<PostgresSetting> {
  if (!isDatabaseUrl(text)) return invalid(`${quote(maskUrl(text))} is not a URL such as ${EXAMPLE_DATABASE}`);
  const parsed = parseDatabaseUrl(text);
  return parsed.ok && parsed.value.pooler !== null
    ? invalid(`${quote(maskUrl(text))} has pooler=transaction; give the address of the server itself`)
    : parsed;
}

function parseRoles(text: string): Parsed<ReadonlySet<Role>> {
  if (text === 'all') return valid(new Set(ROLES));
  const names = text.split(',').map((name) => name.trim());
  const roles = new Set<Role>();
  for (const name of names) {
    const role = parseOneOf(ROLES)(name);
    if (!role.ok)
      return invalid(`${quote(name)} is not a role; give all, or a comma-separated list of ${ROLES.join(', ')}`);
    roles.add(role.value);
  }
  return duplicateFault(names) ?? valid(roles);
}

function parseFile(text: string): Parsed<string> {
  let found: Stats | undefined;
  try {
    found = statSync(text, { throwIfNoEntry: false });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
    return invalid(`${quote(text)} cannot be read (${code}); give the path of a readable PEM file`);
  }
  if (found === undefined) return invalid(`there is no file ${quote(text)}; give the path of a PEM file`);
  return found.isFile() ? valid(text) : invalid(`${quote(text)} is not a file; give the path of a PEM file`);
}

function parsePassword(text: string): Parsed<string> {
  const isValid = text.length >= 8 && text.length <= 200;
  return isValid ? valid(text) : invalid('the password must have 8 to 200 characters');
}

function parseSecretText(text: string): Parsed<string> {
  return /^[0-9a-fA-F]{64}$/.test(text)
    ? valid(text)
    : invalid('the secret must have 64 hexadecimal digits; `openssl rand -hex 32` prints one');
}

/** `arn:aws:sns:REGION:ACCOUNT:NAME`, also of the partitions `aws-cn` and `aws-us-gov`. */
const TOPIC_ARN_PATTERN = /^arn:aws(?:-cn|-us-gov)?:sns:[a-z0-9-]{1,40}:[0-9]{12}:[A-Za-z0-9_-]{1,256}$/;

function parseTopics(text: string): Parsed<readonly string[]> {
  const topics = text.split(',').map((topic) => topic.trim());
  const invalidTopic = topics.find((topic) => !TOPIC_ARN_PATTERN.test(topic));
  if (invalidTopic === undefined) return duplicateFault(topics) ?? valid(Object.freeze(topics));
  return invalid(
    `${quote(invalidTopic)} is not the ARN of an SNS topic such as arn:aws:sns:eu-west-1:123456789012:ses-feedback; give one or more, separated by commas`,
  );
}

function parseQueue(text: string): Parsed<string> {
  const url = URL.parse(text);
  const isValid =
    url !== null &&
    (url.protocol === 'https:' || url.protocol === 'http:') &&
    url.username === '' &&
    url.password === '' &&
    url.search === '' &&
    url.hash === '' &&
    url.pathname.length > 1;
  if (isValid) return valid(text);
  return invalid(
    `${quote(text)} is not the URL of an SQS queue such as https://sqs.eu-west-1.amazonaws.com/123456789012/ses-feedback`,
  );
}

function parseReturnPath(text: string): Parsed<string> {
  const address = parseAddress(`x@${text}`);
  return address === null
    ? invalid(`${quote(text)} is not a domain such as bounces.example.com`)
    : valid(address.domain);
}

const EXAMPLE_DATABASE = 'postgres://postrider:password@db.example.com/postrider?sslmode=verify-full';
const LISTEN_ADDRESS = kind('host:port', parseListen);
const HTTP_LISTEN_ADDRESS = kind('host:port', parseHttpListen, '`host:port`, `unix:/PATH`');
const PEM_FILE = kind('path of a PEM file', parseFile);
const EXAMPLE_SECRET = '9f2c4e6a8b0d1f3e5c7a9b1d3f5e7c9a0b2d4f6e8c1a3b5d7f9e0c2a4b6d8f1e';

export const SETTINGS_TABLE = {
  database: spec(
    'POSTRIDER_DATABASE',
    {
      default: 'sqlite:./data/postrider.db',
      example: EXAMPLE_DATABASE,
      secret: 'password',
    },
    kind('URL', parseDatabase, '`sqlite:FILE`, `postgres://…`'),
    'URL of the database. `sqlite:FILE` is the embedded database in one file. A relative path begins at the working directory. `postgres://USER:PASSWORD@HOST/DATABASE` is a PostgreSQL database, which any number of nodes share; docs/postgresql.md lists its parameters.',
  ),
  databaseDirect: spec(
    'POSTRIDER_DATABASE_DIRECT',
    {
      default: null,
      example: EXAMPLE_DATABASE,
      secret: 'password',
    },
    kind('URL', parseDirect, '`postgres://…`'),
    'The PostgreSQL database of `POSTRIDER_DATABASE` without its pooler. Notifications and migrations use this connection. If unset, migrations use the pooler, and behind a pooler in transaction mode nodes learn of changes by polling.',
  ),
  requireSyncStandby: spec(
    'POSTRIDER_REQUIRE_SYNC_STANDBY',
    { default: 'no', example: 'yes' },
    oneOf(['no', 'yes']),
    '`yes`: no message is accepted (500, `/readyz` fails) while the setting `synchronous_standby_names` of the PostgreSQL server is empty.',
  ),
  transport: spec(
    'POSTRIDER_TRANSPORT',
    {
      default: 'capture:',
      example: 'smtp://user:password@smtp.example.com:587?tls=required',
      secret: 'password',
    },
    kind('URL', parseTransport, '`capture:`, `smtp://…`, `smtps://…`, `ses://REGION`'),
    'The route of all messages. `capture:` stores them in a local inbox and sends nothing. `smtp:` and `smtps:` send through a relay. `ses:` sends through Amazon SES.',
  ),
  listen: spec(
    'POSTRIDER_LISTEN',
    { default: '127.0.0.1:8080', example: '0.0.0.0:8080' },
    HTTP_LISTEN_ADDRESS,
    'Address of the public listener, which accepts messages. `unix:/PATH` is a unix socket for a reverse proxy on this machine; it uses HTTP without TLS.',
  ),
  operatorListen: spec(
    'POSTRIDER_OPERATOR_LISTEN',
    { default: '127.0.0.1:8081', example: '127.0.0.1:9081' },
    HTTP_LISTEN_ADDRESS,
    'Address of the operator listener: dashboard, operator API, metrics, OpenAPI documents. `unix:/PATH` is a unix socket, which needs `POSTRIDER_OPERATOR_PASSWORD`.',
  ),
  operatorPassword: spec(
    'POSTRIDER_OPERATOR_PASSWORD',
    { default: null, example: 'correct-horse-battery', secret: 'whole' },
    kind('text', parsePassword, '8 to 200 characters'),
    'Password of the operator listener. Without a password, the start prints a one-time sign-in link, and the listener accepts loopback addresses only.',
  ),
  trustedProxies: spec(
    'POSTRIDER_TRUSTED_PROXIES',
    { default: null, example: '10.0.0.0/8,192.0.2.7' },
    kind('comma list', parseNetworks, 'IP addresses and networks'),
    'Reverse proxies in front of a listener. Only from these proxies are the headers `X-Forwarded-For` and `X-Forwarded-Proto` read, and the limit on connections per client address does not apply to them. The peers of a unix socket are trusted without this setting. A connection from one of these addresses to `POSTRIDER_FEEDBACK_LISTEN` must begin with the header of the PROXY protocol, version 1 or 2.',
  ),
  tlsCert: spec(
    'POSTRIDER_TLS_CERT',
    { default: null, example: '/etc/ssl/postrider.pem' },
    PEM_FILE,
    'Certificate chain of the public listener, which then uses HTTPS. The feedback listeners use the same certificate. This setting requires `POSTRIDER_TLS_KEY`. A changed file is read again without a restart.',
  ),
  tlsKey: spec(
    'POSTRIDER_TLS_KEY',
    { default: null, example: '/etc/ssl/postrider.key' },
    PEM_FILE,
    'Private key of `POSTRIDER_TLS_CERT`.',
  ),
  senders: spec(
    'POSTRIDER_SENDERS',
    { default: 'authenticated', example: 'any' },
    oneOf(['authenticated', 'any']),
    'Selects the senders that are accepted. `authenticated`: the domain of the sender must be authenticated for the account. `any`: all senders. With `capture:` all senders are accepted.',
  ),
  maxAgeMs: spec(
    'POSTRIDER_MAX_AGE',
    { default: '24h', example: '10m' },
    durationBetween(SECOND_MS, 30 * DAY_MS),
    'Maximum age of a message. A message that is older and not delivered ends as `expired`. Time during which no service runs is not included.',
  ),
  maxRequestBytes: spec(
    'POSTRIDER_MAX_REQUEST',
    { default: '1MiB', example: '4MiB' },
    sizeBetween(1024, 64 * 1_048_576),
    'Maximum size of a request body. A larger body is refused with status 400.',
  ),
  keepBodyMs: spec(
    'POSTRIDER_KEEP_BODY',
    { default: '7d', example: '1d' },
    durationBetween(0, 3650 * DAY_MS),
    'Retention of message bodies. A body is erased this long after the message reached a terminal state, never before.',
  ),
  onUncertain: spec(
    'POSTRIDER_ON_UNCERTAIN',
    { default: 'resend', example: 'hold' },
    oneOf(['resend', 'hold']),
    'Selects the action for a message whose connection or node was lost after the whole message was sent and before the reply. `resend`: the message is sent again with the same Message-ID. `hold`: the message becomes `uncertain` and waits for an operator.',
  ),
  secret: spec(
    'POSTRIDER_SECRET',
    { default: null, example: EXAMPLE_SECRET, secret: 'whole' },
    kind('hexadecimal text', parseSecretText, '64 digits'),
    'The secret of the installation, the same on every node. The secret encrypts private keys at rest and signs return paths. If unset, the first start creates the file `secret` beside the database.',
  ),
  dns: spec(
    'POSTRIDER_DNS',
    { default: null, example: '127.0.0.1:53' },
    kind('host:port', parseResolver),
    'DNS resolver for the records of domains. If unset, the resolver of the system is used.',
  ),
  returnPathDomain: spec(
    'POSTRIDER_RETURN_PATH_DOMAIN',
    { default: null, example: 'bounces.example.org' },
    kind('domain', parseReturnPath),
    'Domain of the envelope sender. Its MX record must name the host of the feedback listener. If unset, the envelope sender is the sender of the message.',
  ),
  feedbackListen: spec(
    'POSTRIDER_FEEDBACK_LISTEN',
    { default: null, example: '0.0.0.0:25' },
    LISTEN_ADDRESS,
    'Address of the SMTP listener for bounces and complaints that are sent to the return path. If unset, there is no such listener. This setting requires `POSTRIDER_RETURN_PATH_DOMAIN`.',
  ),
  feedbackHttpListen: spec(
    'POSTRIDER_FEEDBACK_HTTP_LISTEN',
    { default: null, example: '0.0.0.0:8443' },
    HTTP_LISTEN_ADDRESS,
    'Address of the listener for provider events of Amazon SES through SNS, path `/ses`. With `POSTRIDER_TLS_CERT` the listener uses HTTPS. If unset, there is no such listener. This setting requires `POSTRIDER_SES_TOPICS`.',
  ),
  sesTopics: spec(
    'POSTRIDER_SES_TOPICS',
    { default: null, example: 'arn:aws:sns:eu-west-1:123456789012:ses-feedback' },
    kind('comma list', parseTopics, 'ARNs of SNS topics'),
    'SNS topics whose provider events are accepted.',
  ),
  sesQueue: spec(
    'POSTRIDER_SES_QUEUE',
    {
      default: null,
      example: 'https://sqs.eu-west-1.amazonaws.com/123456789012/ses-feedback',
      secret: 'password',
    },
    kind('URL', parseQueue),
    'SQS queue from which provider events of Amazon SES are read, for a service that is not reachable from the Internet.',
  ),
  roles: spec(
    'POSTRIDER_ROLES',
    { default: 'all', example: 'api,operator' },
    kind('comma list', parseRoles, `\`all\`, or ${ROLES.map((role) => `\`${role}\``).join(', ')}`),
    'The roles of this node. `api` accepts messages, `deliver` sends them, `feedback` receives bounces and complaints, `operator` serves the operator listener.',
  ),
  logLevel: spec(
    'POSTRIDER_LOG',
    { default: 'info', example: 'warn' },
    oneOf(['debug', 'info', 'warn', 'error', 'silent']),
    'Lowest log level that is written. `silent` logs nothing.',
  ),
} as const satisfies Record<string, SettingSpec<Settings[keyof Settings] | string>>;

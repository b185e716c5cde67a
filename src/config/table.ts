/** The table of settings, from which the loader, `postrider config` and docs/configuration.md are derived. */
import { type Stats, statSync } from 'node:fs';
import { parseAddress } from '../model/address.ts';
import { MASK, maskUrl } from '../printing/escape.ts';
import { BREVO } from '../providers/brevo.ts';
import { MAILERSEND } from '../providers/mailersend.ts';
import { MAILGUN } from '../providers/mailgun.ts';
import { MAILJET } from '../providers/mailjet.ts';
import { MAILTRAP } from '../providers/mailtrap.ts';
import { MANDRILL } from '../providers/mandrill.ts';
import { POSTAL } from '../providers/postal.ts';
import { POSTMARK } from '../providers/postmark.ts';
import type { EventProviderName, Provider } from '../providers/provider.ts';
import { RESEND } from '../providers/resend.ts';
import { SENDGRID } from '../providers/sendgrid.ts';
import { SPARKPOST } from '../providers/sparkpost.ts';
import { isDatabaseUrl, parseDatabaseUrl } from './database-url.ts';
import { parseHttpListen, parseListen, parseNetworks, parseResolver } from './host.ts';
import { maskTargets, parseNotifyFrom, parseNotifySecrets, parseNotifyTargets } from './notify.ts';
import type { DatabaseSetting, PostgresSetting, Role, Settings } from './settings.ts';
import { parseRouteTransport, parseTransport } from './transport-url.ts';
import {
  createFault,
  createParseResult,
  findDuplicate,
  formatDurationSetting,
  formatSize,
  formatSuggestion,
  type ParseResult,
  parseDuration,
  parseSize,
  quote,
} from './units.ts';

interface ValueKind<T> {
  readonly parse: (text: string) => ParseResult<T>;
  /** docs/configuration.md explains the types. */
  readonly type: string;
  /** Null if every value of the type is accepted. */
  readonly range: string | null;
}

/** `password`: a URL that may contain one. `urls`: targets, whose paths and queries may be secrets. */
type Secrecy = 'no' | 'password' | 'urls' | 'whole';

export interface SettingSpec<T> extends ValueKind<T> {
  readonly name: string;
  readonly default: string | null;
  readonly meaning: string;
  readonly example: string;
  readonly secrecy: Secrecy;
  readonly formatMaskedValue: (text: string) => string;
}

const ROLES: readonly Role[] = ['api', 'deliver', 'feedback', 'operator'];
const SECOND_MS = 1000;
const DAY_MS = 86_400_000;

const MASKED_FORMATTERS: { readonly [secrecy in Secrecy]: (text: string) => string } = {
  no: (text) => text,
  password: maskUrl,
  urls: maskTargets,
  whole: () => MASK,
};

function createSpec<T>(
  name: string,
  value: { readonly default: string | null; readonly example: string; readonly secrecy?: Secrecy },
  kind: ValueKind<T>,
  meaning: string,
): SettingSpec<T> {
  const secrecy = value.secrecy ?? 'no';
  return {
    ...kind,
    name,
    default: value.default,
    meaning,
    example: value.example,
    secrecy,
    formatMaskedValue: MASKED_FORMATTERS[secrecy],
  };
}

function createValueKind<T>(
  type: string,
  parse: (text: string) => ParseResult<T>,
  range: string | null = null,
): ValueKind<T> {
  return { type, parse, range };
}

function parseOneOf<const T extends string>(choices: readonly T[]): (text: string) => ParseResult<T> {
  return (text) => {
    const choice = choices.find((knownChoice) => knownChoice === text);
    return choice === undefined
      ? createFault(`${quote(text)} is not one of ${choices.join(', ')}${formatSuggestion(text, choices)}`)
      : createParseResult(choice);
  };
}

function createChoiceKind<const T extends string>(choices: readonly T[]): ValueKind<T> {
  return createValueKind('word', parseOneOf(choices), choices.map((choice) => `\`${choice}\``).join(', '));
}

function createDurationKind(minMs: number, maxMs: number): ValueKind<number> {
  const [min, max] = [formatDurationSetting(minMs), formatDurationSetting(maxMs)];
  const parse = (text: string): ParseResult<number> => {
    const parsedDuration = parseDuration(text);
    if (!parsedDuration.ok || (parsedDuration.value >= minMs && parsedDuration.value <= maxMs)) return parsedDuration;
    return createFault(`${quote(text)} is not between ${min} and ${max}`);
  };
  return createValueKind('duration', parse, `\`${min}\` to \`${max}\``);
}

function createSizeKind(minBytes: number, maxBytes: number): ValueKind<number> {
  const [min, max] = [formatSize(minBytes), formatSize(maxBytes)];
  const parse = (text: string): ParseResult<number> => {
    const parsedSize = parseSize(text);
    if (!parsedSize.ok || (parsedSize.value >= minBytes && parsedSize.value <= maxBytes)) return parsedSize;
    return createFault(`${quote(text)} is not between ${min} and ${max}`);
  };
  return createValueKind('size', parse, `\`${min}\` to \`${max}\``);
}

/** Also for another setting with the same syntax. */
export function parseDatabase(text: string): ParseResult<DatabaseSetting> {
  const example = 'sqlite:./data/postrider.db';
  if (isDatabaseUrl(text)) return parseDatabaseUrl(text);
  const maskedUrl = quote(maskUrl(text));
  if (!text.startsWith('sqlite:')) return createFault(`${maskedUrl} is not a database such as ${example}`);
  const path = text.slice('sqlite:'.length);
  // `sqlite:postgres://user:password@host/mail` would create folders whose names contain the password.
  if (path.includes('://') || /^[^/]*:[^/]*@/.test(path))
    return createFault(`${maskedUrl} has a URL after sqlite:; remove sqlite:, or give a path such as ${example}`);
  if (path.trim() === '' || path.endsWith('/'))
    return createFault(`${maskedUrl} names no file; give a file, such as ${example}`);
  // An accepted message must survive the end of the process.
  if (path === ':memory:')
    return createFault(`${maskedUrl} would lose accepted messages; give a file, such as ${example}`);
  if (path.startsWith('//') && !path.startsWith('///')) {
    return createFault(`${maskedUrl} names a host; give sqlite:/absolute/path or ${example}`);
  }
  if (path.includes('?'))
    return createFault(`${maskedUrl} has parameters, which sqlite: does not support; give a file, such as ${example}`);
  return createParseResult({ kind: 'sqlite', path: path.startsWith('///') ? path.slice(2) : path });
}

function parseDirectDatabase(text: string): ParseResult<PostgresSetting> {
  if (!isDatabaseUrl(text)) return createFault(`${quote(maskUrl(text))} is not a URL such as ${EXAMPLE_DATABASE}`);
  const parsedUrl = parseDatabaseUrl(text);
  return parsedUrl.ok && parsedUrl.value.pooler !== null
    ? createFault(`${quote(maskUrl(text))} has pooler=transaction; give the address of the server itself`)
    : parsedUrl;
}

function parseRoles(text: string): ParseResult<ReadonlySet<Role>> {
  if (text === 'all') return createParseResult(new Set(ROLES));
  const names = text.split(',').map((name) => name.trim());
  const roles = new Set<Role>();
  for (const name of names) {
    const role = parseOneOf(ROLES)(name);
    if (!role.ok)
      return createFault(`${quote(name)} is not a role; give all, or a comma-separated list of ${ROLES.join(', ')}`);
    roles.add(role.value);
  }
  return findDuplicate(names) ?? createParseResult(roles);
}

/** The content is not read. */
function parseFilePath(text: string): ParseResult<string> {
  let fileStatus: Stats | undefined;
  try {
    fileStatus = statSync(text, { throwIfNoEntry: false });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
    return createFault(`${quote(text)} cannot be read (${code}); give the path of a readable PEM file`);
  }
  if (fileStatus === undefined) return createFault(`there is no file ${quote(text)}; give the path of a PEM file`);
  return fileStatus.isFile()
    ? createParseResult(text)
    : createFault(`${quote(text)} is not a file; give the path of a PEM file`);
}

function parsePassword(text: string): ParseResult<string> {
  const isValid = text.length >= 8 && text.length <= 200;
  return isValid ? createParseResult(text) : createFault('the password must have 8 to 200 characters');
}

function parseSecretText(text: string): ParseResult<string> {
  return /^[0-9a-fA-F]{64}$/.test(text)
    ? createParseResult(text)
    : createFault('the secret must have 64 hexadecimal digits; `openssl rand -hex 32` prints one');
}

const TOPIC_ARN_PATTERN = /^arn:aws(?:-cn|-us-gov)?:sns:[a-z0-9-]{1,40}:[0-9]{12}:[A-Za-z0-9_-]{1,256}$/;

function parseTopics(text: string): ParseResult<readonly string[]> {
  const topics = text.split(',').map((topic) => topic.trim());
  const invalidTopic = topics.find((topic) => !TOPIC_ARN_PATTERN.test(topic));
  if (invalidTopic === undefined) return findDuplicate(topics) ?? createParseResult(Object.freeze(topics));
  return createFault(
    `${quote(invalidTopic)} is not the ARN of an SNS topic such as arn:aws:sns:eu-west-1:123456789012:ses-feedback; give one or more, separated by commas`,
  );
}

function parseQueue(text: string): ParseResult<string> {
  const url = URL.parse(text);
  const isValid =
    url !== null &&
    (url.protocol === 'https:' || url.protocol === 'http:') &&
    url.username === '' &&
    url.password === '' &&
    url.search === '' &&
    url.hash === '' &&
    url.pathname.length > 1;
  if (isValid) return createParseResult(text);
  return createFault(
    `${quote(text)} is not the URL of an SQS queue such as https://sqs.eu-west-1.amazonaws.com/123456789012/ses-feedback`,
  );
}

function parseReturnPathDomain(text: string): ParseResult<string> {
  const address = parseAddress(`x@${text}`);
  return address === null
    ? createFault(`${quote(text)} is not a domain such as bounces.example.com`)
    : createParseResult(address.domain);
}

function parseDomains(text: string): ParseResult<readonly string[]> {
  const domains: string[] = [];
  for (const item of text.split(',')) {
    const domain = parseAddress(`x@${item.trim()}`)?.domain;
    if (domain === undefined)
      return createFault(
        `${quote(item.trim())} is not a domain such as fbl.example.com; give one or more, separated by commas`,
      );
    domains.push(domain);
  }
  return findDuplicate(domains) ?? createParseResult(Object.freeze(domains));
}

/** Without a slash at its end. */
function parsePublicUrl(text: string, example: string): ParseResult<string> {
  const url = URL.parse(text);
  const isValid =
    url !== null &&
    (url.protocol === 'https:' || url.protocol === 'http:') &&
    url.username === '' &&
    url.password === '' &&
    !text.includes('?') &&
    !text.includes('#');
  if (!isValid) return createFault(`${quote(maskUrl(text))} is not a URL such as ${example}`);
  return createParseResult(text.endsWith('/') ? text.slice(0, -1) : text);
}

function createEventSecretsSpec({ name, title, events }: Provider): SettingSpec<readonly string[]> {
  const parse = (text: string): ParseResult<readonly string[]> => {
    const secrets = text.split(',').map((secret) => secret.trim());
    if (events === null || secrets.includes(''))
      return createFault('the list contains an empty secret; remove a comma');
    const authenticatorResult = events.createAuthenticator(secrets);
    return authenticatorResult.ok ? createParseResult(secrets) : createFault(authenticatorResult.fault);
  };
  const secretForm = events?.secretForm ?? '';
  const unsetText =
    events?.isEndpointTest === undefined
      ? 'If unset, the path does not exist.'
      : `If unset, the path answers only the request by which ${title} tests the URL.`;
  return createSpec(
    `POSTRIDER_EVENTS_${name.toUpperCase()}`,
    { default: null, example: events?.secretExample ?? '', secrecy: 'whole' },
    createValueKind('comma list', parse, secretForm),
    `Secrets of the events that ${title} sends to \`/events/${name}\`, several during a rotation or for several accounts at the provider. ${unsetText}`,
  );
}

const EXAMPLE_DATABASE = 'postgres://postrider:password@db.example.com/postrider?sslmode=verify-full';
const LISTEN_ADDRESS = createValueKind('host:port', parseListen);
const HTTP_LISTEN_ADDRESS = createValueKind('host:port', parseHttpListen, '`host:port`, `unix:/PATH`');
const PEM_FILE = createValueKind('path of a PEM file', parseFilePath);
const EXAMPLE_SECRET = '9f2c4e6a8b0d1f3e5c7a9b1d3f5e7c9a0b2d4f6e8c1a3b5d7f9e0c2a4b6d8f1e';

export const SETTINGS_TABLE = {
  database: createSpec(
    'POSTRIDER_DATABASE',
    {
      default: 'sqlite:./data/postrider.db',
      example: EXAMPLE_DATABASE,
      secrecy: 'password',
    },
    createValueKind('URL', parseDatabase, '`sqlite:FILE`, `postgres://…`'),
    'URL of the database. `sqlite:FILE` is the embedded database in one file. A relative path is resolved against the working directory. `postgres://USER:PASSWORD@HOST/DATABASE` is a PostgreSQL database, which several nodes can share; docs/postgresql.md lists its parameters.',
  ),
  databaseDirect: createSpec(
    'POSTRIDER_DATABASE_DIRECT',
    {
      default: null,
      example: EXAMPLE_DATABASE,
      secrecy: 'password',
    },
    createValueKind('URL', parseDirectDatabase, '`postgres://…`'),
    'URL that connects to the database of `POSTRIDER_DATABASE` without its pooler. Migrations and `LISTEN` use this connection. If unset, migrations use the pooler, and behind a pooler in transaction mode, nodes poll for changes.',
  ),
  requireSyncStandby: createSpec(
    'POSTRIDER_REQUIRE_SYNC_STANDBY',
    { default: 'no', example: 'yes' },
    createChoiceKind(['no', 'yes']),
    '`yes`: no message is accepted (500, `/readyz` fails) while the setting `synchronous_standby_names` of the PostgreSQL server is empty.',
  ),
  transport: createSpec(
    'POSTRIDER_TRANSPORT',
    {
      default: 'capture:',
      example: 'smtp://user:password@smtp.example.com:587?tls=required',
      secrecy: 'password',
    },
    createValueKind('URL', parseTransport, '`capture:`, `smtp://…`, `smtps://…`, `ses://REGION`'),
    'The route `default`. `capture:` stores messages in a local inbox and sends nothing. `smtp:` and `smtps:` send through a relay. `ses:` sends through Amazon SES.',
  ),
  listen: createSpec(
    'POSTRIDER_LISTEN',
    { default: '127.0.0.1:8080', example: '0.0.0.0:8080' },
    HTTP_LISTEN_ADDRESS,
    'Address of the public listener, which accepts messages. `unix:/PATH` is a unix socket for a reverse proxy on this machine; it uses HTTP without TLS.',
  ),
  operatorListen: createSpec(
    'POSTRIDER_OPERATOR_LISTEN',
    { default: '127.0.0.1:8081', example: '127.0.0.1:9081' },
    HTTP_LISTEN_ADDRESS,
    'Address of the operator listener: dashboard, operator API, metrics, OpenAPI documents. `unix:/PATH` is a unix socket, which needs `POSTRIDER_OPERATOR_PASSWORD`.',
  ),
  operatorUrl: createSpec(
    'POSTRIDER_OPERATOR_URL',
    { default: null, example: 'https://mail.example.com' },
    createValueKind('URL', (text) => parsePublicUrl(text, 'https://mail.example.com')),
    'Public URL of the operator listener, for links in notifications. If unset, the links begin with the address of `POSTRIDER_OPERATOR_LISTEN`.',
  ),
  operatorPassword: createSpec(
    'POSTRIDER_OPERATOR_PASSWORD',
    { default: null, example: 'correct-horse-battery', secrecy: 'whole' },
    createValueKind('text', parsePassword, '8 to 200 characters'),
    'Password of the operator listener. Without a password, the start prints a one-time sign-in link, and the listener must have a loopback address.',
  ),
  trustedProxies: createSpec(
    'POSTRIDER_TRUSTED_PROXIES',
    { default: null, example: '10.0.0.0/8,192.0.2.7' },
    createValueKind('comma list', parseNetworks, 'IP addresses and networks'),
    'Reverse proxies in front of a listener. The headers `X-Forwarded-For` and `X-Forwarded-Proto` are read only from these proxies. The peers of a unix socket are trusted without this setting. A connection from a proxy in this list to `POSTRIDER_FEEDBACK_LISTEN` must begin with the header of the PROXY protocol, version 1 or 2.',
  ),
  tlsCert: createSpec(
    'POSTRIDER_TLS_CERT',
    { default: null, example: '/etc/ssl/postrider.pem' },
    PEM_FILE,
    'The certificate chain of the public listener. If set, the listener uses HTTPS. The feedback listeners use the same certificate. This setting requires `POSTRIDER_TLS_KEY`. A changed file is loaded without a restart.',
  ),
  tlsKey: createSpec(
    'POSTRIDER_TLS_KEY',
    { default: null, example: '/etc/ssl/postrider.key' },
    PEM_FILE,
    'Private key of the certificate in `POSTRIDER_TLS_CERT`. This setting requires `POSTRIDER_TLS_CERT`.',
  ),
  senders: createSpec(
    'POSTRIDER_SENDERS',
    { default: 'authenticated', example: 'any' },
    createChoiceKind(['authenticated', 'any']),
    'Selects the senders that are accepted. `authenticated`: the domain of the sender must be authenticated for the account. `any`: all senders. With `capture:` all senders are accepted.',
  ),
  maxAgeMs: createSpec(
    'POSTRIDER_MAX_AGE',
    { default: '24h', example: '10m' },
    createDurationKind(SECOND_MS, 30 * DAY_MS),
    'Maximum age of a message. An older message that is not delivered ends as `expired`. Time during which no service runs is not included.',
  ),
  maxRequestBytes: createSpec(
    'POSTRIDER_MAX_REQUEST',
    { default: '1MiB', example: '4MiB' },
    createSizeKind(1024, 64 * 1_048_576),
    'Maximum size of a request body. A larger body is refused with status 400.',
  ),
  keepBodyMs: createSpec(
    'POSTRIDER_KEEP_BODY',
    { default: '7d', example: '1d' },
    createDurationKind(0, 3650 * DAY_MS),
    'Retention of message bodies. A body is erased this long after the message reached a terminal state, never before.',
  ),
  keepHistoryMs: createSpec(
    'POSTRIDER_KEEP_HISTORY',
    { default: '90d', example: '30d' },
    createDurationKind(0, 3650 * DAY_MS),
    'Retention of messages with their events, reports, search entries and webhooks. A message is purged this long after it reached a terminal state, never before. Figures, suppressions, audit log and idempotency keys stay. At least `POSTRIDER_KEEP_BODY`.',
  ),
  keepAuditMs: createSpec(
    'POSTRIDER_KEEP_AUDIT',
    { default: '400d', example: '800d' },
    createDurationKind(0, 3650 * DAY_MS),
    'Retention of the audit log. An entry is purged this long after it was written.',
  ),
  onUncertain: createSpec(
    'POSTRIDER_ON_UNCERTAIN',
    { default: 'resend', example: 'hold' },
    createChoiceKind(['resend', 'hold']),
    'Selects the action for a message whose reply was lost after the whole message was sent. `resend`: the message is sent again with the same Message-ID. `hold`: the message becomes `uncertain` and waits for an operator.',
  ),
  secret: createSpec(
    'POSTRIDER_SECRET',
    { default: null, example: EXAMPLE_SECRET, secrecy: 'whole' },
    createValueKind('hexadecimal text', parseSecretText, '64 digits'),
    'The secret of the installation, the same on every node. The secret encrypts private keys, and the signing secrets and URLs of webhooks, at rest, and signs return paths and operator sessions. If unset, the first start creates the file `secret` beside the embedded database, or with PostgreSQL in the folder `data` of the working directory.',
  ),
  dns: createSpec(
    'POSTRIDER_DNS',
    { default: null, example: '127.0.0.1:53' },
    createValueKind('host:port', parseResolver),
    'DNS resolver for the records of domains. If unset, the resolver of the system is used.',
  ),
  returnPathDomain: createSpec(
    'POSTRIDER_RETURN_PATH_DOMAIN',
    { default: null, example: 'bounces.example.org' },
    createValueKind('domain', parseReturnPathDomain),
    'Domain of the envelope sender. Its MX record must name the host of the feedback listener. If unset, the envelope sender is the sender of the message.',
  ),
  feedbackListen: createSpec(
    'POSTRIDER_FEEDBACK_LISTEN',
    { default: null, example: '0.0.0.0:25' },
    LISTEN_ADDRESS,
    'Address of the SMTP listener for bounces and complaints that are sent to the return path. If unset, there is no such listener. This setting requires `POSTRIDER_RETURN_PATH_DOMAIN`.',
  ),
  feedbackLoops: createSpec(
    'POSTRIDER_FEEDBACK_LOOPS',
    { default: null, example: 'fbl.example.com' },
    createValueKind('comma list', parseDomains, 'domains'),
    'Domains whose complaint reports (ARF) over SMTP are authenticated by their DKIM signature. Only authenticated complaints lock an account. This setting requires `POSTRIDER_FEEDBACK_LISTEN`.',
  ),
  feedbackHttpListen: createSpec(
    'POSTRIDER_FEEDBACK_HTTP_LISTEN',
    { default: null, example: '0.0.0.0:8443' },
    HTTP_LISTEN_ADDRESS,
    'Address of the listener for provider events. Amazon SES sends its events through SNS to `/ses`, other providers to `/events/PROVIDER`. With `POSTRIDER_TLS_CERT` the listener uses HTTPS. If unset, there is no such listener. This setting requires `POSTRIDER_SES_TOPICS`, a setting `POSTRIDER_EVENTS_…`, or a relay of Mandrill or MailerSend in `POSTRIDER_TRANSPORT`: these providers test the URL before their secret exists.',
  ),
  feedbackUrl: createSpec(
    'POSTRIDER_FEEDBACK_URL',
    { default: null, example: 'https://events.example.com' },
    createValueKind('URL', (text) => parsePublicUrl(text, 'https://events.example.com')),
    'Public URL of `POSTRIDER_FEEDBACK_HTTP_LISTEN`, to which a provider sends its events. `doctor` prints the URLs to register. `POSTRIDER_EVENTS_MANDRILL` requires this setting.',
  ),
  postmarkEvents: createEventSecretsSpec(POSTMARK),
  sendgridEvents: createEventSecretsSpec(SENDGRID),
  mailgunEvents: createEventSecretsSpec(MAILGUN),
  resendEvents: createEventSecretsSpec(RESEND),
  brevoEvents: createEventSecretsSpec(BREVO),
  mailjetEvents: createEventSecretsSpec(MAILJET),
  sparkpostEvents: createEventSecretsSpec(SPARKPOST),
  mandrillEvents: createEventSecretsSpec(MANDRILL),
  mailersendEvents: createEventSecretsSpec(MAILERSEND),
  mailtrapEvents: createEventSecretsSpec(MAILTRAP),
  postalEvents: createEventSecretsSpec(POSTAL),
  sesTopics: createSpec(
    'POSTRIDER_SES_TOPICS',
    { default: null, example: 'arn:aws:sns:eu-west-1:123456789012:ses-feedback' },
    createValueKind('comma list', parseTopics, 'ARNs of SNS topics'),
    'SNS topics whose provider events are accepted.',
  ),
  sesQueue: createSpec(
    'POSTRIDER_SES_QUEUE',
    {
      default: null,
      example: 'https://sqs.eu-west-1.amazonaws.com/123456789012/ses-feedback',
      secrecy: 'password',
    },
    createValueKind('URL', parseQueue),
    'SQS queue from which provider events of Amazon SES are received, for a service that is not reachable from the Internet.',
  ),
  webhookTargets: createSpec(
    'POSTRIDER_WEBHOOK_TARGETS',
    { default: 'public', example: 'any' },
    createChoiceKind(['public', 'any']),
    'Selects the URLs to which webhooks are sent. `public`: HTTPS and public addresses only. `any`: also HTTP and private addresses, for development and internal networks. Every attempt uses the current value.',
  ),
  notifyTargets: createSpec(
    'POSTRIDER_NOTIFY',
    { default: null, example: 'mailto:ops@example.com,https://hooks.example.com/postrider', secrecy: 'urls' },
    createValueKind(
      'comma list',
      parseNotifyTargets,
      '`mailto:ADDRESS`, `https://…`, and `http://…` with POSTRIDER_WEBHOOK_TARGETS=any; at most 10',
    ),
    'Targets of notifications about problems (docs/notifications.md). Failures of the transport are sent to HTTPS targets only. If unset, no notification is sent. Give every node the same value.',
  ),
  notifyFrom: createSpec(
    'POSTRIDER_NOTIFY_FROM',
    { default: null, example: 'postrider@example.com' },
    createValueKind('address', parseNotifyFrom),
    'Sender of notifications by mail. The account that owns its domain sends them, without its limits. A `mailto:` target requires this setting.',
  ),
  notifySecrets: createSpec(
    'POSTRIDER_NOTIFY_SECRET',
    { default: null, example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=', secrecy: 'whole' },
    createValueKind('comma list', parseNotifySecrets, '`whsec_`, followed by the base64 encoding of 24 to 64 bytes'),
    'Secret that signs the requests to HTTPS targets as Standard Webhooks specifies. With two secrets, each request is signed with both. An HTTPS target requires this setting.',
  ),
  roles: createSpec(
    'POSTRIDER_ROLES',
    { default: 'all', example: 'api,operator' },
    createValueKind('comma list', parseRoles, `\`all\`, or ${ROLES.map((role) => `\`${role}\``).join(', ')}`),
    'The roles of this node. `api` accepts messages, `deliver` sends them, `feedback` receives bounces and complaints, `operator` serves the operator listener.',
  ),
  logLevel: createSpec(
    'POSTRIDER_LOG',
    { default: 'info', example: 'warn' },
    createChoiceKind(['debug', 'info', 'warn', 'error', 'silent']),
    'Lowest log level that is written. `silent` logs nothing.',
  ),
  logRecipients: createSpec(
    'POSTRIDER_LOG_RECIPIENTS',
    { default: 'masked', example: 'none' },
    createChoiceKind(['masked', 'full', 'none']),
    'How mail addresses appear in log lines, also in texts of next hops: `masked` as `a…@example.com`, `full`, or `none`. Webhooks contain the full address.',
  ),
} as const satisfies Record<string, SettingSpec<Settings[keyof Settings] | string>>;

/** Of each further route. */
export const ROUTE_SPEC = createSpec(
  'POSTRIDER_ROUTE_<NAME>',
  {
    default: null,
    example: 'smtp://user:password@smtp.example.net:587?tls=required',
    secrecy: 'password',
  },
  createValueKind('URL', parseRouteTransport, '`smtp://…`, `smtps://…`, `ses://REGION`'),
  'A further route, such as `POSTRIDER_ROUTE_BACKUP` for the route `backup`. NAME is a letter and up to 30 letters and digits. Without a policy, it gets messages while the earlier routes fail. `?daily=500` limits the messages of a day (UTC), `?ramp=14d` raises its share over days. Give every node the same routes.',
);

export const EVENT_SECRET_SPECS: Readonly<Partial<Record<EventProviderName, SettingSpec<readonly string[]>>>> = {
  postmark: SETTINGS_TABLE.postmarkEvents,
  sendgrid: SETTINGS_TABLE.sendgridEvents,
  mailgun: SETTINGS_TABLE.mailgunEvents,
  resend: SETTINGS_TABLE.resendEvents,
  brevo: SETTINGS_TABLE.brevoEvents,
  mailjet: SETTINGS_TABLE.mailjetEvents,
  sparkpost: SETTINGS_TABLE.sparkpostEvents,
  mandrill: SETTINGS_TABLE.mandrillEvents,
  mailersend: SETTINGS_TABLE.mailersendEvents,
  mailtrap: SETTINGS_TABLE.mailtrapEvents,
  postal: SETTINGS_TABLE.postalEvents,
};

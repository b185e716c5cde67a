/**
 * The one table of settings: name, default, parser, meaning. It drives the loader, the check for unknown names,
 * `postrider config` and the table in docs/operating.md, which a test holds equal to it.
 */
import { type Stats, statSync } from 'node:fs';
import { parseAddress } from '../model/address.ts';
import { HIDDEN, maskUrl } from '../printing/mask.ts';
import { isDatabaseUrl, parseDatabaseUrl } from './database-url.ts';
import { parseListen, parseNetworks, parseResolver } from './host.ts';
import { didYouMean } from './nearest.ts';
import type { DatabaseSetting, Role, Settings } from './settings.ts';
import { parseTransport } from './transport-url.ts';
import { bad, formatDuration, formatSize, good, type Parsed, parseDuration, parseSize, quote } from './units.ts';

export interface SettingSpec<T> {
  readonly name: string;
  /** Text that the parser reads, or null where the setting has no value unless given. */
  readonly default: string | null;
  readonly meaning: string;
  readonly parse: (text: string) => Parsed<T>;
  /** The value as it may be printed. */
  readonly show: (text: string) => string;
}

const ROLES: readonly Role[] = ['api', 'deliver', 'feedback', 'operator'];
const SECOND = 1000;
const DAY = 86_400_000;

function spec<T>(
  name: string,
  fallback: string | null,
  meaning: string,
  parse: (text: string) => Parsed<T>,
): SettingSpec<T> {
  return { name, default: fallback, meaning, parse, show: (text) => text };
}

function oneOf<const T extends string>(choices: readonly T[]): (text: string) => Parsed<T> {
  return (text) => {
    const choice = choices.find((known) => known === text);
    return choice === undefined
      ? bad(`${quote(text)} is not one of ${choices.join(', ')}${didYouMean(text, choices)}`)
      : good(choice);
  };
}

function durationBetween(least: number, most: number): (text: string) => Parsed<number> {
  return (text) => {
    const parsed = parseDuration(text);
    if (!parsed.ok || (parsed.value >= least && parsed.value <= most)) return parsed;
    return bad(`${quote(text)} is not between ${formatDuration(least)} and ${formatDuration(most)}`);
  };
}

function sizeBetween(least: number, most: number): (text: string) => Parsed<number> {
  return (text) => {
    const parsed = parseSize(text);
    if (!parsed.ok || (parsed.value >= least && parsed.value <= most)) return parsed;
    return bad(`${quote(text)} is not between ${formatSize(least)} and ${formatSize(most)}`);
  };
}

/** Parses POSTRIDER_DATABASE, or another setting of its kind. */
export function parseDatabase(text: string): Parsed<DatabaseSetting> {
  const example = 'sqlite:./data/postrider.db';
  if (isDatabaseUrl(text)) return parseDatabaseUrl(text);
  const shown = quote(maskUrl(text));
  if (!text.startsWith('sqlite:')) return bad(`${shown} is not a database such as ${example}`);
  const path = text.slice('sqlite:'.length);
  // `sqlite:postgres://user:password@host/mail` would make folders of that name, password included.
  if (path.includes('://') || /^[^/]*:[^/]*@/.test(path))
    return bad(`${shown} is a URL after sqlite:, not a path; drop sqlite:, or write a path such as ${example}`);
  if (path === '' || path === '/' || path.endsWith('/'))
    return bad(`${shown} names no file; give one, such as ${example}`);
  // Mail that is gone with the process would break what a 201 promises.
  if (path === ':memory:') return bad(`${shown} would lose accepted mail; give a file, such as ${example}`);
  if (path.startsWith('//') && !path.startsWith('///')) {
    return bad(`${shown} names a host; write sqlite:/absolute/path or ${example}`);
  }
  if (path.includes('?') || path.includes('\0'))
    return bad(`${shown} takes no parameters; give a file, such as ${example}`);
  return good({ kind: 'sqlite', path: path.startsWith('///') ? path.slice(2) : path });
}

function parseRoles(text: string): Parsed<ReadonlySet<Role>> {
  if (text === 'all') return good(new Set(ROLES));
  const roles = new Set<Role>();
  for (const item of text.split(',')) {
    const role = oneOf(ROLES)(item.trim());
    if (!role.ok) return bad(`${quote(item.trim())} is not a role; give all, or a comma list of ${ROLES.join(', ')}`);
    roles.add(role.value);
  }
  return good(roles);
}

function parseFile(text: string): Parsed<string> {
  let found: Stats | undefined;
  try {
    found = statSync(text, { throwIfNoEntry: false });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
    return bad(`${quote(text)} cannot be looked at (${code}); give the path of a readable PEM file`);
  }
  if (found === undefined) return bad(`there is no file ${quote(text)}; give the path of a PEM file`);
  return found.isFile() ? good(text) : bad(`${quote(text)} is not a file; give the path of a PEM file`);
}

function parsePassword(text: string): Parsed<string> {
  const long = text.length >= 8 && text.length <= 200;
  return long ? good(text) : bad('it must have 8 to 200 characters');
}

function parseSecretText(text: string): Parsed<string> {
  return /^[0-9a-fA-F]{64}$/.test(text)
    ? good(text)
    : bad('it must have 64 hexadecimal digits, as `openssl rand -hex 32` prints them');
}

/** `arn:aws:sns:REGION:ACCOUNT:NAME`, also of the partitions `aws-cn` and `aws-us-gov`. */
const TOPIC = /^arn:aws(?:-cn|-us-gov)?:sns:[a-z0-9-]{1,40}:[0-9]{12}:[A-Za-z0-9_-]{1,256}$/;

function parseTopics(text: string): Parsed<readonly string[]> {
  const topics = text.split(',').map((topic) => topic.trim());
  const wrong = topics.find((topic) => !TOPIC.test(topic));
  if (wrong === undefined) return good(Object.freeze([...new Set(topics)]));
  return bad(
    `${quote(wrong)} is not the ARN of an SNS topic such as arn:aws:sns:eu-west-1:123456789012:ses-feedback; give one, or several with commas between`,
  );
}

function parseQueue(text: string): Parsed<string> {
  const url = URL.parse(text);
  const fits =
    url !== null &&
    (url.protocol === 'https:' || url.protocol === 'http:') &&
    url.username === '' &&
    url.password === '' &&
    url.search === '' &&
    url.hash === '' &&
    url.pathname.length > 1;
  if (fits) return good(text);
  return bad(
    `${quote(text)} is not the URL of an SQS queue such as https://sqs.eu-west-1.amazonaws.com/123456789012/ses-feedback`,
  );
}

function parseReturnPath(text: string): Parsed<string> {
  const address = parseAddress(`x@${text}`);
  return address === null ? bad(`${quote(text)} is not a domain such as bounces.example.com`) : good(address.domain);
}

export const TABLE = {
  database: {
    ...spec(
      'POSTRIDER_DATABASE',
      'sqlite:./data/postrider.db',
      'the file that holds everything, a relative path from the working directory; or `postgres://USER:PASSWORD@HOST/DATABASE`, which any number of nodes share',
      parseDatabase,
    ),
    show: maskUrl,
  },
  transport: {
    ...spec(
      'POSTRIDER_TRANSPORT',
      'capture:',
      'where messages go: `capture:` (a local inbox), `smtp://user:password@host:port`, `smtps://…`, or Amazon SES, `ses://eu-west-1`',
      parseTransport,
    ),
    show: maskUrl,
  },
  listen: spec('POSTRIDER_LISTEN', '127.0.0.1:8080', 'the public listener, `host:port`', parseListen),
  operatorListen: spec(
    'POSTRIDER_OPERATOR_LISTEN',
    '127.0.0.1:8081',
    'the operator listener: operator API, inbox, metrics, OpenAPI document',
    parseListen,
  ),
  operatorPassword: {
    ...spec(
      'POSTRIDER_OPERATOR_PASSWORD',
      null,
      'sign-in of the operator listener; needed where that listens beyond this machine',
      parsePassword,
    ),
    show: () => HIDDEN,
  },
  trustedProxies: spec(
    'POSTRIDER_TRUSTED_PROXIES',
    null,
    'reverse proxies in front of a listener, a comma list of addresses and networks such as `10.0.0.0/8`: no share of the connections limits them',
    parseNetworks,
  ),
  tlsCert: spec(
    'POSTRIDER_TLS_CERT',
    null,
    'certificate chain (PEM file); the public listener then speaks HTTPS',
    parseFile,
  ),
  tlsKey: spec('POSTRIDER_TLS_KEY', null, 'private key of that certificate (PEM file)', parseFile),
  senders: spec(
    'POSTRIDER_SENDERS',
    'authenticated',
    'whose mail is taken: `authenticated` (senders whose domain is authenticated) or `any`',
    oneOf(['authenticated', 'any']),
  ),
  maxAgeMs: spec(
    'POSTRIDER_MAX_AGE',
    '24h',
    'how long a message is tried before it ends as `expired`, `1s` to `30d`',
    durationBetween(SECOND, 30 * DAY),
  ),
  maxRequestBytes: spec(
    'POSTRIDER_MAX_REQUEST',
    '1MiB',
    'the largest request body taken, `1KiB` to `64MiB`',
    sizeBetween(1024, 64 * 1_048_576),
  ),
  keepBodyMs: spec(
    'POSTRIDER_KEEP_BODY',
    '7d',
    'a message body is erased that long after the terminal state, `0s` to `3650d`',
    durationBetween(0, 3650 * DAY),
  ),
  onUncertain: spec(
    'POSTRIDER_ON_UNCERTAIN',
    'resend',
    'a message handed over whose answer was lost in a crash is sent again (`resend`) or kept back (`hold`)',
    oneOf(['resend', 'hold']),
  ),
  secret: {
    ...spec(
      'POSTRIDER_SECRET',
      null,
      'seals private keys and signs return paths, 64 hexadecimal digits, the same on every node; made beside the database when unset',
      parseSecretText,
    ),
    show: () => HIDDEN,
  },
  dns: spec(
    'POSTRIDER_DNS',
    null,
    'the resolver asked about domains, `host:port`; the system’s when unset',
    parseResolver,
  ),
  returnPathDomain: spec(
    'POSTRIDER_RETURN_PATH_DOMAIN',
    null,
    'domain of the envelope sender, whose mail must come to the feedback listener; the sender’s own address when unset',
    parseReturnPath,
  ),
  feedbackListen: spec(
    'POSTRIDER_FEEDBACK_LISTEN',
    null,
    'the SMTP listener for bounces and complaints that come to the return path’s domain, `host:port`; off when unset',
    parseListen,
  ),
  feedbackHttpListen: spec(
    'POSTRIDER_FEEDBACK_HTTP_LISTEN',
    null,
    'the listener for Amazon SES’s notices through SNS, path `/ses`, `host:port`; HTTPS with the certificate below; off when unset',
    parseListen,
  ),
  sesTopics: spec('POSTRIDER_SES_TOPICS', null, 'the SNS topics that are believed, a comma list of ARNs', parseTopics),
  sesQueue: {
    ...spec(
      'POSTRIDER_SES_QUEUE',
      null,
      'URL of the SQS queue that holds Amazon SES’s notices, for a service that exposes nothing',
      parseQueue,
    ),
    show: maskUrl,
  },
  roles: spec(
    'POSTRIDER_ROLES',
    'all',
    'what this process does: `all`, or a comma list of `api`, `deliver`, `feedback`, `operator`',
    parseRoles,
  ),
  logLevel: spec(
    'POSTRIDER_LOG',
    'info',
    'the least level that is logged: `debug`, `info`, `warn`, `error`, or `silent`',
    oneOf(['debug', 'info', 'warn', 'error', 'silent']),
  ),
} as const satisfies Record<string, SettingSpec<Settings[keyof Settings] | string>>;

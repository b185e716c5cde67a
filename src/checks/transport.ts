import type { TransportSetting } from '../config/settings.ts';
import { findTransportProvider } from '../domains/setup.ts';
import { type Alarm, type DeliveryStatus, SIGNING_ALARM } from '../model/node.ts';
import { DEFAULT_ROUTE, getRouteVariable } from '../model/route.ts';
import type { RelayProfile } from '../providers/provider.ts';
import { sumTraffic } from '../statistics/figures.ts';
import type { SesAccount } from '../transports/ses/client.ts';
import type { RelaySession } from '../transports/smtp/probe.ts';
import {
  type Check,
  type Facts,
  type Finding,
  type Health,
  type Level,
  listDeliveries,
  type Problem,
  report,
  reportHealth,
  reportStep,
} from './facts.ts';
import { describeFailure, describeRouteState, getTransportName, joinNames, listRoutes } from './routes.ts';

/** The command that sets a transport. docs/quick-start.md contains a copy of this command. */
const SET_TRANSPORT = `echo 'POSTRIDER_TRANSPORT="smtp://user:password@smtp.example.com:587?tls=required"' >> .env`;

export const transport: Check = {
  problems: listProblems,
  health: getHealth,
  steps({ settings: { transport: setting } }) {
    const { open, done } = reportStep('provider', 'Choose a provider', '/providers');
    switch (setting.kind) {
      case 'capture':
        return [
          open(
            'The transport is `capture:`, which stores every message on this machine and sends none.',
            'Set POSTRIDER_TRANSPORT to the relay of your provider or to Amazon SES, then restart the service.',
            SET_TRANSPORT,
          ),
        ];
      case 'ses':
        return [done(`Messages are sent through Amazon SES in ${setting.region}.`)];
      case 'smtp': {
        const relay = `${setting.host}:${setting.port}`;
        const title = findTransportProvider(setting)?.title;
        return [done(`Messages are sent to ${title === undefined ? relay : `${title}, ${relay}`}.`)];
      }
    }
  },
};

function listProblems(facts: Facts): readonly Problem[] {
  const { recentSteps, now } = facts;
  const deliveries = listDeliveries(facts);
  const failures = listRoutes(facts).flatMap(({ isFailing, lastFailure }) => (isFailing ? (lastFailure ?? []) : []));
  // An older refusal is not the reason why a route fails.
  const failedAt = Math.max(...failures.map(({ at }) => at));
  const alarms = listLatestAlarms(deliveries).filter(
    ({ reason, lastAt }) => reason === SIGNING_ALARM || lastAt >= failedAt,
  );
  const problems: Problem[] = [];
  for (const { reason, text, lastAt, route } of alarms) {
    const details = describeFailure(lastAt, text, now);
    const variable = getRouteVariable(route ?? DEFAULT_ROUTE);
    const remedy = (ALARM_REMEDIES[reason] ?? 'Run `postrider doctor`, which checks the transport').replace(
      'VARIABLE',
      variable,
    );
    problems.push(
      reason === SIGNING_ALARM
        ? report('signing-failed', null, '/domains').failure(`Messages cannot be signed, ${details}`, remedy)
        : report('next-hop-refusal', reason).failure(
            `The next hop${route === undefined ? '' : ` of the route ${route}`} rejects this service (${reason}), ${details}`,
            remedy,
          ),
    );
  }
  const { alarmed } = sumTraffic(recentSteps);
  if (alarmed > 0 && alarms.length === 0 && failures.length === 0) {
    const attempts = alarmed === 1 ? 'one attempt' : `${alarmed} attempts`;
    problems.push(
      report('attempts-refused').warning(
        `In the last hour ${attempts} failed because the next hop rejected this service or signing failed`,
        'Read the events `attempt.alarm_raised` in the log of the delivering nodes',
      ),
    );
  }
  return problems;
}

const ALARM_REMEDIES: Readonly<Record<string, string>> = {
  configuration: 'Correct VARIABLE or the account at the provider, then run `postrider doctor`',
  reputation:
    "Read the provider's reply and check which messages were sent; then ask the provider's support to remove the block",
  [SIGNING_ALARM]:
    'Run `postrider doctor`; then verify the domain, restore the secret that its keys were encrypted with, or rotate the keys',
};

function listLatestAlarms(deliveries: readonly DeliveryStatus[]): readonly Alarm[] {
  const alarms = deliveries.flatMap((delivery) => delivery.alarms).sort((a, b) => b.lastAt - a.lastAt);
  return alarms.filter(({ reason }, index) => alarms.findIndex((alarm) => alarm.reason === reason) === index);
}

function getHealth(facts: Facts): Health {
  const { settings, recentSteps, now } = facts;
  const routes = listRoutes(facts);
  const name = settings.routes.length === 1 ? getTransportName(settings.transport) : `${routes.length} routes`;
  const create = (level: Level, text: string) => reportHealth('transport', level, `${name}: ${text}`);
  const deliveries = listDeliveries(facts);
  if (deliveries.length === 0) return create('ok', 'no running node that delivers reports its state');
  const unusable = routes.filter(({ isFailing, pause }) => isFailing || pause !== null);
  if (unusable.length > 0) {
    const texts = unusable.map((route) => describeRouteState(route, now));
    const usable = routes.filter(({ isUsable }) => isUsable);
    if (usable.length === 0) return create('failure', `${texts.join('; ')}; messages wait`);
    return create('warning', `${texts.join('; ')}; mail goes on over ${joinNames(usable)}`);
  }
  const reasons = deliveries.flatMap(({ alarms }) => alarms.map(({ reason }) => reason));
  const refusals = [...new Set(reasons)].filter((reason) => reason !== SIGNING_ALARM);
  if (refusals.length > 0) return create('warning', `rejects this service: ${refusals.join(', ')}`);
  return create('ok', sumTraffic(recentSteps).delivered === 0 ? 'no delivery in the last hour' : 'accepts messages');
}

export interface TransportCheckParts {
  /** Its name, if there are several routes. */
  readonly route: string | null;
  readonly setting: TransportSetting;
  readonly probeRelay: () => Promise<RelaySession>;
  readonly readSesAccount: () => Promise<SesAccount>;
  readonly inboxPath: string;
  readonly checkWritable: () => Promise<string | null>;
}

export async function checkTransport(parts: TransportCheckParts): Promise<Finding> {
  const { route, setting, probeRelay, readSesAccount, inboxPath, checkWritable } = parts;
  const probe = report('transport', route);
  const variable = getRouteVariable(route ?? DEFAULT_ROUTE);
  switch (setting.kind) {
    case 'capture': {
      const reason = await checkWritable();
      if (reason === null) return probe.ok(`capture: stores messages in ${inboxPath}; no message leaves this machine`);
      const text = `captured messages cannot be written to ${inboxPath} (${reason})`;
      return probe.failure(text, 'make the folder writable for this user');
    }
    case 'ses':
      return checkSesAccount(setting, readSesAccount, probe);
    case 'smtp': {
      const result = await probeRelay();
      return result.kind === 'ready'
        ? createReadyFinding(setting, result, probe, variable)
        : probe.failure(result.text, getFailureRemedy(setting, result, variable));
    }
  }
}

const QUOTA_WARNING_SHARE = 0.8;

async function checkSesAccount(
  { region, endpoint }: Extract<TransportSetting, { kind: 'ses' }>,
  readAccount: () => Promise<SesAccount>,
  probe: ReturnType<typeof report>,
): Promise<Finding> {
  let account: SesAccount;
  try {
    account = await readAccount();
  } catch (error) {
    const reason = error instanceof Error ? `${error.name}: ${error.message.split('\n', 1).join('')}` : String(error);
    const remedy = isProviderError(error)
      ? 'give the service credentials that may call ses:GetAccount and ses:SendRawEmail (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the machine’s role), and check the region'
      : `check the region, and check that this machine can reach ${endpoint ?? `email.${region}.amazonaws.com`}`;
    return probe.failure(`the account of Amazon SES in ${region} could not be read (${reason})`, remedy);
  }
  const { sendingEnabled, enforcementStatus, production, maxSendRate, quota } = account;
  const rate = maxSendRate === null ? 'at an unknown rate' : `${maxSendRate} messages per second`;
  // A maximum of -1 means that there is no limit.
  const usage = quota === null ? '' : `, ${quota.sent} of ${quota.max < 0 ? 'any number' : quota.max} sent in 24 hours`;
  const text = `Amazon SES in ${region}: ${rate}${usage}`;
  if (!sendingEnabled || enforcementStatus === 'SHUTDOWN')
    return probe.failure(`${text}; sending is paused`, 'see the dashboard of the account and the email from Amazon');
  if (!production)
    return probe.warning(
      `${text}; the account is in the sandbox, which accepts only verified recipients`,
      'request production access',
    );
  if (enforcementStatus !== 'HEALTHY')
    return probe.warning(
      `${text}; the account is on ${enforcementStatus.toLowerCase()}`,
      'see the bounces and complaints of the account',
    );
  if (quota !== null && quota.max > 0 && quota.sent / quota.max >= QUOTA_WARNING_SHARE)
    return probe.warning(`${text}; the daily quota is nearly used up`, 'request a higher sending quota');
  return probe.ok(text);
}

/** Returns true if the provider responded or no credentials were found, and false if it was not reached. */
function isProviderError(error: unknown): boolean {
  const { name, $metadata } = Object(error) as {
    readonly name?: unknown;
    readonly $metadata?: { readonly httpStatusCode?: unknown };
  };
  return name === 'CredentialsProviderError' || typeof $metadata?.httpStatusCode === 'number';
}

/** "Encryption required for requested authentication mechanism" (RFC 4954 section 6). */
const ENCRYPTION_REQUIRED = 538;

type SmtpSetting = Extract<TransportSetting, { kind: 'smtp' }>;

function createReadyFinding(
  setting: SmtpSetting,
  result: Extract<RelaySession, { kind: 'ready' }>,
  probe: ReturnType<typeof report>,
  variable: string,
): Finding {
  const { description, secure, loopback, fellBackToClearText } = result;
  const text = `${description}; ${setting.auth === null ? 'no user name is set' : `authenticated as ${setting.auth.user}`}`;
  if (fellBackToClearText)
    return probe.warning(
      `${text}; TLS failed, so messages cross the network in clear text`,
      'correct the TLS configuration of the server',
    );
  if (!secure && !loopback)
    return probe.warning(
      `${text}; ${setting.auth === null ? 'messages' : 'the password and messages'} cross the network in clear text`,
      `use a server with TLS and remove tls=never from ${variable}`,
    );
  if (secure && !loopback && !setting.verifyCertificate && setting.tls !== 'offered')
    return probe.warning(`${text}; the certificate of the server is not checked`, `remove verify=no from ${variable}`);
  return probe.ok(text);
}

function getFailureRemedy(
  { host, port, tls }: SmtpSetting,
  { stage, code }: Extract<RelaySession, { kind: 'failed' }>,
  variable: string,
): string {
  const peer = `${host}:${port}`;
  const certificate =
    'for a certificate of a private authority, set NODE_EXTRA_CA_CERTS in the environment of the service';
  switch (stage) {
    case 'connect':
    case 'greeting':
      return `check ${peer} in ${variable} and the firewalls on the path${tls === 'implicit' ? `; ${certificate}` : ''}`;
    case 'starttls':
      return `check that ${host} is the name in the certificate and that ${port} is the port for smtp:; ${certificate}`;
    case 'auth': {
      if (code !== ENCRYPTION_REQUIRED || (tls !== 'never' && tls !== 'offered'))
        return `check that user and password in ${variable} are correct and percent-encoded`;
      const change = tls === 'never' ? 'remove tls=never from' : 'add tls=required to';
      return `${change} ${variable}, because the server accepts credentials only with TLS`;
    }
    case 'ehlo':
      return `set the parameter name= of ${variable} to a name that the server accepts`;
    default:
      return `ask the operator of ${peer} about this reply`;
  }
}

/** A message is larger than its request: it has header fields, and its content may be encoded. */
export function checkMessageSize(
  title: string,
  maxMessageBytes: NonNullable<RelayProfile['maxMessageBytes']>,
  maxRequestBytes: number,
): Finding {
  const { ok, warning } = report('message size');
  const limit = `the relay of ${title} accepts messages of up to ${formatMib(maxMessageBytes)}`;
  if (maxRequestBytes < maxMessageBytes) return ok(limit);
  return warning(
    `POSTRIDER_MAX_REQUEST allows requests of up to ${formatMib(maxRequestBytes)}, but ${limit}; larger messages bounce`,
    `set POSTRIDER_MAX_REQUEST to less than ${formatMib(maxMessageBytes)}, unless ${title} has raised the limit of the account`,
  );
}

function formatMib(bytes: number): string {
  return `${Math.round((bytes / 1_048_576) * 10) / 10} MiB`;
}

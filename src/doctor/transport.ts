/**
 * Checks that the next hop is reachable and accepts the credentials, without sending a message. For `capture:`, checks
 * that the folder for messages is writable.
 */
import type { TransportSetting } from '../config/settings.ts';
import type { SesAccount } from '../transports/ses/client.ts';
import type { RelaySession } from '../transports/smtp/probe.ts';
import { createFailure, createOkFinding, createWarning, type Finding } from './finding.ts';

export interface TransportCheckParts {
  readonly setting: TransportSetting;
  readonly probeRelay: () => Promise<RelaySession>;
  /**
   * Reads the account at Amazon SES. Rejects with the error of the provider. Called only if the transport is `ses:`.
   */
  readonly readSesAccount: () => Promise<SesAccount>;
  readonly inboxPath: string;
  /**
   * Returns null when a file can be created in the folder of the inbox, or in the folder that will contain it.
   * Otherwise returns the reason why no file can be created.
   */
  readonly checkWritable: () => Promise<string | null>;
}

export async function checkTransport(parts: TransportCheckParts): Promise<readonly Finding[]> {
  const { setting, probeRelay, readSesAccount, inboxPath, checkWritable } = parts;
  switch (setting.kind) {
    case 'capture': {
      const reason = await checkWritable();
      if (reason === null)
        return [
          createOkFinding('transport', `capture: stores messages in ${inboxPath}; no message leaves this machine`),
        ];
      return [
        createFailure(
          'transport',
          `captured messages cannot be written to ${inboxPath} (${reason})`,
          'make the folder writable for this user',
        ),
      ];
    }
    case 'ses':
      return [await checkSesAccount(setting, readSesAccount)];
    case 'smtp': {
      const result = await probeRelay();
      return [result.kind === 'ready' ? createReadyFinding(setting, result) : createFailedFinding(setting, result)];
    }
  }
}

/** The check gives a warning if at least this share of the daily quota is used. */
const QUOTA_WARNING_SHARE = 0.8;

async function checkSesAccount(
  { region, endpoint }: Extract<TransportSetting, { kind: 'ses' }>,
  readAccount: () => Promise<SesAccount>,
): Promise<Finding> {
  let account: SesAccount;
  try {
    account = await readAccount();
  } catch (error) {
    const reason = error instanceof Error ? `${error.name}: ${error.message.split('\n', 1).join('')}` : String(error);
    const host = endpoint ?? `email.${region}.amazonaws.com`;
    const remedy = isProviderError(error)
      ? 'give the service credentials that may call ses:GetAccount and ses:SendRawEmail (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the machine’s role), and check the region'
      : `check the region, and check that this machine can reach ${host}`;
    return createFailure('transport', `the account of Amazon SES in ${region} could not be read (${reason})`, remedy);
  }
  const { sendingEnabled, enforcementStatus, production, maxSendRate, quota } = account;
  const rateText = maxSendRate === null ? 'at an unknown rate' : `${maxSendRate} messages per second`;
  const dailyUsageText =
    quota === null ? '' : `, ${quota.sent} of ${quota.max < 0 ? 'any number' : quota.max} sent in 24 hours`;
  const detail = `Amazon SES in ${region}: ${rateText}${dailyUsageText}`;
  if (!sendingEnabled || enforcementStatus === 'SHUTDOWN') {
    return createFailure(
      'transport',
      `${detail}; sending is paused`,
      'see the dashboard of the account and the email from Amazon',
    );
  }
  if (!production) {
    return createWarning(
      'transport',
      `${detail}; the account is in the sandbox, which accepts only verified recipients`,
      'request production access',
    );
  }
  if (enforcementStatus !== 'HEALTHY') {
    return createWarning(
      'transport',
      `${detail}; the account is on ${enforcementStatus.toLowerCase()}`,
      'see the bounces and complaints of the account',
    );
  }
  // A maximum of -1 means that there is no limit.
  if (quota !== null && quota.max > 0 && quota.sent / quota.max >= QUOTA_WARNING_SHARE) {
    return createWarning('transport', `${detail}; the daily quota is nearly used up`, 'request a higher sending quota');
  }
  return createOkFinding('transport', detail);
}

/**
 * Returns true if the provider responded or no credentials were found. Returns false if the provider was not reached.
 */
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

function createReadyFinding(setting: SmtpSetting, result: Extract<RelaySession, { kind: 'ready' }>): Finding {
  const authentication = setting.auth === null ? 'no user name is set' : `authenticated as ${setting.auth.user}`;
  const detail = `${result.description}; ${authentication}`;
  if (result.fellBackToClearText) {
    return createWarning(
      'transport',
      `${detail}; TLS failed, so messages cross the network in clear text`,
      'correct the TLS configuration of the server',
    );
  }
  if (!result.secure && !result.loopback) {
    const exposedText = setting.auth === null ? 'messages' : 'the password and messages';
    return createWarning(
      'transport',
      `${detail}; ${exposedText} cross the network in clear text`,
      'use a server with TLS and remove tls=never from POSTRIDER_TRANSPORT',
    );
  }
  if (result.secure && !result.loopback && !setting.verifyCertificate && setting.tls !== 'offered') {
    return createWarning(
      'transport',
      `${detail}; the certificate of the server is not checked`,
      'remove verify=no from POSTRIDER_TRANSPORT',
    );
  }
  return createOkFinding('transport', detail);
}

function createFailedFinding(
  { host, port, tls }: SmtpSetting,
  { stage, code, text }: Extract<RelaySession, { kind: 'failed' }>,
): Finding {
  const peer = `${host}:${port}`;
  const certificateRemedy =
    'for a certificate of a private authority, set NODE_EXTRA_CA_CERTS in the environment of the service';
  switch (stage) {
    case 'connect':
    case 'greeting':
      return createFailure(
        'transport',
        text,
        `check ${peer} in POSTRIDER_TRANSPORT and the firewalls on the path${tls === 'implicit' ? `; ${certificateRemedy}` : ''}`,
      );
    case 'starttls':
      return createFailure(
        'transport',
        text,
        `check that ${host} is the name in the certificate and that ${port} is the port for smtp:; ${certificateRemedy}`,
      );
    case 'auth':
      if (code === ENCRYPTION_REQUIRED && (tls === 'never' || tls === 'offered')) {
        const remedy =
          tls === 'never' ? 'remove tls=never from POSTRIDER_TRANSPORT' : 'add tls=required to POSTRIDER_TRANSPORT';
        return createFailure('transport', text, `${remedy}, because the server accepts credentials only with TLS`);
      }
      return createFailure(
        'transport',
        text,
        'check that user and password in POSTRIDER_TRANSPORT are correct and percent-encoded',
      );
    case 'ehlo':
      return createFailure(
        'transport',
        text,
        'set the parameter name= of POSTRIDER_TRANSPORT to a name that the server accepts',
      );
    default:
      return createFailure('transport', text, `ask the operator of ${peer} about this reply`);
  }
}

/** Whether the next hop is there and lets us in, by a conversation without a mail; for `capture:`, whether its folder takes files. */
import type { TransportSetting } from '../config/settings.ts';
import type { SesAccount } from '../transports/ses/client.ts';
import type { RelaySession } from '../transports/smtp/probe.ts';
import { type Finding, failure, ok, warning } from './finding.ts';

export interface TransportCheckParts {
  readonly setting: TransportSetting;
  readonly probeRelay: () => Promise<RelaySession>;
  /** What the provider's account says of itself; rejects with its own words. Asked for `ses:` alone. */
  readonly readSesAccount: () => Promise<SesAccount>;
  readonly inboxPath: string;
  /** Null where a file can be made in the folder, or in the one it will be made in; else why not. */
  readonly checkWritable: () => Promise<string | null>;
}

export async function checkTransport(parts: TransportCheckParts): Promise<readonly Finding[]> {
  const { setting, probeRelay: converse, readSesAccount: account, inboxPath, checkWritable: unwritable } = parts;
  switch (setting.kind) {
    case 'capture': {
      const why = await unwritable();
      if (why === null) return [ok('transport', `capture: keeps mail in ${inboxPath}; nothing leaves this machine`)];
      return [
        failure(
          'transport',
          `captured mail cannot be written in ${inboxPath} (${why})`,
          'make it writable for this user',
        ),
      ];
    }
    case 'ses':
      return [await sesFinding(setting, account)];
    case 'smtp': {
      const talk = await converse();
      return [talk.kind === 'ready' ? readyFinding(setting, talk) : failedFinding(setting, talk)];
    }
  }
}

/** Of the day's quota; above it a warning. */
const QUOTA_NEARLY_USED = 0.8;

async function sesFinding(
  { region, endpoint }: Extract<TransportSetting, { kind: 'ses' }>,
  ask: () => Promise<SesAccount>,
): Promise<Finding> {
  let account: SesAccount;
  try {
    account = await ask();
  } catch (error) {
    const why = error instanceof Error ? `${error.name}: ${error.message.split('\n', 1).join('')}` : String(error);
    const host = endpoint ?? `email.${region}.amazonaws.com`;
    const remedy = wasRefused(error)
      ? 'give the service credentials that may call ses:GetAccount and ses:SendRawEmail (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the machine’s role), and see that the region is right'
      : `see that the region is right and that this machine reaches ${host}`;
    return failure('transport', `Amazon SES in ${region} did not say how the account stands (${why})`, remedy);
  }
  const { sendingEnabled, enforcement, production, maxSendRate, quota } = account;
  const rate = maxSendRate === null ? 'at an unknown rate' : `${maxSendRate} messages a second`;
  const day = quota === null ? '' : `, ${quota.sent} of ${quota.max < 0 ? 'any number' : quota.max} sent in 24 hours`;
  const detail = `Amazon SES in ${region}: ${rate}${day}`;
  if (!sendingEnabled || enforcement === 'SHUTDOWN') {
    return failure('transport', `${detail}; sending is paused`, 'see the account’s dashboard and mail from Amazon');
  }
  if (!production) {
    return warning(
      'transport',
      `${detail}; in the sandbox, where only verified recipients are taken`,
      'ask for production access',
    );
  }
  if (enforcement !== 'HEALTHY') {
    return warning(
      'transport',
      `${detail}; the account is under ${enforcement.toLowerCase()}`,
      'see bounces and complaints',
    );
  }
  // A max of -1 is no limit.
  if (quota !== null && quota.max > 0 && quota.sent / quota.max >= QUOTA_NEARLY_USED) {
    return warning('transport', `${detail}; the day’s quota is nearly used`, 'ask for a higher sending quota');
  }
  return ok('transport', detail);
}

/** The provider answered, or there was nothing to sign with; else it was not reached. */
function wasRefused(error: unknown): boolean {
  const { name, $metadata } = Object(error) as {
    readonly name?: unknown;
    readonly $metadata?: { readonly httpStatusCode?: unknown };
  };
  return name === 'CredentialsProviderError' || typeof $metadata?.httpStatusCode === 'number';
}

type SmtpSetting = Extract<TransportSetting, { kind: 'smtp' }>;

function readyFinding(setting: SmtpSetting, talk: Extract<RelaySession, { kind: 'ready' }>): Finding {
  const signedIn = setting.auth === null ? 'no user is set, none was asked for' : `signed in as ${setting.auth.user}`;
  const detail = `${talk.description}; ${signedIn}`;
  if (talk.fellBack) {
    return warning(
      'transport',
      `${detail}; TLS broke down, so mail goes in clear text`,
      'have the TLS of the server put right',
    );
  }
  if (!talk.secure && !talk.loopback) {
    const what = setting.auth === null ? 'mail crosses' : 'password and mail cross';
    return warning(
      'transport',
      `${detail}; ${what} the network in clear text`,
      'use a server with TLS and leave ?tls=never out',
    );
  }
  if (talk.secure && !talk.loopback && !setting.verifyCertificate && setting.tls !== 'offered') {
    return warning(
      'transport',
      `${detail}; its certificate is not checked`,
      'leave ?verify=no out of POSTRIDER_TRANSPORT',
    );
  }
  return ok('transport', detail);
}

function failedFinding(
  { host, port }: SmtpSetting,
  { stage, text }: Extract<RelaySession, { kind: 'failed' }>,
): Finding {
  const peer = `${host}:${port}`;
  switch (stage) {
    case 'connect':
    case 'greeting':
      return failure(
        'transport',
        text,
        `see that ${peer} is right in POSTRIDER_TRANSPORT and that no firewall is between`,
      );
    case 'starttls':
      return failure(
        'transport',
        text,
        `see that ${host} is the name in its certificate and that ${port} is its port for smtp:, or ask its operator`,
      );
    case 'auth':
      return failure(
        'transport',
        text,
        'see that user and password in POSTRIDER_TRANSPORT are right (percent-encoded)',
      );
    case 'ehlo':
      return failure('transport', text, 'give a name that the server takes with ?name= in POSTRIDER_TRANSPORT');
    default:
      return failure('transport', text, `ask the operator of ${peer} what it means`);
  }
}

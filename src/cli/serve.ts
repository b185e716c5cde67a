/** A signal drains and stops the service; a second ends it at once. The next start recovers the leases. */

import { execFile } from 'node:child_process';
import type { Command } from 'commander';
import { readSettings } from '../config/load.ts';
import { type Settings, SettingsError } from '../config/settings.ts';
import { createFirstCurlCommand } from '../http/curl.ts';
import { FIRST_SENDER, getFirstRecipient, SEND_MAIL_PATH } from '../model/outcome.ts';
import { requiresAuthenticatedSender } from '../model/submission.ts';
import { describeError } from '../printing/escape.ts';
import { readVersion } from '../version.ts';
import { CommandFailure, type Context, EXIT_INVALID_SETTINGS } from './context.ts';
import { applyStyle, formatPairs } from './terminal.ts';

/** npm repeats Ctrl-C within milliseconds; a second Ctrl-C of a user arrives later. */
const DUPLICATE_SIGNAL_MS = 300;

export interface StartedService {
  readonly publicUrl: string | null;
  readonly operatorUrl: string | null;
  readonly signInUrl: string | null;
  readonly firstAccount: string | null;
  readonly firstKey: string | null;
  readonly hasSendingDomain: boolean;
  /** `host:port` for SMTP, and the URL for provider events; null for a listener that is off. */
  readonly feedback: { readonly smtp: string | null; readonly http: string | null };
  readonly inboxPath: string | null;
}

export function addServeCommand(program: Command, context: Context): void {
  const serve = program
    .command('serve')
    .description('run the service')
    .option('--no-key', 'create no API key on an empty store, so that no key is written to a log')
    .option('--json', 'print the addresses of the service as one line of JSON');
  serve.action(async (flags: { json?: boolean; key: boolean }) => {
    const { settings, describedSettings } = readServiceSettings(context);
    const { startService } = await import('../main.ts');
    // The handlers are registered before the start, so that a signal during the start does not kill the process.
    const stopSignal = waitForStopSignal(context);
    const startOutput = Promise.withResolvers<void>();
    const service = await startService(settings, {
      operatorApi: {
        version: readVersion(),
        describeSettings: () => describedSettings,
      },
      onWait: context.warn,
      createsFirstKey: flags.key,
      // Programs read this object from the first line of the output, so the log lines are written after it.
      ...(flags.json ? { delayLogUntil: startOutput.promise } : {}),
    });
    const { publicUrl, operatorUrl, signInUrl, feedback, firstKey, inboxPath } = service;
    if (flags.json)
      context.writeJson(
        { publicUrl, operatorUrl, signIn: signInUrl, feedback, key: firstKey, inbox: inboxPath },
        startOutput.resolve,
      );
    else context.writeText(formatBanner(service, settings, process.stdout.isTTY === true));
    if (context.environment.NOTIFY_SOCKET !== undefined) await notifyReady(context.warn);
    const signalOrFailure = await Promise.race([stopSignal, service.failed]);
    if (signalOrFailure instanceof Error) {
      process.stderr.write(`postrider: ${describeError(signalOrFailure)} The service has stopped; start it again.\n`);
      // The process ends without a drain, because accepted messages are stored and outcomes can no longer be recorded.
      process.exit(1);
    }
    if (!flags.json)
      process.stderr.write(`postrider: ${signalOrFailure}: stopping; a second signal ends the process at once\n`);
    try {
      await service.stop();
    } catch (error) {
      process.stderr.write(`postrider: while stopping: ${describeError(error)}\n`);
      process.exit(1);
    }
    // A handle that a library left open must not keep the process alive.
    process.exit(0);
  });
}

/** @throws CommandFailure with `EXIT_INVALID_SETTINGS` if a setting is invalid */
function readServiceSettings(context: Context): ReturnType<typeof readSettings> {
  try {
    return readSettings(context.environment, context.readDotEnv());
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new CommandFailure(describeError(error), EXIT_INVALID_SETTINGS);
  }
}

/** A later signal ends the process. Handlers stay: Ctrl-C under `npm start` sends two signals within milliseconds. */
export function waitForStopSignal({ clock }: Pick<Context, 'clock'>): Promise<'SIGTERM' | 'SIGINT'> {
  const { promise, resolve } = Promise.withResolvers<'SIGTERM' | 'SIGINT'>();
  let firstSignalAt: number | null = null;
  const createHandler = (signal: 'SIGTERM' | 'SIGINT', exitCode: number) => (): void => {
    if (firstSignalAt === null) {
      firstSignalAt = clock.now();
      resolve(signal);
    } else if (clock.now() - firstSignalAt >= DUPLICATE_SIGNAL_MS) {
      process.exit(exitCode);
    }
  };
  process.on('SIGINT', createHandler('SIGINT', 130));
  process.on('SIGTERM', createHandler('SIGTERM', 143));
  return promise;
}

export function formatBanner(service: StartedService, settings: Settings, onTerminal = false): string {
  const { publicUrl, operatorUrl, signInUrl, feedback, firstAccount, firstKey, inboxPath } = service;
  const addresses: (readonly [string, string])[] = [];
  if (publicUrl !== null)
    addresses.push(['Public interface', publicUrl.startsWith('unix:') ? publicUrl : publicUrl + SEND_MAIL_PATH]);
  if (operatorUrl !== null) addresses.push(['Operator', operatorUrl]);
  if (signInUrl !== null) addresses.push(['One-time sign-in', signInUrl]);
  if (feedback.smtp !== null) addresses.push(['Bounces (SMTP)', feedback.smtp]);
  if (feedback.http !== null) addresses.push(['Provider events', feedback.http]);
  if (inboxPath !== null && operatorUrl !== null && !operatorUrl.startsWith('unix:'))
    addresses.push(['Inbox', `${operatorUrl}/inbox`]);
  if (inboxPath !== null) addresses.push(['Inbox (Maildir)', inboxPath]);
  const warning = service.hasSendingDomain ? null : getSenderWarning(settings);
  return [
    `\n${applyStyle('heading', 'Postrider is running.')}${onTerminal ? ' Ctrl-C stops it.' : ''}\n\n`,
    formatPairs(addresses.map(([name, value]) => [`  ${name}`, value] as const)),
    warning === null ? '' : `\n${applyStyle('warning', warning)}\n`,
    firstKey === null ? formatKeyAdvice(firstAccount) : formatFirstSteps(firstKey, publicUrl, settings),
  ].join('');
}

function formatKeyAdvice(firstAccount: string | null): string {
  if (firstAccount === null) return '\nCreate an API key for a client: `postrider key create ACCOUNT`\n\n';
  return `\nThe database is new. It has the account "${firstAccount}" and no API key. Create one: \`postrider key create ${firstAccount}\`\n\n`;
}

function formatFirstSteps(key: string, publicUrl: string | null, { transport, roles }: Settings): string {
  const keyVisibility = roles.has('operator')
    ? 'shown here, and on the dashboard until the first message, for at most one hour'
    : 'shown only once';
  const keyText = `\nThe database is new. It has the account "default" with one API key, ${keyVisibility}:\n\n  ${applyStyle('success', key)}\n`;
  if (publicUrl === null) return `${keyText}\n`;
  const command = createFirstCurlCommand({ publicUrl, key, from: FIRST_SENDER, to: getFirstRecipient(transport.kind) });
  return `${keyText}\nSend a first message:\n\n  ${command.replaceAll('\n', '\n  ')}\n\n`;
}

/** Every request is refused with 403 until the first sending domain is authenticated. */
function getSenderWarning(settings: Settings): string | null {
  if (!requiresAuthenticatedSender(settings) || !settings.roles.has('api')) return null;
  return 'The domain of a sender must be authenticated: run `postrider domain add ACCOUNT DOMAIN`, publish its records, then run `postrider domain verify DOMAIN`.';
}

const MAX_WAIT_MS = 10_000;

/** A failure causes only a warning: the service runs until systemd ends it after `TimeoutStartSec`. */
export function notifyReady(warn: (line: string) => void): Promise<void> {
  return new Promise((resolve) => {
    // The process inherits NOTIFY_SOCKET, the path of the socket.
    execFile('systemd-notify', ['--ready', `--pid=${process.pid}`], { timeout: MAX_WAIT_MS }, (error) => {
      if (error !== null) {
        warn(
          `systemd was not notified (${error.message.trim()}); install systemd-notify, or use Type=exec in the unit`,
        );
      }
      resolve();
    });
  });
}

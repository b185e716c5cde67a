/**
 * `postrider serve`: runs the service until it is told to stop. The first SIGTERM or SIGINT drains and stops it; a
 * second one ends the process at once, which loses nothing that was accepted: leases are taken back at the next start.
 * A service that can do its work no more ends with 1, for a supervisor to start it anew.
 */

import type { Command } from 'commander';
import { describeSettings } from '../config/load.ts';
import type { Settings } from '../config/settings.ts';
import { FIRST_SENDER, firstCurlCommand, firstRecipient } from '../http/curl.ts';
import { requiresAuthenticatedSender } from '../model/submission.ts';
import { describeError } from '../printing/error-line.ts';
import type { Context } from './context.ts';
import { pairs, styled } from './text.ts';
import { version } from './version.ts';

/** A person who means it takes longer than this between two signals; npm takes far less. */
const SAME_SIGNAL_MS = 300;

/** What a started service tells about itself. */
export interface StartedService {
  readonly publicUrl: string | null;
  readonly operatorUrl: string | null;
  /** Signs in once, where no password is set; else null. */
  readonly signInUrl: string | null;
  /** The raw key made on an empty store, else null. */
  readonly firstKey: string | null;
  /** Where bounces and complaints are taken: `host:port` for SMTP, the URL for the provider's notices; null where not. */
  readonly feedback: { readonly smtp: string | null; readonly http: string | null };
  /** The Maildir of `capture:`, else null. */
  readonly inboxPath: string | null;
}

/** Adds the command. */
export function addServeCommand(program: Command, context: Context): void {
  const serve = program
    .command('serve')
    .description('run the service')
    .option('--json', 'print what was started as one line of JSON');
  serve.action(async (flags: { json?: boolean }) => {
    const settings = context.settings();
    const { startService } = await import('../main.ts');
    // Listened for from before the start, so that a stop during it is not the death of a half-started service.
    const stopped = waitForStopSignal(context);
    const { environment, dotEnv } = context;
    const announced = Promise.withResolvers<void>();
    const service = await startService(settings, {
      operatorApi: {
        version: version(),
        describeSettings: () => describeSettings(environment, dotEnv()),
      },
      onWait: context.warn,
      // A program reads the start object from the first line, so log lines wait until it is written.
      ...(flags.json ? { delayLogUntil: announced.promise } : {}),
    });
    const { publicUrl, operatorUrl, signInUrl, feedback, firstKey, inboxPath } = service;
    if (flags.json)
      context.json(
        { publicUrl, operatorUrl, signIn: signInUrl, feedback, key: firstKey, inbox: inboxPath },
        announced.resolve,
      );
    else context.out(banner(service, settings, process.stdout.isTTY === true));
    const signal = await Promise.race([stopped, service.failed]);
    if (signal instanceof Error) {
      process.stderr.write(`postrider: ${describeError(signal)} The service has ended; start it again.\n`);
      // At once: nothing that was accepted is lost, and nothing more can be recorded.
      process.exit(1);
    }
    if (!flags.json) process.stderr.write(`postrider: ${signal}: stopping; a second one stops at once\n`);
    try {
      await service.stop();
    } catch (error) {
      process.stderr.write(`postrider: while stopping: ${describeError(error)}\n`);
      process.exit(1);
    }
    // Whatever a library has left open must not keep a stopped service alive.
    process.exit(0);
  });
}

/**
 * The first signal, told once; a later one ends the process at once. Ctrl-C reaches a service under `npm start` twice, from
 * the terminal and handed on by npm, within a few milliseconds; those are one. The handlers stay for good: without any, a
 * signal that comes between two of them would kill the process.
 */
export function waitForStopSignal({ clock }: Pick<Context, 'clock'>): Promise<'SIGTERM' | 'SIGINT'> {
  const { promise, resolve } = Promise.withResolvers<'SIGTERM' | 'SIGINT'>();
  let first: number | null = null;
  const on = (signal: 'SIGTERM' | 'SIGINT', code: number) => (): void => {
    if (first === null) {
      first = clock.now();
      resolve(signal);
    } else if (clock.now() - first >= SAME_SIGNAL_MS) {
      process.exit(code);
    }
  };
  process.on('SIGINT', on('SIGINT', 130));
  process.on('SIGTERM', on('SIGTERM', 143));
  return promise;
}

/**
 * What is shown after the start; with the key and a ready command where the store was empty. To a person on a terminal it says
 * how to stop it, which a log under a supervisor need not.
 */
export function banner(started: StartedService, settings: Settings, onTerminal = false): string {
  const { publicUrl, operatorUrl, signInUrl, feedback, firstKey, inboxPath } = started;
  const places: (readonly [string, string])[] = [];
  if (publicUrl !== null) places.push(['Public interface', `${publicUrl}/api/v1/send-mail`]);
  if (operatorUrl !== null) places.push(['Operator', operatorUrl]);
  if (signInUrl !== null) places.push(['Sign in (once)', signInUrl]);
  if (feedback.smtp !== null) places.push(['Bounces (SMTP)', feedback.smtp]);
  if (feedback.http !== null) places.push(['Notices (SNS)', feedback.http]);
  if (inboxPath !== null && operatorUrl !== null) places.push(['Inbox', `${operatorUrl}/inbox`]);
  if (inboxPath !== null) places.push(['Inbox (Maildir)', inboxPath]);
  const warning = senderWarning(settings);
  return [
    `\n${styled('head', 'Postrider is running.')}${onTerminal ? ' Ctrl-C stops it.' : ''}\n\n`,
    pairs(places.map(([name, value]) => [`  ${name}`, value] as const)),
    warning === null ? '' : `\n${styled('waiting', warning)}\n`,
    firstKey === null
      ? '\nA key for clients: `postrider key create ACCOUNT`\n\n'
      : firstSteps(firstKey, publicUrl, settings),
  ].join('');
}

function firstSteps(key: string, publicUrl: string | null, { transport, roles }: Settings): string {
  const shown = roles.has('operator') ? 'shown here, and for an hour on the dashboard' : 'shown only now';
  const made = `\nThe store is new. It has the account "default" with one API key, ${shown}:\n\n  ${styled('good', key)}\n`;
  if (publicUrl === null) return `${made}\n`;
  const command = firstCurlCommand({ publicUrl, key, from: FIRST_SENDER, to: firstRecipient(transport.kind) });
  return `${made}\nSend a first message:\n\n  ${command.replaceAll('\n', '\n  ')}\n\n`;
}

/** With a relay, nothing is taken before the first sender domain is authenticated: said at once, not at the first 403. */
function senderWarning(settings: Settings): string | null {
  if (!requiresAuthenticatedSender(settings) || !settings.roles.has('api')) return null;
  return 'Senders need an authenticated domain: `postrider domain add ACCOUNT DOMAIN`, publish its records, `postrider domain verify DOMAIN`.';
}

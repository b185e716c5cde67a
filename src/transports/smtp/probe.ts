/**
 * Tests a relay with a session that sends no message: greeting, EHLO, STARTTLS, AUTH, NOOP, QUIT. It is opened by the
 * same code as for messages. Never rejects; the result contains no credentials.
 */
import type { MonotonicClock } from '../../clock.ts';
import { SMTP_LIMITS, type SmtpLimits } from './channel.ts';
import { isLoopback, openConnection, type SmtpSetting } from './connection.ts';
import { Transcript } from './protocol.ts';

export type RelaySession =
  | {
      readonly kind: 'ready';
      /** The host, the address, and the cipher or `clear text`. */
      readonly description: string;
      readonly secure: boolean;
      readonly loopback: boolean;
      /** True if the TLS handshake failed and this session uses clear text. */
      readonly fellBackToClearText: boolean;
    }
  | {
      readonly kind: 'failed';
      readonly stage: string;
      /** RFC 5321 section 4.2. */
      readonly code: number | null;
      readonly text: string;
    };

export interface RelayProbe {
  readonly session: RelaySession;
  /** The first line of the server and its arrival (ms since the epoch, by this machine's clock). */
  readonly greeting: { readonly text: string; readonly at: number } | null;
}

/** Short, because an operator waits; the greeting has longer, because some servers delay it on purpose. */
const PROBE_LIMITS: SmtpLimits = {
  ...SMTP_LIMITS,
  connectMs: 8_000,
  greetingMs: 15_000,
  tlsMs: 8_000,
  commandMs: 10_000,
};

export async function probeRelay(setting: SmtpSetting, clock: MonotonicClock, timeoutMs: number): Promise<RelayProbe> {
  const deadline = clock.monotonic() + timeoutMs;
  const firstResult = await runSession(setting, clock, deadline, false);
  // As the transport does.
  if (!firstResult.tlsFailed || setting.auth !== null) return firstResult.probe;
  const secondResult = await runSession(setting, clock, deadline, true);
  const { session } = secondResult.probe;
  if (session.kind === 'failed') return secondResult.probe;
  return { ...secondResult.probe, session: { ...session, fellBackToClearText: true } };
}

async function runSession(
  setting: SmtpSetting,
  clock: MonotonicClock,
  deadline: number,
  plaintext: boolean,
): Promise<{ readonly probe: RelayProbe; readonly tlsFailed: boolean }> {
  const transcript = new GreetingTranscript(clock);
  const onChannel = () => undefined;
  const openResult = await openConnection(setting, { clock }, PROBE_LIMITS, {
    transcript,
    plaintext,
    deadline,
    onChannel,
  });
  const toProbe = (session: RelaySession) => ({ session, greeting: transcript.greeting });
  if (openResult.kind === 'failed') {
    const { stage, code, enhanced, text } = openResult.outcome.reply;
    const reply = [code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
    const failureText = code === null ? text : `${setting.host}:${setting.port} answered ${reply}`;
    return { probe: toProbe({ kind: 'failed', stage, code, text: failureText }), tlsFailed: openResult.tlsFailed };
  }
  const { connection } = openResult;
  const readySession = {
    kind: 'ready',
    description: connection.description,
    secure: connection.channel.isSecure,
    loopback: isLoopback(connection.channel.remoteAddress),
    fellBackToClearText: false,
  } as const;
  connection.channel.sendCommand('NOOP');
  const answer = await connection.channel.readReply('the answer to NOOP', PROBE_LIMITS.commandMs);
  if (answer.kind === 'lost')
    return { probe: toProbe({ kind: 'failed', stage: 'noop', code: null, text: answer.text }), tlsFailed: false };
  if (answer.code !== 250) {
    const text = `${setting.host}:${setting.port} answered NOOP with ${answer.lines[0] ?? answer.code}`;
    connection.channel.destroy();
    return { probe: toProbe({ kind: 'failed', stage: 'noop', code: answer.code, text }), tlsFailed: false };
  }
  connection.channel.sendCommand('QUIT');
  await connection.channel.readReply('the answer to QUIT', PROBE_LIMITS.quitMs);
  connection.channel.destroy();
  return { probe: toProbe(readySession), tlsFailed: false };
}

class GreetingTranscript extends Transcript {
  readonly #clock: MonotonicClock;
  greeting: { readonly text: string; readonly at: number } | null = null;

  constructor(clock: MonotonicClock) {
    super(clock);
    this.#clock = clock;
  }

  override addServerLine(line: string): void {
    this.greeting ??= { text: line.slice(0, 500), at: this.#clock.now() };
    super.addServerLine(line);
  }
}

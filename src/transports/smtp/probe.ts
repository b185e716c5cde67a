import type { MonotonicClock } from '../../clock.ts';
import { isLoopback } from '../../model/listen-address.ts';
import { SMTP_LIMITS, type SmtpLimits } from './channel.ts';
import { openConnection, type SmtpSetting } from './connection.ts';
import { Transcript } from './protocol.ts';

export type RelaySession =
  | {
      readonly kind: 'ready';
      readonly description: string;
      readonly secure: boolean;
      readonly loopback: boolean;
      readonly fellBackToClearText: boolean;
    }
  | {
      readonly kind: 'failed';
      readonly stage: string;
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
  const opening = { transcript, plaintext, deadline, onChannel };
  const openResult = await openConnection(setting, { clock }, PROBE_LIMITS, opening);
  const finish = (session: RelaySession, tlsFailed = false) => ({
    probe: { session, greeting: transcript.greeting },
    tlsFailed,
  });
  const peer = `${setting.host}:${setting.port}`;
  if (openResult.kind === 'failed') {
    const { stage, code, enhanced, text } = openResult.outcome.reply;
    const reply = [code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
    const failure = { kind: 'failed', stage, code, text: code === null ? text : `${peer} answered ${reply}` } as const;
    return finish(failure, openResult.tlsFailed);
  }
  const { channel, description } = openResult.connection;
  const [secure, loopback] = [channel.isSecure, isLoopback(channel.remoteAddress ?? '')];
  channel.sendCommand('NOOP');
  const answer = await channel.readReply('the answer to NOOP', PROBE_LIMITS.commandMs);
  if (answer.kind === 'lost') return finish({ kind: 'failed', stage: 'noop', code: null, text: answer.text });
  if (answer.code !== 250) {
    channel.destroy();
    const text = `${peer} answered NOOP with ${answer.lines[0] ?? answer.code}`;
    return finish({ kind: 'failed', stage: 'noop', code: answer.code, text });
  }
  channel.sendCommand('QUIT');
  await channel.readReply('the answer to QUIT', PROBE_LIMITS.quitMs);
  channel.destroy();
  return finish({ kind: 'ready', description, secure, loopback, fellBackToClearText: false });
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

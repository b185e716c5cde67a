/**
 * A session with the relay that sends no message: greeting, EHLO, STARTTLS, AUTH, NOOP, QUIT, over the same code that opens
 * connections for messages. Never rejects; its answer holds no credentials.
 */
import type { MonotonicClock } from '../../clock.ts';
import { SMTP_LIMITS, type SmtpLimits, Transcript } from './channel.ts';
import { isLoopback, openConnection, type SmtpSetting } from './connection.ts';

/** What an SMTP conversation (greeting, EHLO, STARTTLS, AUTH, NOOP, QUIT) came to. */
export type RelaySession =
  | {
      readonly kind: 'ready';
      /** Host, address and cipher, or `clear text`. */
      readonly description: string;
      readonly secure: boolean;
      readonly loopback: boolean;
      /** TLS was offered and broke down, and the conversation went on in clear text. */
      readonly fellBack: boolean;
    }
  | { readonly kind: 'failed'; readonly stage: string; readonly text: string };

/** What a session with the relay came to. */
export interface RelayProbe {
  readonly session: RelaySession;
  /** The first line of the server and this machine's time then, in ms since the epoch; or null. */
  readonly greeting: { readonly text: string; readonly at: number } | null;
}

/** A person waits for it; servers that let a greeting wait on purpose take some seconds for it. */
const LIMITS: SmtpLimits = { ...SMTP_LIMITS, connectMs: 8_000, greetingMs: 15_000, tlsMs: 8_000, commandMs: 10_000 };

/** Opens the session and ends it; it is over after `timeoutMs` at the latest. */
export async function probeRelay(setting: SmtpSetting, clock: MonotonicClock, timeoutMs: number): Promise<RelayProbe> {
  const limitAt = clock.monotonic() + timeoutMs;
  const first = await converse(setting, clock, limitAt, false);
  // As the transport itself does: where TLS was only taken because it was offered, mail goes on without it.
  if (!first.tlsFailed || setting.auth !== null) return first.probe;
  const second = await converse(setting, clock, limitAt, true);
  const { session: conversation } = second.probe;
  if (conversation.kind === 'failed') return second.probe;
  return { ...second.probe, session: { ...conversation, fellBack: true } };
}

async function converse(
  setting: SmtpSetting,
  clock: MonotonicClock,
  limitAt: number,
  clear: boolean,
): Promise<{ readonly probe: RelayProbe; readonly tlsFailed: boolean }> {
  const transcript = new GreetedTranscript(clock);
  const onChannel = () => undefined;
  const opened = await openConnection(setting, { clock }, LIMITS, {
    transcript,
    plaintext: clear,
    deadline: limitAt,
    onChannel,
  });
  const told = (session: RelaySession) => ({ session, greeting: transcript.greeting });
  if (opened.kind === 'failed') {
    const { stage, code, enhanced, text } = opened.outcome.reply;
    const said = [code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
    const what = code === null ? text : `${setting.host}:${setting.port} answered ${said}`;
    return { probe: told({ kind: 'failed', stage, text: what }), tlsFailed: opened.tlsFailed };
  }
  const { connection } = opened;
  const ready = {
    kind: 'ready',
    description: connection.description,
    secure: connection.channel.secure,
    loopback: isLoopback(connection.channel.remoteAddress),
    fellBack: false,
  } as const;
  connection.channel.command('NOOP');
  const answer = await connection.channel.nextReply('the answer to NOOP', LIMITS.commandMs);
  if (answer.kind === 'lost')
    return { probe: told({ kind: 'failed', stage: 'noop', text: answer.text }), tlsFailed: false };
  if (answer.code !== 250) {
    const text = `${setting.host}:${setting.port} answered NOOP with ${answer.lines[0] ?? answer.code}`;
    connection.channel.destroy();
    return { probe: told({ kind: 'failed', stage: 'noop', text }), tlsFailed: false };
  }
  connection.channel.command('QUIT');
  await connection.channel.nextReply('the answer to QUIT', LIMITS.quitMs);
  connection.channel.destroy();
  return { probe: told(ready), tlsFailed: false };
}

/** Remembers the first line of the server and when it came. */
class GreetedTranscript extends Transcript {
  readonly #clock: MonotonicClock;
  greeting: { readonly text: string; readonly at: number } | null = null;

  constructor(clock: MonotonicClock) {
    super();
    this.#clock = clock;
  }

  override server(line: string): void {
    this.greeting ??= { text: line.slice(0, 500), at: this.#clock.now() };
    super.server(line);
  }
}

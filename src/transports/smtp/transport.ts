/** If the server closes or refuses a reused connection, the same attempt uses a new one. */
import { isIP } from 'node:net';
import { classify } from '../../classify/classify.ts';
import type { FailureRule } from '../../model/failure.ts';
import { type Attempt, createDeferral, createLocalReply, type Outcome, type Stage } from '../../model/outcome.ts';
import { getErrorText } from '../../printing/text.ts';
import { findProvider } from '../../providers/providers.ts';
import type { BeforeCompletion, OutgoingMessage, Transport } from '../transport.ts';
import { type Channel, type ConnectionLost, SMTP_LIMITS, type SmtpLimits } from './channel.ts';
import {
  type Connection,
  ConnectionPool,
  type OpenResult,
  openConnection,
  type SmtpNetwork,
  type SmtpSetting,
  toLostOutcome,
} from './connection.ts';
import {
  buildAuthLogin,
  buildAuthPlain,
  buildEnvelopeLines,
  buildHelloCommand,
  buildMailCommand,
  CommandError,
  type EnvelopeLines,
  type ServerReply,
  Transcript,
  toReply,
} from './protocol.ts';

export interface SmtpParts extends SmtpNetwork {
  readonly limits?: Partial<SmtpLimits>;
}

/** Throws a `CommandError` if the EHLO name or the credentials cannot be sent as SMTP lines. */
export function createSmtpTransport(setting: SmtpSetting, parts: SmtpParts): Transport {
  buildHelloCommand('EHLO', setting.name);
  if (setting.auth !== null) {
    buildAuthPlain(setting.auth.user, setting.auth.pass);
    buildAuthLogin(setting.auth.user, setting.auth.pass);
  }
  const relay = findProvider(setting.provider)?.relay ?? null;
  const messagesPerConnection = relay?.messagesPerConnection ?? SMTP_LIMITS.messagesPerConnection;
  const limits: SmtpLimits = { ...SMTP_LIMITS, messagesPerConnection, ...parts.limits };
  const relayRules = relay?.replies ?? [];
  const { clock } = parts;
  const pool = new ConnectionPool(setting.connections, limits, clock);
  const remote = isIP(setting.host) === 6 ? `[${setting.host}]:${setting.port}` : `${setting.host}:${setting.port}`;
  const openingChannels = new Set<Channel>();
  let plaintextUntil = 0;
  let isClosing = false;

  async function openOnce(transcript: Transcript, deadline: number, plaintext: boolean): Promise<OpenResult> {
    let channel: Channel | null = null;
    const onChannel = (newChannel: Channel): void => {
      channel = newChannel;
      openingChannels.add(newChannel);
    };
    const openResult = await openConnection(setting, parts, limits, { transcript, plaintext, deadline, onChannel });
    if (channel !== null) openingChannels.delete(channel);
    return openResult;
  }

  async function open(transcript: Transcript, deadline: number): Promise<OpenResult> {
    const openResult = await openOnce(transcript, deadline, clock.monotonic() < plaintextUntil);
    if (openResult.kind === 'open' || !openResult.tlsFailed || setting.auth !== null || isClosing) return openResult;
    // RFC 7435: a failure of opportunistic encryption does not prevent delivery. Credentials are not sent in clear text.
    plaintextUntil = clock.monotonic() + limits.plaintextAfterTlsFailureMs;
    transcript.addRemark('TLS failed; the attempt is repeated in clear text');
    return openOnce(transcript, deadline, true);
  }

  function addReference(outcome: Outcome): Outcome {
    const reference = outcome.kind === 'delivered' ? (relay?.findReference?.(outcome.reply.text) ?? null) : null;
    return outcome.kind !== 'delivered' || reference === null
      ? outcome
      : { ...outcome, reference: `${setting.provider}:${reference}` };
  }

  return {
    concurrency: setting.connections,

    async close(timeoutMs: number): Promise<void> {
      isClosing = true;
      await pool.close(timeoutMs);
      for (const channel of openingChannels) channel.destroy('the service is stopping');
    },

    async attempt(message: OutgoingMessage, beforeCompletion: BeforeCompletion): Promise<Attempt> {
      const startedAt = clock.now();
      const startedMonotonic = clock.monotonic();
      const deadline = startedMonotonic + limits.attemptMs;
      const transcript = new Transcript(clock);
      let wasConnected = false;
      let mark: Promise<void> | null = null;
      const markOnce: BeforeCompletion =
        beforeCompletion === null
          ? null
          : () => {
              mark ??= beforeCompletion();
              return mark;
            };
      const finish = (outcome: Outcome): Attempt => ({
        outcome,
        startedAt,
        tookMs: clock.monotonic() - startedMonotonic,
        remote: wasConnected ? remote : null,
        transcript: transcript.lines,
        lineOffsetsMs: transcript.offsetsMs,
      });

      try {
        const { from, to, smtputf8 } = message.envelope;
        const lines = buildEnvelopeLines(from, to, smtputf8);
        for (let requireNew = false; ; requireNew = true) {
          const acquired = pool.acquire(requireNew);
          let connection = acquired instanceof Promise ? await acquired : acquired;
          if (connection === 'closed')
            return finish(createDeferral('connect', 'the service is stopping', 'connection', 'route'));
          if (connection === 'open') {
            let openResult: OpenResult | null = null;
            try {
              openResult = await open(transcript, deadline);
            } finally {
              if (openResult?.kind !== 'open') pool.onFreed();
            }
            if (openResult.kind === 'failed') {
              wasConnected ||= openResult.wasConnected;
              return finish(openResult.outcome);
            }
            connection = openResult.connection;
            pool.onOpened(connection);
          } else {
            transcript.addRemark(
              `${connection.description}, message ${connection.messageCount + 1} of this connection`,
            );
          }
          wasConnected = true;
          connection.channel.beginWork(transcript, deadline);
          let outcome: Outcome | 'stale';
          try {
            outcome = await runTransaction({
              connection,
              message,
              lines,
              beforeCompletion: markOnce,
              limits,
              relayRules,
              transcript,
            });
          } catch (error) {
            connection.channel.destroy();
            throw error;
          } finally {
            pool.release(connection);
          }
          if (outcome !== 'stale') return finish(addReference(outcome));
          transcript.addRemark('the reused connection was closed; the attempt is repeated over a new connection');
        }
      } catch (error) {
        // A bug in this code or in the caller. It concerns only this message.
        const text =
          error instanceof CommandError
            ? error.message
            : `the attempt failed because of an internal error: ${String(error)}`;
        return finish(createDeferral('connect', text, 'unknown', 'message'));
      }
    },
  };
}

const COPY_BELOW_BYTES = 65_536;

interface Transaction {
  readonly connection: Connection;
  readonly message: OutgoingMessage;
  readonly lines: EnvelopeLines;
  readonly beforeCompletion: BeforeCompletion;
  readonly limits: SmtpLimits;
  readonly relayRules: readonly FailureRule[];
  readonly transcript: Transcript;
}

type Refusal = { readonly stage: Stage; readonly reply: ServerReply };

/** RFC 5321 section 3.3; with PIPELINING in one write (RFC 2920). `'stale'`: closed before anything was accepted. */
async function runTransaction(transaction: Transaction): Promise<Outcome | 'stale'> {
  const { connection, message, lines, limits, transcript } = transaction;
  const { channel, extensions } = connection;
  const { smtputf8 } = message.envelope;
  // RFC 6531 section 3.2.
  if (smtputf8 && !extensions.smtputf8) {
    const text = 'an address needs SMTPUTF8, which the next hop does not offer';
    const reply = { ...createLocalReply('mail', text), enhanced: '5.6.7' };
    return { kind: 'bounced', reply, reason: 'smtputf8', suppress: false };
  }
  const isReused = connection.messageCount > 0;
  connection.messageCount += 1;
  const mailCommand = buildMailCommand(lines.mail, extensions.size ? message.data.length : null, smtputf8);

  // RFC 2920 section 3.1: RSET, MAIL and RCPT may be anywhere in a group of commands. DATA must be its last command.
  const group = [
    ...(connection.needsReset ? ['RSET'] : []),
    mailCommand,
    ...(extensions.pipelining ? [lines.rcpt, 'DATA'] : []),
  ];
  for (const command of group) transcript.addClientLine(command);
  channel.write(`${group.join('\r\n')}\r\n`);
  if (connection.needsReset) {
    const answer = await channel.readReply('the answer to RSET', limits.commandMs);
    if (answer.kind === 'lost' || answer.code !== 250) {
      channel.destroy();
      return 'stale';
    }
    connection.needsReset = false;
  }

  let refusal: Refusal | null = null;
  let lastCode = 0;
  const commands = [['mail', mailCommand] as const, ['rcpt', lines.rcpt] as const, ['data', 'DATA'] as const];
  for (const [stage, command] of commands) {
    if (!extensions.pipelining && stage !== 'mail') {
      if (refusal !== null) return handleRefusal(transaction, refusal);
      channel.sendCommand(command);
    }
    const answer = await channel.readReply(`the answer to ${stage.toUpperCase()}`, limits.commandMs);
    if (answer.kind === 'lost')
      return refusal === null ? resolveLoss(stage, answer, isReused) : classifyRefusal(transaction, refusal);
    if (answer.code === 421) {
      // The replies to the rest of the group do not follow.
      channel.destroy();
      if (isReused && refusal === null) return 'stale';
      return classifyRefusal(transaction, refusal ?? { stage, reply: answer });
    }
    const isAccepted = stage === 'data' ? answer.code === 354 : answer.code >= 200 && answer.code < 260;
    if (!isAccepted) refusal ??= { stage, reply: answer };
    lastCode = answer.code;
  }
  if (refusal !== null) {
    if (lastCode === 354) {
      // RFC 2920 section 3.1: 354 although the recipient is refused. The empty message is refused too.
      channel.sendCommand('.');
      await channel.readReply('the answer to an empty message', limits.commandMs);
    }
    return handleRefusal(transaction, refusal);
  }
  const outcome = await sendContent(transaction);
  if (!isReused || outcome.kind !== 'deferred' || !isConnectionFault(outcome.reply)) return outcome;
  channel.destroy();
  return 'stale';
}

/** Returns true for 421, and for X.4.2 (RFC 3463 section 3.5: bad connection). */
function isConnectionFault({ code, enhanced }: Outcome['reply']): boolean {
  return code === 421 || (code !== null && code < 500 && enhanced === '4.4.2');
}

async function sendContent(transaction: Transaction): Promise<Outcome> {
  const { connection, message, beforeCompletion, limits, relayRules, transcript } = transaction;
  const { channel } = connection;
  const { data } = message;
  const content = dotStuff(data);
  transcript.addClientLine(`(${data.length} octets)`);
  let isFlushed = false;
  const onFlushed = (): void => {
    isFlushed = true;
  };
  if (beforeCompletion === null) {
    if (content.length < COPY_BELOW_BYTES) channel.write(Buffer.concat([content, FINAL_DOT]), onFlushed);
    else channel.writeBoth(content, FINAL_DOT, onFlushed);
  } else {
    channel.write(content);
    const refusal = await awaitPermission(channel, beforeCompletion, relayRules);
    if (refusal !== null) return refusal;
    channel.write(FINAL_DOT, onFlushed);
  }
  const answer = await channel.readReply('the answer to the message', limits.contentMs, false);
  if (answer.kind === 'lost') {
    // The operating system has not received the whole final dot. With TLS and its buffer, this is not certain.
    return !isFlushed && !channel.isSecure
      ? toLostOutcome('content', answer)
      : { kind: 'unanswered', reply: createLocalReply('content', answer.text) };
  }
  if (answer.code === 421 || channel.hasUnread) channel.destroy();
  return classify(toReply('content', answer), relayRules);
}

async function awaitPermission(
  channel: Channel,
  beforeCompletion: () => Promise<void>,
  relayRules: readonly FailureRule[],
): Promise<Outcome | null> {
  try {
    await Promise.race([beforeCompletion(), channel.waitUntilLost()]);
  } catch (error) {
    channel.destroy();
    const text = `not completed: ${getErrorText(error)}`;
    return createDeferral('content', text, 'unknown', 'message');
  }
  if (!channel.hasUnread) return channel.loss === null ? null : toLostOutcome('content', channel.loss);
  // The server has replied before the end of the message, so it cannot have accepted the message.
  const earlyReply = await channel.readReply('an early answer', 0);
  channel.destroy();
  if (earlyReply.kind === 'lost') return toLostOutcome('content', earlyReply);
  const reply = toReply('content', earlyReply);
  const outcome = classify(reply, relayRules);
  return outcome.kind === 'delivered' ? { kind: 'deferred', reply, reason: 'unknown', scope: 'route' } : outcome;
}

/** A reused connection that was closed, or did not answer MAIL (it may be half open), is stale. */
function resolveLoss(stage: Stage, lost: ConnectionLost, isReused: boolean): Outcome | 'stale' {
  const wasClosed = lost.cause === 'closed' || (lost.cause === 'timeout' && stage === 'mail');
  return isReused && wasClosed ? 'stale' : toLostOutcome(stage, lost);
}

function classifyRefusal({ relayRules }: Transaction, { stage, reply }: Refusal): Outcome {
  return classify(toReply(stage, reply), relayRules);
}

function handleRefusal(transaction: Transaction, refusal: Refusal): Outcome {
  const { connection } = transaction;
  connection.needsReset = true;
  if (connection.channel.hasUnread) connection.channel.destroy();
  return classifyRefusal(transaction, refusal);
}

const DOT = 0x2e;
const LF = 0x0a;
const CR = 0x0d;
const LF_DOT = Buffer.from('\n.');
const FINAL_DOT = Buffer.from('.\r\n');

/** RFC 5321 section 4.5.2, also after a bare LF, which a server may accept as a line end. */
export function dotStuff(data: Buffer): Buffer {
  let dotCount = data[0] === DOT ? 1 : 0;
  for (let at = data.indexOf(LF_DOT); at >= 0; at = data.indexOf(LF_DOT, at + 2)) dotCount += 1;
  const end = data.length;
  const isLineEndMissing = end > 0 && (end < 2 || data[end - 1] !== LF || data[end - 2] !== CR);
  if (dotCount === 0 && !isLineEndMissing) return data;

  const stuffedData = Buffer.allocUnsafe(end + dotCount + (isLineEndMissing ? 2 : 0));
  let to = 0;
  let from = 0;
  if (data[0] === DOT) {
    stuffedData[0] = DOT;
    to = 1;
  }
  for (let at = data.indexOf(LF_DOT); at >= 0; at = data.indexOf(LF_DOT, at + 2)) {
    to += data.copy(stuffedData, to, from, at + 2);
    stuffedData[to] = DOT;
    to += 1;
    from = at + 2;
  }
  to += data.copy(stuffedData, to, from);
  if (isLineEndMissing) {
    stuffedData[to] = CR;
    stuffedData[to + 1] = LF;
  }
  return stuffedData;
}

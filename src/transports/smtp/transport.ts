/**
 * Implements the transports `smtp:` and `smtps:`, which send messages to one relay over pooled connections.
 *
 * Guarantees: an attempt never rejects, and calls `beforeCompletion` at most once, immediately before the final dot. If
 * the server closes a reused connection, or refuses to go on with it, the same attempt uses a new connection.
 */
import { isIP } from 'node:net';
import { classify } from '../../classify/classify.ts';
import type { FailureRule } from '../../model/failure-rule.ts';
import type { Attempt, Outcome, Reply, Stage } from '../../model/outcome.ts';
import { findProvider } from '../../providers/providers.ts';
import type { OutgoingMessage, Transport } from '../transport.ts';
import {
  type Channel,
  type ConnectionLost,
  type ReplyOrConnectionLost,
  SMTP_LIMITS,
  type SmtpLimits,
} from './channel.ts';
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
  toReply,
} from './protocol.ts';
import { Transcript } from './transcript.ts';

/** `limits` replaces individual values of `SMTP_LIMITS`. */
export interface SmtpParts extends SmtpNetwork {
  readonly limits?: Partial<SmtpLimits>;
}

/** Creates the transport. Throws a `CommandError` if the EHLO name or the credentials cannot be sent as SMTP lines. */
export function createSmtpTransport(setting: SmtpSetting, parts: SmtpParts): Transport {
  buildHelloCommand('EHLO', setting.name);
  if (setting.auth !== null) {
    buildAuthPlain(setting.auth.user, setting.auth.pass);
    buildAuthLogin(setting.auth.user, setting.auth.pass);
  }
  const relay = findProvider(setting.provider)?.relay ?? null;
  const { messagesPerConnection } = relay ?? SMTP_LIMITS;
  const limits: SmtpLimits = {
    ...SMTP_LIMITS,
    messagesPerConnection: messagesPerConnection ?? SMTP_LIMITS.messagesPerConnection,
    ...parts.limits,
  };
  const relayRules = relay?.replies ?? [];
  const { clock } = parts;
  const pool = new ConnectionPool(setting.connections, limits, clock);
  const remote = isIP(setting.host) === 6 ? `[${setting.host}]:${setting.port}` : `${setting.host}:${setting.port}`;
  const addReference = createReferenceReader(setting.provider);
  const openingChannels = new Set<Channel>();
  let plaintextUntil = 0;
  let isClosing = false;

  async function openConnectionOnce(transcript: Transcript, deadline: number, plaintext: boolean): Promise<OpenResult> {
    let channel: Channel | null = null;
    const onChannel = (newChannel: Channel): void => {
      channel = newChannel;
      openingChannels.add(newChannel);
    };
    const openResult = await openConnection(setting, parts, limits, {
      transcript,
      plaintext,
      deadline,
      onChannel,
    });
    if (channel !== null) openingChannels.delete(channel);
    return openResult;
  }

  async function open(transcript: Transcript, deadline: number): Promise<OpenResult> {
    const openResult = await openConnectionOnce(transcript, deadline, clock.monotonic() < plaintextUntil);
    if (openResult.kind === 'open' || !openResult.tlsFailed || setting.auth !== null || isClosing) return openResult;
    // RFC 7435: a failure of opportunistic encryption does not prevent delivery. With credentials there is no fallback
    // to clear text.
    plaintextUntil = clock.monotonic() + limits.plaintextAfterTlsFailureMs;
    transcript.addRemark('TLS failed; the attempt is repeated in clear text');
    return openConnectionOnce(transcript, deadline, true);
  }

  return {
    concurrency: setting.connections,

    async close(timeoutMs: number): Promise<void> {
      isClosing = true;
      await pool.close(timeoutMs);
      for (const channel of openingChannels) channel.destroy('the service is stopping');
    },

    async attempt(message: OutgoingMessage, beforeCompletion: (() => Promise<void>) | null): Promise<Attempt> {
      const startedAt = clock.now();
      const startedMonotonic = clock.monotonic();
      const deadline = startedMonotonic + limits.attemptMs;
      const transcript = new Transcript(clock);
      let wasConnected = false;
      let markPromise: Promise<void> | null = null;
      const markOnce =
        beforeCompletion === null
          ? null
          : () => {
              markPromise ??= beforeCompletion();
              return markPromise;
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
        const envelopeLines = buildEnvelopeLines(from, to, smtputf8);
        for (let requireNew = false; ; requireNew = true) {
          const acquireResult = pool.acquire(requireNew);
          let connection = acquireResult instanceof Promise ? await acquireResult : acquireResult;
          if (connection === 'closed')
            return finish(toLocalFailure('connection', 'the service is stopping', 'transport'));
          if (connection === 'open') {
            let openResult: OpenResult;
            try {
              openResult = await open(transcript, deadline);
            } catch (error) {
              pool.onFreed();
              throw error;
            }
            if (openResult.kind === 'failed') {
              pool.onFreed();
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
            outcome = await runTransaction(
              connection,
              message,
              envelopeLines,
              markOnce,
              limits,
              relayRules,
              transcript,
            );
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
        // The error is caused by a bug in this code or in the caller. The failure is classified as temporary and
        // concerns only this message.
        const text =
          error instanceof CommandError
            ? error.message
            : `the attempt failed because of an internal error: ${String(error)}`;
        return finish(toLocalFailure('unknown', text, 'message'));
      }
    },
  };
}

/**
 * Creates the function that adds the provider's id of the message to a delivered outcome, if the reply to the message
 * contains this id. Events of the provider identify the message by this id.
 */
function createReferenceReader(name: SmtpSetting['provider']): (outcome: Outcome) => Outcome {
  const findReference = findProvider(name)?.relay?.findReference ?? null;
  if (findReference === null) return (outcome) => outcome;
  return (outcome) => {
    const reference = outcome.kind === 'delivered' ? findReference(outcome.reply.text) : null;
    return outcome.kind !== 'delivered' || reference === null
      ? outcome
      : { ...outcome, reference: `${name}:${reference}` };
  };
}

function toLocalFailure(reason: 'connection' | 'unknown', text: string, scope: 'message' | 'transport'): Outcome {
  return { kind: 'deferred', reply: { stage: 'connect', code: null, enhanced: null, text }, reason, scope };
}

/** Below this size, copying into one buffer (one system call, one TLS record) is faster than a vectored write. */
const COPY_BELOW_BYTES = 65_536;

type Refusal = { readonly stage: Stage; readonly reply: ServerReply };

/**
 * Sends MAIL, RCPT, DATA, the content and the final dot of one message (RFC 5321 section 3.3). The connection must be
 * ready for MAIL. If the server offers PIPELINING (RFC 2920), MAIL, RCPT and DATA are sent in one write.
 *
 * Guarantees: the promise is never rejected. If the connection is lost after the final dot may have been sent, the
 * outcome is `unanswered`. If the connection is lost earlier, the outcome is deferred. The result `'stale'` means that
 * a reused connection was closed and the server did not accept the message. The caller must then use another
 * connection. The connection is usable or destroyed when the promise resolves.
 */
async function runTransaction(
  connection: Connection,
  message: OutgoingMessage,
  envelopeLines: EnvelopeLines,
  beforeCompletion: (() => Promise<void>) | null,
  limits: SmtpLimits,
  relayRules: readonly FailureRule[],
  transcript: Transcript,
): Promise<Outcome | 'stale'> {
  const { channel, extensions } = connection;
  const smtputf8 = message.envelope.smtputf8;
  if (smtputf8 && !extensions.smtputf8) return refuseSmtputf8();
  const isReused = connection.messageCount > 0;
  connection.messageCount += 1;
  const mailCommand = buildMailCommand(envelopeLines.mail, extensions.size ? message.data.length : null, smtputf8);

  // RFC 2920 section 3.1: RSET, MAIL and RCPT may be anywhere in a group of commands. DATA must be the last command of
  // a group.
  let commandGroup = '';
  if (connection.needsReset) {
    transcript.addClientLine('RSET');
    commandGroup = 'RSET\r\n';
  }
  transcript.addClientLine(mailCommand);
  commandGroup += `${mailCommand}\r\n`;
  if (extensions.pipelining) {
    transcript.addClientLine(envelopeLines.rcpt);
    transcript.addClientLine('DATA');
    commandGroup += `${envelopeLines.rcpt}\r\nDATA\r\n`;
  }
  channel.write(commandGroup);

  if (connection.needsReset) {
    const answer = await channel.readReply('the answer to RSET', limits.commandMs);
    if (answer.kind === 'lost' || answer.code !== 250) {
      channel.destroy();
      return 'stale';
    }
    connection.needsReset = false;
  }

  /** Ends the transaction after the reply 421, which is not followed by the replies to the rest of the group. */
  const endTransaction = (refusal: Refusal): Outcome | 'stale' => {
    channel.destroy();
    return isReused && isClosing(refusal.reply) ? 'stale' : classifyRefusal(refusal, relayRules);
  };

  const mailAnswer = await channel.readReply('the answer to MAIL', limits.commandMs);
  if (mailAnswer.kind === 'lost') return resolveLoss('mail', mailAnswer, isReused);
  if (isClosing(mailAnswer)) return endTransaction({ stage: 'mail', reply: mailAnswer });
  let refusal: Refusal | null = isPositive(mailAnswer) ? null : { stage: 'mail', reply: mailAnswer };

  if (!extensions.pipelining) {
    if (refusal !== null) return handleRefusal(connection, refusal, relayRules);
    channel.sendCommand(envelopeLines.rcpt);
  }
  const rcptAnswer = await channel.readReply('the answer to RCPT', limits.commandMs);
  if (rcptAnswer.kind === 'lost')
    return refusal === null ? resolveLoss('rcpt', rcptAnswer, isReused) : classifyRefusal(refusal, relayRules);
  if (isClosing(rcptAnswer)) return endTransaction(refusal ?? { stage: 'rcpt', reply: rcptAnswer });
  if (!isPositive(rcptAnswer)) refusal ??= { stage: 'rcpt', reply: rcptAnswer };

  if (!extensions.pipelining) {
    if (refusal !== null) return handleRefusal(connection, refusal, relayRules);
    channel.sendCommand('DATA');
  }
  const dataAnswer = await channel.readReply('the answer to DATA', limits.commandMs);
  if (dataAnswer.kind === 'lost')
    return refusal === null ? resolveLoss('data', dataAnswer, isReused) : classifyRefusal(refusal, relayRules);
  if (isClosing(dataAnswer)) return endTransaction(refusal ?? { stage: 'data', reply: dataAnswer });
  if (dataAnswer.code !== 354)
    return handleRefusal(connection, refusal ?? { stage: 'data', reply: dataAnswer }, relayRules);
  if (refusal !== null) {
    // RFC 2920 section 3.1: the server may answer 354 although it has refused the recipient. A final dot then ends the
    // empty message, which the server refuses.
    channel.sendCommand('.');
    await channel.readReply('the answer to an empty message', limits.commandMs);
    return handleRefusal(connection, refusal, relayRules);
  }
  const outcome = await sendContent(connection, message.data, beforeCompletion, limits, relayRules, transcript);
  return isReused && outcome.kind === 'deferred' && isConnectionFault(outcome.reply)
    ? discardConnection(channel)
    : outcome;
}

/** Returns true for the reply after which the server closes the connection (RFC 5321 section 3.8). */
function isClosing(reply: ServerReply): boolean {
  return reply.code === 421;
}

/** Returns true for a refusal because of the connection: 421, or X.4.2 (RFC 3463 section 3.5: bad connection). */
function isConnectionFault({ code, enhanced }: Reply): boolean {
  return code === 421 || (code !== null && code < 500 && enhanced === '4.4.2');
}

/** Closes a reused connection whose server refused to go on with it. The attempt is repeated on a new connection. */
function discardConnection(channel: Channel): 'stale' {
  channel.destroy();
  return 'stale';
}

async function sendContent(
  connection: Connection,
  data: Buffer,
  beforeCompletion: (() => Promise<void>) | null,
  limits: SmtpLimits,
  relayRules: readonly FailureRule[],
  transcript: Transcript,
): Promise<Outcome> {
  const { channel } = connection;
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
    const refusal = await awaitPermission(connection, beforeCompletion, relayRules);
    if (refusal !== null) return refusal;
    channel.write(FINAL_DOT, onFlushed);
  }
  const answer = await channel.readReply('the answer to the message', limits.contentMs, false);
  if (answer.kind === 'lost') {
    // If the write is not flushed, the operating system has not received the complete final dot. This is not certain
    // with TLS, because TLS has its own buffer.
    if (!isFlushed && !channel.isSecure) return toLostOutcome('content', answer);
    return { kind: 'unanswered', reply: { stage: 'content', code: null, enhanced: null, text: answer.text } };
  }
  if (answer.code === 421 || channel.hasUnread) channel.destroy();
  return classify(toReply('content', answer), relayRules);
}

/**
 * Awaits `beforeCompletion`. Returns null if the final dot may be written; otherwise closes the connection and returns
 * the outcome.
 */
async function awaitPermission(
  connection: Connection,
  beforeCompletion: () => Promise<void>,
  relayRules: readonly FailureRule[],
): Promise<Outcome | null> {
  const { channel } = connection;
  try {
    await Promise.race([beforeCompletion(), channel.waitUntilLost()]);
  } catch (error) {
    channel.destroy();
    const text = `not completed: ${error instanceof Error ? error.message : String(error)}`;
    const reply = { stage: 'content', code: null, enhanced: null, text } as const;
    return { kind: 'deferred', reply, reason: 'unknown', scope: 'message' };
  }
  if (channel.loss !== null && !channel.hasUnread) return toLostOutcome('content', channel.loss);
  if (!channel.hasUnread) return null;
  // The server has replied before the end of the message, so it cannot have accepted the message.
  const earlyReply: ReplyOrConnectionLost = await channel.readReply('an early answer', 0);
  channel.destroy();
  if (earlyReply.kind === 'lost') return toLostOutcome('content', earlyReply);
  const reply = toReply('content', earlyReply);
  const outcome = classify(reply, relayRules);
  return outcome.kind === 'delivered' ? { kind: 'deferred', reply, reason: 'unknown', scope: 'transport' } : outcome;
}

function isPositive(reply: ServerReply): boolean {
  return reply.code >= 200 && reply.code < 260;
}

/**
 * Returns `stale` if the server closed a reused connection, or did not answer MAIL on a reused connection (which may be
 * half open).
 */
function resolveLoss(stage: Stage, lost: ConnectionLost, reused: boolean): Outcome | 'stale' {
  const wasClosed = lost.cause === 'closed' || (lost.cause === 'timeout' && stage === 'mail');
  return reused && wasClosed ? 'stale' : toLostOutcome(stage, lost);
}

function classifyRefusal(refusal: Refusal, relayRules: readonly FailureRule[]): Outcome {
  return classify(toReply(refusal.stage, refusal.reply), relayRules);
}

function handleRefusal(connection: Connection, refusal: Refusal, relayRules: readonly FailureRule[]): Outcome {
  const { channel } = connection;
  connection.needsReset = true;
  if (isClosing(refusal.reply) || channel.hasUnread) channel.destroy();
  return classifyRefusal(refusal, relayRules);
}

/**
 * Returns the outcome of a message that needs SMTPUTF8 and must not be sent to a server without this extension (RFC
 * 6531 section 3.2).
 */
function refuseSmtputf8(): Outcome {
  return {
    kind: 'bounced',
    reply: {
      stage: 'mail',
      code: null,
      enhanced: '5.6.7',
      text: 'an address needs SMTPUTF8, which the next hop does not offer',
    },
    reason: 'smtputf8',
    suppress: false,
  };
}

// The content between the 354 reply and the final dot: dot-stuffed and ended by a line end (RFC 5321 section 4.5.2).
// The processing time is linear in the size of the message. A message in which no line begins with a dot is not copied.

const DOT = 0x2e;
const LF = 0x0a;
const CR = 0x0d;
const LF_DOT = Buffer.from('\n.');
const FINAL_DOT = Buffer.from('.\r\n');

/**
 * Returns the content to send before the final dot. Returns `data` itself if no change is necessary. A dot after a bare
 * LF is doubled too, because a server that accepts a bare LF as a line end could otherwise interpret the dot as the end
 * of the message.
 */
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

/**
 * Hands messages over to Amazon SES (SESv2, SendEmail with the raw message). The bytes are sent as they are; the provider
 * adds Date and Message-ID of its own where it must and signs a second time if its identity says so.
 *
 * Promises: never faster than the account's send rate, slower while throttled; an error is an outcome by errors.ts; a request
 * that may have arrived without an answer is `unanswered`; the provider's id is kept, for its notices name messages by it.
 */
import type { Clock } from '../../clock.ts';
import type { Attempt, Outcome, Reply } from '../../model/outcome.ts';
import type { OutgoingMessage, Transport } from '../transport.ts';
import { createSesClient, type SesClient, type SesSetting, sesHost } from './client.ts';
import { classifySesError, toOutcome, toSesError } from './errors.ts';
import { createRateLimiter } from './rate-limiter.ts';

/** How often the account is asked for its send rate while messages go. */
const ASK_EVERY_MS = 60_000;
/** A message that is throttled is tried again so often before it goes back to the queue. */
const THROTTLED_TRIES = 4;
const CONNECTIONS = { least: 4, most: 200 } as const;
const LONGEST_TEXT = 1_000;
/** The provider's ids are some 60 characters of letters, digits and dashes. */
const LONGEST_ID = 200;

export interface SesParts {
  readonly clock: Clock;
  /** What speaks to the provider; made when first needed. */
  readonly createClient?: (setting: SesSetting, connections: number, clock: Clock) => Promise<SesClient>;
  /** Told of what stops no message but somebody should see to. */
  readonly onError?: (what: string, error: unknown) => void;
}

export function createSesTransport(
  setting: SesSetting,
  { clock, createClient: connect = createSesClient, onError: failed }: SesParts,
): Transport {
  const host = sesHost(setting);
  const pace = createRateLimiter(clock);
  const stop = new AbortController();
  const running = new Set<Promise<Attempt>>();
  let client: Promise<SesClient> | null = null;
  let askedAt = Number.NEGATIVE_INFINITY;
  let known = false;
  let silent = false;

  function clientOf(): Promise<SesClient> {
    client ??= connect(setting, CONNECTIONS.most, clock);
    return client;
  }

  /** Asks for the send rate now and then. An account that does not say sends on at the rate known last, and is told of once. */
  function askRate(ses: SesClient): void {
    const since = clock.now() - askedAt;
    // A clock set back must not keep it from being asked.
    if (since >= 0 && since < ASK_EVERY_MS) return;
    askedAt = clock.now();
    ses.getAccount(stop.signal).then(
      ({ maxSendRate }) => {
        known = true;
        silent = false;
        pace.setRate(maxSendRate);
      },
      (error: unknown) => {
        if (silent || stop.signal.aborted) return;
        silent = true;
        const { name, message, status } = toSesError(error);
        const rate = `${Number(pace.currentRate.toFixed(1))} messages a second`;
        const remedy = status === 403 ? '; allow ses:GetAccount' : '';
        const text = `${host} does not say the account's send rate, so it stays at ${rate}${remedy}. ${name}: ${message}`;
        failed?.('ses', new Error(clean(text)));
      },
    );
  }

  async function attempt(message: OutgoingMessage, beforeHandover: (() => Promise<void>) | null): Promise<Attempt> {
    const startedAt = clock.now();
    const conversation: string[] = [];
    const end = (outcome: Outcome, reached = true): Attempt => {
      if (conversation.length === 0) conversation.push(`* ${outcome.reply.text}`);
      return { outcome, startedAt, tookMs: clock.now() - startedAt, remote: reached ? host : null, conversation };
    };
    const { to, smtputf8 } = message.envelope;
    // Its Developer Guide: SMTPUTF8 (RFC 6531) is not supported, and the part before the @ is ASCII.
    if (smtputf8) {
      const text = 'an address needs SMTPUTF8, which Amazon SES does not support';
      const reply = { ...replyOf('mail', text), enhanced: '5.6.7' };
      return end({ kind: 'bounced', reply, reason: 'smtputf8', suppress: false }, false);
    }
    if (hasControl(to) || hasControl(message.envelope.from)) {
      const text = 'an address holds a control character; nothing was sent';
      return end({ kind: 'deferred', reply: replyOf('mail', text), reason: 'unknown', scope: 'message' }, false);
    }
    let ses: SesClient;
    try {
      ses = await clientOf();
    } catch (error) {
      client = null;
      return end(deferred(error, 'transport'), false);
    }
    askRate(ses);
    for (let tries = 1; ; tries += 1) {
      if (!(await pace.acquire())) return end(deferred('the transport was closed', 'message'), false);
      if (tries === 1 && beforeHandover !== null) {
        try {
          await beforeHandover();
        } catch (error) {
          return end(deferred(error, 'message'), false);
        }
      }
      conversation.push(`C: SendEmail to ${to}, ${message.data.length} octets`);
      try {
        return end(taken(await ses.send({ id: message.id, to, data: message.data }, stop.signal), conversation));
      } catch (error) {
        const fault = toSesError(error);
        const verdict = classifySesError(fault);
        const answered = fault.status !== null;
        const text =
          stop.signal.aborted && !answered
            ? 'given up: the service is stopping'
            : clean(`${fault.name}${answered ? ` (${fault.status})` : ''}: ${fault.message}`);
        conversation.push(`${answered ? 'S:' : '*'} ${text}`);
        if (verdict.kind === 'throttled') {
          pace.slowDown();
          if (tries < THROTTLED_TRIES) continue;
        }
        const reached = answered || verdict.kind === 'unanswered';
        return end(toOutcome(verdict, replyOf(reached ? 'content' : 'connect', text)), reached);
      }
    }
  }

  return {
    get concurrency() {
      // A second's worth under way at once, whatever the way to the provider takes.
      const wanted = known ? Math.ceil(pace.currentRate) : CONNECTIONS.least;
      return Math.min(CONNECTIONS.most, Math.max(CONNECTIONS.least, wanted));
    },
    attempt(message, beforeHandover) {
      const one = attempt(message, beforeHandover);
      running.add(one);
      const over = () => running.delete(one);
      one.then(over, over);
      return one;
    },
    async close(timeoutMs) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const cancel = clock.after(timeoutMs, resolve);
      await Promise.race([Promise.allSettled(running), promise]);
      cancel();
      pace.close();
      stop.abort();
      await Promise.allSettled(running);
      (await client?.catch(() => null))?.close();
    },
  };
}

function taken(id: string | null, conversation: string[]): Outcome {
  if (id === null || !isReference(id)) {
    conversation.push('S: 200 without a message id');
    return { kind: 'unanswered', reply: replyOf('content', 'the provider answered without a message id') };
  }
  conversation.push(`S: 200 ${id}`);
  return { kind: 'delivered', reply: replyOf('content', `taken as ${id}`), reference: id };
}

/** Printable ASCII without spaces, and not endless: it becomes a key in the store. */
function isReference(id: string): boolean {
  if (id === '' || id.length > LONGEST_ID) return false;
  for (let at = 0; at < id.length; at += 1) {
    const code = id.charCodeAt(at);
    if (code <= 0x20 || code >= 0x7f) return false;
  }
  return true;
}

function deferred(error: unknown, scope: 'message' | 'transport'): Outcome {
  const text = error instanceof Error ? error.message : String(error);
  return { kind: 'deferred', reply: replyOf('connect', clean(text)), reason: 'unknown', scope };
}

/** No SMTP is spoken, so there is no reply code. */
function replyOf(stage: Reply['stage'], text: string): Reply {
  return { stage, code: null, enhanced: null, text };
}

function hasControl(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code === 0x7f) return true;
  }
  return false;
}

function clean(text: string): string {
  let line = '';
  for (const character of text.slice(0, LONGEST_TEXT)) line += hasControl(character) ? ' ' : character;
  return line;
}

/** `unanswered`: perhaps accepted, without a usable response. */
import type { Clock } from '../../clock.ts';
import {
  type Attempt,
  createDeferral,
  createLocalReply,
  type FailureScope,
  type Outcome,
} from '../../model/outcome.ts';
import { getErrorText } from '../../printing/text.ts';
import { sanitizeLine } from '../smtp/protocol.ts';
import { type BeforeCompletion, hasControl, type OutgoingMessage, type Transport } from '../transport.ts';
import { createSesClient, getSesHost, type SesClient, type SesSetting } from './client.ts';
import { classifySesError, toOutcome, toSesError } from './errors.ts';

const RATE_READ_INTERVAL_MS = 60_000;
const MAX_REQUESTS = 4;
const MIN_CONNECTIONS = 4;
/** With a response time of 0.2 s, 500 connections transmit 2,500 messages per second. */
const MAX_CONNECTIONS = 500;
const MAX_TEXT_LENGTH = 1_000;
const MAX_ID_LENGTH = 200;

export interface SesParts {
  readonly clock: Clock;
  readonly createClient?: (setting: SesSetting, connections: number, clock: Clock) => Promise<SesClient>;
  readonly onError?: (operation: string, error: unknown) => void;
}

export function createSesTransport(
  setting: SesSetting,
  { clock, createClient: connect = createSesClient, onError }: SesParts,
): Transport {
  const host = getSesHost(setting);
  const rateLimiter = createRateLimiter(clock);
  const abortController = new AbortController();
  const runningAttempts = new Set<Promise<Attempt>>();
  let client: Promise<SesClient> | null = null;
  let rateReadAt = Number.NEGATIVE_INFINITY;
  let isRateKnown = false;
  let hasReportedFailure = false;

  function getClient(): Promise<SesClient> {
    client ??= connect(setting, MAX_CONNECTIONS, clock);
    return client;
  }

  /** On a failure, the last known rate remains in use, and the first of consecutive failures is reported. */
  function readRate(ses: SesClient): void {
    const elapsedMs = clock.now() - rateReadAt;
    if (elapsedMs >= 0 && elapsedMs < RATE_READ_INTERVAL_MS) return;
    rateReadAt = clock.now();
    ses.getAccount(abortController.signal).then(
      ({ maxSendRate }) => {
        isRateKnown = true;
        hasReportedFailure = false;
        rateLimiter.setRate(maxSendRate);
      },
      (error: unknown) => {
        if (hasReportedFailure || abortController.signal.aborted) return;
        hasReportedFailure = true;
        const { name, message, status } = toSesError(error);
        const rate = `${Number(rateLimiter.currentRate.toFixed(1))} messages per second`;
        const remedy = status === 403 ? '; allow ses:GetAccount' : '';
        const text = `the send rate of the account cannot be read from ${host}, so it stays at ${rate}${remedy}. ${name}: ${message}`;
        onError?.('ses', new Error(sanitizeText(text)));
      },
    );
  }

  async function attempt(message: OutgoingMessage, beforeCompletion: BeforeCompletion): Promise<Attempt> {
    const startedAt = clock.now();
    const transcript: string[] = [];
    const offsetsMs: number[] = [];
    const addLine = (line: string): void => {
      transcript.push(line);
      offsetsMs.push(clock.now() - startedAt);
    };
    const finishAttempt = (outcome: Outcome, wasConnected = true): Attempt => {
      if (transcript.length === 0) addLine(`* ${outcome.reply.text}`);
      return {
        outcome,
        startedAt,
        tookMs: clock.now() - startedAt,
        remote: wasConnected ? host : null,
        transcript,
        lineOffsetsMs: offsetsMs,
      };
    };
    const { to, smtputf8 } = message.envelope;
    // The Developer Guide excludes SMTPUTF8 (RFC 6531).
    if (smtputf8) {
      const text = 'an address needs SMTPUTF8, which Amazon SES does not support';
      const reply = { ...createLocalReply('mail', text), enhanced: '5.6.7' };
      return finishAttempt({ kind: 'bounced', reply, reason: 'smtputf8', suppress: false }, false);
    }
    if (hasControl(to) || hasControl(message.envelope.from)) {
      const text = 'an address contains a control character; nothing was sent';
      return finishAttempt(createDeferral('mail', text, 'unknown', 'message'), false);
    }
    let ses: SesClient;
    try {
      ses = await getClient();
    } catch (error) {
      client = null;
      return finishAttempt(toDeferred(error, 'route'), false);
    }
    readRate(ses);
    for (let requestNumber = 1; ; requestNumber += 1) {
      if (!(await rateLimiter.acquire()))
        return finishAttempt(toDeferred('the transport was closed', 'message'), false);
      try {
        if (requestNumber === 1) await beforeCompletion?.();
      } catch (error) {
        return finishAttempt(toDeferred(error, 'message'), false);
      }
      addLine(`C: SendEmail to ${to}, ${message.data.length} octets`);
      try {
        const configurationSet = message.configurationSet ?? setting.configurationSet;
        const id = await ses.send({ id: message.id, to, data: message.data, configurationSet }, abortController.signal);
        return finishAttempt(toResponseOutcome(id, addLine));
      } catch (error) {
        const sesError = toSesError(error);
        const meaning = classifySesError(sesError);
        const hasResponse = sesError.status !== null;
        const text =
          abortController.signal.aborted && !hasResponse
            ? 'aborted, because the service is stopping'
            : sanitizeText(`${sesError.name}${hasResponse ? ` (${sesError.status})` : ''}: ${sesError.message}`);
        addLine(`${hasResponse ? 'S:' : '*'} ${text}`);
        if (meaning.kind === 'throttled') {
          rateLimiter.slowDown();
          if (requestNumber < MAX_REQUESTS) continue;
        }
        const wasConnected = hasResponse || meaning.kind === 'unanswered';
        const usesAccountSet = message.configurationSet !== undefined;
        return finishAttempt(
          toOutcome(meaning, createLocalReply(wasConnected ? 'content' : 'connect', text), usesAccountSet),
          wasConnected,
        );
      }
    }
  }

  return {
    get concurrency() {
      // Messages per second, so that a latency of up to 1 s does not limit the rate.
      const perSecond = isRateKnown ? Math.ceil(rateLimiter.currentRate) : MIN_CONNECTIONS;
      return Math.min(MAX_CONNECTIONS, Math.max(MIN_CONNECTIONS, perSecond));
    },
    attempt(message, beforeCompletion) {
      const runningAttempt = attempt(message, beforeCompletion);
      runningAttempts.add(runningAttempt);
      const removeAttempt = () => runningAttempts.delete(runningAttempt);
      runningAttempt.then(removeAttempt, removeAttempt);
      return runningAttempt;
    },
    async close(timeoutMs) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const cancel = clock.after(timeoutMs, resolve);
      await Promise.race([Promise.allSettled(runningAttempts), promise]);
      cancel();
      rateLimiter.close();
      abortController.abort();
      await Promise.allSettled(runningAttempts);
      (await client?.catch(() => null))?.close();
    },
  };
}

function toResponseOutcome(id: string | null, addLine: (line: string) => void): Outcome {
  if (id === null || !isValidMessageId(id)) {
    addLine('S: 200 without a message id');
    return { kind: 'unanswered', reply: createLocalReply('content', 'the provider answered without a message id') };
  }
  addLine(`S: 200 ${id}`);
  return { kind: 'delivered', reply: createLocalReply('content', `accepted as ${id}`), reference: id };
}

/** Printable ASCII of limited length, because the id becomes a key in the store. */
function isValidMessageId(id: string): boolean {
  if (id === '' || id.length > MAX_ID_LENGTH) return false;
  for (let at = 0; at < id.length; at += 1) {
    const code = id.charCodeAt(at);
    if (code <= 0x20 || code >= 0x7f) return false;
  }
  return true;
}

function toDeferred(error: unknown, scope: FailureScope): Outcome {
  return createDeferral('connect', sanitizeText(getErrorText(error)), 'unknown', scope);
}

function sanitizeText(text: string): string {
  return sanitizeLine(text, MAX_TEXT_LENGTH);
}

// Nodes share the rate of the account: each lowers its share when throttled, and raises it gradually.

const SLOW_DOWN_FACTOR = 0.7;
const GROWTH_PER_SECOND = 0.05;
const MIN_SHARE = 0.05;
const DEFAULT_RATE = 14;
/** In seconds at the current rate. With one second, twice the rate could be sent in one second and be throttled. */
const BURST_SECONDS = 0.1;

export interface RateLimiter {
  acquire(): Promise<boolean>;
  setRate(perSecond: number | null): void;
  slowDown(): void;
  readonly currentRate: number;
  close(): void;
}

export function createRateLimiter(clock: Clock): RateLimiter {
  let rateLimit = DEFAULT_RATE;
  let rateShare = 1;
  let shareUpdatedAt = clock.now();
  let tokens = rateLimit * BURST_SECONDS;
  let tokensUpdatedAt = shareUpdatedAt;
  const waiters: ((acquired: boolean) => void)[] = [];
  let cancel: (() => void) | null = null;
  let isClosed = false;

  function updateRate(): number {
    const now = clock.now();
    const elapsedSeconds = Math.max(0, now - shareUpdatedAt) / 1000;
    rateShare = Math.min(1, rateShare + elapsedSeconds * GROWTH_PER_SECOND);
    shareUpdatedAt = now;
    return rateLimit * rateShare;
  }

  function refillTokens(): void {
    const now = clock.now();
    const rate = updateRate();
    tokens = Math.min(Math.max(1, rate * BURST_SECONDS), tokens + (Math.max(0, now - tokensUpdatedAt) / 1000) * rate);
    tokensUpdatedAt = now;
  }

  function serveWaiters(): void {
    refillTokens();
    while (waiters.length > 0 && tokens >= 1) {
      tokens -= 1;
      waiters.shift()?.(true);
    }
    if (waiters.length > 0 && cancel === null) {
      const waitMs = Math.max(1, Math.ceil(((1 - tokens) / updateRate()) * 1000));
      cancel = clock.after(waitMs, () => {
        cancel = null;
        serveWaiters();
      });
    }
  }

  return {
    acquire() {
      if (isClosed) return Promise.resolve(false);
      return new Promise((resolve) => {
        waiters.push(resolve);
        serveWaiters();
      });
    },
    setRate(perSecond) {
      refillTokens();
      rateLimit = perSecond === null || perSecond <= 0 ? DEFAULT_RATE : perSecond;
    },
    slowDown() {
      refillTokens();
      rateShare = Math.max(MIN_SHARE, rateShare * SLOW_DOWN_FACTOR);
      tokens = Math.min(tokens, 0);
    },
    get currentRate() {
      return updateRate();
    },
    close() {
      isClosed = true;
      cancel?.();
      for (const resolve of waiters.splice(0)) resolve(false);
    },
  };
}

/**
 * Creates the transport of the demo. Simulated servers answer messages to simulated recipients after a realistic time,
 * and delivered messages are captured. Other messages, such as those of a visitor, are captured immediately, as with
 * `capture:`.
 */
import type { Clock } from '../src/clock.ts';
import type { Attempt } from '../src/model/outcome.ts';
import type { OutgoingMessage, Transport } from '../src/transports/transport.ts';
import type { Behavior } from './behaviors.ts';
import type { Random } from './random.ts';
import type { Recipients } from './recipients.ts';
import { attemptDelivery } from './servers.ts';

export interface DemoTransportParts {
  readonly recipients: Recipients;
  readonly random: Random;
  readonly clock: Clock;
  /**
   * The number of attempts that have been made for each message, by message id. It includes the attempts of the
   * history.
   */
  readonly attemptCounts: Map<string, number>;
  /** Called when a simulated server accepts a message. */
  readonly onDelivered: (message: OutgoingMessage, behavior: Behavior) => void;
}

/** The number of connections is high, because slow servers must not delay other messages. */
const CONCURRENCY = 64;

export interface DemoTransport {
  readonly wrapTransport: (innerTransport: Transport) => Transport;
  /** Writes a message of the history into the inbox. */
  capture(message: OutgoingMessage): Promise<void>;
  /** Aborts the attempts that wait for a reply. */
  abortAttempts(): void;
}

export function createDemoTransport({
  recipients,
  random,
  clock,
  attemptCounts,
  onDelivered,
}: DemoTransportParts): DemoTransport {
  const abortRequest = Promise.withResolvers<'ended'>();
  let captureTransport: Transport | null = null;

  async function simulateAttempt(
    innerTransport: Transport,
    message: OutgoingMessage,
    behavior: Behavior,
    beforeCompletion: (() => Promise<void>) | null,
  ) {
    const { id, envelope, data } = message;
    const startedAt = clock.now();
    const attemptNumber = (attemptCounts.get(id) ?? 0) + 1;
    attemptCounts.set(id, attemptNumber);
    const attempt = attemptDelivery(
      {
        behavior,
        attemptNumber,
        envelopeFrom: envelope.from,
        to: envelope.to,
        sizeBytes: data.length,
        startedAt,
      },
      random,
    );
    const result = await Promise.race([abortRequest.promise, delay(clock, attempt.tookMs)]);
    if (result === 'ended') return createAbortedAttempt(startedAt);
    const { kind } = attempt.outcome;
    if (kind === 'delivered' || kind === 'unanswered') await beforeCompletion?.();
    if (kind !== 'deferred') attemptCounts.delete(id);
    if (kind === 'delivered') {
      await innerTransport.attempt(message, null);
      onDelivered(message, behavior);
    }
    return { ...attempt, tookMs: clock.now() - startedAt };
  }

  return {
    wrapTransport(innerTransport) {
      captureTransport = innerTransport;
      return {
        concurrency: CONCURRENCY,
        ...(innerTransport.answerLocally === undefined ? {} : { answerLocally: innerTransport.answerLocally }),
        close: (timeoutMs) => innerTransport.close(timeoutMs),
        attempt(message, beforeCompletion) {
          const behavior = recipients.findBehavior(message.envelope.to);
          return behavior === null
            ? innerTransport.attempt(message, beforeCompletion)
            : simulateAttempt(innerTransport, message, behavior, beforeCompletion);
        },
      };
    },
    async capture(message) {
      await captureTransport?.attempt(message, null);
    },
    abortAttempts() {
      abortRequest.resolve('ended');
    },
  };
}

function createAbortedAttempt(startedAt: number): Attempt {
  const reply = { stage: 'connect', code: null, enhanced: null, text: 'the service is stopping' } as const;
  const outcome = { kind: 'deferred', reply, reason: 'connection', scope: 'message' } as const;
  return { outcome, startedAt, tookMs: 0, remote: null, transcript: [] };
}

function delay(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve));
}

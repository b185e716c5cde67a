/**
 * The played world at the end of the real queue: mail to its people is answered as its servers would, in about the time that
 * they would take, and what they take is captured. A visitor's own mail is captured at once, as with `capture:` itself.
 */
import type { Clock } from '../src/clock.ts';
import type { Attempt } from '../src/model/outcome.ts';
import type { OutgoingMessage, Transport } from '../src/transports/transport.ts';
import type { Behaviour } from './behaviours.ts';
import type { Random } from './random.ts';
import type { Recipients } from './recipients.ts';
import { attemptDelivery } from './servers.ts';

export interface DemoTransportParts {
  readonly people: Recipients;
  readonly chance: Random;
  readonly clock: Clock;
  /** Tries made before the service took over, by the mail request's id. */
  readonly attemptCounts: Map<string, number>;
  /** Told of what a played server took. */
  readonly onDelivered: (message: OutgoingMessage, fate: Behaviour) => void;
}

/** Slow servers hold their connection for long; the quick ones must not wait for them. */
const CONCURRENCY = 64;

export interface DemoTransport {
  readonly wrap: (inner: Transport) => Transport;
  /** Writes a message of the past into the inbox. */
  capture(message: OutgoingMessage): Promise<void>;
  /** What still waits for an answer gets none. */
  abortAttempts(): void;
}

export function createDemoTransport({
  people,
  chance,
  clock,
  attemptCounts: tries,
  onDelivered: taken,
}: DemoTransportParts): DemoTransport {
  const ended = Promise.withResolvers<'ended'>();
  let capturing: Transport | null = null;

  async function play(
    inner: Transport,
    message: OutgoingMessage,
    fate: Behaviour,
    beforeHandover: (() => Promise<void>) | null,
  ) {
    const { id, envelope, data } = message;
    const startedAt = clock.now();
    const made = (tries.get(id) ?? 0) + 1;
    tries.set(id, made);
    const attempt = attemptDelivery(
      {
        behaviour: fate,
        attemptNumber: made,
        envelopeFrom: envelope.from,
        to: envelope.to,
        sizeBytes: data.length,
        startedAt,
      },
      chance,
    );
    const hungUp = await Promise.race([ended.promise, pause(clock, attempt.tookMs)]);
    if (hungUp === 'ended') return stopping(startedAt);
    const { kind } = attempt.outcome;
    if (kind === 'delivered' || kind === 'unanswered') await beforeHandover?.();
    if (kind !== 'deferred') tries.delete(id);
    if (kind === 'delivered') {
      await inner.attempt(message, null);
      taken(message, fate);
    }
    return { ...attempt, tookMs: clock.now() - startedAt };
  }

  return {
    wrap(inner) {
      capturing = inner;
      return {
        concurrency: CONCURRENCY,
        ...(inner.localAnswer === undefined ? {} : { localAnswer: inner.localAnswer }),
        close: (timeoutMs) => inner.close(timeoutMs),
        attempt(message, beforeHandover) {
          const fate = people.behaviourOf(message.envelope.to);
          return fate === null ? inner.attempt(message, beforeHandover) : play(inner, message, fate, beforeHandover);
        },
      };
    },
    async capture(message) {
      await capturing?.attempt(message, null);
    },
    abortAttempts() {
      ended.resolve('ended');
    },
  };
}

function stopping(startedAt: number): Attempt {
  const reply = { stage: 'connect', code: null, enhanced: null, text: 'the service is stopping' } as const;
  const outcome = { kind: 'deferred', reply, reason: 'connection', scope: 'message' } as const;
  return { outcome, startedAt, tookMs: 0, remote: null, conversation: [] };
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve));
}

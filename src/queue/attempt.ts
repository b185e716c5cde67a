/**
 * One delivery attempt, from the leased message to what came of it: prepare, wait for a place with the transport, look a
 * last time whether it may go, hand over.
 *
 * Guarantees: never rejects. A transport that throws, or does not answer within `ATTEMPT_MS`, is an outcome too; an unknown
 * failure is temporary. Under `hold` the store has a synced mark before the message is completed.
 */
import type { SteadyClock } from '../clock.ts';
import type { Policy } from '../model/after-attempt.ts';
import type { LeasedMail, LeaseRef, SettleAnswer } from '../model/message.ts';
import type { Attempt, Outcome } from '../model/outcome.ts';
import type { OutgoingMessage, Transport } from '../transports/transport.ts';

/** An attempt that has not ended by then is given up. Longer than the transports' own bounds add up to. */
export const ATTEMPT_MS = 10 * 60_000;
/** The mark before handing over has to be in the store by then; what cannot be marked is not handed over. */
const MARK_MS = 30_000;

/** When attempts may begin at all: the transport's circuit breaker. */
export interface Breaker {
  /** True where an attempt may begin now; after a time of refusing, true once, for the attempt that probes. */
  admits(now: number): boolean;
  /** When it will admit the next probe, or null while everything is admitted. */
  retryAt(now: number): number | null;
  note(outcome: Attempt['outcome'], now: number): void;
  /** The attempt admitted came to no outcome. */
  giveBack(now: number): void;
}

export interface AttemptParts {
  readonly clock: SteadyClock;
  readonly policy: Policy;
  readonly transport: Transport;
  readonly breaker: Breaker;
  readonly mark: (lease: LeaseRef) => Promise<SettleAnswer>;
  /** The message as it goes out, or a rejection where it cannot be made now (it is then tried again later). */
  readonly prepare: (mail: LeasedMail) => OutgoingMessage | Promise<OutgoingMessage>;
  /** True where this message must not be attempted now (its account is locked). */
  readonly heldBack: (mail: LeasedMail) => boolean;
  /** False where its recipient is on a suppression list by now; asked just before handing over. */
  readonly wanted: (mail: LeasedMail) => boolean | Promise<boolean>;
  readonly failed: (what: string, error: unknown) => void;
}

/** What came of trying to make an attempt. */
export type Made =
  | { readonly kind: 'attempted'; readonly attempt: Attempt }
  /** The breaker did not let it begin; it waits for the next probe. */
  | { readonly kind: 'refused' }
  /** It is not to be sent now; its lease goes back to the store. */
  | { readonly kind: 'unused' };

export interface Attempts {
  make(mail: LeasedMail): Promise<Made>;
  /** Those that wait for the transport are not begun any more. */
  stop(): void;
  /** Gives up those that have run for too long. */
  giveUpOverdue(): void;
}

/** What became of handing over. A fault of the service itself says nothing about the next hop. */
type HandedOver = { readonly kind: 'answered' | 'fault'; readonly attempt: Attempt };

/** A handover under way. */
interface Handover {
  readonly startedAt: number;
  /** The same by the monotonic clock: a step of the clock gives up no attempt. */
  readonly startedSteady: number;
  /** What a failure means: nothing has left, the message may have left, or its end was told and nothing counts any more. */
  stage: 'before' | 'leaving' | 'over';
  readonly end: (handedOver: HandedOver) => void;
}

const REFUSED: Made = { kind: 'refused' };
const UNUSED: Made = { kind: 'unused' };

export function createAttempts(parts: AttemptParts): Attempts {
  const { clock, policy, transport, breaker } = parts;
  /** In the order in which they began. */
  const underWay = new Set<Handover>();
  /** Places with the transport that are taken, and those prepared that wait for one. */
  let taken = 0;
  const waiting: ((won: boolean) => void)[] = [];
  let stopped = false;

  async function make(mail: LeasedMail): Promise<Made> {
    const startedAt = clock.now();
    const startedSteady = clock.monotonic();
    let message: OutgoingMessage;
    try {
      message = await parts.prepare(mail);
    } catch (error) {
      return { kind: 'attempted', attempt: faulty(error, startedAt, startedSteady) };
    }
    // The next hop is not asked.
    if (isOwnAnswer(transport, mail)) return { kind: 'attempted', attempt: (await handOver(mail, message)).attempt };
    // Signing goes on for those to come while the transport has all it can take.
    if (!(await takePlace())) return UNUSED;
    try {
      // Much may have happened while it waited, its neighbours' outcomes included.
      if (stopped || parts.heldBack(mail)) return UNUSED;
      const wanted = parts.wanted(mail);
      if (!(typeof wanted === 'boolean' ? wanted : await wanted)) return UNUSED;
      if (!breaker.admits(clock.now())) return REFUSED;
      const { kind, attempt } = await handOver(mail, message);
      if (kind === 'answered') breaker.note(attempt.outcome, clock.now());
      else breaker.giveBack(clock.now());
      return { kind: 'attempted', attempt };
    } catch (error) {
      return { kind: 'attempted', attempt: faulty(error, startedAt, startedSteady) };
    } finally {
      // Only now, so that the next one meets a breaker that knows of this outcome.
      passPlace();
    }
  }

  /** Waits until the transport can take one more; false where that is not to come. */
  function takePlace(): boolean | Promise<boolean> {
    if (stopped) return false;
    if (taken >= transport.concurrency) return new Promise((resolve) => waiting.push(resolve));
    taken += 1;
    return true;
  }

  function passPlace(): void {
    const next = waiting.shift();
    if (next === undefined) taken -= 1;
    else next(true);
  }

  function handOver(mail: LeasedMail, message: OutgoingMessage): Promise<HandedOver> {
    return new Promise((resolve) => {
      const holding = policy.onUncertain === 'hold';
      const one: Handover = {
        startedAt: clock.now(),
        startedSteady: clock.monotonic(),
        stage: holding ? 'before' : 'leaving',
        end(handedOver) {
          if (one.stage === 'over') return;
          one.stage = 'over';
          underWay.delete(one);
          resolve(handedOver);
        },
      };
      underWay.add(one);
      const asked = (async () => transport.attempt(message, holding ? () => mark(mail, one) : null))();
      asked.then(
        (attempt) => one.end({ kind: 'answered', attempt }),
        (error: unknown) => one.end({ kind: 'fault', attempt: faulty(error, one.startedAt, one.startedSteady) }),
      );
    });
  }

  async function mark({ id, attempts, lease }: LeasedMail, one: Handover): Promise<void> {
    const { promise, reject } = Promise.withResolvers<never>();
    const cancel = clock.after(MARK_MS, () => reject(new Error('the store did not mark the handing over in time')));
    try {
      const answer = await Promise.race([parts.mark({ id, owner: lease.owner, attempts }), promise]);
      if (answer === 'lost') throw new Error('the lease was lost');
      if (one.stage === 'over') throw new Error('the attempt was given up');
      one.stage = 'leaving';
    } finally {
      cancel();
    }
  }

  /** The message could not be made, or the transport has a bug. */
  function faulty(error: unknown, startedAt: number, startedSteady: number): Attempt {
    parts.failed('attempt', error);
    const text = error instanceof Error ? error.message : String(error);
    const outcome: Outcome = { kind: 'deferred', reply: replyOf(text), reason: 'unknown', scope: 'message' };
    return unconversed(outcome, startedAt, startedSteady);
  }

  function giveUp(one: Handover): void {
    const text = `the attempt did not end within ${ATTEMPT_MS / 60_000} minutes and was given up`;
    parts.failed('attempt', new Error(text));
    const outcome: Outcome =
      one.stage === 'leaving'
        ? { kind: 'unanswered', reply: replyOf(text) }
        : { kind: 'deferred', reply: replyOf(text), reason: 'unknown', scope: 'transport' };
    one.end({ kind: 'answered', attempt: unconversed(outcome, one.startedAt, one.startedSteady) });
  }

  function unconversed(outcome: Outcome, startedAt: number, startedSteady: number): Attempt {
    return { outcome, startedAt, tookMs: clock.monotonic() - startedSteady, remote: null, conversation: [] };
  }

  return {
    make,
    stop() {
      stopped = true;
      for (const resolve of waiting.splice(0)) resolve(false);
    },
    giveUpOverdue() {
      const now = clock.monotonic();
      for (const one of underWay) {
        if (now - one.startedSteady < ATTEMPT_MS) return;
        giveUp(one);
      }
    },
  };
}

function replyOf(text: string) {
  return { stage: 'connect', code: null, enhanced: null, text } as const;
}

/** True where the transport answers by itself, so that the answer says nothing about the next hop. */
export function isOwnAnswer({ answersItself }: Transport, { to }: Pick<LeasedMail, 'to'>): boolean {
  return answersItself !== undefined && answersItself(to) !== null;
}

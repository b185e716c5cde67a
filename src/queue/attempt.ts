/**
 * One attempt: asks the gate, hands over, marks under `hold`, and ends within a bound. Never rejects: a transport that
 * throws, or does not come back, is an outcome too, and an unknown failure is temporary.
 */
import type { Clock } from '../clock.ts';
import type { Attempt, Outcome } from '../deliver/outcome.ts';
import type { OutgoingMessage, Transport } from '../deliver/transport.ts';
import type { Policy } from '../record/record.ts';
import type { LeasedMail, LeaseRef, SettleAnswer } from '../store/store.ts';

/** An attempt that has not ended by then is given up. Longer than the transports' own bounds add up to. */
export const ATTEMPT_MS = 10 * 60_000;
/** The mark before handing over has to be in the store by then; what cannot be marked is not handed over. */
const MARK_MS = 30_000;

/** When attempts may begin at all: the transport's breaker. */
export interface Gate {
  /** True where an attempt may begin now; after a time of refusing, true once, for the attempt that probes. */
  admits(now: number): boolean;
  /** When it will admit the next probe, or null while everything is admitted. */
  retryAt(now: number): number | null;
  note(outcome: Attempt['outcome'], now: number): void;
  /** The attempt admitted came to no outcome. */
  giveBack(now: number): void;
}

export interface AttemptParts {
  readonly clock: Clock;
  readonly policy: Policy;
  readonly transport: Transport;
  readonly gate: Gate;
  readonly mark: (lease: LeaseRef) => Promise<SettleAnswer>;
  /** The message as it goes out, or a rejection where it cannot be made now (it is then tried again later). */
  readonly prepare: (mail: LeasedMail) => OutgoingMessage | Promise<OutgoingMessage>;
  /** True where the next hop is not asked (the simulator answers), so that the answer says nothing about it. */
  readonly answeredHere: (mail: LeasedMail) => boolean;
  readonly failed: (what: string, error: unknown) => void;
}

export interface Attempts {
  /** What came of it, or null where the gate refuses. */
  make(mail: LeasedMail): Promise<Attempt | null>;
  /** Gives up those that have run for too long. */
  giveUpOverdue(): void;
}

/** An attempt under way. */
interface UnderWay {
  readonly began: number;
  readonly end: (attempt: Attempt | null) => void;
  admitted: boolean;
  /** True from when the message may have left. */
  leaving: boolean;
  over: boolean;
}

export function createAttempts(parts: AttemptParts): Attempts {
  const { clock, policy, transport, gate } = parts;
  /** In the order in which they began. */
  const underWay = new Set<UnderWay>();

  async function run(mail: LeasedMail, one: UnderWay): Promise<Attempt | null> {
    const message = await parts.prepare(mail);
    if (!parts.answeredHere(mail)) {
      if (one.over || !gate.admits(clock.now())) return null;
      one.admitted = true;
    }
    const holding = policy.onUncertain === 'hold';
    one.leaving = !holding;
    return transport.attempt(message, holding ? () => mark(mail, one) : null);
  }

  async function mark({ id, attempts, lease }: LeasedMail, one: UnderWay): Promise<void> {
    const { promise, reject } = Promise.withResolvers<never>();
    const cancel = clock.after(MARK_MS, () => reject(new Error('the store did not mark the handing over in time')));
    try {
      const answer = await Promise.race([parts.mark({ id, owner: lease.owner, attempts }), promise]);
      if (answer === 'lost') throw new Error('the lease was lost');
      if (one.over) throw new Error('the attempt was given up');
      one.leaving = true;
    } finally {
      cancel();
    }
  }

  /** The end of an attempt, once: whatever comes after it has been given up is not asked for any more. */
  function finish(one: UnderWay, attempt: Attempt | null): void {
    if (one.over) return;
    one.over = true;
    underWay.delete(one);
    if (one.admitted && attempt !== null) gate.note(attempt.outcome, clock.now());
    one.end(attempt);
  }

  function fail(one: UnderWay, error: unknown): void {
    parts.failed('attempt', error);
    // The message could not be made, or the transport has a bug: that says nothing about the next hop.
    if (one.admitted && !one.over) gate.giveBack(clock.now());
    one.admitted = false;
    const text = error instanceof Error ? error.message : String(error);
    finish(one, failedAttempt(one, { kind: 'deferred', reply: replyOf(text), reason: 'unknown', scope: 'message' }));
  }

  function giveUp(one: UnderWay): void {
    const text = `the attempt did not end within ${ATTEMPT_MS / 60_000} minutes and was given up`;
    parts.failed('attempt', new Error(text));
    const outcome: Outcome = one.leaving
      ? { kind: 'unanswered', reply: replyOf(text) }
      : { kind: 'deferred', reply: replyOf(text), reason: 'unknown', scope: 'transport' };
    finish(one, failedAttempt(one, outcome));
  }

  function failedAttempt({ began }: UnderWay, outcome: Outcome): Attempt {
    return { outcome, startedAt: began, tookMs: clock.now() - began, remote: null, conversation: [] };
  }

  return {
    make: (mail) =>
      new Promise((end) => {
        const one: UnderWay = { began: clock.now(), end, admitted: false, leaving: false, over: false };
        underWay.add(one);
        run(mail, one).then(
          (attempt) => finish(one, attempt),
          (error: unknown) => fail(one, error),
        );
      }),
    giveUpOverdue() {
      const now = clock.now();
      for (const one of underWay) {
        if (now - one.began < ATTEMPT_MS) return;
        giveUp(one);
      }
    },
  };
}

function replyOf(text: string) {
  return { stage: 'connect', code: null, enhanced: null, text } as const;
}

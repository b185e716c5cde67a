/**
 * One attempt: asks the gate, hands over, marks under `hold`, and ends within a bound. Never rejects: a transport that
 * throws, or does not come back, is an outcome too, and an unknown failure is temporary.
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
  readonly clock: SteadyClock;
  readonly policy: Policy;
  readonly transport: Transport;
  readonly gate: Gate;
  readonly mark: (lease: LeaseRef) => Promise<SettleAnswer>;
  /** The message as it goes out, or a rejection where it cannot be made now (it is then tried again later). */
  readonly prepare: (mail: LeasedMail) => OutgoingMessage | Promise<OutgoingMessage>;
  /** True where the next hop is not asked (the simulator answers), so that the answer says nothing about it. */
  readonly answeredHere: (mail: LeasedMail) => boolean;
  /** True where this mail request must not be attempted now (its account is locked). */
  readonly heldBack: (mail: LeasedMail) => boolean;
  /** False where its recipient is on a suppression list by now; asked just before handing over. */
  readonly wanted: (mail: LeasedMail) => boolean | Promise<boolean>;
  readonly failed: (what: string, error: unknown) => void;
}

/** `refused`: the gate let it not begin; `unused`: it is not to be sent now, and goes back to the store. */
export type Made = Attempt | 'refused' | 'unused';

export interface Attempts {
  make(mail: LeasedMail): Promise<Made>;
  /** Those that wait for the transport are not begun any more. */
  stop(): void;
  /** Gives up those that have run for too long. */
  giveUpOverdue(): void;
}

/** An attempt under way. */
interface UnderWay {
  /** When it was made, and then when the transport was asked. */
  began: number;
  /** The same by the monotonic clock: a step of the clock gives up no attempt. */
  beganSteady: number;
  readonly end: (made: Made) => void;
  admitted: boolean;
  /** True while it has one of the transport's places. */
  turn: boolean;
  /** True from when the message may have left. */
  leaving: boolean;
  over: boolean;
}

export function createAttempts(parts: AttemptParts): Attempts {
  const { clock, policy, transport, gate } = parts;
  /** With the transport, in the order in which they began. */
  const underWay = new Set<UnderWay>();
  /** With the transport now, and those prepared that wait for it. */
  let transporting = 0;
  let stopped = false;
  const turns: ((won: boolean) => void)[] = [];

  async function run(mail: LeasedMail, one: UnderWay): Promise<Made> {
    const message = await parts.prepare(mail);
    const holding = policy.onUncertain === 'hold';
    const handOver = () => {
      one.began = clock.now();
      one.beganSteady = clock.monotonic();
      one.leaving = !holding;
      underWay.add(one);
      return transport.attempt(message, holding ? () => mark(mail, one) : null);
    };
    if (parts.answeredHere(mail)) return handOver();
    // Signing goes on for those to come while the transport has all it can take.
    if (!(await turn())) return 'unused';
    one.turn = true;
    // Much may have happened while it waited, its neighbours' outcomes included.
    if (stopped || parts.heldBack(mail)) return 'unused';
    const wanted = parts.wanted(mail);
    if (!(typeof wanted === 'boolean' ? wanted : await wanted)) return 'unused';
    if (!gate.admits(clock.now())) return 'refused';
    one.admitted = true;
    return handOver();
  }

  /** Waits until the transport can take one more; false where that is not to come. */
  function turn(): boolean | Promise<boolean> {
    if (stopped) return false;
    if (transporting >= transport.concurrency) return new Promise((resolve) => turns.push(resolve));
    transporting += 1;
    return true;
  }

  function passTurn(): void {
    const next = turns.shift();
    if (next === undefined) transporting -= 1;
    else next(true);
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
  function finish(one: UnderWay, made: Made): void {
    if (one.over) return;
    one.over = true;
    underWay.delete(one);
    if (one.admitted && typeof made === 'object') gate.note(made.outcome, clock.now());
    // Only now, so that the next one meets a gate that knows of this outcome.
    if (one.turn) passTurn();
    one.end(made);
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

  function failedAttempt({ began, beganSteady }: UnderWay, outcome: Outcome): Attempt {
    return { outcome, startedAt: began, tookMs: clock.monotonic() - beganSteady, remote: null, conversation: [] };
  }

  return {
    make: (mail) =>
      new Promise((end) => {
        const one: UnderWay = {
          began: clock.now(),
          beganSteady: clock.monotonic(),
          end,
          admitted: false,
          turn: false,
          leaving: false,
          over: false,
        };
        run(mail, one).then(
          (made) => finish(one, made),
          (error: unknown) => fail(one, error),
        );
      }),
    stop() {
      stopped = true;
      for (const resolve of turns.splice(0)) resolve(false);
    },
    giveUpOverdue() {
      const now = clock.monotonic();
      for (const one of underWay) {
        if (now - one.beganSteady < ATTEMPT_MS) return;
        giveUp(one);
      }
    },
  };
}

function replyOf(text: string) {
  return { stage: 'connect', code: null, enhanced: null, text } as const;
}

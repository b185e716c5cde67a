/**
 * One delivery attempt, from the leased message to its outcome: prepare, wait for a place with the transport, check once more that
 * it may go (suppression list, circuit breaker), hand over.
 *
 * Guarantees: never rejects. A transport that throws, or does not answer within `MAX_ATTEMPT_MS`, is an outcome too; an unknown
 * failure is temporary. Under `hold` the store has a synced mark before the message is completed.
 */
import type { Clock, MonotonicClock } from '../clock.ts';
import { canonicalAddress, parseAddress } from '../model/address.ts';
import { BREAKER_EVENTS, type BreakerState, type PublishOf } from '../model/events.ts';
import type { DeliveryPolicy, LeasedMessage, LeaseRef, SettleResult, StateChange } from '../model/message.ts';
import type { Attempt, Outcome } from '../model/outcome.ts';
import type { OutgoingMessage, Transport } from '../transports/transport.ts';
import type { Membership } from './membership.ts';

/** How long a lease lasts. */
export const LEASE_MS = 20 * 60_000;
/** An attempt that has not ended by then is given up. Longer than the transports' own bounds add up to. */
export const MAX_ATTEMPT_MS = 10 * 60_000;
/** The mark before handing over has to be in the store by then; what cannot be marked is not handed over. */
const MARK_MS = 30_000;

export interface AttemptParts {
  readonly clock: MonotonicClock;
  readonly policy: DeliveryPolicy;
  readonly transport: Transport;
  readonly breaker: CircuitBreaker;
  readonly mark: (lease: LeaseRef) => Promise<SettleResult>;
  /** The message as it goes out, or a rejection where it cannot be made now (it is then tried again later). */
  readonly prepare: (mail: LeasedMessage) => OutgoingMessage | Promise<OutgoingMessage>;
  /** True where this message must not be attempted now (its account is locked). */
  readonly mustNotAttempt: (mail: LeasedMessage) => boolean;
  /** False where its recipient is on a suppression list by now; asked just before handing over. */
  readonly mayReceive: (mail: LeasedMessage) => boolean | Promise<boolean>;
  readonly onError: (what: string, error: unknown) => void;
}

/** `heldBack` of a node: the message's account is locked, or another node may have recovered the lease. */
export function heldBackBy(
  accounts: { isLocked(accountId: number): boolean },
  membership: Pick<Membership, 'isLeaseValid'>,
): (mail: LeasedMessage) => boolean {
  return ({ accountId, lease }) => accounts.isLocked(accountId) || !membership.isLeaseValid(lease.until - LEASE_MS);
}

/** What came of trying to make an attempt. */
type Made =
  | { readonly kind: 'attempted'; readonly attempt: Attempt }
  /** The breaker did not let it begin; it waits for the next probe. */
  | { readonly kind: 'refused' }
  /** It is not to be sent now; its lease goes back to the store. */
  | { readonly kind: 'unused' };

interface AttemptRunner {
  run(mail: LeasedMessage): Promise<Made>;
  /** Those that wait for the transport are not begun any more. */
  stop(): void;
  /** Gives up those that have run for too long. */
  abortOverdue(): void;
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

export function createAttemptRunner(parts: AttemptParts): AttemptRunner {
  const { clock, policy, transport, breaker } = parts;
  /** In the order in which they began. */
  const underWay = new Set<Handover>();
  /** Places with the transport that are taken, and those prepared that wait for one. */
  let taken = 0;
  const waiting: ((won: boolean) => void)[] = [];
  let stopped = false;

  async function make(mail: LeasedMessage): Promise<Made> {
    const startedAt = clock.now();
    const startedSteady = clock.monotonic();
    let message: OutgoingMessage;
    try {
      message = await parts.prepare(mail);
    } catch (error) {
      return { kind: 'attempted', attempt: faulty(error, startedAt, startedSteady) };
    }
    // No next hop: neither the transport's concurrency nor the circuit breaker limits a local answer.
    if (hasLocalAnswer(transport, mail)) return { kind: 'attempted', attempt: (await handOver(mail, message)).attempt };
    // Signing goes on for those to come while the transport has all it can take.
    if (!(await takePlace())) return UNUSED;
    try {
      // Much may have happened while it waited, its neighbours' outcomes included.
      if (stopped || parts.mustNotAttempt(mail)) return UNUSED;
      const wanted = parts.mayReceive(mail);
      if (!(typeof wanted === 'boolean' ? wanted : await wanted)) return UNUSED;
      if (!breaker.allowsAttempt(clock.now())) return REFUSED;
      const { kind, attempt } = await handOver(mail, message);
      if (kind === 'answered') breaker.recordOutcome(attempt.outcome, clock.now());
      else breaker.releaseProbe(clock.now());
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

  function handOver(mail: LeasedMessage, message: OutgoingMessage): Promise<HandedOver> {
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

  async function mark({ id, attempts, lease }: LeasedMessage, one: Handover): Promise<void> {
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
    parts.onError('attempt', error);
    const text = error instanceof Error ? error.message : String(error);
    const outcome: Outcome = { kind: 'deferred', reply: replyOf(text), reason: 'unknown', scope: 'message' };
    return unconversed(outcome, startedAt, startedSteady);
  }

  function giveUp(one: Handover): void {
    const text = `the attempt did not end within ${MAX_ATTEMPT_MS / 60_000} minutes and was given up`;
    parts.onError('attempt', new Error(text));
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
    run: make,
    stop() {
      stopped = true;
      for (const resolve of waiting.splice(0)) resolve(false);
    },
    abortOverdue() {
      const now = clock.monotonic();
      for (const one of underWay) {
        if (now - one.startedSteady < MAX_ATTEMPT_MS) return;
        giveUp(one);
      }
    },
  };
}

function replyOf(text: string) {
  return { stage: 'connect', code: null, enhanced: null, text } as const;
}

function hasLocalAnswer({ localAnswer }: Transport, { to }: LeasedMessage): boolean {
  return localAnswer !== undefined && localAnswer(to) !== null;
}

// The last look before a message is handed over: is its recipient suppressed by now? What waited in memory was looked up
// when it was accepted or leased. What this node itself has just suppressed it knows at once; what anybody else may have
// suppressed since is asked of the store, in batches, once the last look is a second old.

const FRESH_MS = 1_000;
/** So long this node goes by its own knowledge; by then the store has it, and knows whether it was taken back. */
const REMEMBER_MS = 5_000;
/** Recipients remembered at most. */
const REMEMBERED = 10_000;

interface SuppressionCheck {
  /** False where it must not be sent. */
  mayReceive(mail: LeasedMessage): boolean | Promise<boolean>;
  /** A change that is on its way into the store. */
  recordChange(mail: LeasedMessage, change: StateChange): void;
}

/** `screen` asks the store. */
export function createSuppressionCheck(
  clock: Clock,
  screen: (mail: LeasedMessage) => Promise<boolean>,
): SuppressionCheck {
  /** When each was suppressed, by account and recipient; the latest is the last. */
  const suppressed = new Map<string, number>();
  return {
    mayReceive(mail) {
      const now = clock.now();
      const at = suppressed.size === 0 ? undefined : suppressed.get(keyOf(mail));
      if (at !== undefined && now - at < REMEMBER_MS) return false;
      return now - (mail.lease.until - LEASE_MS) < FRESH_MS || screen(mail);
    },
    recordChange(mail, { suppress }) {
      if (suppress === null) return;
      const now = clock.now();
      for (const [key, at] of suppressed) {
        if (now - at < REMEMBER_MS) break;
        suppressed.delete(key);
      }
      if (suppressed.size >= REMEMBERED) suppressed.clear();
      const key = keyOf(mail);
      suppressed.delete(key);
      suppressed.set(key, now);
    },
  };
}

/** Account and recipient as suppression lists have it; accepted mail has no other recipients than valid ones. */
function keyOf({ accountId, to }: LeasedMessage): string {
  const address = parseAddress(to);
  return `${accountId} ${address === null ? to : canonicalAddress(address)}`;
}

// The circuit breaker of the next hop: closed → open until a time → half-open with one probe.
//
// Pure: time and randomness are handed in. Opens after three deferrals in a row that blame the transport; an answer
// that takes a message, or that speaks about one message only, closes it. While open nothing is attempted; then
// exactly one attempt is, and each one that fails doubles the wait (2 s to 5 min, up to a quarter less at random).

const FAILURES_TO_OPEN = 3;
const FIRST_WAIT_MS = 2_000;
const LONGEST_WAIT_MS = 300_000;

interface BreakerParts {
  /** Numbers from 0 to below 1, as `Math.random` gives them. */
  readonly random: () => number;
  readonly publish: PublishOf<(typeof BREAKER_EVENTS)[BreakerState]>;
}

export interface CircuitBreaker {
  /** Whether an attempt may be made now. A yes while not closed takes the one probe: report it, or give it back. */
  allowsAttempt(now: number): boolean;
  /** Reports what became of an attempt, probe or not. */
  recordOutcome(outcome: Outcome, now: number): void;
  /** Gives the probe back unused: the attempt was not made after all. */
  releaseProbe(now: number): void;
  /** When the next attempt is worth asking for (milliseconds since the epoch), or null while closed. */
  retryAt(now: number): number | null;
}

/** A closed breaker. */
export function createCircuitBreaker({
  random,
  publish,
}: BreakerParts): CircuitBreaker & { readonly state: BreakerState } {
  let state: BreakerState = 'closed';
  let failures = 0;
  let waitMs = FIRST_WAIT_MS;
  /** When open: from when a probe may go. When half-open: when the probe is given up. */
  let since = 0;
  let until = 0;

  // A clock set back must not keep it open for longer than it was meant to be.
  const retryAt = (now: number): number | null => (state === 'closed' ? null : now < since ? now : until);

  function enter(next: BreakerState, now: number, durationMs: number): void {
    state = next;
    since = now;
    until = now + durationMs;
    publish({ type: BREAKER_EVENTS[state], at: now, retryAt: retryAt(now) });
  }

  function open(now: number): void {
    failures = 0;
    const wait = Math.round(waitMs * (1 - random() * 0.25));
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
    enter('open', now, wait);
  }

  return {
    get state() {
      return state;
    },
    retryAt,

    allowsAttempt(now: number): boolean {
      if (state === 'closed') return true;
      if (now < until && now >= since) return false;
      enter('half-open', now, MAX_ATTEMPT_MS);
      return true;
    },

    recordOutcome(outcome: Outcome, now: number): void {
      if (!blamesTransport(outcome)) {
        failures = 0;
        waitMs = FIRST_WAIT_MS;
        if (state !== 'closed') enter('closed', now, 0);
        return;
      }
      switch (state) {
        case 'closed':
          failures += 1;
          if (failures >= FAILURES_TO_OPEN) open(now);
          return;
        case 'half-open':
          open(now);
          return;
        case 'open':
          // Begun before it opened: says nothing new.
          return;
      }
    },

    releaseProbe(now: number): void {
      if (state === 'half-open') enter('open', now, 0);
    },
  };
}

function blamesTransport(outcome: Outcome): boolean {
  switch (outcome.kind) {
    case 'delivered':
    case 'bounced':
      return false;
    case 'deferred':
      return outcome.scope === 'transport';
    case 'unanswered':
      // A hop that dies over every message would make a duplicate of each.
      return true;
  }
}

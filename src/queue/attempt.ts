/**
 * One delivery attempt, from the leased message to the outcome: prepare the message, wait for a free slot of the transport, check the
 * account, the suppression list and the circuit breaker, transmit.
 *
 * Guarantees: never rejects. A transport that throws, or does not answer within `MAX_ATTEMPT_MS`, gives an outcome too. An unknown
 * failure is temporary. Under `POSTRIDER_ON_UNCERTAIN=hold` the store has a synced mark before the message is complete.
 */
import type { Clock, MonotonicClock } from '../clock.ts';
import { canonicalAddress, parseAddress } from '../model/address.ts';
import { BREAKER_EVENTS, type BreakerState, type PublishOf } from '../model/events.ts';
import type { DeliveryPolicy, LeasedMessage, LeaseRef, SettleResult, StateChange } from '../model/message.ts';
import type { Attempt, Outcome } from '../model/outcome.ts';
import type { OutgoingMessage, Transport } from '../transports/transport.ts';
import type { Membership } from './membership.ts';

export const LEASE_MS = 20 * 60_000;
/** An attempt that takes longer is aborted. The time limits of every transport add up to less. */
export const MAX_ATTEMPT_MS = 10 * 60_000;
/** The store has to write the mark within this time; otherwise the message is not completed. */
const MAX_MARK_MS = 30_000;

export interface AttemptParts {
  readonly clock: MonotonicClock;
  readonly policy: DeliveryPolicy;
  readonly transport: Transport;
  readonly breaker: CircuitBreaker;
  /** Writes the mark of `hold`: from now on the message may have been delivered. */
  readonly mark: (lease: LeaseRef) => Promise<SettleResult>;
  /** Composes and signs the message. A rejection defers it. */
  readonly prepare: (message: LeasedMessage) => OutgoingMessage | Promise<OutgoingMessage>;
  /** True where no attempt may be made now (`createAttemptGuard`). */
  readonly mustNotAttempt: (message: LeasedMessage) => boolean;
  /** False where the recipient has been suppressed since the lease began; called last before the message is transmitted. */
  readonly mayReceive: (message: LeasedMessage) => boolean | Promise<boolean>;
  readonly onError: (operation: string, error: unknown) => void;
}

/** `mustNotAttempt` of a node: the message's account is locked, or another node may have recovered the lease. */
export function createAttemptGuard(
  accounts: { isLocked(accountId: number): boolean },
  membership: Pick<Membership, 'isLeaseValid'>,
): (message: LeasedMessage) => boolean {
  return ({ accountId, lease }) => accounts.isLocked(accountId) || !membership.isLeaseValid(lease.until - LEASE_MS);
}

type AttemptResult =
  | { readonly kind: 'attempted'; readonly attempt: Attempt }
  /** The circuit breaker is open: the message waits in memory for the next probe. */
  | { readonly kind: 'circuit-open' }
  /** The message must not be sent now: its lease is to be released. */
  | { readonly kind: 'not-attempted' };

interface AttemptRunner {
  run(message: LeasedMessage): Promise<AttemptResult>;
  /** Begins no further attempt: each message that waits for a slot gets the result `unused`. */
  stop(): void;
  /** Aborts attempts that run for longer than `MAX_ATTEMPT_MS`. */
  abortOverdue(): void;
}

/** `fault`: the service itself failed, so the outcome is not the next hop's. */
type Transmitted = { readonly kind: 'answered' | 'fault'; readonly attempt: Attempt };

interface Transmission {
  readonly startedAt: number;
  /** Time of the monotonic clock: a step of the clock aborts no attempt. */
  readonly startedMonotonic: number;
  /** `incomplete`: the message cannot have been delivered. `completing`: it may have been. `ended`: the result is known. */
  stage: 'incomplete' | 'completing' | 'ended';
  readonly end: (transmitted: Transmitted) => void;
}

const CIRCUIT_OPEN: AttemptResult = { kind: 'circuit-open' };
const NOT_ATTEMPTED: AttemptResult = { kind: 'not-attempted' };

export function createAttemptRunner(parts: AttemptParts): AttemptRunner {
  const { clock, policy, transport, breaker } = parts;
  /** In the order in which they began. */
  const transmissions = new Set<Transmission>();
  let usedSlots = 0;
  const waitingForSlot: ((acquired: boolean) => void)[] = [];
  let stopped = false;

  async function run(message: LeasedMessage): Promise<AttemptResult> {
    const startedAt = clock.now();
    const startedMonotonic = clock.monotonic();
    let outgoing: OutgoingMessage;
    try {
      outgoing = await parts.prepare(message);
    } catch (error) {
      return { kind: 'attempted', attempt: attemptWithFault(error, startedAt, startedMonotonic) };
    }
    // No next hop: neither the transport's concurrency nor the circuit breaker limits a local answer.
    if (hasLocalAnswer(transport, message)) {
      return { kind: 'attempted', attempt: (await transmit(message, outgoing)).attempt };
    }
    // Messages are prepared before there is a slot, so that signing continues while the transport is busy.
    if (!(await acquireSlot())) return NOT_ATTEMPTED;
    try {
      // State may have changed while the message waited for the slot.
      if (stopped || parts.mustNotAttempt(message)) return NOT_ATTEMPTED;
      const mayReceive = parts.mayReceive(message);
      if (!(typeof mayReceive === 'boolean' ? mayReceive : await mayReceive)) return NOT_ATTEMPTED;
      if (!breaker.allowsAttempt(clock.now())) return CIRCUIT_OPEN;
      const { kind, attempt } = await transmit(message, outgoing);
      if (kind === 'answered') breaker.recordOutcome(attempt.outcome, clock.now());
      else breaker.releaseProbe(clock.now());
      return { kind: 'attempted', attempt };
    } catch (error) {
      return { kind: 'attempted', attempt: attemptWithFault(error, startedAt, startedMonotonic) };
    } finally {
      // After the circuit breaker has the outcome, so that the next attempt depends on it.
      releaseSlot();
    }
  }

  /** Waits for a free slot of the transport. False once the runner is stopped. */
  function acquireSlot(): boolean | Promise<boolean> {
    if (stopped) return false;
    if (usedSlots >= transport.concurrency) return new Promise((resolve) => waitingForSlot.push(resolve));
    usedSlots += 1;
    return true;
  }

  /** Passes the slot to the message that has waited longest, or frees it. */
  function releaseSlot(): void {
    const resolveNext = waitingForSlot.shift();
    if (resolveNext === undefined) usedSlots -= 1;
    else resolveNext(true);
  }

  function transmit(message: LeasedMessage, outgoing: OutgoingMessage): Promise<Transmitted> {
    return new Promise((resolve) => {
      const needsMark = policy.onUncertain === 'hold';
      const transmission: Transmission = {
        startedAt: clock.now(),
        startedMonotonic: clock.monotonic(),
        stage: needsMark ? 'incomplete' : 'completing',
        end(transmitted) {
          if (transmission.stage === 'ended') return;
          transmission.stage = 'ended';
          transmissions.delete(transmission);
          resolve(transmitted);
        },
      };
      transmissions.add(transmission);
      const beforeCompletion = needsMark ? () => markTransmitting(message, transmission) : null;
      const attemptResult = (async () => transport.attempt(outgoing, beforeCompletion))();
      attemptResult.then(
        (attempt) => transmission.end({ kind: 'answered', attempt }),
        (error: unknown) => {
          const attempt = attemptWithFault(error, transmission.startedAt, transmission.startedMonotonic);
          transmission.end({ kind: 'fault', attempt });
        },
      );
    });
  }

  async function markTransmitting({ id, attempts, lease }: LeasedMessage, transmission: Transmission): Promise<void> {
    const { promise: timedOut, reject } = Promise.withResolvers<never>();
    const cancel = clock.after(MAX_MARK_MS, () => {
      reject(new Error(`the store did not write the mark within ${MAX_MARK_MS / 1_000} s`));
    });
    try {
      const markResult = await Promise.race([parts.mark({ id, owner: lease.owner, attempts }), timedOut]);
      if (markResult === 'lost') throw new Error('the lease was lost');
      if (transmission.stage === 'ended') throw new Error('the attempt was aborted');
      transmission.stage = 'completing';
    } finally {
      cancel();
    }
  }

  /** The attempt where the message could not be prepared, or the transport has a bug. */
  function attemptWithFault(error: unknown, startedAt: number, startedMonotonic: number): Attempt {
    parts.onError('attempt', error);
    const text = error instanceof Error ? error.message : String(error);
    const outcome: Outcome = { kind: 'deferred', reply: localReply(text), reason: 'unknown', scope: 'message' };
    return attemptWithoutTranscript(outcome, startedAt, startedMonotonic);
  }

  function abortTransmission(transmission: Transmission): void {
    const text = `the attempt did not end within ${MAX_ATTEMPT_MS / 60_000} minutes and was aborted`;
    parts.onError('attempt', new Error(text));
    const outcome: Outcome =
      transmission.stage === 'completing'
        ? { kind: 'unanswered', reply: localReply(text) }
        : { kind: 'deferred', reply: localReply(text), reason: 'unknown', scope: 'transport' };
    const attempt = attemptWithoutTranscript(outcome, transmission.startedAt, transmission.startedMonotonic);
    transmission.end({ kind: 'answered', attempt });
  }

  function attemptWithoutTranscript(outcome: Outcome, startedAt: number, startedMonotonic: number): Attempt {
    return { outcome, startedAt, tookMs: clock.monotonic() - startedMonotonic, remote: null, conversation: [] };
  }

  return {
    run,
    stop() {
      stopped = true;
      for (const resolve of waitingForSlot.splice(0)) resolve(false);
    },
    abortOverdue() {
      const now = clock.monotonic();
      for (const transmission of transmissions) {
        if (now - transmission.startedMonotonic < MAX_ATTEMPT_MS) return;
        abortTransmission(transmission);
      }
    },
  };
}

function localReply(text: string) {
  return { stage: 'connect', code: null, enhanced: null, text } as const;
}

function hasLocalAnswer({ localAnswer }: Transport, { to }: LeasedMessage): boolean {
  return localAnswer !== undefined && localAnswer(to) !== null;
}

// The last check of the suppression list before a message is transmitted. The store checked the list when the message was accepted or
// leased. This node knows at once which recipients it has suppressed itself. For a lease that is older than a second it queries the
// store again, in batches, for suppressions by others.

const NEW_LEASE_MS = 1_000;
/** TTL of this node's cache of its own suppressions. By then the store has them, and knows whether they were removed. */
const OWN_SUPPRESSION_TTL_MS = 5_000;
const MAX_OWN_SUPPRESSIONS = 10_000;

interface SuppressionCheck {
  /** False where the recipient is suppressed. */
  mayReceive(message: LeasedMessage): boolean | Promise<boolean>;
  /** Records a change that the store is about to write. */
  recordChange(message: LeasedMessage, change: StateChange): void;
}

/** `queryStore` resolves to false where the recipient is on a suppression list. */
export function createSuppressionCheck(
  clock: Clock,
  queryStore: (message: LeasedMessage) => Promise<boolean>,
): SuppressionCheck {
  /** When this node suppressed each account and recipient, the oldest first. */
  const suppressedAt = new Map<string, number>();
  return {
    mayReceive(message) {
      const now = clock.now();
      const at = suppressedAt.size === 0 ? undefined : suppressedAt.get(suppressionKey(message));
      if (at !== undefined && now - at < OWN_SUPPRESSION_TTL_MS) return false;
      return now - (message.lease.until - LEASE_MS) < NEW_LEASE_MS || queryStore(message);
    },
    recordChange(message, { suppress }) {
      if (suppress === null) return;
      const now = clock.now();
      for (const [key, at] of suppressedAt) {
        if (now - at < OWN_SUPPRESSION_TTL_MS) break;
        suppressedAt.delete(key);
      }
      if (suppressedAt.size >= MAX_OWN_SUPPRESSIONS) suppressedAt.clear();
      const key = suppressionKey(message);
      suppressedAt.delete(key);
      suppressedAt.set(key, now);
    },
  };
}

/** Account and canonical recipient, as suppression lists store it. */
function suppressionKey({ accountId, to }: LeasedMessage): string {
  const address = parseAddress(to);
  return `${accountId} ${address === null ? to : canonicalAddress(address)}`;
}

// The circuit breaker of the next hop: closed → open → half-open, with one probe.
//
// Opens after three consecutive deferrals with the scope `transport`. While it is open no attempt is made. Once the wait is over one
// probe is made; each probe that fails doubles the wait (2 s to 5 min, reduced by up to a quarter at random). Any other outcome closes
// it. Pure: time and randomness are injected.

const MIN_FAILURES_TO_OPEN = 3;
const MIN_OPEN_MS = 2_000;
const MAX_OPEN_MS = 300_000;

interface CircuitBreakerParts {
  /** Returns a number from 0 to below 1, as `Math.random` does. */
  readonly random: () => number;
  readonly publish: PublishOf<(typeof BREAKER_EVENTS)[BreakerState]>;
}

export interface CircuitBreaker {
  /** True where an attempt may be made now. While not closed, true reserves the probe: record its outcome, or release it. */
  allowsAttempt(now: number): boolean;
  /** Records the outcome of an attempt, probe or not. */
  recordOutcome(outcome: Outcome, now: number): void;
  /** Releases a probe that was not made. */
  releaseProbe(now: number): void;
  /** When the next attempt may be made (milliseconds since the epoch), or null while closed. */
  retryAt(now: number): number | null;
}

/** A closed circuit breaker. */
export function createCircuitBreaker({
  random,
  publish,
}: CircuitBreakerParts): CircuitBreaker & { readonly state: BreakerState } {
  let state: BreakerState = 'closed';
  let failures = 0;
  let nextOpenMs = MIN_OPEN_MS;
  /** When the state was entered. */
  let since = 0;
  /** Open: when a probe may begin. Half-open: when another probe may begin if this one never ends. */
  let until = 0;

  // A clock that is set back must not keep it open for longer than the wait.
  const retryAt = (now: number): number | null => (state === 'closed' ? null : now < since ? now : until);

  function enter(next: BreakerState, now: number, durationMs: number): void {
    state = next;
    since = now;
    until = now + durationMs;
    publish({ type: BREAKER_EVENTS[state], at: now, retryAt: retryAt(now) });
  }

  function open(now: number): void {
    failures = 0;
    const durationMs = Math.round(nextOpenMs * (1 - random() * 0.25));
    nextOpenMs = Math.min(nextOpenMs * 2, MAX_OPEN_MS);
    enter('open', now, durationMs);
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
      if (!isTransportFailure(outcome)) {
        failures = 0;
        nextOpenMs = MIN_OPEN_MS;
        if (state !== 'closed') enter('closed', now, 0);
        return;
      }
      switch (state) {
        case 'closed':
          failures += 1;
          if (failures >= MIN_FAILURES_TO_OPEN) open(now);
          return;
        case 'half-open':
          open(now);
          return;
        case 'open':
          // The attempt began before the circuit breaker opened.
          return;
      }
    },

    releaseProbe(now: number): void {
      if (state === 'half-open') enter('open', now, 0);
    },
  };
}

function isTransportFailure(outcome: Outcome): boolean {
  switch (outcome.kind) {
    case 'delivered':
    case 'bounced':
      return false;
    case 'deferred':
      return outcome.scope === 'transport';
    case 'unanswered':
      // A next hop that fails after each complete message would cause a duplicate of each.
      return true;
  }
}

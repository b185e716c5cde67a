/**
 * Runs one delivery attempt for a leased message: prepares the message, waits for a free slot of the transport, checks
 * the account, the suppression lists and the circuit breaker, and transmits the message.
 *
 * Guarantees: `run` never rejects. Every attempt has an outcome, even if the transport throws or does not answer within
 * `MAX_ATTEMPT_MS`. An unknown failure counts as temporary. With `POSTRIDER_ON_UNCERTAIN=hold`, the store marks the
 * lease and commits this mark before the transport sends the end of the message.
 */
import type { Clock, MonotonicClock } from '../clock.ts';
import { parseAddress, toCanonicalAddress } from '../model/address.ts';
import { BREAKER_EVENTS, type BreakerState, type PublishOf } from '../model/events.ts';
import type { DeliveryPolicy, LeasedMessage, LeaseRef, SettleResult, StateChange } from '../model/message.ts';
import type { Attempt, Outcome } from '../model/outcome.ts';
import type { OutgoingMessage, Transport } from '../transports/transport.ts';
import type { Membership } from './membership.ts';

export const LEASE_MS = 20 * 60_000;
/**
 * The maximum duration of an attempt. A longer attempt is aborted. For each transport, the sum of its timeouts is less
 * than this limit.
 */
export const MAX_ATTEMPT_MS = 10 * 60_000;
/**
 * The maximum time for the store to mark a lease. If this time is exceeded, the transport does not send the end of the
 * message.
 */
const MAX_MARK_MS = 30_000;

export interface AttemptParts {
  readonly clock: MonotonicClock;
  readonly policy: DeliveryPolicy;
  /** Returns true for a notification to operators, which is never held as `uncertain`. */
  readonly isNotification?: (message: Pick<LeasedMessage, 'from' | 'to'>) => boolean;
  readonly transport: Transport;
  readonly breaker: CircuitBreaker;
  /**
   * Marks the lease before the end of the transmission, if `POSTRIDER_ON_UNCERTAIN` is `hold` and the message is not a
   * notification. A message with a marked lease may have been delivered.
   */
  readonly markTransmitting: (lease: LeaseRef) => Promise<SettleResult>;
  /** Composes and signs the message. If the function throws or its promise is rejected, the message is deferred. */
  readonly prepare: (message: LeasedMessage) => OutgoingMessage | Promise<OutgoingMessage>;
  /** Returns true if no attempt may start now (`createAttemptGuard`). */
  readonly mustNotAttempt: (message: LeasedMessage) => boolean;
  /**
   * Returns false if the recipient was suppressed after the start of the lease. Called immediately before the
   * transmission.
   */
  readonly mayReceive: (message: LeasedMessage) => boolean | Promise<boolean>;
  readonly onError: (operation: string, error: unknown) => void;
}

/**
 * Creates the function `mustNotAttempt` of a node. The function returns true if the account of the message is locked,
 * or if another node may have recovered the lease.
 */
export function createAttemptGuard(
  accounts: { isLocked(accountId: number): boolean },
  membership: Pick<Membership, 'isLeaseValid'>,
): (message: LeasedMessage) => boolean {
  return ({ accountId, lease }) => accounts.isLocked(accountId) || !membership.isLeaseValid(lease.until - LEASE_MS);
}

type AttemptResult =
  | { readonly kind: 'attempted'; readonly attempt: Attempt }
  /** The circuit breaker allows no attempt now. No attempt was made. */
  | { readonly kind: 'circuit-open' }
  /** The message must not be sent now. The caller releases the lease of the message. */
  | { readonly kind: 'not-attempted' };

interface AttemptRunner {
  run(message: LeasedMessage): Promise<AttemptResult>;
  /** Prevents further attempts. Each message that waits for a slot receives the result `not-attempted`. */
  stop(): void;
  /** Aborts attempts that run for longer than `MAX_ATTEMPT_MS`. */
  abortOverdue(): void;
}

/**
 * `answered`: the transport returned the outcome, or the attempt was aborted. `fault`: this service failed, so the
 * outcome does not depend on the next hop.
 */
type TransmissionResult = { readonly kind: 'answered' | 'fault'; readonly attempt: Attempt };

interface Transmission {
  readonly startedAt: number;
  /** The start time on the monotonic clock, so that a step of the system clock does not abort the attempt. */
  readonly startedMonotonicMs: number;
  /**
   * `incomplete`: the message cannot have been delivered. `completing`: the message may have been delivered. `ended`:
   * the attempt has ended.
   */
  stage: 'incomplete' | 'completing' | 'ended';
  readonly end: (transmissionResult: TransmissionResult) => void;
}

const CIRCUIT_OPEN: AttemptResult = { kind: 'circuit-open' };
const NOT_ATTEMPTED: AttemptResult = { kind: 'not-attempted' };

/** Creates the attempt runner of one node. */
export function createAttemptRunner(parts: AttemptParts): AttemptRunner {
  const { clock, policy, transport, breaker } = parts;
  /** The running attempts, in the order of their start. */
  const transmissions = new Set<Transmission>();
  let usedSlotCount = 0;
  const slotWaiters: ((isAcquired: boolean) => void)[] = [];
  let isStopped = false;

  async function run(message: LeasedMessage): Promise<AttemptResult> {
    const startedAt = clock.now();
    const startedMonotonicMs = clock.monotonic();
    let outgoingMessage: OutgoingMessage;
    try {
      outgoingMessage = await parts.prepare(message);
    } catch (error) {
      return { kind: 'attempted', attempt: createFaultAttempt(error, startedAt, startedMonotonicMs) };
    }
    // No next hop is contacted for a message that the transport answers locally, so neither the concurrency of the
    // transport nor the circuit breaker limits such an attempt.
    if (hasLocalAnswer(transport, message)) {
      return { kind: 'attempted', attempt: (await transmit(message, outgoingMessage)).attempt };
    }
    // The message is prepared before `acquireSlot`, so that messages are signed while all slots are in use.
    if (!(await acquireSlot())) return NOT_ATTEMPTED;
    try {
      // The account, the lease and the suppression lists are checked now, because they may have changed during the wait
      // for the slot.
      if (isStopped || parts.mustNotAttempt(message)) return NOT_ATTEMPTED;
      const mayReceive = parts.mayReceive(message);
      if (!(typeof mayReceive === 'boolean' ? mayReceive : await mayReceive)) return NOT_ATTEMPTED;
      if (!breaker.allowsAttempt(clock.now())) return CIRCUIT_OPEN;
      const { kind, attempt } = await transmit(message, outgoingMessage);
      if (kind === 'answered') breaker.recordOutcome(attempt.outcome, clock.now());
      else breaker.releaseProbe(clock.now());
      return { kind: 'attempted', attempt };
    } catch (error) {
      return { kind: 'attempted', attempt: createFaultAttempt(error, startedAt, startedMonotonicMs) };
    } finally {
      // The slot is released after the circuit breaker has recorded the outcome, because the next attempt depends on
      // the state of the circuit breaker.
      releaseSlot();
    }
  }

  /** Waits for a free slot of the transport. The result is false if the runner is stopped. */
  function acquireSlot(): boolean | Promise<boolean> {
    if (isStopped) return false;
    if (usedSlotCount >= transport.concurrency) return new Promise((resolve) => slotWaiters.push(resolve));
    usedSlotCount += 1;
    return true;
  }

  /**
   * Passes the slot to the message that has waited for the longest time. If no message waits, the slot becomes free.
   */
  function releaseSlot(): void {
    const resolveNext = slotWaiters.shift();
    if (resolveNext === undefined) usedSlotCount -= 1;
    else resolveNext(true);
  }

  function transmit(message: LeasedMessage, outgoing: OutgoingMessage): Promise<TransmissionResult> {
    return new Promise((resolve) => {
      const needsMark = policy.onUncertain === 'hold' && parts.isNotification?.(message) !== true;
      const transmission: Transmission = {
        startedAt: clock.now(),
        startedMonotonicMs: clock.monotonic(),
        stage: needsMark ? 'incomplete' : 'completing',
        end(transmissionResult) {
          if (transmission.stage === 'ended') return;
          transmission.stage = 'ended';
          transmissions.delete(transmission);
          resolve(transmissionResult);
        },
      };
      transmissions.add(transmission);
      const beforeCompletion = needsMark ? () => markTransmitting(message, transmission) : null;
      const attemptResult = (async () => transport.attempt(outgoing, beforeCompletion))();
      attemptResult.then(
        (attempt) => transmission.end({ kind: 'answered', attempt }),
        (error: unknown) => {
          const attempt = createFaultAttempt(error, transmission.startedAt, transmission.startedMonotonicMs);
          transmission.end({ kind: 'fault', attempt });
        },
      );
    });
  }

  async function markTransmitting({ id, attempts, lease }: LeasedMessage, transmission: Transmission): Promise<void> {
    const { promise: timeout, reject } = Promise.withResolvers<never>();
    const cancel = clock.after(MAX_MARK_MS, () => {
      reject(new Error(`the store did not write the mark within ${MAX_MARK_MS / 1_000} s`));
    });
    try {
      const markResult = await Promise.race([parts.markTransmitting({ id, owner: lease.owner, attempts }), timeout]);
      if (markResult === 'lost') throw new Error('the lease was lost');
      if (transmission.stage === 'ended') throw new Error('the attempt was aborted');
      transmission.stage = 'completing';
    } finally {
      cancel();
    }
  }

  /**
   * Returns an attempt with the outcome `deferred`: the message could not be prepared, or the transport threw an error.
   */
  function createFaultAttempt(error: unknown, startedAt: number, startedMonotonicMs: number): Attempt {
    parts.onError('attempt', error);
    const text = error instanceof Error ? error.message : String(error);
    const outcome: Outcome = { kind: 'deferred', reply: createLocalReply(text), reason: 'unknown', scope: 'message' };
    return createAttemptWithoutTranscript(outcome, startedAt, startedMonotonicMs);
  }

  function abortTransmission(transmission: Transmission): void {
    const text = `the attempt did not end within ${MAX_ATTEMPT_MS / 60_000} minutes and was aborted`;
    parts.onError('attempt', new Error(text));
    const outcome: Outcome =
      transmission.stage === 'completing'
        ? { kind: 'unanswered', reply: createLocalReply(text) }
        : { kind: 'deferred', reply: createLocalReply(text), reason: 'unknown', scope: 'transport' };
    const attempt = createAttemptWithoutTranscript(outcome, transmission.startedAt, transmission.startedMonotonicMs);
    transmission.end({ kind: 'answered', attempt });
  }

  function createAttemptWithoutTranscript(outcome: Outcome, startedAt: number, startedMonotonicMs: number): Attempt {
    return { outcome, startedAt, tookMs: clock.monotonic() - startedMonotonicMs, remote: null, transcript: [] };
  }

  return {
    run,
    stop() {
      isStopped = true;
      for (const resolve of slotWaiters.splice(0)) resolve(false);
    },
    abortOverdue() {
      const now = clock.monotonic();
      for (const transmission of transmissions) {
        if (now - transmission.startedMonotonicMs < MAX_ATTEMPT_MS) return;
        abortTransmission(transmission);
      }
    },
  };
}

function createLocalReply(text: string) {
  return { stage: 'connect', code: null, enhanced: null, text } as const;
}

function hasLocalAnswer({ answerLocally }: Transport, { to }: LeasedMessage): boolean {
  return answerLocally !== undefined && answerLocally(to) !== null;
}

// The last check of the suppression lists before a message is transmitted. The store has already checked the lists when
// the message was accepted or leased. A cache in memory contains the recipients that this node has suppressed recently.
// If the lease is older than one second, the check also queries the store, in batches, to find suppressions by other
// nodes and operators.

const MAX_NEW_LEASE_AGE_MS = 1_000;
/**
 * The TTL of an entry in the cache of recipients that this node has suppressed. Within this time, the store is expected
 * to commit the suppression. After this time, only the store decides, so that an operator's removal of the suppression
 * takes effect.
 */
const OWN_SUPPRESSION_TTL_MS = 5_000;
const MAX_OWN_SUPPRESSIONS = 10_000;

interface SuppressionCheck {
  /** Returns false if the recipient is suppressed. */
  mayReceive(message: LeasedMessage): boolean | Promise<boolean>;
  /** If `change` suppresses the recipient, adds the recipient to the cache. Called before the store writes `change`. */
  recordChange(message: LeasedMessage, change: StateChange): void;
}

/**
 * Creates the suppression check of one node. `queryStore` resolves to false if the recipient is on a suppression list.
 */
export function createSuppressionCheck(
  clock: Clock,
  queryStore: (message: LeasedMessage) => Promise<boolean>,
): SuppressionCheck {
  /** The times when this node suppressed recipients, by account and recipient, oldest first. */
  const suppressedAt = new Map<string, number>();
  return {
    mayReceive(message) {
      const now = clock.now();
      const lastSuppressedAt = suppressedAt.size === 0 ? undefined : suppressedAt.get(getSuppressionKey(message));
      if (lastSuppressedAt !== undefined && now - lastSuppressedAt < OWN_SUPPRESSION_TTL_MS) return false;
      return now - (message.lease.until - LEASE_MS) < MAX_NEW_LEASE_AGE_MS || queryStore(message);
    },
    recordChange(message, { suppress }) {
      if (suppress === null) return;
      const now = clock.now();
      for (const [key, lastSuppressedAt] of suppressedAt) {
        if (now - lastSuppressedAt < OWN_SUPPRESSION_TTL_MS) break;
        suppressedAt.delete(key);
      }
      if (suppressedAt.size >= MAX_OWN_SUPPRESSIONS) suppressedAt.clear();
      const key = getSuppressionKey(message);
      suppressedAt.delete(key);
      suppressedAt.set(key, now);
    },
  };
}

/**
 * Returns the key of `suppressedAt`: the account and the canonical form of the recipient, as in the suppression lists.
 */
function getSuppressionKey({ accountId, to }: LeasedMessage): string {
  const address = parseAddress(to);
  return `${accountId} ${address === null ? to : toCanonicalAddress(address)}`;
}

// The circuit breaker of the next hop has three states: closed, open and half-open.
//
// The circuit breaker opens after three consecutive failures of the transport. While it is open, no attempt is made.
// After a wait, it becomes half-open and allows one probe. Each failed probe doubles the wait, from 2 s to 5 min, with
// a random reduction of up to a quarter. An outcome that is not a failure of the transport closes the circuit breaker.
// The caller provides the time and random numbers.

const MIN_FAILURES_TO_OPEN = 3;
const MIN_OPEN_MS = 2_000;
const MAX_OPEN_MS = 300_000;

interface CircuitBreakerParts {
  /** Returns a random number in [0, 1), as `Math.random` does. */
  readonly random: () => number;
  readonly publish: PublishOf<(typeof BREAKER_EVENTS)[BreakerState]>;
}

export interface CircuitBreaker {
  /**
   * Returns true if an attempt may start now. If the circuit breaker is not closed, a result of true reserves the
   * probe. The caller must then record the outcome of the probe or release the probe.
   */
  allowsAttempt(now: number): boolean;
  /** Records the outcome of an attempt, which may be a probe. */
  recordOutcome(outcome: Outcome, now: number): void;
  /** Releases the probe after an attempt whose outcome does not depend on the next hop. */
  releaseProbe(now: number): void;
  /**
   * Returns the time when the next attempt may start (ms since the epoch), or null if the circuit breaker is closed.
   */
  getRetryAt(now: number): number | null;
}

/** Creates a closed circuit breaker. */
export function createCircuitBreaker({
  random,
  publish,
}: CircuitBreakerParts): CircuitBreaker & { readonly state: BreakerState } {
  let state: BreakerState = 'closed';
  let failureCount = 0;
  let nextOpenMs = MIN_OPEN_MS;
  /** The time when the current state began. */
  let enteredAt = 0;
  /**
   * The time when the wait ends. Open: the time when a probe may start. Half-open: the time when another probe may
   * start if the current probe does not end.
   */
  let waitEndsAt = 0;

  // If the clock is set back, the circuit breaker must not stay open for longer than the wait.
  const getRetryAt = (now: number): number | null => (state === 'closed' ? null : now < enteredAt ? now : waitEndsAt);

  function enterState(nextState: BreakerState, now: number, durationMs: number): void {
    state = nextState;
    enteredAt = now;
    waitEndsAt = now + durationMs;
    publish({ type: BREAKER_EVENTS[state], at: now, retryAt: getRetryAt(now) });
  }

  function openBreaker(now: number): void {
    failureCount = 0;
    const durationMs = Math.round(nextOpenMs * (1 - random() * 0.25));
    nextOpenMs = Math.min(nextOpenMs * 2, MAX_OPEN_MS);
    enterState('open', now, durationMs);
  }

  return {
    get state() {
      return state;
    },
    getRetryAt,

    allowsAttempt(now: number): boolean {
      if (state === 'closed') return true;
      if (now < waitEndsAt && now >= enteredAt) return false;
      enterState('half-open', now, MAX_ATTEMPT_MS);
      return true;
    },

    recordOutcome(outcome: Outcome, now: number): void {
      if (!isTransportFailure(outcome)) {
        failureCount = 0;
        nextOpenMs = MIN_OPEN_MS;
        if (state !== 'closed') enterState('closed', now, 0);
        return;
      }
      switch (state) {
        case 'closed':
          failureCount += 1;
          if (failureCount >= MIN_FAILURES_TO_OPEN) openBreaker(now);
          return;
        case 'half-open':
          openBreaker(now);
          return;
        case 'open':
          // The outcome is ignored, because the attempt started before the circuit breaker opened.
          return;
      }
    },

    releaseProbe(now: number): void {
      if (state === 'half-open') enterState('open', now, 0);
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
      // `unanswered` counts as a failure, because a next hop that fails after each complete message may cause a
      // duplicate with every retry.
      return true;
  }
}

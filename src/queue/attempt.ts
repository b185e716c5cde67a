/**
 * Runs one delivery attempt for a leased message: prepares the message, waits for a free slot of the transport, checks
 * the account, the suppression lists and the circuit breaker, and transmits the message.
 *
 * Guarantees: `run` never rejects. Every attempt has an outcome, even if the transport throws or does not answer within
 * `MAX_ATTEMPT_MS`. An unknown failure is temporary. With `POSTRIDER_ON_UNCERTAIN=hold`, the store has committed a mark
 * before the transport sends the end of the message.
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
 * Maximum duration of an attempt. A longer attempt is aborted. For each transport, the sum of its timeouts is less than
 * this limit.
 */
export const MAX_ATTEMPT_MS = 10 * 60_000;
/** Maximum time for the store to write the mark. If it is exceeded, the end of the message is not sent. */
const MAX_MARK_MS = 30_000;

export interface AttemptParts {
  readonly clock: MonotonicClock;
  readonly policy: DeliveryPolicy;
  readonly transport: Transport;
  readonly breaker: CircuitBreaker;
  /** Writes the mark that `hold` requires. A marked message may have been delivered. */
  readonly mark: (lease: LeaseRef) => Promise<SettleResult>;
  /** Composes and signs the message. If it rejects, the message is deferred. */
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
 * Returns the function `mustNotAttempt` of a node. It returns true if the account of the message is locked, or if
 * another node may have recovered the lease.
 */
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
  /** The message must not be sent now. The caller releases its lease. */
  | { readonly kind: 'not-attempted' };

interface AttemptRunner {
  run(message: LeasedMessage): Promise<AttemptResult>;
  /** Starts no further attempt. Each message that waits for a slot gets the result `not-attempted`. */
  stop(): void;
  /** Aborts attempts that run for longer than `MAX_ATTEMPT_MS`. */
  abortOverdue(): void;
}

/**
 * `answered`: the transport returned the outcome. `fault`: this service failed, so the outcome does not come from the
 * next hop.
 */
type Transmitted = { readonly kind: 'answered' | 'fault'; readonly attempt: Attempt };

interface Transmission {
  readonly startedAt: number;
  /** Time of the monotonic clock, so that a step of the system clock does not abort the attempt. */
  readonly startedMonotonic: number;
  /**
   * `incomplete`: the message cannot have been delivered. `completing`: the message may have been delivered. `ended`:
   * the result is known.
   */
  stage: 'incomplete' | 'completing' | 'ended';
  readonly end: (transmitted: Transmitted) => void;
}

const CIRCUIT_OPEN: AttemptResult = { kind: 'circuit-open' };
const NOT_ATTEMPTED: AttemptResult = { kind: 'not-attempted' };

export function createAttemptRunner(parts: AttemptParts): AttemptRunner {
  const { clock, policy, transport, breaker } = parts;
  /** The running attempts, in the order of their start. */
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
    // A local answer contacts no next hop, so neither the concurrency of the transport nor the circuit breaker limits
    // it.
    if (hasLocalAnswer(transport, message)) {
      return { kind: 'attempted', attempt: (await transmit(message, outgoing)).attempt };
    }
    // The message is prepared before it waits for a slot, so that messages are signed while the transport is busy.
    if (!(await acquireSlot())) return NOT_ATTEMPTED;
    try {
      // The account, the lease or the suppression lists may have changed during the wait for the slot.
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
      // The slot is released after the circuit breaker has recorded the outcome, because the next attempt depends on
      // its state.
      releaseSlot();
    }
  }

  /** Waits for a free slot of the transport. Resolves to false if the runner is stopped. */
  function acquireSlot(): boolean | Promise<boolean> {
    if (stopped) return false;
    if (usedSlots >= transport.concurrency) return new Promise((resolve) => waitingForSlot.push(resolve));
    usedSlots += 1;
    return true;
  }

  /** Passes the slot to the message that has waited the longest time. If none waits, frees the slot. */
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

  /** Returns the attempt of a message that could not be prepared or whose transport threw an error. */
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

// The last check of the suppression lists before a message is transmitted. The store has already checked them when the
// message was accepted or leased. This node keeps the recipients that it has suppressed recently in memory. If the
// lease is older than one second, the node also queries the store, in batches, to find suppressions by other nodes and
// operators.

const NEW_LEASE_MS = 1_000;
/**
 * TTL of the cache of suppressions by this node. After this time the store has committed them, and also their removal
 * if an operator removed them.
 */
const OWN_SUPPRESSION_TTL_MS = 5_000;
const MAX_OWN_SUPPRESSIONS = 10_000;

interface SuppressionCheck {
  /** Returns false if the recipient is suppressed. */
  mayReceive(message: LeasedMessage): boolean | Promise<boolean>;
  /** Records a change that the store is about to write. */
  recordChange(message: LeasedMessage, change: StateChange): void;
}

/** Creates the check of one node. `queryStore` resolves to false if the recipient is on a suppression list. */
export function createSuppressionCheck(
  clock: Clock,
  queryStore: (message: LeasedMessage) => Promise<boolean>,
): SuppressionCheck {
  /** The time when this node suppressed the recipient, by account and recipient, oldest first. */
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

/**
 * Returns the key of `suppressedAt`: the account and the canonical form of the recipient, as in the suppression lists.
 */
function suppressionKey({ accountId, to }: LeasedMessage): string {
  const address = parseAddress(to);
  return `${accountId} ${address === null ? to : toCanonicalAddress(address)}`;
}

// The circuit breaker of the next hop. It has three states: closed, open and half-open.
//
// It opens after three consecutive failures of the transport. While it is open, no attempt is made. After a wait it
// becomes half-open and allows one probe. Each failed probe doubles the wait, from 2 s to 5 min, with a random
// reduction of up to a quarter. Any other outcome closes it. The caller provides time and random numbers.

const MIN_FAILURES_TO_OPEN = 3;
const MIN_OPEN_MS = 2_000;
const MAX_OPEN_MS = 300_000;

interface CircuitBreakerParts {
  /** Returns a random number in [0, 1), like `Math.random`. */
  readonly random: () => number;
  readonly publish: PublishOf<(typeof BREAKER_EVENTS)[BreakerState]>;
}

export interface CircuitBreaker {
  /**
   * Returns true if an attempt may start now. If the circuit breaker is not closed, the result true reserves the probe.
   * The caller must then record the outcome of the probe or release the probe.
   */
  allowsAttempt(now: number): boolean;
  /** Records the outcome of an attempt, which may be a probe. */
  recordOutcome(outcome: Outcome, now: number): void;
  /** Releases the probe if no attempt was made. */
  releaseProbe(now: number): void;
  /**
   * Returns the time when the next attempt may start (ms since the epoch), or null if the circuit breaker is closed.
   */
  retryAt(now: number): number | null;
}

/** Creates a closed circuit breaker. */
export function createCircuitBreaker({
  random,
  publish,
}: CircuitBreakerParts): CircuitBreaker & { readonly state: BreakerState } {
  let state: BreakerState = 'closed';
  let failures = 0;
  let nextOpenMs = MIN_OPEN_MS;
  /** The time when the current state began. */
  let since = 0;
  /**
   * Open: the time when a probe may start. Half-open: the time when another probe may start if the current probe does
   * not end.
   */
  let until = 0;

  // If the clock is set back, the circuit breaker must not stay open for longer than the wait.
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
          // The attempt started before the circuit breaker opened.
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
      // A next hop that fails after each complete message would cause a duplicate of each message.
      return true;
  }
}

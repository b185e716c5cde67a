/** Every attempt has an outcome, even if the transport throws or does not answer; an unknown failure is temporary. */
import type { Clock, MonotonicClock } from '../clock.ts';
import { type Account, mayReceiveFrom } from '../model/account.ts';
import { parseAddress, toCanonicalAddress } from '../model/address.ts';
import type { DeliveryPolicy, LeasedMessage, LeaseRef, SettleResult, StateChange } from '../model/message.ts';
import { type Attempt, createDeferral, createLocalReply, type Outcome } from '../model/outcome.ts';
import { getErrorText } from '../printing/text.ts';
import type { OutgoingMessage } from '../transports/transport.ts';
import type { Membership } from './membership.ts';
import { MAX_ATTEMPT_MS } from './route-health.ts';
import type { Route } from './routes.ts';

export const LEASE_MS = 20 * 60_000;
const MAX_MARK_MS = 30_000;

export interface AttemptParts {
  readonly clock: MonotonicClock;
  readonly policy: DeliveryPolicy;
  /** Notifications to operators: not counted for the reputation and never `uncertain`, so that none causes another. */
  readonly isNotification?: (message: Pick<LeasedMessage, 'from' | 'to'>) => boolean;
  /** With `POSTRIDER_ON_UNCERTAIN=hold`. A marked message may have been delivered. */
  readonly markTransmitting: (lease: LeaseRef) => Promise<SettleResult>;
  readonly mustNotAttempt: (message: LeasedMessage) => boolean;
  readonly mayReceive: (message: LeasedMessage) => boolean | Promise<boolean>;
  readonly isHeld: (message: LeasedMessage) => boolean | Promise<boolean>;
  /** Of the route, which may have been paused while the message waited for a slot. */
  readonly isPaused: () => boolean;
  readonly onError: (operation: string, error: unknown) => void;
}

export function createAttemptGuard(
  accounts: { isLocked(accountId: number): boolean },
  membership: Pick<Membership, 'isLeaseValid'>,
): (message: LeasedMessage) => boolean {
  return ({ accountId, lease }) => accounts.isLocked(accountId) || !membership.isLeaseValid(lease.until - LEASE_MS);
}

interface AttemptRunner {
  /** Never rejects. `circuit-open`: the route takes no message now. `not-attempted`: the caller releases the lease; `held`: parks it. */
  run(message: LeasedMessage): Promise<Attempt | 'circuit-open' | 'not-attempted' | 'held'>;
  stop(): void;
  /** To be called every second. Aborts attempts that do not end. */
  checkSlots(): void;
}

interface Transmission {
  readonly startedAt: number;
  /** On the monotonic clock, so that a step of the system clock does not abort the attempt. */
  readonly startedMonotonicMs: number;
  /** `incomplete`: the message cannot have been delivered. `completing`: it may have been. */
  stage: 'incomplete' | 'completing' | 'ended';
  readonly end: (attempt: Attempt, isFault: boolean) => void;
}

/** Of one route: its slots and its circuit breaker limit no other route. */
export function createAttemptRunner(
  { transport, health, prepare, nextHop }: Pick<Route, 'transport' | 'health' | 'prepare' | 'nextHop'>,
  parts: AttemptParts,
): AttemptRunner {
  const { clock, policy } = parts;
  const transmissions = new Set<Transmission>();
  let usedSlotCount = 0;
  const slotWaiters: ((isAcquired: boolean) => void)[] = [];
  let isStopped = false;

  async function run(message: LeasedMessage): ReturnType<AttemptRunner['run']> {
    const startedAt = clock.now();
    const startedMonotonicMs = clock.monotonic();
    let hasSlot = false;
    try {
      // Prepared before the wait for a slot, so that messages are signed while all slots are in use.
      let preparedFor = nextHop();
      let outgoing: OutgoingMessage = await prepare(message);
      // Neither slots nor the circuit breaker limit an attempt that the transport answers without a next hop.
      if ((transport.answerLocally?.(message.to) ?? null) !== null) return (await transmit(message, outgoing)).attempt;
      hasSlot = await acquireSlot();
      // The rest may have changed during the wait for the slot.
      if (!hasSlot || isStopped || parts.mustNotAttempt(message)) return 'not-attempted';
      const mayReceive = parts.mayReceive(message);
      if (!(typeof mayReceive === 'boolean' ? mayReceive : await mayReceive)) return 'not-attempted';
      const isHeld = parts.isHeld(message);
      if (typeof isHeld === 'boolean' ? isHeld : await isHeld) return 'held';
      // Another provider may need other header fields and signatures.
      while (preparedFor !== nextHop()) {
        preparedFor = nextHop();
        outgoing = await prepare(message);
      }
      const transmittedAt = clock.now();
      if (parts.isPaused() || !health.allowsAttempt(transmittedAt)) return 'circuit-open';
      const { attempt, isFault } = await transmit(message, outgoing);
      if (isFault) health.releaseProbe(clock.now());
      else health.recordOutcome(attempt.outcome, clock.now(), transmittedAt);
      return attempt;
    } catch (error) {
      return createFaultAttempt(error, startedAt, startedMonotonicMs);
    } finally {
      // Released after the circuit breaker has recorded the outcome, on which the next attempt depends.
      if (hasSlot) releaseSlot();
    }
  }

  function acquireSlot(): boolean | Promise<boolean> {
    if (isStopped) return false;
    if (slotWaiters.length > 0 || !hasFreeSlot()) return new Promise((resolve) => slotWaiters.push(resolve));
    usedSlotCount += 1;
    return true;
  }

  const hasFreeSlot = () => usedSlotCount < health.getConcurrency(transport.concurrency, clock.now());

  function releaseSlot(): void {
    usedSlotCount -= 1;
    fillSlots();
  }

  function fillSlots(): void {
    while (slotWaiters.length > 0 && hasFreeSlot()) {
      usedSlotCount += 1;
      slotWaiters.shift()?.(true);
    }
  }

  /** `isFault`: this service failed, so the outcome does not depend on the next hop. */
  function transmit(
    message: LeasedMessage,
    outgoing: OutgoingMessage,
  ): Promise<{ readonly attempt: Attempt; readonly isFault: boolean }> {
    return new Promise((resolve) => {
      const needsMark = policy.onUncertain === 'hold' && parts.isNotification?.(message) !== true;
      const transmission: Transmission = {
        startedAt: clock.now(),
        startedMonotonicMs: clock.monotonic(),
        stage: needsMark ? 'incomplete' : 'completing',
        end(attempt, isFault) {
          if (transmission.stage === 'ended') return;
          transmission.stage = 'ended';
          transmissions.delete(transmission);
          resolve({ attempt, isFault });
        },
      };
      transmissions.add(transmission);
      const beforeCompletion = needsMark ? () => markTransmitting(message, transmission) : null;
      (async () => transport.attempt(outgoing, beforeCompletion))().then(
        (attempt) => transmission.end(attempt, false),
        (error: unknown) => {
          const { startedAt, startedMonotonicMs } = transmission;
          transmission.end(createFaultAttempt(error, startedAt, startedMonotonicMs), true);
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

  function createFaultAttempt(error: unknown, startedAt: number, startedMonotonicMs: number): Attempt {
    parts.onError('attempt', error);
    const text = getErrorText(error);
    return createAttempt(createDeferral('connect', text, 'unknown', 'message'), startedAt, startedMonotonicMs);
  }

  function abortTransmission({ stage, startedAt, startedMonotonicMs, end }: Transmission): void {
    const text = `the attempt did not end within ${MAX_ATTEMPT_MS / 60_000} minutes and was aborted`;
    parts.onError('attempt', new Error(text));
    const outcome: Outcome =
      stage === 'completing'
        ? { kind: 'unanswered', reply: createLocalReply('connect', text) }
        : createDeferral('connect', text, 'unknown', 'route');
    end(createAttempt(outcome, startedAt, startedMonotonicMs), false);
  }

  function createAttempt(outcome: Outcome, startedAt: number, startedMonotonicMs: number): Attempt {
    return { outcome, startedAt, tookMs: clock.monotonic() - startedMonotonicMs, remote: null, transcript: [] };
  }

  return {
    run,
    stop() {
      isStopped = true;
      for (const resolve of slotWaiters.splice(0)) resolve(false);
    },
    checkSlots() {
      // A pause of a throttling next hop may have ended.
      fillSlots();
      const now = clock.monotonic();
      for (const transmission of transmissions) {
        if (now - transmission.startedMonotonicMs < MAX_ATTEMPT_MS) return;
        abortTransmission(transmission);
      }
    },
  };
}

// After one second, the store is asked again, in batches, for suppressions by others.

const MAX_NEW_LEASE_AGE_MS = 1_000;
/** By then, the store has the suppression of this node. Afterwards only the store decides, so that a removal works. */
const OWN_SUPPRESSION_TTL_MS = 5_000;
const MAX_OWN_SUPPRESSIONS = 10_000;

export function createSuppressionCheck(clock: Clock, queryStore: (message: LeasedMessage) => Promise<boolean>) {
  const suppressedAt = new Map<string, number>();
  return {
    mayReceive(message: LeasedMessage): boolean | Promise<boolean> {
      const now = clock.now();
      const lastSuppressedAt = suppressedAt.size === 0 ? undefined : suppressedAt.get(getSuppressionKey(message));
      if (lastSuppressedAt !== undefined && now - lastSuppressedAt < OWN_SUPPRESSION_TTL_MS) return false;
      return now - (message.lease.until - LEASE_MS) < MAX_NEW_LEASE_AGE_MS || queryStore(message);
    },
    recordChange(message: LeasedMessage, { suppress }: StateChange): void {
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

function getSuppressionKey({ accountId, to }: LeasedMessage): string {
  return `${accountId} ${toRecipient(to)}`;
}

function toRecipient(to: string): string {
  const address = parseAddress(to);
  return address === null ? to : toCanonicalAddress(address);
}

/** False if the account sends only to other recipients: the next claim ends the message. */
export function isAllowedByAccount(account: Pick<Account, 'onlyTo'> | undefined, to: string): boolean {
  return account === undefined || account.onlyTo === null || mayReceiveFrom(account, toRecipient(to), 1);
}

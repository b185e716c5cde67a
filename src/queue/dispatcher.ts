/**
 * A new message passes through `submit`, `offerMessage` and `dispatch`, others through `claimMessages` and `dispatch`;
 * then all through `deliverMessage`, `attemptOnce`, `createSettlement` and `settleLease`.
 * After any failure, a message is recovered when its lease expires.
 */
import { classifyAttempt, raisesAlarm } from '../classify/classify.ts';
import type { Publish } from '../model/events.ts';
import {
  type AcceptResult,
  createExpiryBeforeAttempt,
  createLocalComplaint,
  decideAttemptChange,
  getAgeStart,
  getExpiry,
  IDEMPOTENCY_KEY_TTL_MS,
  type Lease,
  type LeasedMessage,
  type LeaseRef,
  type NewMessage,
  type ParkReason,
  type RecordedChange,
  type Settlement,
  type SettleResult,
  type StateChange,
} from '../model/message.ts';
import type { Attempt } from '../model/outcome.ts';
import type { ClaimedMessages, ClaimLimits } from '../store/contract.ts';
import type { Transport } from '../transports/transport.ts';
import { type AttemptParts, createAttemptRunner, LEASE_MS, MAX_ATTEMPT_MS } from './attempt.ts';
import { createLeaseBudget, createModeHolder, createReadyQueue, createRecorder, getMemoryBytes } from './leases.ts';
import type { AgeClock } from './membership.ts';
import type { HoldChecks } from './parking.ts';

const MIN_REMAINING_LEASE_MS = MAX_ATTEMPT_MS + 2 * 60_000;
/** This many unrecorded ends stop attempts, because they and the running attempts may be duplicates after a crash. */
export const MAX_UNRECORDED_LEASE_ENDS = 256;
/** Messages beyond the concurrency, which are composed and signed while they wait for a slot. */
const MAX_PREPARED_AHEAD = 64;
/** The poll finds every due message, even if a wake-up is missed. */
const POLL_MS = 1_000;

export interface DispatcherParts extends Omit<AttemptParts, 'onError'> {
  readonly node: string;
  readonly ages: Pick<AgeClock, 'toCurrentClock'>;
  readonly random: () => number;
  readonly claim: (limits: ClaimLimits, lease: Lease, now: number) => Promise<ClaimedMessages>;
  readonly settle: (settlement: Settlement) => Promise<SettleResult>;
  readonly release: (batch: readonly LeaseRef[], now: number) => Promise<readonly SettleResult[]>;
  readonly park: (batch: readonly LeaseRef[], reason: ParkReason, now: number) => Promise<readonly SettleResult[]>;
  /** The recipient of `doctor --loop`, whose outcome neither suppresses an address nor counts towards the reputation. */
  readonly loopRecipient?: string | null;
  readonly onChange?: (message: LeasedMessage, change: StateChange) => void;
  readonly publish: Publish;
}

export interface Dispatcher {
  start(): void;
  /** Ended by `offerMessage` or `returnLease`. Null: this node cannot send it at once. */
  leaseForNewMessage(now: number, bytes: number): Lease | null;
  returnLease(bytes: number): void;
  offerMessage(message: LeasedMessage): void;
  wake(): void;
  drain(timeoutMs: number): Promise<void>;
  listLeasedMessageIds(): readonly string[];
  readonly inFlightCount: number;
}

type RecordedSettlement = Settlement & { readonly changes: readonly RecordedChange[] };

/** In the store. `due`: new messages get no lease. `claiming-woken`: woken during a claim. */
type Backlog = 'empty' | 'due' | 'claiming' | 'claiming-woken';

export function createDispatcher(parts: DispatcherParts): Dispatcher {
  const { node, clock, ages, policy, transport, breaker, publish, isNotification = () => false } = parts;
  const onError = (operation: string, error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation, error });
  const mode = createModeHolder();
  const readyQueue = createReadyQueue();
  const budget = createLeaseBudget();
  const attemptRunner = createAttemptRunner({ ...parts, onError });
  const recorder = createRecorder({ clock, isStopped: () => mode.currentMode === 'stopped', onError });
  const leasedIds = new Set<string>();
  let newMessageLeaseCount = 0;
  let runningAttemptCount = 0;
  let endedAttemptCount = 0;
  let backlog: Backlog = 'due';
  let cancelPoll: () => void = () => undefined;
  const whenEmpty = Promise.withResolvers<void>();
  let drainPromise: Promise<void> | null = null;

  function leaseForNewMessage(now: number, bytes: number): Lease | null {
    if (mode.currentMode !== 'running' || backlog !== 'empty') return null;
    if (!budget.hasRoomFor(bytes) || breaker.getRetryAt(now) !== null) return null;
    newMessageLeaseCount += 1;
    budget.reserve(bytes);
    return { owner: node, until: now + LEASE_MS };
  }

  function offerMessage(message: LeasedMessage): void {
    newMessageLeaseCount -= 1;
    leasedIds.add(message.id);
    readyQueue.enqueue(message);
    dispatch();
  }

  function dispatch(): void {
    switch (mode.currentMode) {
      case 'starting':
        return;
      case 'running':
        while (readyQueue.size > 0 && canStartAttempt()) {
          const message = readyQueue.dequeue();
          if (message !== undefined) void deliverMessage(message);
        }
        // While the circuit breaker is open, messages wait in the store, where an operator can see and cancel them.
        if (readyQueue.size > 0 && !isProbeDue()) void releaseLeases(readyQueue.dequeueAll());
        if (backlog === 'due') void claimMessages();
        return;
      case 'draining':
        if (readyQueue.size > 0) void releaseLeases(readyQueue.dequeueAll());
        if (isEmpty()) whenEmpty.resolve();
        return;
      case 'stopped':
        if (readyQueue.size > 0) void releaseLeases(readyQueue.dequeueAll());
        return;
    }
  }

  function canStartAttempt(): boolean {
    if (runningAttemptCount >= transport.concurrency + MAX_PREPARED_AHEAD) return false;
    if (recorder.isFailing || recorder.pendingCount >= MAX_UNRECORDED_LEASE_ENDS) return false;
    const now = clock.now();
    const retryAt = breaker.getRetryAt(now);
    return retryAt === null || (retryAt <= now && runningAttemptCount === 0);
  }

  function isProbeDue(): boolean {
    const now = clock.now();
    const retryAt = breaker.getRetryAt(now);
    return retryAt === null || retryAt <= now;
  }

  function isEmpty(): boolean {
    return countInFlight() === 0 && readyQueue.size === 0 && newMessageLeaseCount === 0 && !isClaiming();
  }

  const countInFlight = () => runningAttemptCount + recorder.pendingCount;
  const isClaiming = () => backlog === 'claiming' || backlog === 'claiming-woken';

  async function claimMessages(): Promise<void> {
    const now = clock.now();
    const limits = computeClaimLimits(now);
    if (limits === null) return;
    backlog = 'claiming';
    let hasMore = false;
    try {
      const claimed = await parts.claim(limits, { owner: node, until: now + LEASE_MS }, now);
      for (const message of claimed.messages) {
        budget.reserve(getMemoryBytes(message));
        leasedIds.add(message.id);
        readyQueue.enqueue(message);
      }
      for (const { id, accountId, to } of claimed.suppressed)
        publish({ type: 'message.suppressed', at: now, id, accountId, to });
      hasMore = claimed.hasMore;
    } catch (error) {
      onError('claim', error);
    }
    backlog = hasMore || wasWokenDuringClaim() ? 'due' : 'empty';
    dispatch();
  }

  const wasWokenDuringClaim = () => backlog === 'claiming-woken';

  function computeClaimLimits(now: number): ClaimLimits | null {
    const limits = budget.getClaimLimits(readyQueue.size);
    const retryAt = breaker.getRetryAt(now);
    if (limits === null || retryAt === null) return limits;
    return retryAt > now || runningAttemptCount > 0 || readyQueue.size > 0 ? null : { ...limits, maxMessages: 1 };
  }

  function wake(): void {
    backlog = isClaiming() ? 'claiming-woken' : 'due';
    dispatch();
  }

  async function deliverMessage(message: LeasedMessage): Promise<void> {
    runningAttemptCount += 1;
    const result = await attemptOnce(message);
    runningAttemptCount -= 1;
    endedAttemptCount += 1;
    if (result === 'circuit-open') readyQueue.enqueue(message);
    else if (result === 'not-attempted') void releaseLeases([message]);
    else if (result === 'held') void parkLease(message);
    else void settleLease(message, result);
    // The next attempt may start before the outcome of this attempt is committed.
    dispatch();
  }

  /** `circuit-open`: the message returns to the queue in memory, where `dispatch` releases it unless a probe is due. */
  async function attemptOnce(
    message: LeasedMessage,
  ): Promise<RecordedSettlement | 'not-attempted' | 'circuit-open' | 'held'> {
    // Before the maximum age, because a held message does not expire.
    const isHeld = parts.isHeld(message);
    if (typeof isHeld === 'boolean' ? isHeld : await isHeld) return 'held';
    const now = clock.now();
    const ageStart = ages.toCurrentClock(message.acceptedAt + message.heldMs);
    if (now >= getExpiry({ ...message, acceptedAt: ageStart }, policy)) {
      const { id, attempts } = message;
      return { id, owner: node, attempts, changes: [createExpiryBeforeAttempt(node, now)], refundAttempt: true };
    }
    if (message.lease.until - now < MIN_REMAINING_LEASE_MS || parts.mustNotAttempt(message)) return 'not-attempted';
    const attempt = await attemptRunner.run(message);
    return typeof attempt === 'string' ? attempt : createSettlement(message, attempt);
  }

  function createSettlement(message: LeasedMessage, attempt: Attempt): RecordedSettlement {
    const now = clock.now();
    const { id, attempts } = message;
    const isLoopTest = message.to === parts.loopRecipient;
    const computedChange = decideAttemptChange(
      { ...message, acceptedAt: ages.toCurrentClock(getAgeStart(message)) },
      attempt,
      classifyAttempt(attempt),
      isNotification(message) ? { ...policy, onUncertain: 'resend' } : policy,
      node,
      now,
      parts.random(),
    );
    const change = isLoopTest ? { ...computedChange, suppress: null } : computedChange;
    parts.onChange?.(message, change);
    publishAttemptEnd(message, attempt, now);
    const localAnswer = transport.answerLocally?.(message.to) ?? null;
    const hasComplaint = attempt.outcome.kind === 'delivered' && localAnswer?.kind === 'complaint';
    const complaints = hasComplaint ? [createLocalComplaint(now, localAnswer.by, localAnswer.detail)] : [];
    const excludedFromReputation = isLoopTest || isNotification(message) || localAnswer !== null;
    const changes = [change, ...complaints];
    return { id, owner: node, attempts, changes, refundAttempt: false, excludedFromReputation };
  }

  async function settleLease(message: LeasedMessage, settlement: RecordedSettlement): Promise<void> {
    const result = await recorder.record([message.id], () => parts.settle(settlement));
    // The events are published before a drain can end, because subscribers write their totals at shutdown.
    publishSettlement(message, settlement.changes, result);
    dropFromMemory([message]);
  }

  function publishAttemptEnd(message: LeasedMessage, attempt: Attempt, at: number): void {
    const { id, accountId, to, attempts } = message;
    publish({ type: 'attempt.ended', at, id, accountId, to, attempts, attempt });
    const { outcome } = attempt;
    // An alarm causes a notification, so a refused notification would cause the next one.
    if (raisesAlarm(outcome) && !isNotification(message)) {
      const { reason } = outcome;
      publish({ type: 'attempt.alarm_raised', at, id, accountId, to, attempts, attempt, reason });
    }
  }

  /** `result` is null if the dispatcher stopped before the store recorded the end of the lease. */
  function publishSettlement(
    { id, accountId, to, from, attempts, acceptedAt }: LeasedMessage,
    changes: readonly RecordedChange[],
    result: SettleResult | null,
  ): void {
    if (result === 'lost') publish({ type: 'node.lease_lost', at: clock.now(), id, accountId, to, attempts });
    if (result !== 'settled') return;
    for (const { type, dueAt, suppress, event } of changes) {
      const { at, attempt, detail, failure } = event;
      const message = { id, accountId, to, from, acceptedAt, attempts };
      const suppresses = suppress !== null;
      publish({ type, at, ...message, attempt, dueAt, reportedBy: null, detail, failure, suppresses });
    }
  }

  async function releaseLeases(messages: readonly LeasedMessage[]): Promise<void> {
    const leases = messages.map(({ id, attempts }) => ({ id, owner: node, attempts }));
    await recorder.record(
      leases.map(({ id }) => id),
      () => parts.release(leases, clock.now()),
    );
    dropFromMemory(messages);
  }

  async function parkLease(message: LeasedMessage): Promise<void> {
    const lease = { id: message.id, owner: node, attempts: message.attempts };
    await recorder.record([message.id], () => parts.park([lease], 'hold', clock.now()));
    dropFromMemory([message]);
  }

  function dropFromMemory(messages: readonly LeasedMessage[]): void {
    for (const message of messages) {
      leasedIds.delete(message.id);
      budget.release(getMemoryBytes(message));
    }
    dispatch();
  }

  function poll(): void {
    attemptRunner.abortOverdue();
    budget.setAttemptRate(endedAttemptCount);
    endedAttemptCount = 0;
    wake();
    cancelPoll = clock.after(POLL_MS, poll);
  }

  async function drain(timeoutMs: number): Promise<void> {
    mode.enter('draining');
    cancelPoll();
    attemptRunner.stop();
    const cancelTimeout = clock.after(timeoutMs, whenEmpty.resolve);
    dispatch();
    await whenEmpty.promise;
    cancelTimeout();
    mode.enter('stopped');
  }

  return {
    start() {
      mode.enter('running');
      poll();
    },
    leaseForNewMessage,
    returnLease(bytes) {
      newMessageLeaseCount -= 1;
      budget.release(bytes);
      dispatch();
    },
    offerMessage,
    wake,
    drain(timeoutMs) {
      drainPromise ??= drain(timeoutMs);
      return drainPromise;
    },
    listLeasedMessageIds: () => [...leasedIds],
    get inFlightCount() {
      return countInFlight();
    },
  };
}

// The attempt may precede the 201. If `submit` rejects, a stored message is recovered when its lease expires.

interface IntakeParts {
  /** `accept` of the store in a group commit. */
  readonly commit: (message: NewMessage) => Promise<AcceptResult>;
  readonly ages: Pick<AgeClock, 'getCutoff'>;
  /** Null on a node without the role `deliver`. */
  readonly dispatcher: Pick<Dispatcher, 'leaseForNewMessage' | 'returnLease' | 'offerMessage' | 'wake'> | null;
  readonly transport: Pick<Transport, 'answerLocally'>;
  readonly holds: Pick<HoldChecks, 'isHeldWhenAccepted'>;
}

export function createIntake({
  commit,
  ages,
  dispatcher,
  transport,
  holds,
}: IntakeParts): (message: NewMessage) => Promise<AcceptResult> {
  return async function submit(submitted) {
    const isHeld = holds.isHeldWhenAccepted(submitted);
    const lease = isHeld
      ? null
      : (dispatcher?.leaseForNewMessage(submitted.acceptedAt, getMemoryBytes(submitted)) ?? null);
    const idempotency =
      submitted.idempotency === null
        ? null
        : { ...submitted.idempotency, expiredBefore: ages.getCutoff(IDEMPOTENCY_KEY_TTL_MS) };
    const localAnswer = transport.answerLocally?.(submitted.recipient);
    const suppressedBy = localAnswer?.kind === 'suppression' ? localAnswer.by : null;
    const message: NewMessage = { ...submitted, idempotency, lease, suppressedBy, isHeld };
    let result: AcceptResult | null = null;
    try {
      result = await commit(message);
      return result;
    } finally {
      if (dispatcher !== null) passToDispatcher(dispatcher, message, result);
    }
  };
}

function passToDispatcher(
  dispatcher: NonNullable<IntakeParts['dispatcher']>,
  newMessage: NewMessage,
  result: AcceptResult | null,
): void {
  const accepted = result?.kind === 'accepted' ? result : null;
  if (newMessage.lease === null) {
    if (accepted?.state === 'queued' && newMessage.isHeld !== true) dispatcher.wake();
    return;
  }
  if (accepted?.state !== 'sending') {
    dispatcher.returnLease(getMemoryBytes(newMessage));
    return;
  }
  const { id, accountId, to, from, subject, message, acceptedAt, lease } = newMessage;
  const leased = { id, accountId, to, from, subject, message, acceptedAt, heldMs: 0, attempts: 1, lease };
  dispatcher.offerMessage(accepted.expiresAt === undefined ? leased : { ...leased, expiresAt: accepted.expiresAt });
}

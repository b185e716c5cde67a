/**
 * Runs the dispatcher of one node. The dispatcher receives new messages, claims due messages, makes delivery attempts
 * and settles the leases of the messages. This file contains neither SMTP nor SQL.
 *
 * An accepted message that is already leased passes through `submit`, `offerMessage` and `dispatch`. Any other message
 * passes through `claimMessages` and `dispatch`. Every message then passes through `deliverMessage`, `attemptOnce`
 * (`run` of attempt.ts), `buildLeaseEnd` and `settleLease` (`record` of leases.ts). The mode (leases.ts) determines
 * which functions may run.
 *
 * Guarantees: an attempt starts only if the remaining time of the lease is longer than the maximum duration of an
 * attempt. A lease stays in memory until its end is recorded. An attempt starts only while fewer than
 * `MAX_UNRECORDED_LEASE_ENDS` leases have an end that is not recorded yet. If the store cannot record the end of a
 * lease, no attempt starts until that end is recorded. No message is lost: after any failure, the message is recovered
 * when its lease expires.
 */
import { classifyAttempt, raisesAlarm } from '../classify/classify.ts';
import type { Publish } from '../model/events.ts';
import {
  type AcceptResult,
  createExpiryBeforeAttempt,
  createLocalComplaint,
  decideAttemptChange,
  IDEMPOTENCY_KEY_TTL_MS,
  isPastMaxAge,
  type Lease,
  type LeasedMessage,
  type LeaseRef,
  type NewMessage,
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

/**
 * The minimum remaining time of a lease at the start of an attempt. It covers the attempt and the recording of the
 * outcome.
 */
const MIN_REMAINING_LEASE_MS = MAX_ATTEMPT_MS + 2 * 60_000;
/**
 * No attempt starts while the ends of this many leases are not recorded yet. This number and the number of running
 * attempts limit the duplicates after a crash.
 */
export const MAX_UNRECORDED_LEASE_ENDS = 256;
/**
 * The maximum number of attempts beyond the concurrency of the transport. Their messages are composed and signed while
 * they wait for a slot, so that processors and connections are busy at the same time.
 */
const MAX_PREPARED_AHEAD = 64;
/** The poll interval. The poll finds every due message, even if a wake-up is missed. */
const POLL_MS = 1_000;

export interface DispatcherParts extends Omit<AttemptParts, 'onError'> {
  readonly node: string;
  readonly ages: Pick<AgeClock, 'toCurrentClock'>;
  /** Returns a random number in [0, 1) for the jitter of retries. */
  readonly random: () => number;
  readonly claim: (limits: ClaimLimits, lease: Lease, now: number) => Promise<ClaimedMessages>;
  readonly settle: (settlement: Settlement) => Promise<SettleResult>;
  readonly release: (batch: readonly LeaseRef[], now: number) => Promise<readonly SettleResult[]>;
  /**
   * The recipient of the test message of `doctor --loop`. The outcome of a test message neither suppresses an address
   * nor counts towards the reputation.
   */
  readonly loopRecipient?: string | null;
  /**
   * Returns true for a notification to operators. The outcome of a notification does not count towards the reputation,
   * and a notification is never held as `uncertain`. Therefore a notification does not cause another notification. The
   * default function returns false.
   */
  readonly isNotification?: (message: Pick<LeasedMessage, 'from' | 'to'>) => boolean;
  /** Called with each change of the state of a message, before the store writes the change. */
  readonly onChange?: (message: LeasedMessage, change: StateChange) => void;
  readonly publish: Publish;
}

export interface Dispatcher {
  /** Starts claims and attempts. Throws if the dispatcher was already started or drained. */
  start(): void;
  /**
   * Called before a new message is accepted. Returns a lease for the message, or null if this node cannot send the
   * message immediately. The message needs `bytes` of memory (`getMemoryBytes`). The caller must end each lease with
   * `offerMessage` or `returnLease`.
   */
  leaseForNewMessage(now: number, bytes: number): Lease | null;
  /** Releases the unused lease of a message that was refused or not stored. The message needs `bytes` of memory. */
  returnLease(bytes: number): void;
  /** Queues a message that was accepted with a lease from `leaseForNewMessage`. */
  offerMessage(message: LeasedMessage): void;
  /** Wakes the dispatcher, because a message in the store may be due. */
  wake(): void;
  /**
   * Starts no further attempt, releases unused leases, and waits up to `timeoutMs` until the running attempts have
   * ended and their outcomes are recorded. Every later call returns the same promise.
   */
  drain(timeoutMs: number): Promise<void>;
  /** Returns the ids of all messages that this node has leased. */
  listLeasedMessageIds(): readonly string[];
  /** The sum of the running attempts and the leases whose end is not recorded yet. */
  readonly inFlightCount: number;
}

type LeaseEnd = Pick<Settlement, 'refundAttempt' | 'excludedFromReputation'> & {
  readonly changes: readonly RecordedChange[];
};

/** The action on the lease after `attemptOnce`. */
type NextStep =
  /** The attempt has an outcome, or the message has exceeded its maximum age. */
  | { readonly kind: 'settle'; readonly end: LeaseEnd }
  /** The message must not be sent now, so its lease is released. */
  | { readonly kind: 'release' }
  /**
   * The circuit breaker allows no attempt now. The message returns to the queue in memory, and `dispatch` releases its
   * lease unless a probe is due.
   */
  | { readonly kind: 'wait' };

/**
 * The status of the due messages in the store. `empty`: the last claim left no due message in the store, or failed.
 * `due`: messages may be due, so new messages are stored without a lease. `claiming`: a claim is running.
 * `claiming-woken`: a wake-up arrived while a claim was running.
 */
type Backlog = 'empty' | 'due' | 'claiming' | 'claiming-woken';

/** Creates the dispatcher of one node. The dispatcher claims no message before `start` is called. */
export function createDispatcher(parts: DispatcherParts): Dispatcher {
  const { node, clock, ages, policy, transport, breaker, publish, isNotification = () => false } = parts;
  const onError = (operation: string, error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation, error });
  const mode = createModeHolder();
  const readyQueue = createReadyQueue();
  const budget = createLeaseBudget();
  const attemptRunner = createAttemptRunner({ ...parts, onError });
  const recorder = createRecorder({ clock, isStopped: () => mode.currentMode === 'stopped', onError });
  /** The ids of leased messages, from the start of the lease until its end is recorded. */
  const leasedIds = new Set<string>();
  /** The number of leases for messages whose acceptance is in progress. */
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

  /**
   * Starts attempts, claims messages or releases leases, as the mode and the limits allow. Called after every change of
   * the mode or of a count that is limited.
   */
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

  /**
   * Returns true if an attempt may start. While the circuit breaker is open, no attempt may start until the probe is
   * due. When the probe is due, only one attempt may start.
   */
  function canStartAttempt(): boolean {
    if (runningAttemptCount >= transport.concurrency + MAX_PREPARED_AHEAD) return false;
    if (recorder.isFailing || recorder.pendingCount >= MAX_UNRECORDED_LEASE_ENDS) return false;
    const now = clock.now();
    const retryAt = breaker.getRetryAt(now);
    return retryAt === null || (retryAt <= now && runningAttemptCount === 0);
  }

  /** Returns true if the probe is due, or if the circuit breaker is closed. */
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
    try {
      const {
        messages: claimedMessages,
        suppressed,
        hasMore,
      } = await parts.claim(limits, { owner: node, until: now + LEASE_MS }, now);
      for (const message of claimedMessages) {
        budget.reserve(getMemoryBytes(message));
        leasedIds.add(message.id);
        readyQueue.enqueue(message);
      }
      for (const { id, accountId, to } of suppressed)
        publish({ type: 'message.suppressed', at: now, id, accountId, to });
      backlog = hasMore || wasWokenDuringClaim() ? 'due' : 'empty';
    } catch (error) {
      onError('claim', error);
      // After a failed claim, the next poll starts another claim.
      backlog = 'empty';
    }
    dispatch();
  }

  const wasWokenDuringClaim = () => backlog === 'claiming-woken';

  /**
   * Returns the limits of the next claim, or null if no claim may start. If the circuit breaker is not closed, a claim
   * leases one message for the probe, and only if no message is in memory.
   */
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
    const nextStep = await attemptOnce(message);
    runningAttemptCount -= 1;
    endedAttemptCount += 1;
    switch (nextStep.kind) {
      case 'settle':
        void settleLease(message, nextStep.end);
        break;
      case 'release':
        void releaseLeases([message]);
        break;
      case 'wait':
        readyQueue.enqueue(message);
        break;
    }
    // The next attempt may start before the outcome of this attempt is committed.
    dispatch();
  }

  async function attemptOnce(message: LeasedMessage): Promise<NextStep> {
    const now = clock.now();
    if (isPastMaxAge(ages.toCurrentClock(message.acceptedAt), policy, now)) {
      return { kind: 'settle', end: { changes: [createExpiryBeforeAttempt(node, now)], refundAttempt: true } };
    }
    if (message.lease.until - now < MIN_REMAINING_LEASE_MS || parts.mustNotAttempt(message)) return { kind: 'release' };
    const result = await attemptRunner.run(message);
    switch (result.kind) {
      case 'attempted':
        return { kind: 'settle', end: buildLeaseEnd(message, result.attempt) };
      case 'not-attempted':
        return { kind: 'release' };
      case 'circuit-open':
        return { kind: 'wait' };
    }
  }

  function buildLeaseEnd(message: LeasedMessage, attempt: Attempt): LeaseEnd {
    const now = clock.now();
    const isLoopTest = message.to === parts.loopRecipient;
    const acceptedAt = ages.toCurrentClock(message.acceptedAt);
    const computedChange = decideAttemptChange(
      { ...message, acceptedAt },
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
    const followingChanges = hasComplaint ? [createLocalComplaint(now, localAnswer.by, localAnswer.detail)] : [];
    return {
      changes: [change, ...followingChanges],
      refundAttempt: false,
      excludedFromReputation: isLoopTest || isNotification(message) || localAnswer !== null,
    };
  }

  async function settleLease(message: LeasedMessage, end: LeaseEnd): Promise<void> {
    const settlement: Settlement = { id: message.id, owner: node, attempts: message.attempts, ...end };
    const result = await recorder.record([message.id], () => parts.settle(settlement));
    // The events are published before a drain can end, because subscribers write their totals at shutdown.
    publishLeaseEnd(message, end, result);
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

  /**
   * Publishes the events of a lease end. `result` is null if the dispatcher stopped before the store recorded the end
   * of the lease.
   */
  function publishLeaseEnd(
    { id, accountId, to, from, attempts, acceptedAt }: LeasedMessage,
    end: LeaseEnd,
    result: SettleResult | null,
  ): void {
    switch (result) {
      case 'settled':
        for (const { type, dueAt, suppress, event } of end.changes) {
          const { at, attempt, detail, failure } = event;
          const commonFields = { id, accountId, to, from, acceptedAt, attempts, attempt, dueAt, reportedBy: null };
          publish({ type, at, ...commonFields, detail, failure, suppresses: suppress !== null });
        }
        return;
      case 'lost':
        publish({ type: 'node.lease_lost', at: clock.now(), id, accountId, to, attempts });
        return;
      case null:
        return;
    }
  }

  /** Ends the leases of messages for which no attempt was made. */
  async function releaseLeases(messages: readonly LeasedMessage[]): Promise<void> {
    const leases = messages.map(({ id, attempts: attemptCount }) => ({ id, owner: node, attempts: attemptCount }));
    await recorder.record(
      leases.map(({ id }) => id),
      () => parts.release(leases, clock.now()),
    );
    dropFromMemory(messages);
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

// The intake accepts a message from the listener. It requests a lease from the dispatcher, which grants the lease if
// this node can send the message immediately. The intake then commits the message in a batch with other messages, and
// passes the message to the dispatcher in memory. Guarantees: `submit` resolves after the commit is synced. The
// dispatcher receives the message before `submit` resolves, so the attempt may start before the client receives the
// 201. If the commit fails, `submit` returns the lease to the dispatcher and rejects. If the message was stored
// although the commit reported a failure, the message is recovered when its lease expires.

interface IntakeParts {
  /** Stores the message in a group commit (the `accept` operation of the store). */
  readonly commit: (message: NewMessage) => Promise<AcceptResult>;
  readonly ages: Pick<AgeClock, 'getCutoff'>;
  /** The dispatcher of this node. Null on a node without the role `deliver`. */
  readonly dispatcher: Pick<Dispatcher, 'leaseForNewMessage' | 'returnLease' | 'offerMessage' | 'wake'> | null;
  /** The transport. An answer that the transport gives without a next hop may suppress the message. */
  readonly transport: Pick<Transport, 'answerLocally'>;
}

/** Creates the `submit` function of the listener. If `submit` rejects, the message may or may not be stored. */
export function createIntake({
  commit,
  ages,
  dispatcher,
  transport,
}: IntakeParts): (message: NewMessage) => Promise<AcceptResult> {
  return async function submit(submittedMessage) {
    const lease =
      dispatcher === null
        ? null
        : dispatcher.leaseForNewMessage(submittedMessage.acceptedAt, getMemoryBytes(submittedMessage));
    const { idempotency: idempotencyRequest } = submittedMessage;
    const idempotency =
      idempotencyRequest === null
        ? null
        : { ...idempotencyRequest, expiredBefore: ages.getCutoff(IDEMPOTENCY_KEY_TTL_MS) };
    const localAnswer = transport.answerLocally?.(submittedMessage.recipient);
    const suppressedBy = localAnswer?.kind === 'suppression' ? localAnswer.by : null;
    const message: NewMessage = { ...submittedMessage, idempotency, lease, suppressedBy };
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
  const state = result?.kind === 'accepted' ? result.state : null;
  if (newMessage.lease === null) {
    if (state === 'queued') dispatcher.wake();
    return;
  }
  if (state !== 'sending') {
    dispatcher.returnLease(getMemoryBytes(newMessage));
    return;
  }
  const { id, accountId, to, from, subject, message, acceptedAt, lease } = newMessage;
  dispatcher.offerMessage({ id, accountId, to, from, subject, message, acceptedAt, attempts: 1, lease });
}

/**
 * The dispatcher of one node: receives new messages, claims due ones, makes delivery attempts and settles them. It contains no SMTP and
 * no SQL.
 *
 * The path of a message: `submit` → `offer` (accepted and already leased) → `dispatch`, or `claim` → `dispatch`; then `deliver` →
 * `attemptOnce` (`run` of attempt.ts) → `leaseEndAfter` → `settle` (`record` of leases.ts). The functions stand in this order. The mode
 * (leases.ts) decides which of them may run.
 *
 * Guarantees: an attempt begins only under a lease that lasts longer than the attempt. A lease stays in memory until its end is
 * recorded. Attempts continue while a limited number of outcomes are not recorded yet; once the record of one fails, no attempt begins.
 * After a failure anywhere the message is recovered at the end of its lease; no message is dropped.
 */
import { raisesAlarm } from '../classify/classify.ts';
import type { Publish } from '../model/events.ts';
import {
  type AcceptResult,
  decideAttemptChange,
  expiredBeforeAttempt,
  IDEMPOTENCY_KEY_TTL_MS,
  isPastMaxAge,
  type Lease,
  type LeasedMessage,
  type LeaseRef,
  localComplaint,
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
import { createLeaseBudget, createModeHolder, createReadyQueue, createRecorder, memoryBytesOf } from './leases.ts';
import type { AgeClock } from './membership.ts';

/** An attempt begins only under a lease with this much time left: for the attempt, and for the record of its outcome. */
const MIN_LEASE_LEFT_MS = MAX_ATTEMPT_MS + 2 * 60_000;
/** Together with the running attempts, this limits the number of duplicates after a crash. */
export const MAX_UNRECORDED_OUTCOMES = 256;
/**
 * Attempts beyond the concurrency of the transport: their messages are composed and signed while they wait for a slot, so that
 * processors and connections are busy at the same time.
 */
const MAX_PREPARED_AHEAD = 64;
/** Wake-ups are hints. The poll finds what no wake-up reported. */
const POLL_MS = 1_000;

export interface DispatcherParts extends Omit<AttemptParts, 'onError'> {
  readonly node: string;
  readonly ages: Pick<AgeClock, 'toCurrentClock'>;
  /** The jitter of retries, in [0, 1). */
  readonly random: () => number;
  readonly claim: (limits: ClaimLimits, lease: Lease, now: number) => Promise<ClaimedMessages>;
  readonly settle: (settlement: Settlement) => Promise<SettleResult>;
  readonly release: (batch: readonly LeaseRef[], now: number) => Promise<readonly SettleResult[]>;
  /** The recipient of `doctor --loop`. Its outcomes suppress no address and count in no reputation. */
  readonly loopRecipient?: string | null;
  /** Called with each change before the store writes it. */
  readonly onChange?: (message: LeasedMessage, change: StateChange) => void;
  readonly publish: Publish;
}

export interface Dispatcher {
  /** Begins to claim and to make attempts. Throws where it was started or drained before. */
  start(): void;
  /**
   * A lease for a message of `bytes` (`memoryBytesOf`) that is about to be accepted, or null where this node cannot send it at once.
   * Each lease is passed back by `offer` or `returnLease`.
   */
  leaseForNewMessage(now: number, bytes: number): Lease | null;
  /** Returns the lease of a message of `bytes` that was refused or not stored. */
  returnLease(bytes: number): void;
  /** Passes on a message that was accepted under such a lease. */
  offer(message: LeasedMessage): void;
  /** Wake-up: a message may be due in the store. */
  wake(): void;
  /**
   * Begins no further attempt, releases unused leases, and waits up to `timeoutMs` for the running attempts and the record of their
   * outcomes. A further call waits for the same.
   */
  drain(timeoutMs: number): Promise<void>;
  /** The ids of all messages that this node has a lease for. */
  leasedMessageIds(): readonly string[];
  /** Running attempts, and outcomes that are not recorded yet. */
  readonly inFlight: number;
}

type LeaseEnd = Pick<Settlement, 'refundAttempt' | 'excludedFromReputation'> & {
  readonly changes: readonly RecordedChange[];
};

/** What happens to a lease after `attemptOnce`. */
type NextStep =
  /** There is an outcome, or the message is past its maximum age. */
  | { readonly kind: 'settle'; readonly end: LeaseEnd }
  /** The message must not be sent now. */
  | { readonly kind: 'release' }
  /** The circuit breaker is open: the message waits in memory. */
  | { readonly kind: 'wait' };

/**
 * Whether the store has due messages, as far as this node knows. `due`: it may have some, and new messages are queued behind them.
 * `claiming`: a claim is running. `claiming-again`: a claim is running, and a wake-up has come since it began.
 */
type Backlog = 'empty' | 'due' | 'claiming' | 'claiming-again';

export function createDispatcher(parts: DispatcherParts): Dispatcher {
  const { node, clock, ages, policy, transport, breaker, publish } = parts;
  const onError = (operation: string, error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation, error });
  const mode = createModeHolder();
  const ready = createReadyQueue();
  const budget = createLeaseBudget();
  const attempts = createAttemptRunner({ ...parts, onError });
  const recorder = createRecorder({ clock, isStopped: () => mode.current === 'stopped', onError });
  /** From the begin of each lease to the record of its end. */
  const leasedIds = new Set<string>();
  /** Leases for messages that are being accepted. */
  let leasesForNewMessages = 0;
  let runningAttempts = 0;
  let attemptsEndedSincePoll = 0;
  let backlog: Backlog = 'due';
  let cancelPoll: () => void = () => undefined;
  const whenEmpty = Promise.withResolvers<void>();
  let drained: Promise<void> | null = null;

  function leaseForNewMessage(now: number, bytes: number): Lease | null {
    if (mode.current !== 'running' || backlog !== 'empty') return null;
    if (!budget.fits(bytes) || breaker.retryAt(now) !== null) return null;
    leasesForNewMessages += 1;
    budget.reserve(bytes);
    return { owner: node, until: now + LEASE_MS };
  }

  function offer(message: LeasedMessage): void {
    leasesForNewMessages -= 1;
    leasedIds.add(message.id);
    ready.enqueue(message);
    dispatch();
  }

  /** Begins, claims or releases what the mode and the limits allow now. Called after every change of either. */
  function dispatch(): void {
    switch (mode.current) {
      case 'starting':
        return;
      case 'running':
        while (ready.size > 0 && canStartAttempt()) {
          const message = ready.dequeue();
          if (message !== undefined) void deliver(message);
        }
        // While the circuit breaker is open for longer, messages wait in the store, where an operator sees and cancels them.
        if (ready.size > 0 && !isProbeDue()) void release(ready.dequeueAll());
        if (backlog === 'due') void claim();
        return;
      case 'draining':
        if (ready.size > 0) void release(ready.dequeueAll());
        if (isEmpty()) whenEmpty.resolve();
        return;
      case 'stopped':
        if (ready.size > 0) void release(ready.dequeueAll());
        return;
    }
  }

  /** While the circuit breaker is open, no attempt begins until the probe is due; then one begins. */
  function canStartAttempt(): boolean {
    if (runningAttempts >= transport.concurrency + MAX_PREPARED_AHEAD) return false;
    if (recorder.failing || recorder.pending >= MAX_UNRECORDED_OUTCOMES) return false;
    const now = clock.now();
    const retryAt = breaker.retryAt(now);
    return retryAt === null || (retryAt <= now && runningAttempts === 0);
  }

  /** True also while the circuit breaker is closed. */
  function isProbeDue(): boolean {
    const now = clock.now();
    const retryAt = breaker.retryAt(now);
    return retryAt === null || retryAt <= now;
  }

  function isEmpty(): boolean {
    return inFlight() === 0 && ready.size === 0 && leasesForNewMessages === 0 && !isClaiming();
  }

  const inFlight = () => runningAttempts + recorder.pending;
  const isClaiming = () => backlog === 'claiming' || backlog === 'claiming-again';

  async function claim(): Promise<void> {
    const now = clock.now();
    const limits = nextClaimLimits(now);
    if (limits === null) return;
    backlog = 'claiming';
    try {
      const {
        messages: mails,
        suppressed,
        hasMore: more,
      } = await parts.claim(limits, { owner: node, until: now + LEASE_MS }, now);
      for (const message of mails) {
        budget.reserve(memoryBytesOf(message));
        leasedIds.add(message.id);
        ready.enqueue(message);
      }
      for (const { id, accountId, to } of suppressed)
        publish({ type: 'message.suppressed', at: now, id, accountId, to });
      backlog = more || wasWokenDuringClaim() ? 'due' : 'empty';
    } catch (error) {
      onError('claim', error);
      // The next poll claims.
      backlog = 'empty';
    }
    dispatch();
  }

  const wasWokenDuringClaim = () => backlog === 'claiming-again';

  /** While the circuit breaker is not closed, one message for the probe, and only where no message is in memory. */
  function nextClaimLimits(now: number): ClaimLimits | null {
    const limits = budget.claimLimits(ready.size);
    const retryAt = breaker.retryAt(now);
    if (limits === null || retryAt === null) return limits;
    return retryAt > now || runningAttempts > 0 || ready.size > 0 ? null : { ...limits, messages: 1 };
  }

  function wake(): void {
    backlog = isClaiming() ? 'claiming-again' : 'due';
    dispatch();
  }

  async function deliver(message: LeasedMessage): Promise<void> {
    runningAttempts += 1;
    const next = await attemptOnce(message);
    runningAttempts -= 1;
    attemptsEndedSincePoll += 1;
    switch (next.kind) {
      case 'settle':
        void settle(message, next.end);
        break;
      case 'release':
        void release([message]);
        break;
      case 'wait':
        ready.enqueue(message);
        break;
    }
    // The next attempt begins before this outcome is committed.
    dispatch();
  }

  async function attemptOnce(message: LeasedMessage): Promise<NextStep> {
    const now = clock.now();
    if (isPastMaxAge(ages.toCurrentClock(message.acceptedAt), policy, now)) {
      return { kind: 'settle', end: { changes: [expiredBeforeAttempt(node, now)], refundAttempt: true } };
    }
    if (message.lease.until - now < MIN_LEASE_LEFT_MS || parts.mustNotAttempt(message)) return { kind: 'release' };
    const result = await attempts.run(message);
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
    const computedChange = decideAttemptChange({ ...message, acceptedAt }, attempt, policy, node, now, parts.random());
    const change = isLoopTest ? { ...computedChange, suppress: null } : computedChange;
    parts.onChange?.(message, change);
    publishAttemptEnd(message, attempt, now);
    const localAnswer = transport.localAnswer?.(message.to) ?? null;
    const complains = attempt.outcome.kind === 'delivered' && localAnswer?.kind === 'complaint';
    const followingChanges = complains ? [localComplaint(now, localAnswer.by, localAnswer.detail)] : [];
    return {
      changes: [change, ...followingChanges],
      refundAttempt: false,
      excludedFromReputation: isLoopTest || localAnswer !== null,
    };
  }

  async function settle(message: LeasedMessage, end: LeaseEnd): Promise<void> {
    const settlement: Settlement = { id: message.id, owner: node, attempts: message.attempts, ...end };
    const result = await recorder.record([message.id], () => parts.settle(settlement));
    // Before a drain can end, since subscribers write their totals at the shutdown.
    publishLeaseEnd(message, end, result);
    dropFromMemory([message]);
  }

  function publishAttemptEnd({ id, accountId, to, attempts }: LeasedMessage, attempt: Attempt, at: number): void {
    publish({ type: 'attempt.ended', at, id, accountId, to, attempts, attempt });
    const { outcome } = attempt;
    if (raisesAlarm(outcome)) {
      const { reason } = outcome;
      publish({ type: 'attempt.alarm_raised', at, id, accountId, to, attempts, attempt, reason });
    }
  }

  /** `answer` is null where the end was not recorded before the stop. */
  function publishLeaseEnd(
    { id, accountId, to, attempts, acceptedAt }: LeasedMessage,
    end: LeaseEnd,
    result: SettleResult | null,
  ): void {
    switch (result) {
      case 'settled':
        for (const { type, dueAt, suppress, event } of end.changes) {
          const { at, attempt, detail } = event;
          const commonFields = { id, accountId, to, acceptedAt, attempts, attempt, dueAt, reportedBy: null, detail };
          publish({ type, at, ...commonFields, suppresses: suppress !== null });
        }
        return;
      case 'lost':
        publish({ type: 'node.lease_lost', at: clock.now(), id, accountId, to, attempts });
        return;
      case null:
        return;
    }
  }

  /** Ends leases under which no attempt was made. */
  async function release(messages: readonly LeasedMessage[]): Promise<void> {
    const leases = messages.map(({ id, attempts: count }) => ({ id, owner: node, attempts: count }));
    await recorder.record(
      leases.map(({ id }) => id),
      () => parts.release(leases, clock.now()),
    );
    dropFromMemory(messages);
  }

  function dropFromMemory(messages: readonly LeasedMessage[]): void {
    for (const message of messages) {
      leasedIds.delete(message.id);
      budget.release(memoryBytesOf(message));
    }
    dispatch();
  }

  function poll(): void {
    attempts.abortOverdue();
    budget.setAttemptRate(attemptsEndedSincePoll);
    attemptsEndedSincePoll = 0;
    wake();
    cancelPoll = clock.after(POLL_MS, poll);
  }

  async function drain(timeoutMs: number): Promise<void> {
    mode.enter('draining');
    cancelPoll();
    attempts.stop();
    const cancel = clock.after(timeoutMs, whenEmpty.resolve);
    dispatch();
    await whenEmpty.promise;
    cancel();
    mode.enter('stopped');
  }

  return {
    start() {
      mode.enter('running');
      poll();
    },
    leaseForNewMessage,
    returnLease(bytes) {
      leasesForNewMessages -= 1;
      budget.release(bytes);
      dispatch();
    },
    offer,
    wake,
    drain(timeoutMs) {
      drained ??= drain(timeoutMs);
      return drained;
    },
    leasedMessageIds: () => [...leasedIds],
    get inFlight() {
      return inFlight();
    },
  };
}

// Accepts a message from the listener: gets a lease where this node can send it at once, commits it in a batch with others, and passes
// it to the dispatcher from memory.
//
// Guarantees: `submit` resolves after the sync. The dispatcher has the message before `submit` resolves, so the attempt may begin before
// the client has the 201. Fails: rejects where the batch was not committed; the lease is then returned.

interface IntakeParts {
  /** Group commit over the store's `accept`. */
  readonly commit: (message: NewMessage) => Promise<AcceptResult>;
  readonly ages: Pick<AgeClock, 'cutoffFor'>;
  /** Null on a node that does not deliver. */
  readonly dispatcher: Pick<Dispatcher, 'leaseForNewMessage' | 'returnLease' | 'offer' | 'wake'> | null;
  /** A local answer of the transport may suppress the message. */
  readonly transport: Pick<Transport, 'localAnswer'>;
}

/** Makes the listener's `submit`. After a rejection the message may or may not be stored. */
export function createIntake({
  commit,
  ages,
  dispatcher,
  transport,
}: IntakeParts): (message: NewMessage) => Promise<AcceptResult> {
  return async function submit(submitted) {
    const lease =
      dispatcher === null ? null : dispatcher.leaseForNewMessage(submitted.acceptedAt, memoryBytesOf(submitted));
    const { idempotency: idempotencyRequest } = submitted;
    const idempotency =
      idempotencyRequest === null
        ? null
        : { ...idempotencyRequest, expiredBefore: ages.cutoffFor(IDEMPOTENCY_KEY_TTL_MS) };
    const localAnswer = transport.localAnswer?.(submitted.recipient);
    const suppressedBy = localAnswer?.kind === 'suppression' ? localAnswer.by : null;
    const message: NewMessage = { ...submitted, idempotency, lease, suppressedBy };
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
    dispatcher.returnLease(memoryBytesOf(newMessage));
    return;
  }
  const { id, accountId, to, from, subject, message, acceptedAt, lease } = newMessage;
  dispatcher.offer({ id, accountId, to, from, subject, message, acceptedAt, attempts: 1, lease });
}

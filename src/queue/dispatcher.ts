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
  createMovedChange,
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
  toAcceptedMembers,
} from '../model/message.ts';
import type { Attempt } from '../model/outcome.ts';
import type { ClaimedMessages, ClaimLimits } from '../store/contract.ts';
import type { Transport } from '../transports/transport.ts';
import { type AttemptParts, createAttemptRunner, LEASE_MS } from './attempt.ts';
import {
  createLeaseBudget,
  createModeHolder,
  createReadyQueue,
  createRecorder,
  getMemoryBytes,
  MAX_LEASED_BYTES,
} from './leases.ts';
import type { AgeClock } from './membership.ts';
import type { HoldChecks } from './parking.ts';
import { MAX_ATTEMPT_MS } from './route-health.ts';
import type { Route, Routes } from './routes.ts';

const MIN_REMAINING_LEASE_MS = MAX_ATTEMPT_MS + 2 * 60_000;
/** This many unrecorded ends stop attempts, because they and the running attempts may be duplicates after a crash. */
export const MAX_UNRECORDED_LEASE_ENDS = 256;
/** Messages beyond the concurrency, which are composed and signed while they wait for a slot. */
const MAX_PREPARED_AHEAD = 64;
/** The poll finds every due message, even if a wake-up is missed. */
const POLL_MS = 1_000;

/**
 * A lane that has been too full for a claim for so long is slow. Then claims pass over its messages, which are parked,
 * to those of the other routes: at once while there are such, otherwise at pauses that double.
 */
const MIN_BLOCKED_MS = 5_000;
const MIN_SKIP_PAUSE_MS = 100;
const MAX_SKIP_PAUSE_MS = 10_000;

export interface DispatcherParts extends Omit<AttemptParts, 'onError' | 'isPaused'> {
  readonly node: string;
  readonly ages: Pick<AgeClock, 'toCurrentClock'>;
  readonly random: () => number;
  readonly claim: (limits: ClaimLimits, lease: Lease, now: number) => Promise<ClaimedMessages>;
  readonly settle: (settlement: Settlement) => Promise<SettleResult>;
  readonly release: (batch: readonly LeaseRef[], now: number) => Promise<readonly SettleResult[]>;
  readonly park: (batch: readonly LeaseRef[], reason: ParkReason, now: number) => Promise<readonly SettleResult[]>;
  readonly routes: Routes;
  /** Messages that `canPlace` refused because their lane was full may return. */
  readonly onRoom?: () => void;
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
  /** False if a message that waits for a route would wait again. */
  canPlace(message: Pick<LeasedMessage, 'id' | 'accountId' | 'from'>): boolean;
  /** The policies, the pauses or the health of the routes have changed. */
  reroute(): void;
  drain(timeoutMs: number): Promise<void>;
  listLeasedMessageIds(): readonly string[];
  readonly inFlightCount: number;
}

interface Lane {
  readonly route: Route;
  readonly runner: ReturnType<typeof createAttemptRunner>;
  readonly ready: ReturnType<typeof createReadyQueue>;
  runningCount: number;
  /** Of the messages that wait or run. */
  leasedBytes: number;
  /** Messages that `canPlace` let into the queue since the last claim. */
  expectedCount: number;
  /** `canPlace` refused a message although the route takes messages. */
  hasRefused: boolean;
}

const EMPTY_LANE = { runningCount: 0, leasedBytes: 0, expectedCount: 0, hasRefused: false };

type RecordedSettlement = Settlement & { readonly changes: readonly RecordedChange[] };

/** In the store. `due`: new messages get no lease. `claiming-woken`: woken during a claim. */
type Backlog = 'empty' | 'due' | 'claiming' | 'claiming-woken';

export function createDispatcher(parts: DispatcherParts): Dispatcher {
  const { node, clock, ages, policy, routes, publish, isNotification = () => false } = parts;
  const onError = (operation: string, error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation, error });
  const mode = createModeHolder();
  const budget = createLeaseBudget();
  const lanes = new Map(routes.list.map((route) => [route.name, createLane(route)]));
  const laneList = [...lanes.values()];
  const recorder = createRecorder({ clock, isStopped: () => mode.currentMode === 'stopped', onError });
  const leasedIds = new Set<string>();
  let newMessageLeaseCount = 0;
  /** Why a message is not at the first route of its policy, by id. */
  const reasons = new Map<string, string>();
  let endedAttemptCount = 0;
  let backlog: Backlog = 'due';
  let lastClaimAt = 0;
  let lastSkipAt = 0;
  let skipPauseMs = MIN_SKIP_PAUSE_MS;
  let cancelPoll: () => void = () => undefined;
  const whenEmpty = Promise.withResolvers<void>();
  let drainPromise: Promise<void> | null = null;

  function createLane(route: Route): Lane {
    const isPaused = () => routes.isPaused(route.name, clock.now());
    const runner = createAttemptRunner(route, { ...parts, onError, isPaused });
    return { route, runner, ready: createReadyQueue(), ...EMPTY_LANE };
  }

  function leaseForNewMessage(now: number, bytes: number): Lease | null {
    if (mode.currentMode !== 'running' || backlog !== 'empty') return null;
    if (!budget.hasRoomFor(bytes) || !laneList.some((lane) => isOpen(lane, now))) return null;
    newMessageLeaseCount += 1;
    budget.reserve(bytes);
    return { owner: node, until: now + LEASE_MS };
  }

  function offerMessage(message: LeasedMessage): void {
    newMessageLeaseCount -= 1;
    leasedIds.add(message.id);
    place([message]);
    dispatch();
  }

  /**
   * Each to the lane of its route. Messages without a usable route wait in the store, like those of a full lane. Returns
   * how many wait in a lane.
   */
  function place(messages: readonly LeasedMessage[]): number {
    const now = clock.now();
    const parked: LeasedMessage[] = [];
    const released: LeasedMessage[] = [];
    for (const message of messages) {
      const choice = routes.choose(message, now);
      const lane = choice.kind === 'route' ? lanes.get(choice.route) : undefined;
      const dealt = laneList.length > 1 && choice.kind === 'route' ? { ...message, route: choice.route } : message;
      if (lane !== undefined && choice.kind === 'route' && !isFull(lane, now)) {
        if (choice.because === null) reasons.delete(message.id);
        else reasons.set(message.id, choice.because);
        count(lane, dealt, 1);
        lane.ready.enqueue(dealt);
      } else if (laneList.length > 1 && routes.isAnyUsable(now)) parked.push(dealt);
      else released.push(dealt);
    }
    if (parked.length > 0) void parkLeases(parked, 'route');
    if (released.length > 0) void endLeases(released, parts.release);
    return messages.length - parked.length - released.length;
  }

  /** Of the messages that wait for the route or are attempted there. */
  function count(lane: Lane, message: LeasedMessage, change: 1 | -1): void {
    routes.countWaiting(lane.route.name, change);
    lane.leasedBytes += change * getMemoryBytes(message);
  }

  const countLeased = ({ ready, runningCount }: Lane) => ready.size + runningCount;
  const listOpenLanes = (now: number) => laneList.filter((lane) => isOpen(lane, now));

  /** A slow route must not fill the memory that other routes need. */
  function isFull(lane: Lane, now: number): boolean {
    if (laneList.length === 1) return false;
    const laneCount = Math.max(1, listOpenLanes(now).length);
    return countLeased(lane) >= getLaneLimit(now) || lane.leasedBytes >= MAX_LEASED_BYTES / laneCount;
  }

  function dispatch(): void {
    switch (mode.currentMode) {
      case 'starting':
        return;
      case 'running': {
        // While the circuit breaker is open, messages wait in the store, where an operator can see and cancel them, or
        // take another route.
        for (const lane of laneList) if (lane.ready.size > 0 && !isProbeDue(lane)) place(takeAll(lane));
        for (const lane of laneList) startAttempts(lane);
        if (backlog === 'due') void claimMessages();
        reportRoom();
        return;
      }
      case 'draining':
        releaseWaiting();
        if (isEmpty()) whenEmpty.resolve();
        return;
      case 'stopped':
        releaseWaiting();
        return;
    }
  }

  function startAttempts(lane: Lane): void {
    while (lane.ready.size > 0 && canStartAttempt(lane)) {
      const message = takeNext(lane);
      if (message !== undefined) void deliverMessage(lane, message);
    }
  }

  function takeNext(lane: Lane): LeasedMessage | undefined {
    const message = lane.ready.dequeue();
    if (message !== undefined) count(lane, message, -1);
    return message;
  }

  function takeAll(lane: Lane): readonly LeasedMessage[] {
    const messages = lane.ready.dequeueAll();
    for (const message of messages) count(lane, message, -1);
    return messages;
  }

  function releaseWaiting(): void {
    const messages = laneList.flatMap(takeAll);
    if (messages.length > 0) void endLeases(messages, parts.release);
  }

  function canStartAttempt({ route, runningCount }: Lane): boolean {
    const { name, transport, health } = route;
    const now = clock.now();
    const concurrency = health.getConcurrency(transport.concurrency, now);
    if (concurrency === 0 || runningCount >= concurrency + (health.isThrottled ? 0 : MAX_PREPARED_AHEAD)) return false;
    if (recorder.isFailing || recorder.pendingCount >= MAX_UNRECORDED_LEASE_ENDS) return false;
    if (routes.isPaused(name, now)) return false;
    const retryAt = health.getRetryAt(now);
    return retryAt === null || (retryAt <= now && runningCount === 0);
  }

  /** True also while the circuit breaker is closed. */
  function isProbeDue({ route }: Lane): boolean {
    const now = clock.now();
    const retryAt = route.health.getRetryAt(now);
    return (retryAt === null || retryAt <= now) && !routes.isPaused(route.name, now);
  }

  const isOpen = ({ route }: Lane, now: number) =>
    route.health.getRetryAt(now) === null && !routes.isPaused(route.name, now);

  function canPlace(message: Pick<LeasedMessage, 'id' | 'accountId' | 'from'>): boolean {
    const now = clock.now();
    const name = routes.findRoute(message, now);
    const lane = name === null ? undefined : lanes.get(name);
    if (lane === undefined) return false;
    if (isFull(lane, now) || countLeased(lane) + lane.expectedCount >= getLaneLimit(now) / 2) {
      lane.hasRefused = true;
      return false;
    }
    lane.expectedCount += 1;
    return true;
  }

  const getLaneLimit = (now: number) => Math.ceil(budget.leaseLimit / Math.max(1, listOpenLanes(now).length));

  /** Messages that were parked because a lane was full can return. */
  function reportRoom(): void {
    if (laneList.length === 1) return;
    const limit = getLaneLimit(clock.now());
    for (const lane of laneList) {
      if (!lane.hasRefused || countLeased(lane) + lane.expectedCount >= limit / 4) continue;
      lane.hasRefused = false;
      parts.onRoom?.();
    }
  }

  function isEmpty(): boolean {
    const hasWaiting = laneList.some(({ ready }) => ready.size > 0);
    return countInFlight() === 0 && !hasWaiting && newMessageLeaseCount === 0 && !isClaiming();
  }

  const countRunning = () => laneList.reduce((sum, { runningCount }) => sum + runningCount, 0);
  const countInFlight = () => countRunning() + recorder.pendingCount;
  const isClaiming = () => backlog === 'claiming' || backlog === 'claiming-woken';

  async function claimMessages(): Promise<void> {
    const now = clock.now();
    const limits = computeClaimLimits(now);
    if (limits === null) return;
    backlog = 'claiming';
    for (const lane of laneList) lane.expectedCount = 0;
    let hasMore = false;
    try {
      const claimed = await parts.claim(limits, { owner: node, until: now + LEASE_MS }, now);
      for (const message of claimed.messages) {
        budget.reserve(getMemoryBytes(message));
        leasedIds.add(message.id);
      }
      const placedCount = place(claimed.messages);
      if (lastSkipAt === now)
        skipPauseMs = placedCount > 0 ? MIN_SKIP_PAUSE_MS : Math.min(2 * skipPauseMs, MAX_SKIP_PAUSE_MS);
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
    const openLanes = listOpenLanes(now);
    if (openLanes.length === 0) {
      const canProbe = laneList.some((lane) => isProbeDue(lane) && countLeased(lane) === 0);
      const limits = canProbe ? budget.getClaimLimits(0) : null;
      return limits === null ? null : { ...limits, maxMessages: 1 };
    }
    // All that is claimed may be for the lane with the most messages.
    const fullest = Math.max(...openLanes.map(countLeased));
    const mostWaiting = Math.max(...openLanes.map(({ ready }) => ready.size));
    const limits = budget.getClaimLimits(mostWaiting * openLanes.length);
    const room = getLaneLimit(now) - fullest;
    if (openLanes.length === 1 || (limits !== null && room > 0)) {
      lastClaimAt = now;
      skipPauseMs = MIN_SKIP_PAUSE_MS;
      return limits === null ? null : { ...limits, maxMessages: Math.min(limits.maxMessages, Math.max(1, room)) };
    }
    const isOtherIdle = openLanes.some(({ ready }) => ready.size === 0);
    if (!isOtherIdle || now - lastClaimAt < MIN_BLOCKED_MS || now - lastSkipAt < skipPauseMs) return null;
    lastSkipAt = now;
    return budget.getClaimLimits(0);
  }

  function wake(): void {
    backlog = isClaiming() ? 'claiming-woken' : 'due';
    dispatch();
  }

  async function deliverMessage(lane: Lane, message: LeasedMessage): Promise<void> {
    lane.runningCount += 1;
    count(lane, message, 1);
    const result = await attemptOnce(lane, message);
    lane.runningCount -= 1;
    count(lane, message, -1);
    endedAttemptCount += 1;
    if (result === 'circuit-open') place([message]);
    else if (result === 'not-attempted') void endLeases([message], parts.release);
    else if (result === 'held') void parkLeases([message], 'hold');
    else void settleLease(message, result);
    // The next attempt may start before the outcome of this attempt is committed.
    dispatch();
  }

  /** `circuit-open`: another route may take the message. */
  async function attemptOnce(
    { route, runner }: Lane,
    message: LeasedMessage,
  ): Promise<RecordedSettlement | 'not-attempted' | 'circuit-open' | 'held'> {
    // Before the maximum age, because a held message does not expire.
    const isHeld = parts.isHeld(message);
    if (typeof isHeld === 'boolean' ? isHeld : await isHeld) return 'held';
    const now = clock.now();
    const ageStart = ages.toCurrentClock(message.acceptedAt + message.heldMs);
    if (now >= getExpiry({ ...message, acceptedAt: ageStart }, policy)) {
      const { id, attempts, route: dealt } = message;
      const changes = [createExpiryBeforeAttempt(node, now)];
      return { id, owner: node, attempts, changes, refundAttempt: true, route: dealt ?? null };
    }
    if (message.lease.until - now < MIN_REMAINING_LEASE_MS || parts.mustNotAttempt(message)) return 'not-attempted';
    const attempt = await runner.run(message);
    return typeof attempt === 'string' ? attempt : createSettlement(route, message, attempt);
  }

  function createSettlement(route: Route, message: LeasedMessage, madeAttempt: Attempt): RecordedSettlement {
    const now = clock.now();
    const localAnswer = route.transport.answerLocally?.(message.to) ?? null;
    const because = reasons.get(message.id);
    const hasChoice = routes.list.length > 1;
    const attempt: Attempt = hasChoice
      ? { ...madeAttempt, route: route.name, ...(because === undefined ? {} : { because }) }
      : madeAttempt;
    const nextRoute =
      localAnswer === null ? routes.recordOutcome(route.name, message, attempt.outcome, now, attempt.remote) : null;
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
    const isMoved = nextRoute !== null && computedChange.type === 'message.deferred';
    const movedChange = isMoved ? createMovedChange(computedChange, nextRoute) : computedChange;
    const change = isLoopTest ? { ...movedChange, suppress: null } : movedChange;
    parts.onChange?.(message, change);
    publishAttemptEnd(message, attempt, now);
    const hasComplaint = attempt.outcome.kind === 'delivered' && localAnswer?.kind === 'complaint';
    const complaints = hasComplaint ? [createLocalComplaint(now, localAnswer.by, localAnswer.detail)] : [];
    const excludedFromReputation = isLoopTest || isNotification(message) || localAnswer !== null;
    const changes = [change, ...complaints];
    // An unanswered message takes whichever route is usable next.
    const dealt = attempt.outcome.kind === 'unanswered' ? null : (nextRoute ?? route.name);
    return {
      ...{ id, owner: node, attempts, changes, refundAttempt: isMoved, excludedFromReputation },
      route: hasChoice ? dealt : null,
    };
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

  async function endLeases(
    messages: readonly LeasedMessage[],
    end: (batch: readonly LeaseRef[], now: number) => Promise<unknown>,
  ): Promise<void> {
    const leases = messages.map(({ id, attempts, route = null }) => ({ id, owner: node, attempts, route }));
    await recorder.record(
      leases.map(({ id }) => id),
      () => end(leases, clock.now()),
    );
    dropFromMemory(messages);
  }

  const parkLeases = (messages: readonly LeasedMessage[], reason: ParkReason) =>
    endLeases(messages, (leases, now) => parts.park(leases, reason, now));

  function dropFromMemory(messages: readonly LeasedMessage[]): void {
    for (const message of messages) {
      leasedIds.delete(message.id);
      reasons.delete(message.id);
      budget.release(getMemoryBytes(message));
    }
    dispatch();
  }

  function poll(): void {
    for (const { runner } of laneList) runner.checkSlots();
    routes.check(clock.now());
    budget.setAttemptRate(endedAttemptCount);
    endedAttemptCount = 0;
    wake();
    cancelPoll = clock.after(POLL_MS, poll);
  }

  async function drain(timeoutMs: number): Promise<void> {
    mode.enter('draining');
    cancelPoll();
    for (const { runner } of laneList) runner.stop();
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
    canPlace,
    reroute() {
      if (laneList.length > 1 && mode.currentMode === 'running') place(laneList.flatMap(takeAll));
      wake();
    },
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
  dispatcher.offerMessage({ ...leased, ...toAcceptedMembers(accepted.expiresAt ?? null, accepted.sender ?? null) });
}

/**
 * The queue of one node: takes messages from the listener, leases due ones, makes delivery attempts, settles them. Knows no SMTP
 * and no SQL.
 *
 * The path of a message: `submit` → `offer` (accepted, already leased) → `pump`, or `claim` → `pump`; then `deliver` → `attemptOnce`
 * (`make` of attempt.ts) → `endAfter` → `settle` (`record` of leases.ts). The functions of the dispatcher stand in this order. What
 * it may do at a time is its mode (leases.ts).
 *
 * Guarantees: an attempt is made only under a lease that outlasts it; what came of it is recorded before it is
 * forgotten. A bounded number of outcomes may be on their way into the store while further attempts run; as soon as one
 * of them cannot be recorded nothing more is begun, so sending never runs far ahead of the record. A fault anywhere
 * leaves the message to its lease's end; nothing here drops one.
 */
import { isAlarming } from '../classify/classify.ts';
import type { Publish } from '../model/events.ts';
import {
  type AcceptResult,
  afterAttempt,
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
import type { Claimed, ClaimLimits } from '../store/contract.ts';
import type { Transport } from '../transports/transport.ts';
import { type AttemptParts, createAttemptRunner, LEASE_MS, MAX_ATTEMPT_MS } from './attempt.ts';
import { createLeaseBudget, createMode, createReadyQueue, createRecorder, memoryBytesOf } from './leases.ts';
import type { AgeClock } from './membership.ts';

/** A lease with less than this left is given back instead of begun: the attempt, and the time to record its outcome. */
const LEASE_LEFT_MS = MAX_ATTEMPT_MS + 2 * 60_000;
/** Outcomes on their way into the store at most: with the attempts under way, it bounds what a crash makes arrive twice. */
export const MAX_UNRECORDED_OUTCOMES = 256;
/**
 * Attempts begun beyond what the transport takes at once: composed and signed while they wait for it, so that neither the
 * processors nor the connections stand idle for each other.
 */
const PREPARED_AHEAD = 64;
/** The poll behind every hint. */
const POLL_MS = 1_000;

export interface DispatcherParts extends Omit<AttemptParts, 'onError'> {
  readonly node: string;
  readonly ages: Pick<AgeClock, 'toCurrentClock'>;
  /** In [0, 1): the jitter of retries. */
  readonly random: () => number;
  readonly claim: (room: ClaimLimits, lease: Lease, now: number) => Promise<Claimed>;
  readonly settle: (settlement: Settlement) => Promise<SettleResult>;
  readonly release: (batch: readonly LeaseRef[], now: number) => Promise<readonly SettleResult[]>;
  /** The recipient of `doctor --loop`. Its outcomes suppress no address and count in no reputation. */
  readonly loopRecipient?: string | null;
  /** Called with a change that is on its way into the store. */
  readonly onChange?: (mail: LeasedMessage, change: StateChange) => void;
  readonly publish: Publish;
}

export interface Dispatcher {
  /** Begins to claim and to attempt; once. */
  start(): void;
  /** A lease for a message of `size` bytes (`memoryBytesOf`) about to be accepted, where this node can send it at once; else null. */
  leaseForNewMessage(now: number, size: number): Lease | null;
  /** The lease given was not used: the mail request was refused or not stored. */
  returnLease(size: number): void;
  /** A mail request just accepted under such a lease. */
  offer(mail: LeasedMessage): void;
  /** Something may be due: looks now instead of at the next poll. */
  wake(): void;
  /**
   * Begins nothing more, gives unused leases back, waits up to `timeoutMs` for attempts under way and what they write. A
   * further call waits for the same.
   */
  drain(timeoutMs: number): Promise<void>;
  /** All whose lease this node holds, as far as it knows. */
  leasedMessageIds(): readonly string[];
  /** Attempts under way and outcomes not recorded yet. */
  readonly inFlight: number;
}

type End = Pick<Settlement, 'refundAttempt' | 'excludedFromReputation'> & {
  readonly changes: readonly RecordedChange[];
};

/** What becomes of a lease after `attemptOnce`. */
type Ending =
  /** An outcome, or that the message is too old for an attempt: to be settled. */
  | { readonly kind: 'settle'; readonly end: End }
  /** Not to be sent now: released. */
  | { readonly kind: 'unused' }
  /** The breaker let it not begin: waits in memory. */
  | { readonly kind: 'refused' };

/**
 * What this node knows of the due messages in the store. `due`: there may be some, and new messages line up there behind
 * them. `claiming`, `claiming-again`: the store is being asked, and in the second something has become due since.
 */
type Backlog = 'empty' | 'due' | 'claiming' | 'claiming-again';

export function createDispatcher(parts: DispatcherParts): Dispatcher {
  const { node, clock, ages, policy, transport, breaker, publish } = parts;
  const failed = (operation: string, error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation, error });
  const mode = createMode();
  const ready = createReadyQueue();
  const held = createLeaseBudget();
  const attempts = createAttemptRunner({ ...parts, onError: failed });
  const recorder = createRecorder({ clock, isStopped: () => mode.current === 'stopped', onError: failed });
  /** Every lease in memory, from its giving to the record of its end. */
  const mine = new Set<string>();
  /** Leases given to messages that are being accepted. */
  let promised = 0;
  /** Attempts under way. */
  let attempting = 0;
  /** Attempts ended since the last poll. */
  let ended = 0;
  let backlog: Backlog = 'due';
  let cancelPoll: () => void = () => undefined;
  const emptied = Promise.withResolvers<void>();
  let drained: Promise<void> | null = null;

  /** A lease for a message about to be accepted, where it can be attempted from memory at once. */
  function leaseForNewMessage(now: number, size: number): Lease | null {
    if (mode.current !== 'running' || backlog !== 'empty' || !held.fits(size) || breaker.retryAt(now) !== null)
      return null;
    promised += 1;
    held.reserve(size);
    return { owner: node, until: now + LEASE_MS };
  }

  function offer(mail: LeasedMessage): void {
    promised -= 1;
    mine.add(mail.id);
    ready.enqueue(mail);
    pump();
  }

  /** Does whatever the mode and the bounds allow now; called after every change of either. */
  function pump(): void {
    switch (mode.current) {
      case 'starting':
        return;
      case 'running':
        while (ready.size > 0 && mayBegin()) {
          const mail = ready.dequeue();
          if (mail !== undefined) void deliver(mail);
        }
        // While the breaker refuses for longer, what is held waits in the store, where it can be seen and cancelled.
        if (ready.size > 0 && !mayProbeSoon()) void release(ready.dequeueAll());
        if (backlog === 'due') void claim();
        return;
      case 'draining':
        if (ready.size > 0) void release(ready.dequeueAll());
        if (isEmpty()) emptied.resolve();
        return;
      case 'stopped':
        if (ready.size > 0) void release(ready.dequeueAll());
        return;
    }
  }

  /** While the circuit breaker is open, no attempt begins until the probe is due; then one begins. */
  function mayBegin(): boolean {
    if (attempting >= transport.concurrency + PREPARED_AHEAD) return false;
    if (recorder.failing || recorder.pending >= MAX_UNRECORDED_OUTCOMES) return false;
    const now = clock.now();
    const retryAt = breaker.retryAt(now);
    return retryAt === null || (retryAt <= now && attempting === 0);
  }

  function mayProbeSoon(): boolean {
    const now = clock.now();
    const retryAt = breaker.retryAt(now);
    return retryAt === null || retryAt <= now;
  }

  function isEmpty(): boolean {
    return active() === 0 && ready.size === 0 && promised === 0 && !isClaiming();
  }

  const active = () => attempting + recorder.pending;
  const isClaiming = () => backlog === 'claiming' || backlog === 'claiming-again';

  async function claim(): Promise<void> {
    const now = clock.now();
    const room = claimable(now);
    if (room === null) return;
    backlog = 'claiming';
    try {
      const { mails, suppressed, more } = await parts.claim(room, { owner: node, until: now + LEASE_MS }, now);
      for (const mail of mails) {
        held.reserve(memoryBytesOf(mail));
        mine.add(mail.id);
        ready.enqueue(mail);
      }
      for (const { id, accountId, to } of suppressed)
        publish({ type: 'message.suppressed', at: now, id, accountId, to });
      backlog = more || foundDueMeanwhile() ? 'due' : 'empty';
    } catch (error) {
      failed('claim', error);
      // The next poll asks again.
      backlog = 'empty';
    }
    pump();
  }

  const foundDueMeanwhile = () => backlog === 'claiming-again';

  /** What may be claimed now. While the circuit breaker is not closed, this is one message for the probe, and only where none is held. */
  function claimable(now: number): ClaimLimits | null {
    const room = held.claimLimits(ready.size);
    const openUntil = breaker.retryAt(now);
    if (room === null || openUntil === null) return room;
    return openUntil > now || attempting > 0 || ready.size > 0 ? null : { ...room, mails: 1 };
  }

  /** Something may be due in the store. */
  function wake(): void {
    backlog = isClaiming() ? 'claiming-again' : 'due';
    pump();
  }

  async function deliver(mail: LeasedMessage): Promise<void> {
    attempting += 1;
    const ending = await attemptOnce(mail);
    attempting -= 1;
    ended += 1;
    switch (ending.kind) {
      case 'settle':
        void settle(mail, ending.end);
        break;
      case 'unused':
        void release([mail]);
        break;
      case 'refused':
        ready.enqueue(mail);
        break;
    }
    // The next attempt need not wait for this one's commit.
    pump();
  }

  async function attemptOnce(mail: LeasedMessage): Promise<Ending> {
    const began = clock.now();
    if (isPastMaxAge(ages.toCurrentClock(mail.acceptedAt), policy, began)) {
      return { kind: 'settle', end: { changes: [expiredBeforeAttempt(node, began)], refundAttempt: true } };
    }
    if (mail.lease.until - began < LEASE_LEFT_MS || parts.mustNotAttempt(mail)) return { kind: 'unused' };
    const made = await attempts.run(mail);
    switch (made.kind) {
      case 'attempted':
        return { kind: 'settle', end: endAfter(mail, made.attempt) };
      case 'refused':
      case 'unused':
        return made;
    }
  }

  /** What an attempt's outcome changes. */
  function endAfter(mail: LeasedMessage, attempt: Attempt): End {
    const now = clock.now();
    const isLoopTest = mail.to === parts.loopRecipient;
    const after = afterAttempt(
      { ...mail, acceptedAt: ages.toCurrentClock(mail.acceptedAt) },
      attempt,
      policy,
      node,
      now,
      parts.random(),
    );
    const change = isLoopTest ? { ...after, suppress: null } : after;
    parts.onChange?.(mail, change);
    publishAttempt(mail, attempt, now);
    const local = transport.localAnswer?.(mail.to) ?? null;
    const complains = attempt.outcome.kind === 'delivered' && local?.kind === 'complaint';
    const following = complains ? [localComplaint(now, local.by, local.detail)] : [];
    return {
      changes: [change, ...following],
      refundAttempt: false,
      excludedFromReputation: isLoopTest || local !== null,
    };
  }

  async function settle(mail: LeasedMessage, end: End): Promise<void> {
    const settlement: Settlement = { id: mail.id, owner: node, attempts: mail.attempts, ...end };
    const answer = await recorder.record([mail.id], () => parts.settle(settlement));
    // Before a drain may end: what subscribers count is written at the stop.
    publishEnd(mail, end, answer);
    forget([mail]);
  }

  function publishAttempt({ id, accountId, to, attempts }: LeasedMessage, attempt: Attempt, at: number): void {
    publish({ type: 'attempt.ended', at, id, accountId, to, attempts, attempt });
    const { outcome } = attempt;
    if (isAlarming(outcome)) {
      const { reason } = outcome;
      publish({ type: 'attempt.alarm_raised', at, id, accountId, to, attempts, attempt, reason });
    }
  }

  /** `answer` is null where the end could not be recorded before the stop. */
  function publishEnd(
    { id, accountId, to, attempts, acceptedAt }: LeasedMessage,
    end: End,
    answer: SettleResult | null,
  ): void {
    switch (answer) {
      case 'settled':
        for (const { type, dueAt, suppress, event } of end.changes) {
          const { at, attempt, detail } = event;
          const common = { id, accountId, to, acceptedAt, attempts, attempt, dueAt, reportedBy: null, detail };
          publish({ type, at, ...common, suppresses: suppress !== null });
        }
        return;
      case 'lost':
        publish({ type: 'node.lease_lost', at: clock.now(), id, accountId, to, attempts });
        return;
      case null:
        return;
    }
  }

  /** Ends leases that no attempt was made under. */
  async function release(mails: readonly LeasedMessage[]): Promise<void> {
    const leases = mails.map(({ id, attempts: count }) => ({ id, owner: node, attempts: count }));
    await recorder.record(
      leases.map(({ id }) => id),
      () => parts.release(leases, clock.now()),
    );
    forget(mails);
  }

  function forget(mails: readonly LeasedMessage[]): void {
    for (const mail of mails) {
      mine.delete(mail.id);
      held.release(memoryBytesOf(mail));
    }
    pump();
  }

  function poll(): void {
    attempts.abortOverdue();
    held.setAttemptRate(ended);
    ended = 0;
    wake();
    cancelPoll = clock.after(POLL_MS, poll);
  }

  async function drain(timeoutMs: number): Promise<void> {
    mode.enter('draining');
    cancelPoll();
    attempts.stop();
    const cancel = clock.after(timeoutMs, emptied.resolve);
    pump();
    await emptied.promise;
    cancel();
    mode.enter('stopped');
  }

  return {
    start() {
      mode.enter('running');
      poll();
    },
    leaseForNewMessage: leaseForNewMessage,
    returnLease(size) {
      promised -= 1;
      held.release(size);
      pump();
    },
    offer,
    wake,
    drain(timeoutMs) {
      drained ??= drain(timeoutMs);
      return drained;
    },
    leasedMessageIds: () => [...mine],
    get inFlight() {
      return active();
    },
  };
}

// Takes a message from the listener into the store: asks the dispatcher for a lease where this node can send it at once,
// commits it in a batch with others, and offers it to the dispatcher straight from memory.
//
// Guarantees: `submit` resolves after the sync. The dispatcher has the message before `submit` resolves, so its attempt may
// begin before the client has the 201. Fails: rejects where the batch was not committed; the lease is then returned.

interface IntakeParts {
  /** Group commit over the store's `accept`. */
  readonly commit: (mail: NewMessage) => Promise<AcceptResult>;
  readonly ages: Pick<AgeClock, 'cutoffFor'>;
  /** Null on a node that does not deliver. */
  readonly dispatcher: Pick<Dispatcher, 'leaseForNewMessage' | 'returnLease' | 'offer' | 'wake'> | null;
  /** Its local answers (`localAnswer`) may say that a recipient is suppressed. */
  readonly transport: Pick<Transport, 'localAnswer'>;
}

/** Makes the listener's `submit`; a rejection means that nothing is known to be stored. */
export function createIntake({
  commit,
  ages,
  dispatcher,
  transport,
}: IntakeParts): (mail: NewMessage) => Promise<AcceptResult> {
  return async function submit(given) {
    const lease = dispatcher === null ? null : dispatcher.leaseForNewMessage(given.acceptedAt, memoryBytesOf(given));
    const { idempotency: key } = given;
    const idempotency = key === null ? null : { ...key, expiredBefore: ages.cutoffFor(IDEMPOTENCY_KEY_TTL_MS) };
    const local = transport.localAnswer?.(given.recipient);
    const suppressedBy = local?.kind === 'suppression' ? local.by : null;
    const mail: NewMessage = { ...given, idempotency, lease, suppressedBy };
    let answer: AcceptResult | null = null;
    try {
      answer = await commit(mail);
      return answer;
    } finally {
      if (dispatcher !== null) handOn(dispatcher, mail, answer);
    }
  };
}

function handOn(
  dispatcher: NonNullable<IntakeParts['dispatcher']>,
  mail: NewMessage,
  answer: AcceptResult | null,
): void {
  const state = answer?.kind === 'accepted' ? answer.state : null;
  if (mail.lease === null) {
    if (state === 'queued') dispatcher.wake();
    return;
  }
  if (state !== 'sending') {
    dispatcher.returnLease(memoryBytesOf(mail));
    return;
  }
  const { id, accountId, to, from, subject, message, acceptedAt, lease } = mail;
  dispatcher.offer({ id, accountId, to, from, subject, message, acceptedAt, attempts: 1, lease });
}

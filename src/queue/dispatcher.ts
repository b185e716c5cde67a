/**
 * The queue of one node: leases due mail requests, runs attempts, settles them. Knows no SMTP and no SQL.
 *
 * Promises: an attempt is made only under a lease that outlasts it; what came of it is recorded before it is
 * forgotten. A bounded number of outcomes may be on their way into the store while further attempts run; as soon as one
 * of them cannot be recorded nothing more is begun, so sending never runs far ahead of the record. A fault anywhere
 * leaves the mail request to its lease's end; nothing here drops one.
 */
import type { Clock } from '../clock.ts';
import type { Attempt } from '../deliver/outcome.ts';
import type { OutgoingMessage, Transport } from '../deliver/transport.ts';
import type { Policy } from '../record/record.ts';
import { afterAttempt, expiredBeforeAttempt, isPastMaxAge, released } from '../record/record.ts';
import type { Change, Lease, LeasedMail, SettleAnswer, Settlement } from '../store/store.ts';
import { createReady } from './ready.ts';

/** How long a lease lasts. Longer than any attempt can take (the transports' timeouts add up to less). */
export const LEASE_MS = 20 * 60_000;
/** A lease with less than this left is given back instead of begun. */
const ATTEMPT_MS = 10 * 60_000;
/** Leased mail requests held at once, under way included. Small: memory stays flat and a dead node's share is soon redone. */
const HELD = 1_024;
/** Outcomes on their way into the store at most: bounds what a crash makes arrive twice. */
const UNRECORDED = 256;
/** The poll behind every hint. */
const POLL_MS = 1_000;
/** Pauses between tries to record an outcome while the store fails. */
const SETTLE_AGAIN_MS = [100, 500, 2_000, 5_000] as const;

/** When attempts may begin at all: the transport's breaker. */
export interface Gate {
  /** True where an attempt may begin now; after a time of refusing, true once, for the attempt that probes. */
  admits(now: number): boolean;
  /** When it will admit the next probe, or null while everything is admitted. */
  retryAt(now: number): number | null;
  note(outcome: Attempt['outcome'], now: number): void;
  /** The attempt admitted came to no outcome. */
  giveBack(now: number): void;
}

export interface QueueObserver {
  attempted(mail: LeasedMail, attempt: Attempt, change: Change): void;
  expired(mail: LeasedMail): void;
  lost(mail: LeasedMail): void;
  failed(what: string, error: unknown): void;
}

export interface DispatcherParts {
  readonly node: string;
  readonly clock: Clock;
  /** In [0, 1): the jitter of retries. */
  readonly random: () => number;
  readonly policy: Policy;
  readonly transport: Transport;
  readonly gate: Gate;
  readonly claim: (limit: number, lease: Lease, now: number) => Promise<readonly LeasedMail[]>;
  readonly settle: (settlement: Settlement) => Promise<SettleAnswer>;
  readonly mark: (lease: { id: string; owner: string; attempts: number }) => Promise<SettleAnswer>;
  /** The message as it goes out, or a rejection where it cannot be made now (it is then tried again later). */
  readonly prepare: (mail: LeasedMail) => OutgoingMessage | Promise<OutgoingMessage>;
  /** Changes that follow the attempt's own in the same transaction (the simulator's complaint). */
  readonly following: (mail: LeasedMail, attempt: Attempt, now: number) => readonly Change[];
  /** True where the next hop is not asked (the simulator answers), so that the answer says nothing about it. */
  readonly answeredHere: (mail: LeasedMail) => boolean;
  /** Why this mail request must not be attempted now (its account is locked), or null. */
  readonly heldBack: (mail: LeasedMail) => string | null;
  readonly observe: QueueObserver;
}

export interface Dispatcher {
  start(): void;
  /** A lease for a mail request about to be accepted, where this node can send it at once; else null. */
  leaseForNew(now: number): Lease | null;
  /** The lease given was not used: the mail request was refused or not stored. */
  returnLease(): void;
  /** A mail request just accepted under such a lease. */
  offer(mail: LeasedMail): void;
  /** Something may be due: looks now instead of at the next poll. */
  wake(): void;
  /** Begins nothing more, waits up to `timeoutMs` for attempts under way, gives the other leases back. */
  drain(timeoutMs: number): Promise<void>;
  /** Attempts under way and outcomes not recorded yet. */
  readonly active: number;
}

type End = Pick<Settlement, 'changes' | 'uncount'>;

export function createDispatcher(parts: DispatcherParts): Dispatcher {
  const { node, clock, policy, transport, gate, observe } = parts;
  const ready = createReady();
  /** Attempts with the transport, and outcomes on their way into the store. */
  let attempting = 0;
  let recording = 0;
  /** Outcomes that the store has refused to record so far; they are tried again. */
  let unrecordable = 0;
  let promised = 0;
  let claiming = false;
  let lookAgain = false;
  /** True while the store may hold due mail requests: then new ones line up there too, behind those before them. */
  let backlog = true;
  let running = false;
  let cancelPoll: () => void = () => undefined;
  let idle: (() => void) | null = null;

  const active = () => attempting + recording;
  const held = () => active() + promised + ready.size;

  function pump(): void {
    while (running && attempting < transport.concurrency && ready.size > 0 && mayBegin()) {
      const mail = ready.take();
      if (mail !== undefined) void deliver(mail);
    }
    if (running && ready.size > 0 && !mayProbeSoon())
      void giveBack('the next hop does not answer; it is probed with one message at a time');
    if (running && backlog && ready.size <= HELD / 4) void claim();
    if (active() === 0) idle?.();
  }

  /** While the gate refuses, one at a time goes on, to be the probe once its time has come. */
  function mayBegin(): boolean {
    if (unrecordable > 0 || recording >= UNRECORDED) return false;
    const now = clock.now();
    const retryAt = gate.retryAt(now);
    return retryAt === null || (retryAt <= now && attempting === 0);
  }

  /** False while the gate refuses for longer: then what is held waits in the store, where it can be seen and cancelled. */
  function mayProbeSoon(): boolean {
    const now = clock.now();
    const retryAt = gate.retryAt(now);
    return retryAt === null || retryAt <= now;
  }

  async function claim(): Promise<void> {
    if (claiming) {
      lookAgain = true;
      return;
    }
    const wanted = HELD - held();
    const now = clock.now();
    const closedUntil = gate.retryAt(now);
    if (wanted <= 0 || !running || (closedUntil !== null && closedUntil > now)) return;
    claiming = true;
    lookAgain = false;
    try {
      // While the next hop is being probed one mail request is enough.
      const limit = closedUntil === null ? wanted : 1;
      const mails = await parts.claim(limit, { owner: node, until: now + LEASE_MS }, now);
      backlog = mails.length === limit || lookAgain;
      for (const mail of mails) ready.add(mail);
    } catch (error) {
      observe.failed('claim', error);
      backlog = false;
      return;
    } finally {
      claiming = false;
    }
    pump();
  }

  async function deliver(mail: LeasedMail): Promise<void> {
    attempting += 1;
    const end = await attemptOnce(mail);
    attempting -= 1;
    if (end === null) {
      ready.add(mail);
    } else {
      recording += 1;
      // The next attempt need not wait for this one's commit.
      pump();
      await settle(mail, end);
      recording -= 1;
    }
    pump();
  }

  /** Makes the attempt, or finds that it must not be made; what to record either way, or null where the gate refuses. */
  async function attemptOnce(mail: LeasedMail): Promise<End | null> {
    const began = clock.now();
    if (isPastMaxAge(mail.acceptedAt, policy, began)) {
      observe.expired(mail);
      return { changes: [expiredBeforeAttempt(policy, node, began)], uncount: true };
    }
    const heldBack = mail.lease.until - began < ATTEMPT_MS ? 'the lease was nearly over' : parts.heldBack(mail);
    if (heldBack !== null) return { changes: [released(node, began, heldBack)], uncount: true };
    const attempt = await tryTransport(mail, began);
    if (attempt === null) return null;
    const now = clock.now();
    const change = afterAttempt(mail, attempt, policy, node, now, parts.random());
    observe.attempted(mail, attempt, change);
    return { changes: [change, ...parts.following(mail, attempt, now)], uncount: false };
  }

  async function tryTransport(mail: LeasedMail, began: number): Promise<Attempt | null> {
    let admitted = false;
    try {
      const message = await parts.prepare(mail);
      if (!parts.answeredHere(mail)) {
        admitted = gate.admits(clock.now());
        if (!admitted) return null;
      }
      const mark = policy.onUncertain === 'hold' ? () => markHandover(mail) : null;
      const attempt = await transport.attempt(message, mark);
      if (admitted) gate.note(attempt.outcome, clock.now());
      return attempt;
    } catch (error) {
      // The message could not be made, or the transport has a bug: unknown failure is temporary.
      if (admitted) gate.giveBack(clock.now());
      observe.failed('attempt', error);
      const text = error instanceof Error ? error.message : String(error);
      const reply = { stage: 'connect', code: null, enhanced: null, text } as const;
      const outcome = { kind: 'deferred', reply, reason: 'unknown', scope: 'message' } as const;
      return { outcome, startedAt: began, tookMs: clock.now() - began, remote: null, conversation: [] };
    }
  }

  /** Ends every lease that waits in memory without an attempt. */
  async function giveBack(why: string): Promise<void> {
    const now = clock.now();
    const ends = ready.takeAll().map(({ id, attempts }) => {
      recording += 1;
      const changes = [released(node, now, why)];
      return parts.settle({ id, owner: node, attempts, changes, uncount: true });
    });
    // One that cannot be given back is taken back at the next start, or when its lease ends.
    for (const result of await Promise.allSettled(ends)) {
      recording -= 1;
      if (result.status === 'rejected') observe.failed('settle', result.reason);
    }
  }

  async function markHandover({ id, attempts }: LeasedMail): Promise<void> {
    if ((await parts.mark({ id, owner: node, attempts })) === 'lost') throw new Error('the lease was lost');
  }

  /** Records the end of a lease, again and again until it is recorded. Never rejects. */
  async function settle(mail: LeasedMail, end: End): Promise<void> {
    const settlement: Settlement = { id: mail.id, owner: node, attempts: mail.attempts, ...end };
    for (let round = 0; ; round += 1) {
      try {
        const answer = await parts.settle(settlement);
        if (round > 0) unrecordable -= 1;
        if (answer === 'lost') observe.lost(mail);
        return;
      } catch (error) {
        if (round === 0) unrecordable += 1;
        observe.failed('settle', error);
        const pause = SETTLE_AGAIN_MS[Math.min(round, SETTLE_AGAIN_MS.length - 1)] ?? 5_000;
        await new Promise<void>((resolve) => clock.after(pause, resolve));
      }
    }
  }

  function poll(): void {
    backlog = true;
    pump();
    cancelPoll = clock.after(POLL_MS, poll);
  }

  return {
    start() {
      running = true;
      poll();
    },
    leaseForNew(now) {
      if (!running || backlog || held() >= HELD || gate.retryAt(now) !== null) return null;
      promised += 1;
      return { owner: node, until: now + LEASE_MS };
    },
    returnLease() {
      promised -= 1;
    },
    offer(mail) {
      promised -= 1;
      ready.add(mail);
      pump();
    },
    wake() {
      backlog = true;
      pump();
    },
    async drain(timeoutMs) {
      running = false;
      cancelPoll();
      if (active() > 0) {
        await new Promise<void>((resolve) => {
          idle = resolve;
          clock.after(timeoutMs, resolve);
        });
      }
      await giveBack('the node was stopped');
    },
    get active() {
      return active();
    },
  };
}

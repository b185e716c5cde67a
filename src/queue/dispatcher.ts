/**
 * The queue of one node: leases due mail requests, runs attempts, settles them. Knows no SMTP and no SQL.
 *
 * Promises: an attempt is made only under a lease that outlasts it; what came of it is recorded before it is
 * forgotten. A bounded number of outcomes may be on their way into the store while further attempts run; as soon as one
 * of them cannot be recorded nothing more is begun, so sending never runs far ahead of the record. A fault anywhere
 * leaves the mail request to its lease's end; nothing here drops one.
 */

import { afterAttempt, expiredBeforeAttempt, isPastMaxAge } from '../model/after-attempt.ts';
import type { Change, Lease, LeasedMail, LeaseRef, SettleAnswer, Settlement } from '../model/message.ts';
import type { Attempt } from '../model/outcome.ts';
import type { Claimed, ClaimRoom } from '../store/contract.ts';
import type { Ages } from './ages.ts';
import type { AttemptParts } from './attempt.ts';
import { ATTEMPT_MS, createAttempts } from './attempt.ts';
import { createHeld, sizeOf } from './held.ts';
import { createReady } from './ready.ts';

/** How long a lease lasts. */
export const LEASE_MS = 20 * 60_000;
/** A lease with less than this left is given back instead of begun: the attempt, and the time to record its outcome. */
const LEASE_LEFT_MS = ATTEMPT_MS + 2 * 60_000;
/** Outcomes on their way into the store at most: with the attempts under way, it bounds what a crash makes arrive twice. */
export const UNRECORDED = 256;
/**
 * Attempts begun beyond what the transport takes at once: composed and signed while they wait for it, so that neither the
 * processors nor the connections stand idle for each other.
 */
const PREPARED_AHEAD = 64;
/** The poll behind every hint. */
const POLL_MS = 1_000;
/** Pauses between tries to record an outcome while the store fails. */
const RECORD_AGAIN_MS = [100, 500, 2_000, 5_000] as const;

export interface QueueObserver {
  attempted(mail: LeasedMail, attempt: Attempt, change: Change): void;
  /** A further change in the same settlement. */
  followed(mail: LeasedMail, change: Change): void;
  /** Found on the suppression list when it was to be leased. */
  suppressed(mail: Claimed['suppressed'][number]): void;
  expired(mail: LeasedMail): void;
  lost(mail: LeasedMail): void;
  failed(what: string, error: unknown): void;
}

export interface DispatcherParts extends Omit<AttemptParts, 'failed'> {
  readonly node: string;
  readonly ages: Pick<Ages, 'asDatedNow'>;
  /** In [0, 1): the jitter of retries. */
  readonly random: () => number;
  readonly claim: (room: ClaimRoom, lease: Lease, now: number) => Promise<Claimed>;
  readonly settle: (settlement: Settlement) => Promise<SettleAnswer>;
  readonly release: (batch: readonly LeaseRef[], now: number) => Promise<readonly SettleAnswer[]>;
  /** Changes that follow the attempt's own in the same transaction (the simulator's complaint). */
  readonly following: (mail: LeasedMail, attempt: Attempt, now: number) => readonly Change[];
  /** True for a trial of the way back: nobody is behind its recipient, so that it suppresses nobody and counts nowhere. */
  readonly trial?: (mail: LeasedMail) => boolean;
  readonly observe: QueueObserver;
}

export interface Dispatcher {
  start(): void;
  /** A lease for a message of `size` bytes (`sizeOf`) about to be accepted, where this node can send it at once; else null. */
  leaseForNew(now: number, size: number): Lease | null;
  /** The lease given was not used: the mail request was refused or not stored. */
  returnLease(size: number): void;
  /** A mail request just accepted under such a lease. */
  offer(mail: LeasedMail): void;
  /** Something may be due: looks now instead of at the next poll. */
  wake(): void;
  /** Begins nothing more, gives unused leases back, waits up to `timeoutMs` for attempts under way and what they write. */
  drain(timeoutMs: number): Promise<void>;
  /** All whose lease this node holds, as far as it knows. */
  holding(): readonly string[];
  /** Attempts under way and outcomes not recorded yet. */
  readonly active: number;
}

type End = Pick<Settlement, 'changes' | 'uncount' | 'untallied'>;

export function createDispatcher(parts: DispatcherParts): Dispatcher {
  const { node, clock, ages, policy, transport, gate, observe } = parts;
  const ready = createReady();
  const held = createHeld();
  const attempts = createAttempts({ ...parts, failed: observe.failed });
  /** Attempts with the transport. */
  let attempting = 0;
  /** Attempts ended since the last poll. */
  let ended = 0;
  /** Leases whose end is on its way into the store; of them, those that the store has refused so far. */
  const recording = new Set<string>();
  const refused = new Set<string>();
  /** Every lease in memory, from its giving to the record of its end. */
  const mine = new Set<string>();
  let promised = 0;
  let claiming = false;
  let lookAgain = false;
  /** True while the store may hold due mail requests: then new ones line up there too, behind those before them. */
  let backlog = true;
  let running = false;
  let stopped = false;
  let cancelPoll: () => void = () => undefined;
  let idle: (() => void) | null = null;

  const active = () => attempting + recording.size;

  function pump(): void {
    while (running && attempting < transport.concurrency + PREPARED_AHEAD && ready.size > 0 && mayBegin()) {
      const mail = ready.take();
      if (mail !== undefined) void deliver(mail);
    }
    if (ready.size > 0 && (!running || !mayProbeSoon())) void release(ready.takeAll());
    if (running && backlog) void claim();
    if (idle !== null && active() === 0 && ready.size === 0 && promised === 0 && !claiming) idle();
  }

  /** While the gate refuses, one at a time goes on, to be the probe once its time has come. */
  function mayBegin(): boolean {
    if (refused.size > 0 || recording.size >= UNRECORDED) return false;
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

  /** What may be claimed now: while the next hop is being probed one mail request, and only where none is there for it. */
  function claimable(now: number): ClaimRoom | null {
    const room = held.room(ready.size);
    const closedUntil = gate.retryAt(now);
    if (room === null || closedUntil === null) return room;
    return closedUntil > now || attempting > 0 || ready.size > 0 ? null : { ...room, mails: 1 };
  }

  async function claim(): Promise<void> {
    if (claiming) {
      lookAgain = true;
      return;
    }
    const now = clock.now();
    const room = claimable(now);
    if (room === null) return;
    claiming = true;
    lookAgain = false;
    try {
      const { mails, suppressed, more } = await parts.claim(room, { owner: node, until: now + LEASE_MS }, now);
      backlog = more || lookAgain;
      for (const mail of mails) {
        held.take(sizeOf(mail));
        mine.add(mail.id);
        ready.add(mail);
      }
      for (const mail of suppressed) observe.suppressed(mail);
    } catch (error) {
      observe.failed('claim', error);
      backlog = false;
    }
    claiming = false;
    pump();
  }

  async function deliver(mail: LeasedMail): Promise<void> {
    attempting += 1;
    const end = await attemptOnce(mail);
    attempting -= 1;
    ended += 1;
    if (end === 'refused') ready.add(mail);
    else if (end === 'unused') void release([mail]);
    else void settle(mail, end);
    // The next attempt need not wait for this one's commit.
    pump();
  }

  /** Makes the attempt, or finds that it must not be made: what to record, or that the lease goes unused or waits on. */
  async function attemptOnce(mail: LeasedMail): Promise<End | 'unused' | 'refused'> {
    const began = clock.now();
    if (isPastMaxAge(ages.asDatedNow(mail.acceptedAt), policy, began)) {
      observe.expired(mail);
      return { changes: [expiredBeforeAttempt(node, began)], uncount: true };
    }
    if (mail.lease.until - began < LEASE_LEFT_MS || parts.heldBack(mail)) return 'unused';
    const attempt = await attempts.make(mail);
    if (typeof attempt === 'string') return attempt;
    const now = clock.now();
    const trial = parts.trial?.(mail) === true;
    const after = afterAttempt(
      { ...mail, acceptedAt: ages.asDatedNow(mail.acceptedAt) },
      attempt,
      policy,
      node,
      now,
      parts.random(),
    );
    const change = trial ? { ...after, suppress: null } : after;
    observe.attempted(mail, attempt, change);
    const following = parts.following(mail, attempt, now);
    for (const next of following) observe.followed(mail, next);
    return { changes: [change, ...following], uncount: false, untallied: trial || parts.answeredHere(mail) };
  }

  async function settle(mail: LeasedMail, end: End): Promise<void> {
    const settlement: Settlement = { id: mail.id, owner: node, attempts: mail.attempts, ...end };
    const answer = await recorded([mail], () => parts.settle(settlement));
    if (answer === 'lost') observe.lost(mail);
  }

  /** Ends leases that no attempt was made under. */
  async function release(mails: readonly LeasedMail[]): Promise<void> {
    const leases = mails.map(({ id, attempts: count }) => ({ id, owner: node, attempts: count }));
    await recorded(mails, () => parts.release(leases, clock.now()));
  }

  /** Writes the end of leases, again and again until it is written or the node is stopped. Never rejects. */
  async function recorded<T>(mails: readonly LeasedMail[], write: () => Promise<T>): Promise<T | null> {
    for (const { id } of mails) recording.add(id);
    let answer: T | null = null;
    for (let round = 0; ; round += 1) {
      try {
        answer = await write();
        break;
      } catch (error) {
        observe.failed('settle', error);
        // What is not written now is taken back at the next start.
        if (stopped) break;
        for (const { id } of mails) refused.add(id);
        const pause = RECORD_AGAIN_MS[Math.min(round, RECORD_AGAIN_MS.length - 1)] ?? 5_000;
        await new Promise<void>((resolve) => clock.after(pause, resolve));
      }
    }
    for (const mail of mails) {
      recording.delete(mail.id);
      mine.delete(mail.id);
      refused.delete(mail.id);
      held.free(sizeOf(mail));
    }
    pump();
    return answer;
  }

  function poll(): void {
    attempts.giveUpOverdue();
    held.pace(ended);
    ended = 0;
    backlog = true;
    pump();
    cancelPoll = clock.after(POLL_MS, poll);
  }

  return {
    start() {
      running = true;
      poll();
    },
    leaseForNew(now, size) {
      if (!running || backlog || !held.fits(size) || gate.retryAt(now) !== null) return null;
      promised += 1;
      held.take(size);
      return { owner: node, until: now + LEASE_MS };
    },
    returnLease(size) {
      promised -= 1;
      held.free(size);
      if (idle !== null) pump();
    },
    offer(mail) {
      promised -= 1;
      mine.add(mail.id);
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
      attempts.stop();
      const { promise, resolve } = Promise.withResolvers<void>();
      idle = resolve;
      const cancel = clock.after(timeoutMs, resolve);
      pump();
      await promise;
      cancel();
      stopped = true;
    },
    holding: () => [...mine],
    get active() {
      return active();
    },
  };
}

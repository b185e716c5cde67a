/**
 * Keeps a dead or refusing next hop from being hammered: closed → open until a time → half-open with one probe.
 *
 * Pure: time and randomness are handed in. Opens after three deferrals in a row that blame the transport; an answer
 * that takes a message, or that speaks about one message only, closes it. While open nothing is attempted; then
 * exactly one attempt is, and each one that fails doubles the wait (2 s to 5 min, up to a quarter less at random).
 */
import { BREAKER_EVENTS, type BreakerState, type PublishOf } from '../model/events.ts';
import type { Outcome } from '../model/outcome.ts';

const FAILURES_TO_OPEN = 3;
const FIRST_WAIT_MS = 2_000;
const LONGEST_WAIT_MS = 300_000;
/** A probe that nobody reports is given up after this, as long as the dispatcher lets an attempt run; its slot is free again. */
const PROBE_MS = 600_000;

export interface BreakerParts {
  /** Numbers from 0 to below 1, as `Math.random` gives them. */
  readonly random: () => number;
  readonly publish: PublishOf<(typeof BREAKER_EVENTS)[BreakerState]>;
}

export interface Breaker {
  readonly state: BreakerState;
  /** Whether an attempt may be made now. A yes while not closed takes the one probe: report it, or give it back. */
  admits(now: number): boolean;
  /** Reports what became of an attempt, probe or not. */
  note(outcome: Outcome, now: number): void;
  /** Gives the probe back unused: the attempt was not made after all. */
  giveBack(now: number): void;
  /** When the next attempt is worth asking for (milliseconds since the epoch), or null while closed. */
  retryAt(now: number): number | null;
}

/** A closed breaker. */
export function createBreaker({ random, publish }: BreakerParts): Breaker {
  let state: BreakerState = 'closed';
  let failures = 0;
  let waitMs = FIRST_WAIT_MS;
  /** When open: from when a probe may go. When half-open: when the probe is given up. */
  let since = 0;
  let until = 0;

  // A clock set back must not keep it open for longer than it was meant to be.
  const retryAt = (now: number): number | null => (state === 'closed' ? null : now < since ? now : until);

  function enter(next: BreakerState, now: number, durationMs: number): void {
    state = next;
    since = now;
    until = now + durationMs;
    publish({ type: BREAKER_EVENTS[state], at: now, retryAt: retryAt(now) });
  }

  function open(now: number): void {
    failures = 0;
    const wait = Math.round(waitMs * (1 - random() * 0.25));
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
    enter('open', now, wait);
  }

  return {
    get state() {
      return state;
    },
    retryAt,

    admits(now: number): boolean {
      if (state === 'closed') return true;
      if (now < until && now >= since) return false;
      enter('half-open', now, PROBE_MS);
      return true;
    },

    note(outcome: Outcome, now: number): void {
      if (!blamesTransport(outcome)) {
        failures = 0;
        waitMs = FIRST_WAIT_MS;
        if (state !== 'closed') enter('closed', now, 0);
        return;
      }
      switch (state) {
        case 'closed':
          failures += 1;
          if (failures >= FAILURES_TO_OPEN) open(now);
          return;
        case 'half-open':
          open(now);
          return;
        case 'open':
          // Begun before it opened: says nothing new.
          return;
      }
    },

    giveBack(now: number): void {
      if (state === 'half-open') enter('open', now, 0);
    },
  };
}

function blamesTransport(outcome: Outcome): boolean {
  switch (outcome.kind) {
    case 'delivered':
    case 'bounced':
      return false;
    case 'deferred':
      return outcome.scope === 'transport';
    case 'unanswered':
      // A hop that dies over every message would make a duplicate of each.
      return true;
  }
}

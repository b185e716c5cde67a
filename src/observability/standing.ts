/** What this process knows of itself and no store tells: the state of its breaker, and what went wrong of late that is its own fault. */

import type { BreakerState } from '../model/events.ts';
import { type Alarm, type DeliveryStatus, type Failure, SIGNING } from '../model/runtime-status.ts';
import type { Handlers } from './events.ts';

/** An alarm is news for so long. */
const NEWS_MS = 3_600_000;

export interface ProcessStanding {
  breaker(state: BreakerState, retryAt: number | null): void;
  alarmed(reason: string, text: string, at: number): void;
  failed(text: string, at: number): void;
  read(now: number): DeliveryStatus;
}

export function createStanding(): ProcessStanding {
  let breaker: { state: BreakerState; retryAt: number | null } = { state: 'closed', retryAt: null };
  let lastFailure: Failure | null = null;
  const alarms = new Map<string, Alarm>();
  return {
    breaker(state, retryAt) {
      breaker = { state, retryAt };
    },
    alarmed(reason, text, at) {
      alarms.set(reason, { reason, text, lastAt: at });
    },
    failed(text, at) {
      lastFailure = { text, at };
    },
    read(now) {
      const late = [...alarms.values()].filter(({ lastAt }) => now - lastAt < NEWS_MS);
      return { breaker, alarms: late.sort((a, b) => b.lastAt - a.lastAt), lastFailure };
    },
  };
}

/** The runtime status as a subscriber. */
export function standingHandlers(standing: ProcessStanding): Handlers {
  return {
    'attempt.ended': ({ at, attempt: { outcome, remote } }) => {
      // What the circuit breaker counts against the next hop.
      if (outcome.kind !== 'unanswered' && (outcome.kind !== 'deferred' || outcome.scope !== 'transport')) return;
      const { code, enhanced, text } = outcome.reply;
      const said = [remote, code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
      standing.failed(`${'reason' in outcome ? outcome.reason : outcome.kind}: ${said}`, at);
    },
    'attempt.alarming': ({ at, reason, attempt }) => standing.alarmed(reason, attempt.outcome.reply.text, at),
    'message.unsigned': ({ at, error }) =>
      standing.alarmed(SIGNING, error instanceof Error ? error.message : String(error), at),
    'breaker.changed': ({ state, retryAt }) => standing.breaker(state, retryAt),
  };
}

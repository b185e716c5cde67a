/**
 * The runtime status of delivery: the state of the circuit breaker, recent alarms and the last failure of the next hop.
 * It exists only in memory, and a restart clears it.
 */

import { type Alarm, type DeliveryFailure, type DeliveryStatus, SIGNING_ALARM } from '../model/node.ts';
import type { Handlers } from './events.ts';

/** The time for which an alarm is shown. */
const ALARM_TTL_MS = 3_600_000;

export interface RuntimeStatusTracker {
  /** The handlers to subscribe. */
  readonly handlers: Handlers;
  read(now: number): DeliveryStatus;
}

export function trackRuntimeStatus(): RuntimeStatusTracker {
  let breaker: DeliveryStatus['breaker'] = { state: 'closed', retryAt: null };
  let lastFailure: DeliveryFailure | null = null;
  const alarms = new Map<string, Alarm>();
  return {
    handlers: {
      'attempt.ended': ({ at, attempt: { outcome, remote } }) => {
        // Records only the failures that the circuit breaker counts.
        if (outcome.kind !== 'unanswered' && (outcome.kind !== 'deferred' || outcome.scope !== 'transport')) return;
        const { code, enhanced, text } = outcome.reply;
        const reply = [remote, code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
        lastFailure = { text: `${'reason' in outcome ? outcome.reason : outcome.kind}: ${reply}`, at };
      },
      'attempt.alarm_raised': ({ at, reason, attempt }) => {
        alarms.set(reason, { reason, text: attempt.outcome.reply.text, lastAt: at });
      },
      'message.signing_failed': ({ at, error }) => {
        const text = error instanceof Error ? error.message : String(error);
        alarms.set(SIGNING_ALARM, { reason: SIGNING_ALARM, text, lastAt: at });
      },
      'circuit_breaker.opened': ({ retryAt }) => {
        breaker = { state: 'open', retryAt };
      },
      'circuit_breaker.half_opened': ({ retryAt }) => {
        breaker = { state: 'half-open', retryAt };
      },
      'circuit_breaker.closed': () => {
        breaker = { state: 'closed', retryAt: null };
      },
    },
    read(now) {
      const recent = [...alarms.values()].filter(({ lastAt }) => now - lastAt < ALARM_TTL_MS);
      return { breaker, alarms: recent.sort((a, b) => b.lastAt - a.lastAt), lastFailure };
    },
  };
}

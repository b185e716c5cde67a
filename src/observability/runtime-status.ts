/** The delivery status of this process, in memory only. */

import type { Handlers } from '../model/events.ts';
import {
  type Alarm,
  type DeliveryFailure,
  type DeliveryStatus,
  formatUnmatchedReason,
  type RefusedReports,
  SIGNING_ALARM,
} from '../model/node.ts';

const ALARM_TTL_MS = 3_600_000;

export interface RuntimeStatusTracker {
  readonly handlers: Handlers;
  read(now: number): DeliveryStatus;
  readRefusedReports(): readonly RefusedReports[];
}

export function trackRuntimeStatus(): RuntimeStatusTracker {
  let breaker: DeliveryStatus['breaker'] = { state: 'closed', retryAt: null };
  let lastFailure: DeliveryFailure | null = null;
  const alarms = new Map<string, Alarm>();
  const refusedReports = new Map<string, RefusedReports>();
  function countReports(reason: string, count: number, at: number): void {
    refusedReports.set(reason, { reason, count: (refusedReports.get(reason)?.count ?? 0) + count, lastAt: at });
  }
  return {
    handlers: {
      'attempt.ended': ({ at, attempt: { outcome, remote } }) => {
        // Only the failures that the circuit breaker counts are recorded.
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
      // The reasons are a fixed set of texts, so the number of map entries is limited.
      'report.refused': ({ at, reason, count = 1 }) => countReports(reason, count, at),
      'report.unrelated': ({ at, source, count = 1 }) => {
        if (source !== undefined) countReports(formatUnmatchedReason(source), count, at);
      },
    },
    readRefusedReports: () => [...refusedReports.values()],
    read(now) {
      const recentAlarms = [...alarms.values()].filter(({ lastAt }) => now - lastAt < ALARM_TTL_MS);
      return { breaker, alarms: recentAlarms.sort((a, b) => b.lastAt - a.lastAt), lastFailure };
    },
  };
}

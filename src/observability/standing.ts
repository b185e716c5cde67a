/** What this process knows of itself and no store tells: the state of its breaker, and what went wrong of late that is its own fault. */
import type { Alarm, DeliveryStatus, Failure } from '../model/runtime-status.ts';
import type { BreakerState } from '../transports/breaker.ts';

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

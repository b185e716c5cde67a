/** What this process knows of itself and no store tells: the state of its breaker, and what went wrong of late that is its own fault. */
import type { BreakerState } from './metrics.ts';

/** An alarm is news for so long. */
const NEWS_MS = 3_600_000;

/** The reason of an alarm that is no refusal by the next hop. */
export const SIGNING = 'signing';

/** A refusal that is about this service itself, or a message that could not be signed. */
export interface Alarm {
  /** Such as `configuration`, or `signing`. */
  readonly reason: string;
  /** The next hop's own words, untrusted; for `signing` this service's. */
  readonly text: string;
  readonly lastAt: number;
}

/** An attempt that failed for a reason which is not a message's own. */
export interface Failure {
  /** With the next hop's own words; untrusted. */
  readonly text: string;
  readonly at: number;
}

export interface ProcessStanding {
  breaker(state: BreakerState, retryAt: number | null): void;
  alarmed(reason: string, text: string, at: number): void;
  failed(text: string, at: number): void;
  read(now: number): {
    readonly breaker: { readonly state: BreakerState; readonly retryAt: number | null };
    /** The last of each reason, the newest first. */
    readonly alarms: readonly Alarm[];
    readonly lastFailure: Failure | null;
  };
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

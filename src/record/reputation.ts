/**
 * Accounts that lock themselves: hard bounces and complaints of a sliding window against thresholds. Pure. The
 * simulator's addresses never get here.
 */

/** The window, in hours and in ms; counted in buckets of one hour. */
export const WINDOW_HOURS = 168;
export const BUCKET_MS = 3_600_000;

/** Below this many emails in the window a rate says little, and absolute ceilings hold instead. */
export const EMAILS_FOR_RATES = 100;
/** For accounts with fewer emails than that: so many hard bounces or complaints lock. */
export const CEILINGS = { bounces: 10, complaints: 2 } as const;

/** An account's thresholds as fractions of its emails; 1 never locks. */
export interface Thresholds {
  readonly bounceRate: number;
  readonly complaintRate: number;
}

export const DEFAULT_THRESHOLDS: Thresholds = { bounceRate: 0.1, complaintRate: 0.0015 };

/** What the window holds: emails handed over or hard bounced, hard bounces, complaints. */
export interface WindowCounts {
  readonly emails: number;
  readonly bounces: number;
  readonly complaints: number;
}

export type Standing =
  | { readonly kind: 'good' }
  /** At half of a threshold or ceiling: nothing happens yet, and the operator is told. */
  | { readonly kind: 'warning'; readonly reason: string }
  | { readonly kind: 'lock'; readonly reason: string };

/** How the counts stand against the thresholds; the reason names the figure, the limit and the window. */
export function standing(counts: WindowCounts, thresholds: Thresholds): Standing {
  const measures = [
    measure('hard bounces', counts.bounces, counts.emails, thresholds.bounceRate, CEILINGS.bounces),
    measure('complaints', counts.complaints, counts.emails, thresholds.complaintRate, CEILINGS.complaints),
  ];
  return (
    measures.find(({ kind }) => kind === 'lock') ?? measures.find(({ kind }) => kind === 'warning') ?? { kind: 'good' }
  );
}

function measure(what: string, count: number, emails: number, rate: number, ceiling: number): Standing {
  if (count === 0 || rate >= 1) return { kind: 'good' };
  const few = emails < EMAILS_FOR_RATES;
  const reached = few ? count / ceiling : count / emails / rate;
  const limit = few ? `${ceiling} while there are fewer than ${EMAILS_FOR_RATES} emails` : percent(rate);
  const reason = `${count} ${count === 1 ? what.slice(0, -1) : what} of ${emails} emails in 7 days (${percent(count / Math.max(1, emails))}; the limit is ${limit})`;
  if (reached >= 1) return { kind: 'lock', reason };
  return reached >= 0.5 ? { kind: 'warning', reason } : { kind: 'good' };
}

/** `0.0015` as `0.15 %`. */
export function percent(part: number): string {
  return `${Number((part * 100).toFixed(2))} %`;
}

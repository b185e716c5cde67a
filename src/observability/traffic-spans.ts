/**
 * The sums of one node by minute or by hour, those of the last while kept in memory: a row is written whole, so whoever comes
 * back to a span after the clock was set goes on from what was counted of it.
 */
import type { TrafficCount, TrafficRow } from '../model/traffic.ts';

/** Kept where they are written; while the store is away, so many wait, and beyond them the oldest go. */
const MOST_KEPT = 64;
const MOST_WAITING = 240;

export interface Span {
  readonly sums: Record<TrafficCount, number> & {
    readonly spanMs: TrafficRow['spanMs'];
    readonly at: number;
    readonly latencies: Map<number, number>;
  };
  /** How often something was counted in it, and how much of that is written. */
  counted: number;
  written: number;
}

export interface Spans {
  /** The one that holds a time; what it has is what was counted of it before. */
  at(now: number): Span;
  unwritten(): readonly Span[];
}

export function createSpans(spanMs: TrafficRow['spanMs']): Spans {
  /** By their beginning, the least lately used first. */
  const kept = new Map<number, Span>();

  /** Never the one in use: it is the last. */
  function forget(): void {
    for (const [at, { counted, written }] of kept) {
      if (kept.size <= MOST_KEPT) return;
      if (counted === written || kept.size > MOST_WAITING) kept.delete(at);
    }
  }

  return {
    at(now) {
      const at = now - (now % spanMs);
      const span = kept.get(at) ?? { sums: emptySums(spanMs, at), counted: 0, written: 0 };
      kept.delete(at);
      kept.set(at, span);
      forget();
      return span;
    },
    unwritten: () => [...kept.values()].filter(({ counted, written }) => counted !== written),
  };
}

function emptySums(spanMs: TrafficRow['spanMs'], at: number): Span['sums'] {
  return {
    spanMs,
    at,
    accepted: 0,
    delivered: 0,
    deferred: 0,
    bounced: 0,
    complained: 0,
    suppressed: 0,
    expired: 0,
    ended: 0,
    alarmed: 0,
    latencies: new Map(),
  };
}

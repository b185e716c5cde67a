/**
 * Figures over time, counted in memory by whoever hears of them and written into the store about once a second where something
 * was counted, and a last time at the stop. Nothing waits for it: a process that is killed loses at most the last second of its
 * figures, and never a mail.
 */
import type { Clock } from '../clock.ts';
import { latencyBucket } from '../record/latency.ts';
import type { State } from '../record/states.ts';
import type { TrafficCount, TrafficRow, TrafficStore } from '../store/traffic.ts';

const WRITE_EVERY_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** While the store is away the last spans wait; beyond so many the oldest go. */
const MOST_WAITING = 240;

export interface TrafficCounter {
  accepted(): void;
  /** A mail request entered a state through the queue; `tookMs` from accepted, where it was delivered. */
  entered(state: State, tookMs?: number): void;
  /** A notice of later changed a state: what left the queue left it before. */
  noticed(state: 'bounced' | 'complained'): void;
  deferred(): void;
  alarmed(): void;
  /** Writes what is not written yet, and stops. */
  stop(): Promise<void>;
}

type Sums = Record<TrafficCount, number> & {
  readonly spanMs: TrafficRow['spanMs'];
  readonly at: number;
  readonly latencies: Map<number, number>;
};

export interface TrafficParts {
  readonly node: string;
  readonly clock: Clock;
  readonly put: TrafficStore['putTraffic'];
  /** Told once when writing begins to fail. */
  readonly failed: (error: unknown) => void;
}

/** Starts counting; nothing runs while nothing is counted. */
export function countTraffic({ node, clock, put, failed }: TrafficParts): TrafficCounter {
  let minute = emptySums(MINUTE_MS, 0);
  let hour = emptySums(HOUR_MS, 0);
  /** True where the two hold what is not written yet. */
  let fresh = false;
  /** Spans that are over and not written as they are. */
  let waiting: Sums[] = [];
  let cancel: (() => void) | null = null;
  let writing: Promise<void> = Promise.resolve();
  let failing = false;
  let stopped = false;

  function count(name: TrafficCount): void {
    const now = clock.now();
    if (now - minute.at >= MINUTE_MS || now < minute.at) turn(now);
    minute[name] += 1;
    hour[name] += 1;
    fresh = true;
    if (cancel === null && !stopped) cancel = clock.after(WRITE_EVERY_MS, begin);
  }

  /** A span is over, or the clock was set. What was written of an hour that comes again is then written anew. */
  function turn(now: number): void {
    const next = (sums: Sums): Sums => {
      const at = now - (now % sums.spanMs);
      if (at === sums.at) return sums;
      if (fresh) waiting.push(sums);
      return emptySums(sums.spanMs, at);
    };
    minute = next(minute);
    hour = next(hour);
  }

  function begin(): void {
    writing = write();
  }

  async function write(): Promise<void> {
    const batch = [...waiting, ...(fresh ? [minute, hour] : [])];
    waiting = [];
    fresh = false;
    try {
      if (batch.length > 0) await put(node, batch);
      failing = false;
    } catch (error) {
      // Rows are whole each time: what is counted meanwhile is in the same objects.
      waiting = [...new Set([...batch.filter((sums) => sums !== minute && sums !== hour), ...waiting])];
      waiting = waiting.slice(-MOST_WAITING);
      fresh = true;
      if (!failing) failed(error);
      failing = true;
    }
    cancel = (fresh || waiting.length > 0) && !stopped ? clock.after(WRITE_EVERY_MS, begin) : null;
  }

  return {
    accepted: () => count('accepted'),
    entered(state, tookMs) {
      if (state !== 'delivered' && state !== 'bounced' && state !== 'suppressed' && state !== 'expired') return;
      count(state);
      minute.ended += 1;
      hour.ended += 1;
      if (state !== 'delivered' || tookMs === undefined) return;
      const bucket = latencyBucket(tookMs);
      for (const { latencies } of [minute, hour]) latencies.set(bucket, (latencies.get(bucket) ?? 0) + 1);
    },
    noticed: count,
    deferred: () => count('deferred'),
    alarmed: () => count('alarmed'),
    async stop() {
      cancel?.();
      stopped = true;
      await writing;
      await write();
    },
  };
}

function emptySums(spanMs: TrafficRow['spanMs'], at: number): Sums {
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

/**
 * Figures over time, counted in memory by whoever hears of them and written into the store about once a second where something
 * was counted, and a last time at the stop. Nothing waits for it: a process that is killed loses at most the last second of its
 * figures, and never a mail.
 */

import type { Clock } from '../clock.ts';
import { latencyBucket } from '../model/latency.ts';
import type { State } from '../model/state-machine.ts';
import type { TrafficCount } from '../model/traffic.ts';
import type { TrafficStore } from '../store/contract.ts';
import type { Handlers } from './events.ts';
import { createSpans, type Span } from './traffic-spans.ts';

const WRITE_EVERY_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** What leaves the queue for good, and the figure of its own that it has. */
const ENDS: Readonly<Partial<Record<State, TrafficCount | null>>> = {
  delivered: 'delivered',
  bounced: 'bounced',
  suppressed: 'suppressed',
  expired: 'expired',
  cancelled: null,
};

export interface TrafficCounter {
  accepted(): void;
  /** A mail request entered a state through the queue or by an operator's word; `tookMs` from accepted, where it was delivered. */
  entered(state: State, tookMs?: number): void;
  /** A notice of later changed a state: what left the queue left it before. */
  noticed(state: 'bounced' | 'complained'): void;
  deferred(): void;
  alarmed(): void;
  /** Writes what is not written yet, and stops. */
  stop(): Promise<void>;
}

export interface TrafficParts {
  readonly node: string;
  readonly clock: Clock;
  readonly put: TrafficStore['putTraffic'];
  /** Told once when writing begins to fail. */
  readonly failed: (error: unknown) => void;
}

/** Starts counting; nothing runs while nothing is counted. */
export function countTraffic({ node, clock, put, failed }: TrafficParts): TrafficCounter {
  const minutes = createSpans(MINUTE_MS);
  const hours = createSpans(HOUR_MS);
  let minute: Span | null = null;
  let hour: Span | null = null;
  let cancel: (() => void) | null = null;
  let writing: Promise<void> = Promise.resolve();
  let failing = false;
  let stopped = false;

  /** Counts in the minute and the hour of now; a clock that was set back finds those it counted in before. */
  function count(add: (sums: Span['sums']) => void): void {
    const now = clock.now();
    if (minute === null || hour === null || now - minute.sums.at >= MINUTE_MS || now < minute.sums.at) {
      minute = minutes.at(now);
      hour = hours.at(now);
    }
    for (const span of [minute, hour]) {
      add(span.sums);
      span.counted += 1;
    }
    if (cancel === null && !stopped) cancel = clock.after(WRITE_EVERY_MS, begin);
  }

  function one(name: TrafficCount): void {
    count((sums) => {
      sums[name] += 1;
    });
  }

  function begin(): void {
    writing = write();
  }

  async function write(): Promise<void> {
    const batch = unwritten().map((span) => ({ span, counted: span.counted }));
    try {
      if (batch.length > 0)
        await put(
          node,
          batch.map(({ span }) => span.sums),
        );
      // What was counted meanwhile may be in those rows or not: it is written again.
      for (const { span, counted } of batch) span.written = counted;
      failing = false;
    } catch (error) {
      if (!failing) failed(error);
      failing = true;
    }
    cancel = unwritten().length > 0 && !stopped ? clock.after(WRITE_EVERY_MS, begin) : null;
  }

  const unwritten = () => [...minutes.unwritten(), ...hours.unwritten()];

  return {
    accepted: () => one('accepted'),
    entered(state, tookMs) {
      const name = ENDS[state];
      if (name === undefined) return;
      const bucket = state === 'delivered' && tookMs !== undefined ? latencyBucket(tookMs) : null;
      count((sums) => {
        if (name !== null) sums[name] += 1;
        sums.ended += 1;
        if (bucket !== null) sums.latencies.set(bucket, (sums.latencies.get(bucket) ?? 0) + 1);
      });
    },
    noticed: one,
    deferred: () => one('deferred'),
    alarmed: () => one('alarmed'),
    async stop() {
      cancel?.();
      stopped = true;
      await writing;
      await write();
    },
  };
}

/** The time series as a subscriber. What a report says later is counted by itself: the message left the queue before. */
export function trafficHandlers(traffic: TrafficCounter): Handlers {
  return {
    'message.accepted': () => traffic.accepted(),
    'message.suppressed': () => traffic.entered('suppressed'),
    'message.delivered': ({ at, acceptedAt }) =>
      acceptedAt === null ? traffic.entered('delivered') : traffic.entered('delivered', at - acceptedAt),
    'message.deferred': () => traffic.deferred(),
    'message.bounced': ({ reportedBy }) =>
      reportedBy === null ? traffic.entered('bounced') : traffic.noticed('bounced'),
    'message.complained': () => traffic.noticed('complained'),
    'message.expired': () => traffic.entered('expired'),
    'message.cancelled': () => traffic.entered('cancelled'),
    'message.unsigned': () => traffic.alarmed(),
    'attempt.alarming': () => traffic.alarmed(),
  };
}

/**
 * The traffic time series: counts messages by minute and by hour in memory. Writes changed rows to the store once per
 * second and once more when it is stopped.
 *
 * Guarantees: a count never waits for a write. A write replaces the whole row, so a repeated write counts no message
 * twice. A process that is killed loses at most the figures of its last second. While the store does not answer, at
 * most `MAX_UNWRITTEN_ROWS` rows per time series wait; the oldest rows are dropped.
 */

import type { Clock } from '../clock.ts';
import type { State } from '../model/message.ts';
import { getLatencyBucket, HOUR_MS, MINUTE_MS, type TrafficCount, type TrafficRow } from '../model/traffic.ts';
import type { TrafficStore } from '../store/contract.ts';
import type { Handlers } from './events.ts';

const WRITE_INTERVAL_MS = 1_000;
/**
 * Maximum number of rows in memory. Written rows remain in memory, because their counts continue if the clock is set
 * back.
 */
const MAX_CACHED_ROWS = 64;
const MAX_UNWRITTEN_ROWS = 240;

/** The states in which a message leaves the queue, and the figure that counts each state. */
const COUNT_BY_END_STATE: Readonly<Partial<Record<State, TrafficCount | null>>> = {
  delivered: 'delivered',
  bounced: 'bounced',
  suppressed: 'suppressed',
  expired: 'expired',
  cancelled: null,
};

export interface TrafficCounter {
  accepted(): void;
  /**
   * Counts a message that entered a state through the queue or by an operator. `tookMs` is the time from acceptance to
   * delivery.
   */
  entered(state: State, tookMs?: number): void;
  /** Counts a message whose state was changed by a report after it had left the queue. */
  reported(state: 'bounced' | 'complained'): void;
  deferred(): void;
  alarmed(): void;
  /** Writes the remaining rows and stops. */
  stop(): Promise<void>;
}

export interface TrafficParts {
  readonly node: string;
  readonly clock: Clock;
  readonly writeRows: TrafficStore['writeTraffic'];
  /** Receives the first error when writes begin to fail. Called again only after a write has succeeded. */
  readonly onWriteError: (error: unknown) => void;
}

/** Creates a counter. No timer runs while there is no count to write. */
export function startTrafficCounter({ node, clock, writeRows, onWriteError }: TrafficParts): TrafficCounter {
  const minutes = createRows(MINUTE_MS);
  const hours = createRows(HOUR_MS);
  let minute: CountedRow | null = null;
  let hour: CountedRow | null = null;
  let cancel: (() => void) | null = null;
  let writing: Promise<void> = Promise.resolve();
  let failing = false;
  let stopped = false;

  /**
   * Adds to the rows of the current minute and hour. After the clock was set back, the counts continue in the earlier
   * rows.
   */
  function count(add: (sums: CountedRow['sums']) => void): void {
    const now = clock.now();
    if (minute === null || hour === null || now - minute.sums.at >= MINUTE_MS || now < minute.sums.at) {
      minute = minutes.at(now);
      hour = hours.at(now);
    }
    for (const row of [minute, hour]) {
      add(row.sums);
      row.counted += 1;
    }
    if (cancel === null && !stopped) cancel = clock.after(WRITE_INTERVAL_MS, startWrite);
  }

  function increment(name: TrafficCount): void {
    count((sums) => {
      sums[name] += 1;
    });
  }

  function startWrite(): void {
    writing = write();
  }

  async function write(): Promise<void> {
    const batch = unwritten().map((row) => ({ row, counted: row.counted }));
    try {
      if (batch.length > 0)
        await writeRows(
          node,
          batch.map(({ row }) => row.sums),
        );
      // The write may not contain the counts that were added while it ran. Rows with such counts are written again.
      for (const { row, counted } of batch) row.written = counted;
      failing = false;
    } catch (error) {
      if (!failing) onWriteError(error);
      failing = true;
    }
    cancel = unwritten().length > 0 && !stopped ? clock.after(WRITE_INTERVAL_MS, startWrite) : null;
  }

  const unwritten = () => [...minutes.unwritten(), ...hours.unwritten()];

  return {
    accepted: () => increment('accepted'),
    entered(state, tookMs) {
      const name = COUNT_BY_END_STATE[state];
      if (name === undefined) return;
      const bucket = state === 'delivered' && tookMs !== undefined ? getLatencyBucket(tookMs) : null;
      count((sums) => {
        if (name !== null) sums[name] += 1;
        sums.ended += 1;
        if (bucket !== null) sums.latencies.set(bucket, (sums.latencies.get(bucket) ?? 0) + 1);
      });
    },
    reported: increment,
    deferred: () => increment('deferred'),
    alarmed: () => increment('alarmed'),
    async stop() {
      cancel?.();
      stopped = true;
      await writing;
      await write();
    },
  };
}

/**
 * Returns the event handlers of the time series. Asynchronous bounces and complaints are counted separately, because
 * their messages have already left the queue.
 */
export function trafficHandlers(traffic: TrafficCounter): Handlers {
  return {
    'message.accepted': () => traffic.accepted(),
    'message.suppressed': () => traffic.entered('suppressed'),
    'message.delivered': ({ at, acceptedAt }) =>
      acceptedAt === null ? traffic.entered('delivered') : traffic.entered('delivered', at - acceptedAt),
    'message.deferred': () => traffic.deferred(),
    'message.bounced': ({ reportedBy }) =>
      reportedBy === null ? traffic.entered('bounced') : traffic.reported('bounced'),
    'message.complained': () => traffic.reported('complained'),
    'message.expired': () => traffic.entered('expired'),
    'message.cancelled': () => traffic.entered('cancelled'),
    'message.signing_failed': () => traffic.alarmed(),
    'attempt.alarm_raised': () => traffic.alarmed(),
  };
}

interface CountedRow {
  readonly sums: Record<TrafficCount, number> & {
    readonly spanMs: TrafficRow['spanMs'];
    readonly at: number;
    readonly latencies: Map<number, number>;
  };
  /** `counted` is the number of changes of the row. `written` is this number at the last successful write. */
  counted: number;
  written: number;
}

interface Rows {
  /** Returns the row to which a time belongs. */
  at(now: number): CountedRow;
  unwritten(): readonly CountedRow[];
}

function createRows(spanMs: TrafficRow['spanMs']): Rows {
  /** The rows by start time. The least recently used row is the first one. */
  const rows = new Map<number, CountedRow>();

  /** Drops the oldest rows. The current row is the last one, so it is never dropped. */
  function evict(): void {
    for (const [at, { counted, written }] of rows) {
      if (rows.size <= MAX_CACHED_ROWS) return;
      if (counted === written || rows.size > MAX_UNWRITTEN_ROWS) rows.delete(at);
    }
  }

  return {
    at(now) {
      const at = now - (now % spanMs);
      const row = rows.get(at) ?? { sums: createEmptySums(spanMs, at), counted: 0, written: 0 };
      rows.delete(at);
      rows.set(at, row);
      evict();
      return row;
    },
    unwritten: () => [...rows.values()].filter(({ counted, written }) => counted !== written),
  };
}

function createEmptySums(spanMs: TrafficRow['spanMs'], at: number): CountedRow['sums'] {
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

/**
 * Counts messages by minute and by hour in memory, and writes the changed rows of these time series to the store. The
 * counter writes at most once per second, and once more when it stops.
 *
 * Guarantees: a count never waits for a write. A write replaces the whole row, so a repeated write counts no message
 * twice. A process that is killed loses at most the figures of its last second. While the store does not answer, at
 * most `MAX_UNWRITTEN_ROWS` rows per time series wait; if there are more, the oldest rows are dropped.
 */

import type { Clock } from '../clock.ts';
import type { Failure } from '../model/failure.ts';
import type { State } from '../model/message.ts';
import {
  getFailureKey,
  getLatencyBucket,
  HOUR_MS,
  MINUTE_MS,
  type TrafficCount,
  type TrafficRow,
} from '../model/traffic.ts';
import type { TrafficStore } from '../store/contract.ts';
import { type Handlers, ignoreSimulated } from './events.ts';

const WRITE_INTERVAL_MS = 1_000;
/**
 * If more rows than this number are in memory, written rows are dropped. Up to this number, written rows remain in
 * memory, because counting continues in them if the clock is set back.
 */
const MAX_CACHED_ROWS = 64;
const MAX_UNWRITTEN_ROWS = 240;

/** The states in which a message leaves the queue, and the count that each state increases. */
const COUNT_BY_END_STATE: Readonly<Partial<Record<State, TrafficCount | null>>> = {
  delivered: 'delivered',
  bounced: 'bounced',
  suppressed: 'suppressed',
  expired: 'expired',
  cancelled: null,
};

export interface TrafficCounter {
  countAccepted(): void;
  /**
   * Counts a message whose state the queue or an operator changed. `tookMs` is the time from acceptance to delivery.
   */
  countStateEntry(state: State, tookMs?: number): void;
  /** Counts a bounced message by its failure. */
  countBounce(failure: Failure): void;
  /** Counts a message whose delivery the provider reported. `tookMs` is the time from acceptance to this report. */
  countConfirmed(tookMs: number): void;
  /** Counts a message whose state a report changed after the message had left the queue. */
  countReport(state: 'bounced' | 'complained'): void;
  countDeferred(): void;
  countAlarm(): void;
  /** Writes the remaining rows and stops. */
  stop(): Promise<void>;
}

export interface TrafficParts {
  readonly node: string;
  readonly clock: Clock;
  readonly writeRows: TrafficStore['writeTraffic'];
  /** Receives the first error of a series of failed writes. A successful write ends the series. */
  readonly onWriteError: (error: unknown) => void;
}

/** Creates a counter. No timer runs while there is no count to write. */
export function startTrafficCounter({ node, clock, writeRows, onWriteError }: TrafficParts): TrafficCounter {
  const minuteRows = createRows(MINUTE_MS);
  const hourRows = createRows(HOUR_MS);
  let minuteRow: CountedRow | null = null;
  let hourRow: CountedRow | null = null;
  let cancelWrite: (() => void) | null = null;
  let currentWrite: Promise<void> = Promise.resolve();
  let isFailing = false;
  let isStopped = false;

  /**
   * Adds a count to the rows of the current minute and hour. If the clock was set back, counting continues in the
   * earlier rows.
   */
  function count(addCount: (sums: CountedRow['sums']) => void): void {
    const now = clock.now();
    if (minuteRow === null || hourRow === null || now - minuteRow.sums.at >= MINUTE_MS || now < minuteRow.sums.at) {
      minuteRow = minuteRows.getRow(now);
      hourRow = hourRows.getRow(now);
    }
    for (const row of [minuteRow, hourRow]) {
      addCount(row.sums);
      row.changeCount += 1;
    }
    if (cancelWrite === null && !isStopped) cancelWrite = clock.after(WRITE_INTERVAL_MS, startWrite);
  }

  function increment(name: TrafficCount): void {
    count((sums) => {
      sums[name] += 1;
    });
  }

  function startWrite(): void {
    currentWrite = write();
  }

  async function write(): Promise<void> {
    const batch = listUnwritten().map((row) => ({ row, counted: row.changeCount }));
    try {
      if (batch.length > 0)
        await writeRows(
          node,
          batch.map(({ row }) => row.sums),
        );
      // Counts that were added during the write may be missing from it. Rows with such counts are written again.
      for (const { row, counted } of batch) row.writtenChangeCount = counted;
      isFailing = false;
    } catch (error) {
      if (!isFailing) onWriteError(error);
      isFailing = true;
    }
    cancelWrite = listUnwritten().length > 0 && !isStopped ? clock.after(WRITE_INTERVAL_MS, startWrite) : null;
  }

  const listUnwritten = () => [...minuteRows.listUnwritten(), ...hourRows.listUnwritten()];

  return {
    countAccepted: () => increment('accepted'),
    countStateEntry(state, tookMs) {
      const name = COUNT_BY_END_STATE[state];
      if (name === undefined) return;
      const bucket = state === 'delivered' && tookMs !== undefined ? getLatencyBucket(tookMs) : null;
      count((sums) => {
        if (name !== null) sums[name] += 1;
        sums.ended += 1;
        if (bucket !== null) sums.latencies.set(bucket, (sums.latencies.get(bucket) ?? 0) + 1);
      });
    },
    countBounce(failure) {
      const key = getFailureKey(failure);
      count(({ bounces }) => bounces.set(key, (bounces.get(key) ?? 0) + 1));
    },
    countConfirmed(tookMs) {
      const bucket = getLatencyBucket(tookMs);
      count((sums) => {
        sums.confirmed += 1;
        sums.confirmations.set(bucket, (sums.confirmations.get(bucket) ?? 0) + 1);
      });
    },
    countReport: increment,
    countDeferred: () => increment('deferred'),
    countAlarm: () => increment('alarmed'),
    async stop() {
      cancelWrite?.();
      isStopped = true;
      await currentWrite;
      await write();
    },
  };
}

/**
 * Returns the event handlers of the time series. Asynchronous bounces and complaints are counted separately, because
 * their messages have already left the queue.
 */
export function createTrafficHandlers(traffic: TrafficCounter): Handlers {
  return ignoreSimulated({
    'message.accepted': () => traffic.countAccepted(),
    'message.suppressed': () => traffic.countStateEntry('suppressed'),
    'message.delivered': ({ at, acceptedAt, reportedBy }) => {
      if (acceptedAt === null) return traffic.countStateEntry('delivered');
      traffic.countStateEntry('delivered', at - acceptedAt);
      // Of all reports, only the delivery event of a provider sets `delivered`, so this event also confirms the
      // delivery.
      if (reportedBy !== null) traffic.countConfirmed(at - acceptedAt);
    },
    'message.confirmed': ({ at, acceptedAt }) => traffic.countConfirmed(at - acceptedAt),
    'message.deferred': () => traffic.countDeferred(),
    'message.bounced': ({ reportedBy, failure }) => {
      if (reportedBy === null) traffic.countStateEntry('bounced');
      else traffic.countReport('bounced');
      if (failure !== null) traffic.countBounce(failure);
    },
    'message.complained': () => traffic.countReport('complained'),
    'message.expired': () => traffic.countStateEntry('expired'),
    'message.cancelled': () => traffic.countStateEntry('cancelled'),
    'message.signing_failed': () => traffic.countAlarm(),
    'attempt.alarm_raised': () => traffic.countAlarm(),
  });
}

interface CountedRow {
  readonly sums: Record<TrafficCount, number> & {
    readonly spanMs: TrafficRow['spanMs'];
    readonly at: number;
    readonly latencies: Map<number, number>;
    readonly confirmations: Map<number, number>;
    readonly bounces: Map<string, number>;
  };
  /**
   * `changeCount` is the number of changes to the row. `writtenChangeCount` is the value of `changeCount` at the start
   * of the last successful write.
   */
  changeCount: number;
  writtenChangeCount: number;
}

interface Rows {
  /** Returns the row to which a time belongs. */
  getRow(now: number): CountedRow;
  listUnwritten(): readonly CountedRow[];
}

function createRows(spanMs: TrafficRow['spanMs']): Rows {
  /** The rows by start time. The least recently used row is the first row. */
  const rows = new Map<number, CountedRow>();

  /** Drops the oldest rows if there are too many. The current row is the last row, so it is never dropped. */
  function dropOldestRows(): void {
    for (const [at, { changeCount, writtenChangeCount }] of rows) {
      if (rows.size <= MAX_CACHED_ROWS) return;
      if (changeCount === writtenChangeCount || rows.size > MAX_UNWRITTEN_ROWS) rows.delete(at);
    }
  }

  return {
    getRow(now) {
      const at = now - (now % spanMs);
      const row = rows.get(at) ?? { sums: createEmptySums(spanMs, at), changeCount: 0, writtenChangeCount: 0 };
      rows.delete(at);
      rows.set(at, row);
      dropOldestRows();
      return row;
    },
    listUnwritten: () =>
      [...rows.values()].filter(({ changeCount, writtenChangeCount }) => changeCount !== writtenChangeCount),
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
    confirmed: 0,
    latencies: new Map(),
    confirmations: new Map(),
    bounces: new Map(),
  };
}

/**
 * A count never waits for a write. A write replaces the whole row, so a repeated write counts no message twice. A
 * killed process loses at most the figures of its last second.
 */
import type { Clock } from '../clock.ts';
import { getFailureKey, HOUR_MS, MINUTE_MS, type TrafficCount, type TrafficRow } from '../model/traffic.ts';
import type { TrafficStore } from '../store/contract.ts';
import { addToSums, type Count, increment, type Series } from './counts.ts';

const WRITE_INTERVAL_MS = 1_000;
/** Written rows remain in memory up to this number, because counting continues in them if the clock is set back. */
const MAX_CACHED_ROWS = 128;
/** While the store does not answer, the oldest rows above this number are dropped. */
const MAX_UNWRITTEN_ROWS = 480;

export interface TrafficParts {
  readonly node: string;
  readonly clock: Clock;
  readonly writeRows: TrafficStore['writeTraffic'];
  /** Receives the first error of a series of failed writes. A successful write ends the series. */
  readonly onWriteError: (error: unknown) => void;
}

export interface StoredSeries extends Series {
  stop(): Promise<void>;
}

interface CountedRow {
  readonly sums: Record<TrafficCount, number> & {
    readonly spanMs: TrafficRow['spanMs'];
    readonly at: number;
    readonly latencies: Map<number, number>;
    readonly confirmations: Map<number, number>;
    readonly bounces: Map<string, number>;
  };
  changeCount: number;
  writtenChangeCount: number;
}

export function startTrafficCounter({ node, clock, writeRows, onWriteError }: TrafficParts): StoredSeries {
  /** By span and start. The least recently used row is the first row, the current rows are the last. */
  const rows = new Map<string, CountedRow>();
  let currentMinuteAt = Number.NaN;
  let currentRows: readonly CountedRow[] = [];
  let cancelWrite: (() => void) | null = null;
  let currentWrite: Promise<void> = Promise.resolve();
  let isFailing = false;
  let isStopped = false;

  /** Adds to the rows of the current minute and hour, which are earlier rows if the clock was set back. */
  function add(count: Count): void {
    const now = clock.now();
    const minuteAt = now - (now % MINUTE_MS);
    if (minuteAt !== currentMinuteAt) {
      currentMinuteAt = minuteAt;
      currentRows = [openRow(MINUTE_MS, now), openRow(HOUR_MS, now)];
    }
    for (const row of currentRows) {
      addToSums<TrafficCount>(row.sums, count.names, count);
      if (count.failure !== undefined && count.failure !== null)
        increment(row.sums.bounces, getFailureKey(count.failure));
      row.changeCount += 1;
    }
    if (cancelWrite === null && !isStopped) cancelWrite = clock.after(WRITE_INTERVAL_MS, startWrite);
  }

  function openRow(spanMs: TrafficRow['spanMs'], now: number): CountedRow {
    const at = now - (now % spanMs);
    const key = `${spanMs} ${at}`;
    const row = rows.get(key) ?? { sums: createEmptySums(spanMs, at), changeCount: 0, writtenChangeCount: 0 };
    rows.delete(key);
    rows.set(key, row);
    for (const [oldKey, { changeCount, writtenChangeCount }] of rows) {
      if (rows.size <= MAX_CACHED_ROWS) break;
      if (changeCount === writtenChangeCount || rows.size > MAX_UNWRITTEN_ROWS) rows.delete(oldKey);
    }
    return row;
  }

  const listUnwritten = () =>
    [...rows.values()].filter(({ changeCount, writtenChangeCount }) => changeCount !== writtenChangeCount);

  function startWrite(): void {
    currentWrite = write();
  }

  async function write(): Promise<void> {
    const batch = listUnwritten().map((row) => ({ row, counted: row.changeCount }));
    const sums = batch.map(({ row }) => row.sums);
    try {
      if (batch.length > 0) await writeRows(node, sums);
      // Counts that were added during the write may be missing from it. Rows with such counts are written again.
      for (const { row, counted } of batch) row.writtenChangeCount = counted;
      isFailing = false;
    } catch (error) {
      if (!isFailing) onWriteError(error);
      isFailing = true;
    }
    cancelWrite = listUnwritten().length > 0 && !isStopped ? clock.after(WRITE_INTERVAL_MS, startWrite) : null;
  }

  return {
    add,
    async stop() {
      cancelWrite?.();
      isStopped = true;
      await currentWrite;
      await write();
    },
  };
}

function createEmptySums(spanMs: TrafficRow['spanMs'], at: number): CountedRow['sums'] {
  return {
    ...{ spanMs, at, accepted: 0, delivered: 0, deferred: 0, bounced: 0, complained: 0, suppressed: 0 },
    ...{ expired: 0, ended: 0, alarmed: 0, confirmed: 0 },
    ...{ latencies: new Map(), confirmations: new Map(), bounces: new Map() },
  };
}

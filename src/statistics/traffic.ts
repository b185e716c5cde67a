/**
 * A count never waits for a write. A write replaces the whole row, so a repeated write counts no message twice. A
 * killed process loses at most the figures of its last second.
 */
import type { Clock } from '../clock.ts';
import type { EventOf, EventType, Handlers, ServiceEvent } from '../model/events.ts';
import type { Failure } from '../model/failure.ts';
import { isSimulated } from '../model/outcome.ts';
import { DEFAULT_ROUTE } from '../model/route.ts';
import {
  getFailureKey,
  getLatencyBucket,
  HOUR_MS,
  MINUTE_MS,
  type TrafficCount,
  type TrafficRow,
} from '../model/traffic.ts';
import type { TrafficStore } from '../store/contract.ts';

export type GroupedName = Exclude<TrafficCount, 'suppressed' | 'expired' | 'alarmed'>;

/** The message of an event. Addresses are as submitted. */
interface Message {
  readonly accountId: number;
  readonly from: string;
  readonly to: string;
}

export interface CountBase {
  readonly latencyMs?: number | null;
  readonly confirmationMs?: number | null;
  readonly failure?: Failure | null;
  /** The route that handed the message over, or tried to. */
  readonly route?: string;
  readonly attemptMs?: number | null;
}

/** What one event adds to the series. Only a count with a message is added to the series by account and domain. */
export type Count = CountBase &
  (
    | { readonly names: readonly GroupedName[]; readonly message: Message }
    | { readonly names: readonly TrafficCount[]; readonly message: null }
  );

export interface Series {
  add(count: Count): void;
}

/** Returns the event handlers that count for all series. Messages to the mailbox simulator count nowhere. */
export function createCountHandlers(allSeries: readonly Series[]): Handlers {
  const add = (count: Count) => {
    for (const series of allSeries) series.add(count);
  };
  const addForMessage = (
    event: { readonly [Name in keyof Message]: Message[Name] | null },
    names: readonly GroupedName[],
    base: CountBase = {},
  ) => {
    const { accountId, from, to } = event;
    const message = accountId === null || from === null || to === null ? null : { accountId, from, to };
    add({ names, message, ...base });
  };
  return ignoreSimulated({
    'message.accepted': (event) => addForMessage(event, ['accepted']),
    'message.suppressed': () => add({ names: ['suppressed', 'ended'], message: null }),
    'message.delivered': (event) => {
      const { at, acceptedAt, reportedBy } = event;
      const routed = readRoute(event);
      const latencyMs = acceptedAt === null ? null : at - acceptedAt;
      // Of all reports, only the delivery event of a provider sets `delivered`, so it also confirms the delivery.
      if (reportedBy === null || latencyMs === null)
        addForMessage(event, ['delivered', 'ended'], { ...routed, latencyMs });
      else
        addForMessage(event, ['delivered', 'ended', 'confirmed'], { ...routed, latencyMs, confirmationMs: latencyMs });
    },
    'message.confirmed': (event) =>
      addForMessage(event, ['confirmed'], { confirmationMs: event.at - event.acceptedAt }),
    'message.deferred': (event) => addForMessage(event, ['deferred'], readRoute(event)),
    'message.bounced': (event) => {
      const { reportedBy, failure } = event;
      addForMessage(event, reportedBy === null ? ['bounced', 'ended'] : ['bounced'], { ...readRoute(event), failure });
    },
    'message.complained': (event) => addForMessage(event, ['complained'], readRoute(event)),
    'message.expired': () => add({ names: ['expired', 'ended'], message: null }),
    'message.cancelled': () => add({ names: ['ended'], message: null }),
    'message.signing_failed': () => add({ names: ['alarmed'], message: null }),
    'attempt.alarm_raised': () => add({ names: ['alarmed'], message: null }),
  });
}

function readRoute({
  attempt,
  route,
}: Pick<EventOf<'message.delivered'>, 'attempt' | 'route'>): Pick<CountBase, 'route' | 'attemptMs'> {
  return { route: attempt?.route ?? route ?? DEFAULT_ROUTE, attemptMs: attempt?.tookMs ?? null };
}

type Sums<Name extends string> = Record<Name, number> & {
  readonly latencies: Map<number, number>;
  readonly confirmations: Map<number, number>;
};

export function addToSums<Name extends TrafficCount>(
  sums: Sums<Name>,
  names: readonly Name[],
  { latencyMs = null, confirmationMs = null }: CountBase,
): void {
  const counts: Record<Name, number> = sums;
  for (const name of names) counts[name] += 1;
  if (latencyMs !== null) increment(sums.latencies, getLatencyBucket(latencyMs));
  if (confirmationMs !== null) increment(sums.confirmations, getLatencyBucket(confirmationMs));
}

export function increment<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

type Handler = (event: ServiceEvent) => void;

/** Returns the handlers without the events about messages to the mailbox simulator, which count in no figure. */
export function ignoreSimulated(handlers: Handlers): Handlers {
  const entries = Object.entries(handlers) as [EventType, Handler][];
  const isCounted = (event: ServiceEvent) => !('to' in event) || event.to === null || !isSimulated(event.to);
  const filter = (handler: Handler) => (event: ServiceEvent) => isCounted(event) && handler(event);
  return Object.fromEntries(entries.map(([type, handler]) => [type, filter(handler)]));
}

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

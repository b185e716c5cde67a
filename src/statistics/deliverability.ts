/**
 * An event increases the counts of one group: an account, sending domain and recipient domain. Once per second, the
 * groups are added to the series of every span. Memory and rows are bounded, and the sum of a row is exact for any
 * number of keys. Counting never waits. A write replaces the whole row, so a repeated write counts no message twice.
 */
import { getDomain } from '../model/address.ts';
import {
  createFrequentKeys,
  createKeyCounts,
  type DeliverabilityRow,
  type FrequentKeys,
  formatKeyCounts,
  type MutableKeyCounts,
  REMAINDER_KEY,
  SERIES,
  type Series,
  SPANS_MS,
  type SpanMs,
} from '../model/deliverability.ts';
import type { MailboxProvider } from '../model/mailbox-provider.ts';
import type { DeliverabilityStore } from '../store/contract.ts';
import {
  addToSums,
  type Count,
  type CountBase,
  type GroupedName,
  type StoredSeries,
  type TrafficParts,
} from './traffic.ts';

const TICK_MS = 1_000;
/** The rows are large, so those of a longer span are written less often. */
const WRITE_INTERVALS_MS: Readonly<Record<SpanMs, number>> = {
  300000: 2_000,
  3600000: 10_000,
  21600000: 60_000,
  86400000: 60_000,
};
const MAX_GROUPS = 500;
const MAX_WAIT_MS = 5_000;
const MAX_COUNTED_KEYS = 512;
/** The maximum number of keys in a row. The row also contains the sum of the counts of all other keys. */
export const MAX_ROW_KEYS: Readonly<Record<Series, number>> = {
  provider: 100,
  'recipient-domain': 100,
  account: 100,
  'sending-domain': 100,
  'account/provider': 200,
  'account/recipient-domain': 200,
  'sending-domain/provider': 200,
  route: 100,
};
/** While the store does not answer, the oldest rows of ended spans above this number are dropped. */
const MAX_WAITING_ROWS = 200;

export interface DeliverabilityParts extends Omit<TrafficParts, 'writeRows'> {
  readonly writeRows: DeliverabilityStore['writeDeliverability'];
  /** Null while a lookup is in progress, which the call starts. Never waits. */
  readonly findMailboxProvider: (domain: string, eventCount: number) => MailboxProvider | null;
}

const GROUP_SERIES = SERIES.filter((name) => name !== 'route');

interface Counted {
  readonly counts: MutableKeyCounts;
  eventCount: number;
}

interface Group extends Counted {
  readonly accountId: number;
  /** Domains in lower-case A-labels. */
  readonly sendingDomain: string;
  readonly recipientDomain: string;
  readonly since: number;
}

interface Span {
  readonly spanMs: SpanMs;
  readonly at: number;
  readonly series: ReadonlyMap<Series, FrequentKeys>;
  readonly node: string;
  hasUnwrittenCounts: boolean;
  nextWriteAt: number;
}

interface NodeRow {
  readonly node: string;
  readonly row: DeliverabilityRow;
}

export function startDeliverabilityCounter(parts: DeliverabilityParts): StoredSeries {
  const { node, clock, writeRows, findMailboxProvider, onWriteError } = parts;
  let groups = new Map<string, Group>();
  let routes = new Map<string, Counted>();
  let slotStartAt = 0;
  let spans: readonly Span[] = [];
  let endedRows: readonly NodeRow[] = [];
  let setBackCount = 0;
  let cancelTick: (() => void) | null = null;
  let tickInProgress: Promise<void> = Promise.resolve();
  let isFailing = false;
  let isStopped = false;

  function add(count: Count): void {
    if (count.message === null) return;
    const { accountId, from, to } = count.message;
    const now = clock.now();
    if (now < slotStartAt || now >= slotStartAt + SPANS_MS[0]) enterSlot(now);
    const key = `${accountId}/${from.slice(from.lastIndexOf('@') + 1)}/${to.slice(to.lastIndexOf('@') + 1)}`;
    let group = groups.get(key);
    if (group === undefined) {
      if (groups.size >= MAX_GROUPS) addGroups(false);
      const [sendingDomain, recipientDomain] = [getDomain(from), getDomain(to)];
      group = { accountId, sendingDomain, recipientDomain, since: now, counts: createKeyCounts(), eventCount: 0 };
      groups.set(key, group);
    }
    addTo(group, count.names, count);
    if (count.route !== undefined) addToRoute(count.route, count.names, count);
    if (cancelTick === null && !isStopped) cancelTick = clock.after(TICK_MS, startTick);
  }

  function addToRoute(name: string, names: readonly GroupedName[], { attemptMs, failure }: CountBase): void {
    const route = routes.get(name) ?? { counts: createKeyCounts(), eventCount: 0 };
    routes.set(name, route);
    addTo(
      route,
      names.filter((counted) => counted !== 'confirmed'),
      { latencyMs: attemptMs ?? null, failure: failure ?? null },
    );
  }

  function enterSlot(now: number): void {
    addGroups(true);
    const isClockSetBack = now < slotStartAt;
    // A row replaces the earlier row of the same node and span. After the clock was set back, the new rows have a
    // different node name, so that they do not replace the rows that were written before.
    if (isClockSetBack) setBackCount += 1;
    slotStartAt = now - (now % SPANS_MS[0]);
    const nodeName = setBackCount === 0 ? node : `${node}+${setBackCount}`;
    spans = SPANS_MS.map((spanMs) => {
      const at = now - (now % spanMs);
      const currentSpan = spans.find((span) => span.spanMs === spanMs);
      if (currentSpan !== undefined && currentSpan.at === at && !isClockSetBack) return currentSpan;
      if (currentSpan?.hasUnwrittenCounts === true)
        endedRows = [...endedRows, ...formatRows(currentSpan)].slice(-MAX_WAITING_ROWS);
      const series = new Map(SERIES.map((name) => [name, createFrequentKeys(MAX_COUNTED_KEYS)] as const));
      return { spanMs, at, series, node: nodeName, hasUnwrittenCounts: false, nextWriteAt: now };
    });
  }

  /** Groups whose mailbox provider is being looked up stay, but at most for `MAX_WAIT_MS`. */
  function addGroups(includeWaiting: boolean): void {
    const waitingSince = clock.now() - MAX_WAIT_MS;
    const waitingGroups = new Map<string, Group>();
    for (const [key, group] of groups) {
      const provider = findMailboxProvider(group.recipientDomain, group.eventCount);
      const isWaiting =
        provider === null && !includeWaiting && group.since > waitingSince && waitingGroups.size < MAX_GROUPS / 2;
      if (isWaiting) waitingGroups.set(key, group);
      else addGroup(group, provider ?? 'unknown');
    }
    groups = waitingGroups;
    for (const [name, { counts, eventCount }] of routes) {
      for (const span of spans) span.series.get('route')?.add(name, counts, eventCount);
    }
    routes = new Map();
  }

  function addGroup({ accountId, sendingDomain, recipientDomain, counts, eventCount }: Group, provider: string): void {
    const keys: Readonly<Record<Exclude<Series, 'route'>, string>> = {
      provider,
      'recipient-domain': recipientDomain,
      account: String(accountId),
      'sending-domain': `${accountId}/${sendingDomain}`,
      'account/provider': `${accountId}/${provider}`,
      'account/recipient-domain': `${accountId}/${recipientDomain}`,
      'sending-domain/provider': `${accountId}/${sendingDomain}/${provider}`,
    };
    for (const span of spans) {
      for (const name of GROUP_SERIES) span.series.get(name)?.add(keys[name], counts, eventCount);
      span.hasUnwrittenCounts = true;
    }
  }

  function startTick(): void {
    tickInProgress = performDueWork();
  }

  async function performDueWork(): Promise<void> {
    addGroups(isStopped);
    await writeDueRows(clock.now());
    const hasWork =
      groups.size > 0 || endedRows.length > 0 || spans.some(({ hasUnwrittenCounts }) => hasUnwrittenCounts);
    cancelTick = hasWork && !isStopped ? clock.after(TICK_MS, startTick) : null;
  }

  async function writeDueRows(now: number): Promise<void> {
    const dueSpans = spans.filter(
      ({ hasUnwrittenCounts, nextWriteAt }) => hasUnwrittenCounts && (isStopped || now >= nextWriteAt),
    );
    const batch = [...endedRows, ...dueSpans.flatMap(formatRows)];
    if (batch.length === 0) return;
    // A span to which counts are added during the write is written again.
    for (const span of dueSpans) span.hasUnwrittenCounts = false;
    const endedRowsBeingWritten = new Set(endedRows);
    try {
      for (const name of new Set(batch.map((nodeRow) => nodeRow.node)))
        await writeRows(
          name,
          batch.filter((nodeRow) => nodeRow.node === name).map(({ row }) => row),
        );
      endedRows = endedRows.filter((row) => !endedRowsBeingWritten.has(row));
      isFailing = false;
    } catch (error) {
      for (const span of dueSpans) span.hasUnwrittenCounts = true;
      // A span that ended during the write is no longer in `spans`.
      endedRows = [...endedRows, ...dueSpans.filter((span) => !spans.includes(span)).flatMap(formatRows)].slice(
        -MAX_WAITING_ROWS,
      );
      if (!isFailing) onWriteError(error);
      isFailing = true;
    }
    for (const span of dueSpans) span.nextWriteAt = now + WRITE_INTERVALS_MS[span.spanMs];
  }

  return {
    add,
    async stop() {
      cancelTick?.();
      isStopped = true;
      await tickInProgress;
      await performDueWork();
    },
  };
}

function formatRows({ spanMs, at, series, node }: Span): readonly NodeRow[] {
  return [...series].map(([name, keys]) => {
    const summary = keys.summarize(MAX_ROW_KEYS[name]);
    const counts = formatKeyCounts([...summary.keys, [REMAINDER_KEY, summary.remainder]]);
    return { node, row: { spanMs, at, series: name, counts } };
  });
}

function addTo(target: Counted, names: readonly GroupedName[], count: CountBase): void {
  addToSums(target.counts, names, count);
  if (count.failure !== undefined && count.failure !== null) target.counts[count.failure.class] += 1;
  target.eventCount += 1;
}

/** `postrider overview`: shows figures over time, the queue, health checks and alarms. */
import type { Command } from 'commander';
import { formatFailure } from '../model/failure.ts';
import type { Figures, Overview } from '../operations/overview/schemas.ts';
import { showOverview } from '../operations/overview.ts';
import { formatDuration, formatSpan, formatTime } from '../printing/text.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { applyStyle, type Cell, formatPairs, formatTable, type Style } from './text.ts';

/** The number of periods in the table, one per row. */
const ROW_COUNT = 12;

/** Adds `overview` to `program`. */
export function addOverviewCommand(program: Command, context: Context): void {
  addOperationCommand(program, context, 'overview', showOverview, {
    formatResult: (overview, _input, now) => formatOverview(overview, now),
  });
}

function formatOverview({ range, points, totals, queue, health, attention }: Overview, now: number): string {
  const pointsPerRow = points.length / ROW_COUNT;
  const rows = Array.from({ length: ROW_COUNT }, (_, index): Cell[] => {
    const rowPoints = points.slice(index * pointsPerRow, (index + 1) * pointsPerRow);
    const sumCounts = (name: keyof Omit<Figures, 'latencyMs' | 'confirmationMs'>) =>
      String(rowPoints.reduce((sum, point) => sum + point[name], 0));
    return [formatTime(Date.parse(rowPoints[0]?.at ?? '')), ...COLUMNS.map(sumCounts)];
  });
  const totalRow = [
    { text: `total ${range}`, style: 'heading' } as const,
    ...COLUMNS.map((name) => String(totals[name])),
  ];
  const { latencyMs, confirmationMs, bounces } = totals;
  const bounceTexts = bounces.map((failure) => `${formatFailure(failure)} ${failure.count}`);
  return [
    formatTable(['FROM', ...COLUMNS.map((name) => name.toUpperCase())], [...rows, totalRow]),
    '\n',
    formatPairs([
      ['latency', formatPercentiles(latencyMs, 'no message was delivered')],
      ['confirmation', formatPercentiles(confirmationMs, 'no provider confirmed a delivery')],
      ...(bounces.length === 0 ? [] : [['bounces', bounceTexts.join(', ')] as const]),
      ...formatQueue(queue, now),
    ]),
    '\n',
    formatPairs(health.map(({ part, level, text }) => [part, { text, style: LEVEL_STYLES[level] }] as const)),
    formatAttention(attention),
  ].join('');
}

const COLUMNS = [
  'accepted',
  'delivered',
  'confirmed',
  'deferred',
  'bounced',
  'complained',
  'suppressed',
  'expired',
] as const;
const LEVEL_STYLES: Readonly<Record<Overview['health'][number]['level'], Style>> = {
  ok: 'success',
  warning: 'warning',
  failure: 'error',
};

function formatPercentiles(times: Figures['latencyMs'], emptyText: string): string {
  return times === null ? emptyText : `p50 ${formatDuration(times.p50)}, p99 ${formatDuration(times.p99)}`;
}

function formatQueue(queue: Overview['queue'], now: number): readonly (readonly [string, Cell])[] {
  const { queued, sending, uncertain, oldestAt, departuresPerMinute, arrivalsPerMinute } = queue;
  const ageText = oldestAt === null ? '' : `, the oldest accepted ${formatSpan(now - Date.parse(oldestAt))} ago`;
  return [
    ['queue', `${queued} queued, ${sending} being sent, ${uncertain} uncertain${ageText}`],
    ['rates', `${arrivalsPerMinute} arrivals and ${departuresPerMinute} departures per minute`],
    ['trend', formatTrend(queue, now)],
  ];
}

function formatTrend({ trend, emptyAt, nextDueAt }: Overview['queue'], now: number): string {
  switch (trend) {
    case 'empty':
      return 'empty';
    case 'draining':
      return emptyAt === null ? 'draining' : `empty in about ${formatSpan(Math.max(1_000, Date.parse(emptyAt) - now))}`;
    case 'steady':
      return 'steady: as many arrivals as departures';
    case 'growing':
      return 'growing: more arrivals than departures';
    case 'waiting': {
      const dueInMs = nextDueAt === null ? 0 : Date.parse(nextDueAt) - now;
      return dueInMs > 0
        ? `waiting: the next message is due in ${formatSpan(dueInMs)}`
        : 'waiting: no message is being delivered';
    }
  }
}

function formatAttention(attention: Overview['attention']): string {
  if (attention.length === 0) return `\n${applyStyle('success', 'No problems.')}\n`;
  const rows = attention.map(({ level, text, remedy }): Cell[] => [
    { text: level, style: LEVEL_STYLES[level] },
    text,
    remedy,
  ]);
  return `\n${formatTable(['LEVEL', 'PROBLEM', 'REMEDY'], rows, { truncatedHeadings: ['PROBLEM', 'REMEDY'] })}`;
}

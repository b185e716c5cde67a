/** `postrider overview`: figures over time, the queue, health checks, and alarms. */
import type { Command } from 'commander';
import type { Figures, Overview } from '../operations/overview/schemas.ts';
import { showOverview } from '../operations/overview.ts';
import { formatSpan, formatTime } from '../printing/text.ts';
import type { Context } from './context.ts';
import { operationCommand } from './operation-command.ts';
import { type Cell, formatPairs, formatTable, type Style, styled } from './text.ts';

/** Rows of the table. */
const ROW_COUNT = 12;

/** Adds the command. */
export function addOverviewCommand(program: Command, context: Context): void {
  operationCommand(program, context, 'overview', showOverview, {
    text: (overview, _input, now) => overviewText(overview, now),
  });
}

function overviewText({ range, points, totals, queue, health, attention }: Overview, now: number): string {
  const pointsPerRow = points.length / ROW_COUNT;
  const rows = Array.from({ length: ROW_COUNT }, (_, index): Cell[] => {
    const rowPoints = points.slice(index * pointsPerRow, (index + 1) * pointsPerRow);
    const sum = (name: keyof Omit<Figures, 'latencyMs'>) =>
      String(rowPoints.reduce((total, point) => total + point[name], 0));
    return [formatTime(Date.parse(rowPoints[0]?.at ?? '')), ...COLUMNS.map(sum)];
  });
  const total = [{ text: `total ${range}`, style: 'heading' } as const, ...COLUMNS.map((name) => String(totals[name]))];
  const { latencyMs } = totals;
  const latency =
    latencyMs === null ? 'no message was delivered' : `p50 ${formatMs(latencyMs.p50)}, p99 ${formatMs(latencyMs.p99)}`;
  return [
    formatTable(['FROM', ...COLUMNS.map((name) => name.toUpperCase())], [...rows, total]),
    '\n',
    formatPairs([['latency', latency], ...queueLines(queue, now)]),
    '\n',
    formatPairs(health.map(({ part, level, text }) => [part, { text, style: LEVEL_STYLES[level] }] as const)),
    attentionText(attention),
  ].join('');
}

const COLUMNS = ['accepted', 'delivered', 'deferred', 'bounced', 'complained', 'suppressed', 'expired'] as const;
const LEVEL_STYLES: Readonly<Record<Overview['health'][number]['level'], Style>> = {
  ok: 'success',
  warning: 'warning',
  failure: 'error',
};

function formatMs(value: number): string {
  return value < 1_000 ? `${value} ms` : formatSpan(value);
}

function queueLines(queue: Overview['queue'], now: number): readonly (readonly [string, Cell])[] {
  const { queued, sending, uncertain, oldestAt, departuresPerMinute, arrivalsPerMinute } = queue;
  const age = oldestAt === null ? '' : `, the oldest accepted ${formatSpan(now - Date.parse(oldestAt))} ago`;
  return [
    ['queue', `${queued} queued, ${sending} being sent, ${uncertain} uncertain${age}`],
    ['rates', `${arrivalsPerMinute} arrivals and ${departuresPerMinute} departures per minute`],
    ['trend', trendText(queue, now)],
  ];
}

function trendText({ trend, emptyAt, nextDueAt }: Overview['queue'], now: number): string {
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

function attentionText(attention: Overview['attention']): string {
  if (attention.length === 0) return `\n${styled('success', 'No problems.')}\n`;
  const rows = attention.map(({ level, text, remedy }): Cell[] => [
    { text: level, style: LEVEL_STYLES[level] },
    text,
    remedy,
  ]);
  return `\n${formatTable(['LEVEL', 'PROBLEM', 'REMEDY'], rows, { truncated: ['PROBLEM', 'REMEDY'] })}`;
}

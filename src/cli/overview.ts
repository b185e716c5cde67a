/** `postrider overview`: figures over time, the queue, the health of the parts, and what wants attention. */
import type { Command } from 'commander';
import { isoTime, quote } from '../config/units.ts';
import { type Attention, attentionOf } from '../operations/overview/attention.ts';
import { type Facts, gather } from '../operations/overview/facts.ts';
import { type Figures, figuresOver, RANGES, type Range } from '../operations/overview/figures.ts';
import { type Health, healthOf, type Level } from '../operations/overview/health.ts';
import { type QueueStanding, queueStanding } from '../operations/overview/queue.ts';
import { span, time } from '../printing/text.ts';
import type { Context } from './context.ts';
import { CommandFailure } from './failure.ts';
import { type Cell, pairs, type Style, styled, table } from './text.ts';

/** Rows of the table for people. */
const ROWS = 12;

/** Adds the command. */
export function addOverviewCommand(program: Command, context: Context): void {
  const overview = program.command('overview').description('figures over time, the queue, and what wants attention');
  overview.option('--range <range>', `${Object.keys(RANGES).join(', ')}`, '24h').option('--json', 'for machines');
  overview.action(async (flags: { range: string; json?: boolean }) => {
    const range = rangeOf(flags.range);
    const service = context.service?.() ?? null;
    const facts = await context.withStore((store, settings) =>
      gather(store, settings, service, range, context.clock.now()),
    );
    if (flags.json) context.json(overviewJson(range, facts));
    else context.out(overviewText(range, facts));
  });
}

function rangeOf(text: string): Range {
  if (Object.hasOwn(RANGES, text)) return text as Range;
  throw new CommandFailure(`--range: ${quote(text)} is not one of ${Object.keys(RANGES).join(', ')}`, 2);
}

function standingOf({ queue: figures, recent, store, service, now }: Facts): QueueStanding {
  const held = service?.delivery?.breaker.state === 'open';
  return queueStanding({ figures, recent, nextDueAt: store.nextDueAt, held }, now);
}

function overviewJson(range: Range, facts: Facts): object {
  const { oldest, emptyAt, nextDueAt, ...queue } = standingOf(facts);
  const maybe = (at: number | null) => (at === null ? null : isoTime(at));
  return {
    range,
    stepMs: RANGES[range].stepMs,
    everAccepted: facts.store.everAccepted,
    ...figuresOver(range, facts.now, facts.steps),
    queue: {
      ...queue,
      oldestId: oldest?.id ?? null,
      oldestAt: maybe(oldest?.acceptedAt ?? null),
      emptyAt: maybe(emptyAt),
      nextDueAt: maybe(nextDueAt),
    },
    health: healthOf(facts),
    attention: attentionOf(facts),
  };
}

function overviewText(range: Range, facts: Facts): string {
  const { points, totals } = figuresOver(range, facts.now, facts.steps);
  const each = points.length / ROWS;
  const rows = Array.from({ length: ROWS }, (_, n): Cell[] => {
    const some = points.slice(n * each, (n + 1) * each);
    const sum = (name: keyof Omit<Figures, 'latencyMs'>) =>
      String(some.reduce((total, point) => total + point[name], 0));
    return [time(Date.parse(some[0]?.at ?? '')), ...COLUMNS.map(sum)];
  });
  const total = [{ text: `all of ${range}`, style: 'head' } as const, ...COLUMNS.map((name) => String(totals[name]))];
  const { latencyMs } = totals;
  const latency =
    latencyMs === null ? 'nothing was delivered' : `half within ${ms(latencyMs.p50)}, 99 % within ${ms(latencyMs.p99)}`;
  return [
    table(['FROM', ...COLUMNS.map((name) => name.toUpperCase())], [...rows, total]),
    '\n',
    pairs([['latency', latency], ...queueLines(standingOf(facts), facts.now)]),
    '\n',
    pairs(healthOf(facts).map(({ part, level, text }: Health) => [part, { text, style: STYLES[level] }] as const)),
    attentionText(attentionOf(facts)),
  ].join('');
}

const COLUMNS = ['accepted', 'delivered', 'deferred', 'bounced', 'complained', 'suppressed', 'expired'] as const;
const STYLES: Readonly<Record<Level, Style>> = { ok: 'good', warning: 'waiting', failure: 'bad' };

function ms(value: number): string {
  return value < 1_000 ? `${value} ms` : span(value);
}

function queueLines(queue: QueueStanding, now: number): readonly (readonly [string, Cell])[] {
  const { queued, sending, uncertain, oldest, leavingPerMinute, comingPerMinute } = queue;
  const age = oldest === null ? '' : `, the oldest accepted ${span(now - oldest.acceptedAt)} ago`;
  return [
    ['queue', `${queued} queued, ${sending} being sent, ${uncertain} uncertain${age}`],
    ['rates', `${comingPerMinute} come and ${leavingPerMinute} leave a minute`],
    ['outlook', outlook(queue, now)],
  ];
}

function outlook({ trend, emptyAt, nextDueAt }: QueueStanding, now: number): string {
  switch (trend) {
    case 'empty':
      return 'empty';
    case 'draining':
      return emptyAt === null ? 'draining' : `empty in about ${span(Math.max(1_000, emptyAt - now))}`;
    case 'steady':
      return 'about as many come as leave';
    case 'growing':
      return 'more come than leave';
    case 'waiting':
      return nextDueAt !== null && nextDueAt > now
        ? `nothing leaves; the next is due in ${span(nextDueAt - now)}`
        : 'nothing leaves at present';
  }
}

function attentionText(attention: readonly Attention[]): string {
  if (attention.length === 0) return `\n${styled('good', 'Nothing wants attention.')}\n`;
  const rows = attention.map(({ level, text, remedy }): Cell[] => [
    { text: level, style: STYLES[level] },
    text,
    remedy,
  ]);
  return `\n${table(['LEVEL', 'WANTS ATTENTION', 'REMEDY'], rows)}`;
}

/** `postrider overview`: shows figures over time, the queue, health checks and alarms. */
import type { Command } from 'commander';
import { formatFailure } from '../model/failure.ts';
import {
  type ComparedFigures,
  type Deliverability,
  type DeliverabilityFigures,
  showDeliverability,
} from '../operations/deliverability.ts';
import { getInputMembers } from '../operations/input.ts';
import { perform } from '../operations/operation.ts';
import { type Figures, type Overview, showOverview } from '../operations/overview.ts';
import { formatDuration, formatSpan, formatTime } from '../printing/text.ts';
import { formatRoundedPercent } from '../statistics/figures.ts';
import { CommandFailure, type Context } from './context.ts';
import {
  addMemberFlags,
  declareOperations,
  toFlagName,
  toLowerFirstCharacter,
  unwrapResult,
} from './operation-command.ts';
import {
  applyStyle,
  type Cell,
  formatPairs,
  formatTable,
  formatTimeText,
  LEVEL_STYLES,
  type Style,
} from './terminal.ts';

/** The rows of the table. */
const ROW_COUNT = 12;

/** With `--by`, the command shows the deliverability figures. */
export function addOverviewCommand(program: Command, context: Context): void {
  const command = program.command('overview').description(toLowerFirstCharacter(showOverview.summary));
  const members = { ...getInputMembers(showOverview.input), ...getInputMembers(showDeliverability.input) };
  addMemberFlags(command, members, { flagHelp: DESCRIPTIONS });
  command.option('--json', 'print JSON');
  declareOperations(command, [showOverview, showDeliverability]);
  command.action(({ json, ...flags }: Readonly<Record<string, unknown>>) => {
    const name = Object.keys(flags).find((flag) => !Object.hasOwn(getInputMembers(showOverview.input), flag));
    if (flags.by === undefined && name !== undefined)
      throw new CommandFailure(`${toFlagName(name)} is allowed only with --by`, 2);
    return context.withOperationContext(async (operationContext) => {
      if (flags.by !== undefined) {
        const result = await perform(showDeliverability, flags, operationContext);
        const deliverability = unwrapResult(context, result, toFlagName);
        if (json === true) context.writeJson(deliverability);
        else context.writeText(formatDeliverability(deliverability));
        return;
      }
      const result = await perform(showOverview, flags, operationContext);
      const overview = unwrapResult(context, result, toFlagName);
      if (json === true) context.writeJson(overview);
      else context.writeText(formatOverview(overview, context.clock.now()));
    });
  });
}

const WITH_BY_PREFIX = 'with --by: ';
/** Help that differs from the description of the input member. */
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  by: 'shows messages by `provider` (the mailbox provider of the recipient), `recipient-domain`, `account` or `sending-domain`, compared with the previous period',
  account: `${WITH_BY_PREFIX}only messages of this account`,
  sendingDomain: 'with --by provider: only messages from this sending domain',
  key: `${WITH_BY_PREFIX}the key of a row; \`--json\` also prints the figures of this row over time`,
  limit: `${WITH_BY_PREFIX}the number of rows, 1 to 200; the default is 50`,
};

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

function formatPercentiles(times: Figures['latencyMs'], emptyText: string): string {
  return times === null ? emptyText : `p50 ${formatDuration(times.p50)}, p99 ${formatDuration(times.p99)}`;
}

function formatQueue(queue: Overview['queue'], now: number): readonly (readonly [string, Cell])[] {
  const { queued, sending, uncertain, held, oldestAt, departuresPerMinute, arrivalsPerMinute } = queue;
  const ageText = oldestAt === null ? '' : `, the oldest accepted ${formatSpan(now - Date.parse(oldestAt))} ago`;
  return [
    [
      'queue',
      `${queued} queued${held === 0 ? '' : ` (${held} held)`}, ${sending} being sent, ${uncertain} uncertain${ageText}`,
    ],
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

const HEADINGS: Readonly<Record<Deliverability['by'], string>> = {
  provider: 'MAILBOX PROVIDER',
  'recipient-domain': 'RECIPIENT DOMAIN',
  account: 'ACCOUNT',
  'sending-domain': 'SENDING DOMAIN',
  route: 'ROUTE',
};

const JUDGEMENT_STYLES: Readonly<Record<Deliverability['changes'][number]['judgement'], Style>> = {
  worse: 'error',
  better: 'success',
  neutral: 'dimmed',
};

export function formatDeliverability(deliverability: Deliverability): string {
  const { by, range, rows, other, total, changes, from, until, previousFrom } = deliverability;
  // If no delivery is confirmed, their columns would be empty.
  const withConfirmations = total.confirmed > 0;
  const headings = [
    ...[HEADINGS[by], 'ACCEPTED', 'BEFORE', 'DELIVERED'],
    ...(withConfirmations ? ['CONFIRMED'] : []),
    ...['DEFERRED', 'BOUNCED', 'HARD', 'SOFT', 'BLOCK', 'BOUNCE RATE', 'COMPLAINED', 'COMPLAINT RATE', 'P50', 'P99'],
    ...(withConfirmations ? ['CONFIRMED P50', 'CONFIRMED P99'] : []),
  ];
  const toCells = (figures: ComparedFigures): Cell[] => [
    ...[figures.accepted, figures.previous.accepted, figures.delivered].map(String),
    ...(withConfirmations ? [String(figures.confirmed)] : []),
    ...[figures.deferred, figures.bounced, figures.bounces.hard, figures.bounces.soft, figures.bounces.block].map(
      String,
    ),
    formatPercentOrDash(figures.bounceRate),
    String(figures.complained),
    formatPercentOrDash(figures.complaintRate),
    ...formatTimes(figures.latencyMs),
    ...(withConfirmations ? formatTimes(figures.confirmationMs) : []),
  ];
  const hasOtherRows = other.accepted + other.ended + other.previous.accepted > 0;
  const table = formatTable(headings, [
    ...rows.map((row) => [row.name, ...toCells(row)]),
    ...(hasOtherRows ? [['all others', ...toCells(other)]] : []),
    [{ text: `total ${range}`, style: 'heading' as const }, ...toCells(total)],
  ]);
  const changeLines = changes.map(
    ({ judgement, text }) => `${applyStyle(JUDGEMENT_STYLES[judgement], judgement.padEnd(7))}  ${text}\n`,
  );
  const periods = formatPairs([
    ['period', `${formatTimeText(from)} to ${formatTimeText(until)}`],
    ['before', `${formatTimeText(previousFrom)} to ${formatTimeText(from)}`],
  ]);
  return `${table}\n${periods}\n${changes.length === 0 ? 'No significant change from the previous period.\n' : changeLines.join('')}`;
}

function formatPercentOrDash(rate: number | null): string {
  return rate === null ? '-' : formatRoundedPercent(rate);
}

function formatTimes(times: DeliverabilityFigures['latencyMs']): readonly string[] {
  return times === null ? ['-', '-'] : [formatDuration(times.p50), formatDuration(times.p99)];
}

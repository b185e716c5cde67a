/** Formats deliverability figures for the terminal: a table, the compared periods, and the significant changes. */
import { formatPercent } from '../operations/deliverability/changes.ts';
import type { ComparedFigures, Deliverability, DeliverabilityFigures } from '../operations/deliverability/schemas.ts';
import { formatDuration } from '../printing/text.ts';
import { applyStyle, type Cell, formatIsoTime, formatPairs, formatTable, type Style } from './text.ts';

const HEADINGS: Readonly<Record<Deliverability['by'], string>> = {
  provider: 'MAILBOX PROVIDER',
  'recipient-domain': 'RECIPIENT DOMAIN',
  account: 'ACCOUNT',
  'sending-domain': 'SENDING DOMAIN',
};

const JUDGEMENT_STYLES: Readonly<Record<Deliverability['changes'][number]['judgement'], Style>> = {
  worse: 'error',
  better: 'success',
  neutral: 'dimmed',
};

/** Returns the rows, the total, both periods, and one line for each change. */
export function formatDeliverability(deliverability: Deliverability): string {
  const { by, range, rows, other, total, changes, from, until, previousFrom } = deliverability;
  // If no delivery is confirmed, the columns with the times of confirmations would be empty.
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
    formatRate(figures.bounceRate),
    String(figures.complained),
    formatRate(figures.complaintRate),
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
    ['period', `${formatIsoTime(from)} to ${formatIsoTime(until)}`],
    ['before', `${formatIsoTime(previousFrom)} to ${formatIsoTime(from)}`],
  ]);
  return `${table}\n${periods}\n${changes.length === 0 ? 'No significant change from the previous period.\n' : changeLines.join('')}`;
}

function formatRate(rate: number | null): string {
  return rate === null ? '-' : formatPercent(rate);
}

function formatTimes(times: DeliverabilityFigures['latencyMs']): readonly string[] {
  return times === null ? ['-', '-'] : [formatDuration(times.p50), formatDuration(times.p99)];
}

/** Figures over time: charts, and a table of the same figures. */
import { Anchor, Box, Table } from '@mantine/core';
import { useMemo, useState } from 'react';
import { Link } from 'wouter';
import type { Figures, Overview } from '../../../src/operations/overview.ts';
import type { Range } from '../../../src/statistics/figures.ts';
import { TOKENS } from '../theme';
import { BounceReasons } from './bounce-reasons';
import { formatCompact, formatNumber } from './number';
import { OverviewProviders } from './overview-providers';
import { formatDuration, formatTime } from './time';
import { type Line, TimeChart } from './time-chart';

export type CountName = keyof Omit<Figures, 'latencyMs' | 'confirmationMs'>;

const COUNT_LABELS: readonly { readonly name: CountName; readonly label: string }[] = [
  { name: 'accepted', label: 'Accepted' },
  { name: 'delivered', label: 'Delivered' },
  { name: 'confirmed', label: 'Confirmed' },
  { name: 'deferred', label: 'Deferred' },
  { name: 'bounced', label: 'Bounced' },
  { name: 'complained', label: 'Complained' },
  { name: 'suppressed', label: 'Suppressed' },
  { name: 'expired', label: 'Expired' },
];

const COLORS = {
  accent: [TOKENS.light.accent, TOKENS.dark.accent],
  delivered: [TOKENS.light.delivered, TOKENS.dark.delivered],
  deferred: [TOKENS.light.deferred, TOKENS.dark.deferred],
  bounced: [TOKENS.light.bounced, TOKENS.dark.bounced],
  complained: [TOKENS.light.complained, TOKENS.dark.complained],
} as const;

/** The outcomes in the order of the chart, from bottom to top. */
const OUTCOME_LINES = [
  { name: 'delivered', label: 'Delivered' },
  { name: 'deferred', label: 'Deferred' },
  { name: 'bounced', label: 'Bounced' },
  { name: 'complained', label: 'Complained' },
] as const;

/** The counts that no tile of the overview shows. */
const COUNTS_WITHOUT_TILE: readonly CountName[] = ['confirmed', 'deferred', 'suppressed', 'expired'];

/** Shows the outcomes over time, and below the chart the counts that no tile of the overview shows. */
export function OutcomesChart({ overview: { points, totals, range } }: { readonly overview: Overview }) {
  const times = useMemo(() => points.map(({ at }) => at), [points]);
  const lines = useMemo(
    () =>
      OUTCOME_LINES.map(
        ({ name, label }): Line => ({
          label,
          colors: COLORS[name],
          dashPattern: [],
          values: points.map((point) => point[name]),
        }),
      ),
    [points],
  );
  return (
    <TimeChart
      title="Outcomes"
      secondary={`messages per ${STEP_NAMES[range]}`}
      times={times}
      lines={lines}
      format={formatNumber}
      formatAxis={formatCompact}
      isStacked
    >
      <dl className="facts chart-foot">
        {COUNT_LABELS.filter(({ name }) => COUNTS_WITHOUT_TILE.includes(name)).map(({ name, label }) => (
          <OtherCount
            key={name}
            label={label}
            value={formatNumber(totals[name])}
            href={findListUrl(name, totals, range)}
          />
        ))}
      </dl>
    </TimeChart>
  );
}

interface OtherCountProps {
  readonly label: string;
  readonly value: string;
  readonly href: string | undefined;
}

function OtherCount({ label, value, href }: OtherCountProps) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>
        {href === undefined ? (
          value
        ) : (
          <Anchor component={Link} href={href} inherit aria-label={`${label}: ${value}`}>
            {value}
          </Anchor>
        )}
      </dd>
    </div>
  );
}

/** Shows the mailbox providers, the bounce reasons, the time to deliver, and the table of all figures. */
export function OverviewDetails({ overview }: { readonly overview: Overview }) {
  const { points, totals, range } = overview;
  const times = useMemo(() => points.map(({ at }) => at), [points]);
  const listLatencies = (percentile: 'p50' | 'p99') => points.map(({ latencyMs }) => latencyMs?.[percentile] ?? null);
  const confirmationLatencies = points.map(({ confirmationMs }) => confirmationMs?.p50 ?? null);
  const latencyLines: readonly Line[] = [
    { label: 'p50', colors: COLORS.accent, dashPattern: [], values: listLatencies('p50') },
    { label: 'p99', colors: COLORS.deferred, dashPattern: [4, 3], values: listLatencies('p99') },
    ...(totals.confirmed === 0
      ? []
      : [
          {
            label: 'p50 until confirmed',
            colors: COLORS.delivered,
            dashPattern: [2, 3],
            values: confirmationLatencies,
          },
        ]),
  ];
  return (
    <>
      <div className="columns wide-side">
        <OverviewProviders range={range} />
        <BounceReasons overview={overview} />
      </div>
      <TimeChart
        title="Time to deliver"
        secondary={`per ${STEP_NAMES[range]}`}
        times={times}
        lines={latencyLines}
        format={formatDuration}
        isLogarithmic
      />
      <FiguresTable overview={overview} />
    </>
  );
}

const STEP_NAMES: Readonly<Record<Range, string>> = {
  '1h': 'minute',
  '24h': '10 minutes',
  '7d': 'hour',
  '30d': '6 hours',
};

/** The counts whose names are also message states. */
const STATE_COUNTS: readonly CountName[] = ['delivered', 'bounced', 'complained', 'suppressed', 'expired'];

/**
 * Returns the URL of a message list that contains only the counted messages. Returns undefined if the count is zero or
 * no filter selects these messages.
 */
export function findListUrl(name: CountName, totals: Figures, range: Range): string | undefined {
  return STATE_COUNTS.includes(name) && totals[name] > 0 ? `/messages?state=${name}&since=${range}` : undefined;
}

/** Shows the figures as a table, newest interval first. The table is rendered when the operator opens it. */
function FiguresTable({ overview }: { readonly overview: Overview }) {
  const [opened, setOpened] = useState(false);
  const { points, range } = overview;
  return (
    <details className="figures-box" onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary>Show the figures as a table</summary>
      {opened ? (
        // The region scrolls, so it must be reachable by keyboard.
        <Box
          role="region"
          aria-label={`Figures of the last ${range}`}
          tabIndex={0}
          mt="sm"
          mah="32rem"
          style={{ overflow: 'auto' }}
        >
          <Table striped stickyHeader withTableBorder>
            <Table.Caption>Figures of the last {range}, newest first</Table.Caption>
            <Table.Thead>
              <Table.Tr>
                {['From', ...COUNT_LABELS.map(({ label }) => label), 'p50', 'p99', 'p50 until confirmed'].map(
                  (heading) => (
                    <Table.Th key={heading} scope="col">
                      {heading}
                    </Table.Th>
                  ),
                )}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {points.toReversed().map((point) => (
                <Table.Tr key={point.at}>
                  <Table.Th scope="row" style={{ whiteSpace: 'nowrap' }}>
                    {formatTime(point.at)}
                  </Table.Th>
                  {COUNT_LABELS.map(({ name }) => (
                    <Table.Td key={name}>{formatNumber(point[name])}</Table.Td>
                  ))}
                  <Table.Td>{point.latencyMs === null ? '–' : formatDuration(point.latencyMs.p50)}</Table.Td>
                  <Table.Td>{point.latencyMs === null ? '–' : formatDuration(point.latencyMs.p99)}</Table.Td>
                  <Table.Td>{point.confirmationMs === null ? '–' : formatDuration(point.confirmationMs.p50)}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Box>
      ) : null}
    </details>
  );
}

/** Figures over time: totals, charts, and a table of the same figures. */
import { Anchor, Box, Table, Text, Title } from '@mantine/core';
import { useMemo, useState } from 'react';
import { Link } from 'wouter';
import type { Figures, Overview, Range } from '../../../src/operations/overview/schemas.ts';
import { TOKENS } from '../theme';
import { BounceReasons } from './bounce-reasons';
import { formatCompact, formatNumber } from './number';
import { Tile } from './tile';
import { formatDuration, formatUtc } from './time';
import { type Line, TimeChart } from './time-chart';

type Count = keyof Omit<Figures, 'latencyMs' | 'confirmationMs'>;

const COUNT_LABELS: readonly { readonly name: Count; readonly label: string }[] = [
  { name: 'accepted', label: 'Accepted' },
  { name: 'delivered', label: 'Delivered' },
  { name: 'confirmed', label: 'Confirmed' },
  { name: 'deferred', label: 'Deferred' },
  { name: 'bounced', label: 'Bounced' },
  { name: 'complained', label: 'Complained' },
  { name: 'suppressed', label: 'Suppressed' },
  { name: 'expired', label: 'Expired' },
];

const BLUE = [TOKENS.light.accent, TOKENS.dark.accent] as const;
const GREEN = [TOKENS.light.delivered, TOKENS.dark.delivered] as const;
const RED = [TOKENS.light.bounced, TOKENS.dark.bounced] as const;
const PURPLE = [TOKENS.light.complained, TOKENS.dark.complained] as const;

export function OverviewFigures({ overview }: { readonly overview: Overview }) {
  const { points, range } = overview;
  const times = useMemo(() => points.map(({ at }) => at), [points]);
  const perStep = `per ${STEP_NAMES[range]}`;
  const counts = (name: Count) => points.map((point) => point[name]);
  const latencies = (percentile: 'p50' | 'p99') => points.map(({ latencyMs }) => latencyMs?.[percentile] ?? null);
  const volume: readonly Line[] = [
    { label: 'Delivered', colors: GREEN, dash: [], values: counts('delivered') },
    { label: 'Accepted', colors: BLUE, dash: [8, 5], values: counts('accepted') },
  ];
  const failures: readonly Line[] = [
    { label: 'Bounced', colors: RED, dash: [], values: counts('bounced') },
    { label: 'Complained', colors: PURPLE, dash: [3, 4], values: counts('complained') },
  ];
  const confirmations = points.map(({ confirmationMs }) => confirmationMs?.p50 ?? null);
  const latency: readonly Line[] = [
    { label: 'p50', colors: GREEN, dash: [], values: latencies('p50') },
    { label: 'p99', colors: PURPLE, dash: [8, 5], values: latencies('p99') },
    ...(overview.totals.confirmed === 0
      ? []
      : [{ label: 'p50 until confirmed', colors: BLUE, dash: [3, 4], values: confirmations }]),
  ];
  return (
    <div className="stack">
      <Totals overview={overview} />
      <div className="card">
        <TimeChart
          title={`Accepted and delivered, ${perStep}`}
          times={times}
          lines={volume}
          format={formatNumber}
          formatAxis={formatCompact}
        />
      </div>
      <div className="columns thirds">
        <div className="card">
          <TimeChart
            title={`Bounced and complained, ${perStep}`}
            times={times}
            lines={failures}
            format={formatNumber}
            formatAxis={formatCompact}
          />
        </div>
        <div className="card">
          <TimeChart
            title="Delivery time, from accepted to delivered"
            times={times}
            lines={latency}
            format={formatDuration}
            formatAxis={formatAxisTime}
            logarithmic
          />
        </div>
        <BounceReasons overview={overview} />
      </div>
      <Text size="sm" c="dimmed">
        Times are UTC. The last interval is incomplete.
      </Text>
      <FiguresTable overview={overview} />
    </div>
  );
}

const STEP_NAMES: Readonly<Record<Range, string>> = {
  '1h': 'minute',
  '24h': '10 minutes',
  '7d': 'hour',
  '30d': '6 hours',
};

/** Formats a time of the axis in one unit. The axis has powers of ten. */
function formatAxisTime(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${formatNumber(ms / 1_000)} s`;
}

/** The counts that are also states of messages. */
const STATE_COUNTS: readonly Count[] = ['delivered', 'bounced', 'complained', 'suppressed', 'expired'];

/** The counts with a tile of their own, and the tones of their sparklines. */
const COUNT_TILES: readonly { readonly name: Count; readonly label: string; readonly tone: string }[] = [
  { name: 'accepted', label: 'Accepted', tone: 'accent' },
  { name: 'delivered', label: 'Delivered', tone: 'delivered' },
  { name: 'bounced', label: 'Bounced', tone: 'bounced' },
  { name: 'complained', label: 'Complained', tone: 'complained' },
];

function Totals({ overview: { totals, points, range } }: { readonly overview: Overview }) {
  const { latencyMs } = totals;
  const rest = COUNT_LABELS.filter(({ name }) => !COUNT_TILES.some((tile) => tile.name === name));
  return (
    <>
      <dl className="tiles">
        {COUNT_TILES.map(({ name, label, tone }) => (
          <Tile
            key={name}
            label={label}
            value={formatNumber(totals[name])}
            support={formatShare(totals, name) ?? (name === 'accepted' ? 'messages' : 'none')}
            href={findList(name, totals, range)}
            tone={tone}
            course={points.map((point) => point[name])}
          />
        ))}
        <Tile
          label="Time to deliver"
          value={latencyMs === null ? '–' : formatDuration(latencyMs.p50)}
          support={latencyMs === null ? 'no delivery' : `p50 · p99 ${formatDuration(latencyMs.p99)}`}
          tone="accent"
          course={points.map((point) => point.latencyMs?.p50 ?? null)}
        />
      </dl>
      <dl className="facts">
        {rest.map(({ name, label }) => {
          const href = findList(name, totals, range);
          const value = formatNumber(totals[name]);
          return (
            <div key={name}>
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
        })}
      </dl>
    </>
  );
}

/** Returns the URL of the list of the counted messages; undefined without such a list. */
function findList(name: Count, totals: Figures, range: Range): string | undefined {
  return STATE_COUNTS.includes(name) && totals[name] > 0 ? `/messages?state=${name}&since=${range}` : undefined;
}

/** Returns the share of the accepted messages; undefined for a figure without a share. */
function formatShare(totals: Figures, name: Count): string | undefined {
  const value = totals[name];
  if (name === 'accepted' || name === 'deferred' || totals.accepted === 0 || value === 0) return undefined;
  const percent = (100 * value) / totals.accepted;
  return `${percent >= 10 ? Math.round(percent) : percent.toPrecision(2)} %`;
}

/** Shows the figures as a table, newest interval first. It is rendered when the operator opens it. */
function FiguresTable({ overview }: { readonly overview: Overview }) {
  const [opened, setOpened] = useState(false);
  const { points, range } = overview;
  return (
    <details onToggle={(event) => setOpened(event.currentTarget.open)}>
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
                    {formatUtc(point.at)}
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

export function FiguresTitle({ children }: { readonly children: string }) {
  return (
    <Title order={2} size="h4">
      {children}
    </Title>
  );
}

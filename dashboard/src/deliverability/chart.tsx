/** The figures of the selected row over time: outcomes, or the time to deliver. */
import { SegmentedControl } from '@mantine/core';
import { useMemo, useState } from 'react';
import type { Deliverability } from '../../../src/operations/deliverability.ts';
import { formatCompact, formatNumber } from '../parts/number';
import { formatDuration } from '../parts/time';
import { type Line, TimeChart } from '../parts/time-chart';
import { TOKENS } from '../theme';

const OUTCOME_LINES = [
  { name: 'delivered', label: 'Delivered' },
  { name: 'deferred', label: 'Deferred' },
  { name: 'bounced', label: 'Bounced' },
  { name: 'complained', label: 'Complained' },
] as const;
const TIME_LINES = [
  { percentile: 'p50', token: 'accent', dashPattern: [] },
  { percentile: 'p99', token: 'deferred', dashPattern: [4, 3] },
] as const;

/** Returns the line for the time until the provider confirms a delivery. Returns no line without confirmations. */
function createConfirmationLines(points: Deliverability['points']): readonly Line[] {
  if (points.every(({ confirmationMs }) => confirmationMs === null)) return [];
  return [
    {
      label: 'p50 until confirmed',
      colors: [TOKENS.light.delivered, TOKENS.dark.delivered],
      dashPattern: [2, 3],
      values: points.map(({ confirmationMs }) => confirmationMs?.p50 ?? null),
    },
  ];
}

interface RowChartProps {
  /** The name of the selected row. */
  readonly name: string;
  /** The duration of one interval of the chart in words, such as `hour`. */
  readonly step: string;
  readonly points: Deliverability['points'];
}

export function RowChart({ name, step, points }: RowChartProps) {
  const [figure, setFigure] = useState('outcomes');
  const showsTimes = figure === 'times';
  const timestamps = useMemo(() => points.map(({ at }) => at), [points]);
  const lines = useMemo<readonly Line[]>(
    () =>
      showsTimes
        ? [
            ...TIME_LINES.map(
              ({ percentile, token, dashPattern }): Line => ({
                label: percentile,
                colors: [TOKENS.light[token], TOKENS.dark[token]],
                dashPattern,
                values: points.map(({ latencyMs }) => latencyMs?.[percentile] ?? null),
              }),
            ),
            ...createConfirmationLines(points),
          ]
        : OUTCOME_LINES.map((outcome) => ({
            label: outcome.label,
            colors: [TOKENS.light[outcome.name], TOKENS.dark[outcome.name]],
            dashPattern: [],
            values: points.map((point) => point[outcome.name]),
          })),
    [points, showsTimes],
  );
  return (
    <TimeChart
      key={figure}
      title={name}
      secondary={showsTimes ? `time to deliver per ${step}` : `messages per ${step}`}
      times={timestamps}
      lines={lines}
      format={showsTimes ? formatDuration : formatNumber}
      formatAxis={formatCompact}
      isLogarithmic={showsTimes}
      isStacked={!showsTimes}
      hasTable={false}
      controls={
        <SegmentedControl
          size="xs"
          aria-label="Figures of the chart"
          value={figure}
          onChange={setFigure}
          data={[
            { value: 'outcomes', label: 'Outcomes' },
            { value: 'times', label: 'Time to deliver' },
          ]}
        />
      }
    />
  );
}

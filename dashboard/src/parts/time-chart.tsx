/**
 * A line chart over time. Each line has its own color and dash pattern, so that lines are distinguishable without color. The page
 * has a table of the same figures. Times are UTC.
 */
import { Group, Text, Title, useComputedColorScheme } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useEffect, useId, useMemo, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { TOKENS } from '../theme';
import { formatUtc } from './time';

export interface Line {
  readonly label: string;
  /** The colors in light and dark mode. */
  readonly colors: readonly [light: string, dark: string];
  /** Dashes and gaps in px; empty for a solid line. */
  readonly dash: readonly number[];
  /** One value for each time; null without a value. */
  readonly values: readonly (number | null)[];
}

export interface TimeChartProps {
  readonly title: string;
  /** The times in ISO 8601 format. */
  readonly times: readonly string[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** Formats values of the axis; `format` by default. */
  readonly formatAxis?: (value: number) => string;
  readonly logarithmic?: boolean;
}

const HEIGHT = 190;
const AXIS_COLORS = {
  light: { text: TOKENS.light.faint, grid: TOKENS.light.border },
  dark: { text: TOKENS.dark.faint, grid: TOKENS.dark.border },
} as const;
/**
 * The minimum number of values of a line that is shown without points. A line with fewer values shows each value as a
 * point.
 */
const MIN_VALUES_WITHOUT_POINTS = 24;

export function TimeChart({ title, times, lines, format, formatAxis = format, logarithmic = false }: TimeChartProps) {
  const scheme = useComputedColorScheme('light');
  const heading = useId();
  const { ref: frame, width } = useElementSize<HTMLDivElement>();
  const canvas = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const [hoveredIndex, setHoveredIndex] = useState<number | null>(null);
  const data = useMemo(() => toChartData(times, lines, logarithmic), [times, lines, logarithmic]);
  const latest = useRef({ data, format: formatAxis });
  useEffect(() => {
    latest.current = { data, format: formatAxis };
  });

  // A change of the lines creates a new chart. New values are set in the existing chart.
  const shape = JSON.stringify(
    lines.map(({ label, colors, dash, values }) => [label, colors, dash, showsPoints(values)]),
  );
  useEffect(() => {
    if (canvas.current === null || width === 0) return;
    const newChart = new uPlot(
      toChartOptions({
        shape,
        width,
        scheme,
        logarithmic,
        onHover: setHoveredIndex,
        format: (value) => latest.current.format(value),
      }),
      latest.current.data,
      canvas.current,
    );
    chart.current = newChart;
    return () => {
      chart.current = null;
      newChart.destroy();
    };
  }, [shape, width, scheme, logarithmic]);
  useEffect(() => chart.current?.setData(data), [data]);

  const at = hoveredIndex ?? -1;
  return (
    <section aria-labelledby={heading}>
      <Title order={3} size="h5" id={heading}>
        {title}
      </Title>
      <Group gap="md" my={4}>
        {lines.map(({ label, colors, dash, values }) => {
          const value = values[at];
          return (
            <Group key={label} gap={6} wrap="nowrap">
              <svg width="26" height="8" aria-hidden="true" focusable="false">
                <line
                  x1="0"
                  y1="4"
                  x2="26"
                  y2="4"
                  stroke={colors[scheme === 'dark' ? 1 : 0]}
                  strokeWidth="2.5"
                  strokeDasharray={dash.join(' ')}
                />
              </svg>
              <Text size="sm">
                {label}
                {value === undefined || value === null ? '' : ` ${format(value)}`}
              </Text>
            </Group>
          );
        })}
        <Text size="sm" c="dimmed">
          {times[at] === undefined ? '' : `from ${formatUtc(times[at])}`}
        </Text>
      </Group>
      <div ref={frame}>
        <div
          ref={canvas}
          role="img"
          aria-label={`${title}: ${describeLines(lines, format)}`}
          style={{ minHeight: HEIGHT }}
        />
      </div>
    </section>
  );
}

function showsPoints(values: Line['values']): boolean {
  return values.filter((value) => value !== null).length < MIN_VALUES_WITHOUT_POINTS;
}

function toChartData(times: readonly string[], lines: readonly Line[], logarithmic: boolean): uPlot.AlignedData {
  const seconds = times.map((time) => Date.parse(time) / 1_000);
  // A logarithmic scale has no zero.
  const values = lines.map((line) =>
    line.values.map((value) => (logarithmic && value !== null ? Math.max(1, value) : value)),
  );
  return [seconds, ...values];
}

interface ChartShape {
  readonly shape: string;
  readonly width: number;
  readonly scheme: 'light' | 'dark';
  readonly logarithmic: boolean;
  readonly onHover: (at: number | null) => void;
  readonly format: (value: number) => string;
}

function toChartOptions({ shape, width, scheme, logarithmic, onHover, format }: ChartShape): uPlot.Options {
  const lines = JSON.parse(shape) as readonly (readonly [string, Line['colors'], number[], boolean])[];
  const { text, grid } = AXIS_COLORS[scheme];
  const axis = {
    stroke: text,
    grid: { stroke: grid, width: 1 },
    ticks: { show: false },
    font: '11px Inter, system-ui, sans-serif',
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
    scales: {
      x: { time: true },
      y: logarithmic
        ? { distr: 3, log: 10, range: (_chart, min, max) => findEnclosingPowersOfTen(min, max) }
        : { range: (_chart, _min, max) => [0, Math.max(1, (max ?? 0) * 1.05)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        values: (_chart, splits, _axis, _space, step) => formatTimeLabels(splits, step),
      },
      {
        ...axis,
        size: 64,
        ...(logarithmic ? {} : { incrs: AXIS_STEPS }),
        grid: {
          ...axis.grid,
          filter: (_chart, splits) => splits.map((value) => (logarithmic && !isPowerOfTen(value) ? null : value)),
        },
        values: (_chart, splits) => splits.map((value) => (value === null ? '' : format(value))),
      },
    ],
    series: [
      {},
      ...lines.map(([label, colors, dash, showPoints]) => ({
        label,
        stroke: colors[scheme === 'dark' ? 1 : 0],
        width: 2,
        dash,
        spanGaps: false,
        points: { show: showPoints, size: 5 },
      })),
    ],
    hooks: { setCursor: [({ cursor }) => onHover(cursor.idx ?? null)] },
  };
}

/** The steps of the axis, which are whole numbers, because messages are counted. */
const AXIS_STEPS = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

/** Returns the powers of ten that enclose the values. */
function findEnclosingPowersOfTen(min: number | null, max: number | null): [number, number] {
  const from = 10 ** Math.floor(Math.log10(Math.max(1, min ?? 1)));
  return [from, Math.max(from * 10, 10 ** Math.ceil(Math.log10(Math.max(1, max ?? 1))))];
}

function isPowerOfTen(value: number): boolean {
  return Math.log10(value) % 1 === 0;
}

/**
 * Returns the labels of times. A label is the hour, and the first hour of a day has the date below it. Steps of a day
 * have only the date.
 */
function formatTimeLabels(seconds: readonly number[], stepSeconds: number): string[] {
  let day = '';
  return seconds.map((at) => {
    const [date = '', time = ''] = new Date(at * 1_000).toISOString().split('T');
    const shownDay = date === day ? '' : date.slice(5);
    day = date;
    if (stepSeconds >= 86_400) return shownDay;
    return shownDay === '' ? time.slice(0, 5) : `${time.slice(0, 5)}\n${shownDay}`;
  });
}

/** Describes the chart in one sentence for screen readers. */
function describeLines(lines: readonly Line[], format: (value: number) => string): string {
  const parts = lines.map(({ label, values }) => {
    const knownValues = values.filter((value) => value !== null);
    return knownValues.length === 0 ? `${label}: no values` : `${label}: maximum ${format(Math.max(...knownValues))}`;
  });
  return `${parts.join('; ')}. The same figures are in the table below.`;
}

/**
 * Lines over time. Each line has a colour and a dash of its own, so that it is known without seeing colours; whoever sees no picture
 * has the same figures in a table beside it. Times are UTC, as everywhere.
 */
import { Group, Text, Title, useComputedColorScheme } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useEffect, useId, useMemo, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { exact } from './when';

export interface Line {
  readonly label: string;
  /** In the light and in the dark. */
  readonly colours: readonly [light: string, dark: string];
  /** Dashes and gaps in px; none for a whole line. */
  readonly dash: readonly number[];
  /** One for each time; null where there is nothing to tell. */
  readonly values: readonly (number | null)[];
}

export interface TimeChartProps {
  readonly title: string;
  /** ISO 8601. */
  readonly times: readonly string[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** Of the axis; as `format` where it is left out. */
  readonly formatAxis?: (value: number) => string;
  readonly logarithmic?: boolean;
}

const HEIGHT = 190;
const INK = { light: { text: '#5c636a', grid: '#d9dde1' }, dark: { text: '#a6adb4', grid: '#3a3f44' } } as const;
/** With fewer values than this each one is a point too, for a line of one value is none. */
const FEW = 24;

export function TimeChart({ title, times, lines, format, formatAxis = format, logarithmic = false }: TimeChartProps) {
  const scheme = useComputedColorScheme('light');
  const heading = useId();
  const { ref: frame, width } = useElementSize<HTMLDivElement>();
  const canvas = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const data = useMemo(() => dataOf(times, lines, logarithmic), [times, lines, logarithmic]);
  const latest = useRef({ data, format: formatAxis });
  useEffect(() => {
    latest.current = { data, format: formatAxis };
  });

  // What the chart is made anew for; figures alone are set into it.
  const shape = JSON.stringify(lines.map(({ label, colours, dash, values }) => [label, colours, dash, isFew(values)]));
  useEffect(() => {
    if (canvas.current === null || width === 0) return;
    const made = new uPlot(
      optionsOf({
        shape,
        width,
        scheme,
        logarithmic,
        point: setPointed,
        format: (value) => latest.current.format(value),
      }),
      latest.current.data,
      canvas.current,
    );
    chart.current = made;
    return () => {
      chart.current = null;
      made.destroy();
    };
  }, [shape, width, scheme, logarithmic]);
  useEffect(() => chart.current?.setData(data), [data]);

  const at = pointed ?? -1;
  return (
    <section aria-labelledby={heading}>
      <Title order={3} size="h5" id={heading}>
        {title}
      </Title>
      <Group gap="md" my={4}>
        {lines.map(({ label, colours, dash, values }) => {
          const value = values[at];
          return (
            <Group key={label} gap={6} wrap="nowrap">
              <svg width="26" height="8" aria-hidden="true" focusable="false">
                <line
                  x1="0"
                  y1="4"
                  x2="26"
                  y2="4"
                  stroke={colours[scheme === 'dark' ? 1 : 0]}
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
          {times[at] === undefined ? '' : `from ${exact(times[at])}`}
        </Text>
      </Group>
      <div ref={frame}>
        <div ref={canvas} role="img" aria-label={`${title}: ${summary(lines, format)}`} style={{ minHeight: HEIGHT }} />
      </div>
    </section>
  );
}

function isFew(values: Line['values']): boolean {
  return values.filter((value) => value !== null).length < FEW;
}

function dataOf(times: readonly string[], lines: readonly Line[], logarithmic: boolean): uPlot.AlignedData {
  const seconds = times.map((time) => Date.parse(time) / 1_000);
  // There is no zero on a scale of ratios.
  const values = lines.map((line) =>
    line.values.map((value) => (logarithmic && value !== null ? Math.max(1, value) : value)),
  );
  return [seconds, ...values];
}

interface Shape {
  readonly shape: string;
  readonly width: number;
  readonly scheme: 'light' | 'dark';
  readonly logarithmic: boolean;
  readonly point: (at: number | null) => void;
  readonly format: (value: number) => string;
}

function optionsOf({ shape, width, scheme, logarithmic, point, format }: Shape): uPlot.Options {
  const lines = JSON.parse(shape) as readonly (readonly [string, Line['colours'], number[], boolean])[];
  const { text, grid } = INK[scheme];
  const axis = {
    stroke: text,
    grid: { stroke: grid, width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
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
        ? { distr: 3, log: 10, range: (_chart, least, most) => decades(least, most) }
        : { range: (_chart, _least, most) => [0, Math.max(1, (most ?? 0) * 1.05)] },
    },
    axes: [
      { ...axis, values: (_chart, splits, _axis, _space, step) => timeLabels(splits, step) },
      {
        ...axis,
        size: 64,
        ...(logarithmic ? {} : { incrs: WHOLE }),
        grid: {
          ...axis.grid,
          filter: (_chart, splits) => splits.map((value) => (logarithmic && !isPowerOfTen(value) ? null : value)),
        },
        values: (_chart, splits) => splits.map((value) => (value === null ? '' : format(value))),
      },
    ],
    series: [
      {},
      ...lines.map(([label, colours, dash, few]) => ({
        label,
        stroke: colours[scheme === 'dark' ? 1 : 0],
        width: 2,
        dash,
        spanGaps: false,
        points: { show: few, size: 5 },
      })),
    ],
    hooks: { setCursor: [({ cursor }) => point(cursor.idx ?? null)] },
  };
}

/** Mail requests are counted whole. */
const WHOLE = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

/** The powers of ten around what there is. */
function decades(least: number | null, most: number | null): [number, number] {
  const from = 10 ** Math.floor(Math.log10(Math.max(1, least ?? 1)));
  return [from, Math.max(from * 10, 10 ** Math.ceil(Math.log10(Math.max(1, most ?? 1))))];
}

function isPowerOfTen(value: number): boolean {
  return Math.log10(value) % 1 === 0;
}

/** The hour; below the first of each day, and where a step is a day, the date. */
function timeLabels(seconds: readonly number[], stepSeconds: number): string[] {
  let day = '';
  return seconds.map((at) => {
    const [date = '', time = ''] = new Date(at * 1_000).toISOString().split('T');
    const shownDay = date === day ? '' : date.slice(5);
    day = date;
    if (stepSeconds >= 86_400) return shownDay;
    return shownDay === '' ? time.slice(0, 5) : `${time.slice(0, 5)}\n${shownDay}`;
  });
}

/** What the picture says, in a sentence. */
function summary(lines: readonly Line[], format: (value: number) => string): string {
  const told = lines.map(({ label, values }) => {
    const known = values.filter((value) => value !== null);
    return known.length === 0 ? `${label}: nothing` : `${label}: at most ${format(Math.max(...known))}`;
  });
  return `${told.join('; ')}. The table of the figures is below.`;
}

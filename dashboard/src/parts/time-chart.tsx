/**
 * A card with a chart over time: lines, or stacked areas. Each line has its own color and dash pattern, so that lines
 * are distinguishable without color. A tooltip shows all values of an interval. The last interval is incomplete, so it
 * is faded. `hasTable` states whether the page has a table of the same figures below the chart.
 */
import { useComputedColorScheme } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { TOKENS } from '../theme';
import { Card } from './card';
import { formatDayOfYear, formatDuration, formatMinute, toZonedTime } from './time';
import type { TimeZone } from './time-zone';
import { useTimeZone } from './use-time-zone';

export interface Line {
  readonly label: string;
  /** The colors in light and dark mode. */
  readonly colors: readonly [light: string, dark: string];
  /** Dashes and gaps in px; empty for a solid line. */
  readonly dashPattern: readonly number[];
  /** One value for each time of the chart; null if there is no value. */
  readonly values: readonly (number | null)[];
}

export interface TimeChartProps {
  readonly title: string;
  /** A short addition beside the title, such as `messages per 10 minutes`. */
  readonly secondary: string;
  /** The times in ISO 8601 format. */
  readonly times: readonly string[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** Formats values of a linear axis; `format` by default. */
  readonly formatAxis?: (value: number) => string;
  /** If true, the values are durations in ms on a logarithmic axis. */
  readonly isLogarithmic?: boolean;
  /** If true, the values are shown as stacked areas. They must be counts that can be added. */
  readonly isStacked?: boolean;
  /** False if the page has no table of the same figures below the chart. */
  readonly hasTable?: boolean;
  /** The controls at the top right, beside the legend of the chart. */
  readonly controls?: ReactNode;
  /** The content below the chart. */
  readonly children?: ReactNode;
}

/** The minimum heights. A chart in a taller card fills the card. */
const MIN_HEIGHT_PX = 230;
const MIN_STACKED_HEIGHT_PX = 340;
/** The width of the tooltip (also in styles/parts.css), and the distance between the tooltip and the interval. */
const TOOLTIP_WIDTH_PX = 176;
const TOOLTIP_DISTANCE_PX = 12;
const INCOMPLETE_LABEL = 'incomplete';
const AXIS_COLORS = {
  light: { text: TOKENS.light.faint, grid: TOKENS.light.border, surface: TOKENS.light.surface },
  dark: { text: TOKENS.dark.faint, grid: TOKENS.dark.border, surface: TOKENS.dark.surface },
} as const;
/**
 * The minimum number of values of a line that is shown without points. A line with fewer values shows each value as a
 * point.
 */
const MIN_VALUES_WITHOUT_POINTS = 24;

export function TimeChart(props: TimeChartProps) {
  const {
    title,
    secondary,
    times,
    lines,
    format,
    formatAxis = format,
    isLogarithmic = false,
    isStacked = false,
  } = props;
  const colorScheme = useComputedColorScheme('light');
  const zone = useTimeZone();
  const { ref: frame, width, height: frameHeight } = useElementSize<HTMLDivElement>();
  const minHeight = isStacked ? MIN_STACKED_HEIGHT_PX : MIN_HEIGHT_PX;
  const height = Math.max(minHeight, Math.floor(frameHeight));
  const canvas = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const [hovered, setHovered] = useState<HoveredInterval | null>(null);
  const data = useMemo(
    () => toChartData(times, lines, isLogarithmic, isStacked),
    [times, lines, isLogarithmic, isStacked],
  );
  const latestChart = useRef({ data, format: formatAxis });
  useEffect(() => {
    latestChart.current = { data, format: formatAxis };
  });

  // A change of the labels, colors or dashes of the lines creates a new chart. New values are set in the existing
  // chart.
  const lineShapes = JSON.stringify(
    lines.map(({ label, colors, dashPattern, values }) => [
      label,
      colors,
      dashPattern,
      !isStacked && showsPoints(values),
    ]),
  );
  useEffect(() => {
    if (canvas.current === null || width === 0) return;
    const newChart = new uPlot(
      toChartOptions({
        lineShapes,
        width,
        height,
        colorScheme,
        zone,
        isLogarithmic,
        isStacked,
        onHover: setHovered,
        format: (value) => latestChart.current.format(value),
      }),
      latestChart.current.data,
      canvas.current,
    );
    chart.current = newChart;
    return () => {
      chart.current = null;
      newChart.destroy();
    };
  }, [lineShapes, width, height, colorScheme, zone, isLogarithmic, isStacked]);
  useEffect(() => chart.current?.setData(data), [data]);

  const toColor = (line: Line) => line.colors[colorScheme === 'dark' ? 1 : 0];
  const hoveredTime = hovered === null ? undefined : times[hovered.index];
  return (
    <Card
      title={title}
      secondary={secondary}
      aside={
        <>
          <div className="chart-keys">
            {lines.map((line) => (
              <span key={line.label} className="chart-key">
                {isStacked ? <Swatch color={toColor(line)} /> : <LineSample line={line} color={toColor(line)} />}
                {line.label}
              </span>
            ))}
          </div>
          {props.controls}
        </>
      }
    >
      <div ref={frame} className="chart-frame" style={{ minHeight }}>
        <div
          ref={canvas}
          className="chart-canvas"
          role="img"
          aria-label={`${title}: ${describeLines(lines, format, props.hasTable ?? true)}`}
        />
        {hovered === null || hoveredTime === undefined ? null : (
          <div className="chart-tip" style={{ left: positionTooltip(hovered.leftPx, width), top: 12 }}>
            <b>{formatMinute(hoveredTime)}</b>
            {lines.map((line) => (
              <span key={line.label}>
                <Swatch color={toColor(line)} />
                {line.label}
                <em>{formatValue(line.values[hovered.index], format)}</em>
              </span>
            ))}
          </div>
        )}
      </div>
      {props.children}
    </Card>
  );
}

interface HoveredInterval {
  readonly index: number;
  /** The distance of the interval from the left side of the chart in px. */
  readonly leftPx: number;
}

function Swatch({ color }: { readonly color: string }) {
  return <i className="swatch" style={{ color }} />;
}

function LineSample({ line, color }: { readonly line: Line; readonly color: string }) {
  return (
    <svg width="20" height="8" aria-hidden="true" focusable="false">
      <line x1="0" y1="4" x2="20" y2="4" stroke={color} strokeWidth="2" strokeDasharray={line.dashPattern.join(' ')} />
    </svg>
  );
}

/** Returns the position of the left side of the tooltip. The tooltip is beside the interval and inside the chart. */
function positionTooltip(leftPx: number, width: number): number {
  return leftPx + TOOLTIP_DISTANCE_PX + TOOLTIP_WIDTH_PX <= width
    ? leftPx + TOOLTIP_DISTANCE_PX
    : Math.max(0, leftPx - TOOLTIP_DISTANCE_PX - TOOLTIP_WIDTH_PX);
}

function formatValue(value: number | null | undefined, format: TimeChartProps['format']): string {
  return value === undefined || value === null ? '–' : format(value);
}

function showsPoints(values: Line['values']): boolean {
  return values.filter((value) => value !== null).length < MIN_VALUES_WITHOUT_POINTS;
}

function toChartData(
  times: readonly string[],
  lines: readonly Line[],
  isLogarithmic: boolean,
  isStacked: boolean,
): uPlot.AlignedData {
  const seconds = times.map((time) => Date.parse(time) / 1_000);
  if (isStacked) {
    const sums = times.map(() => 0);
    const areas = lines.map(({ values }) =>
      sums.map((sum, index) => {
        const height = sum + (values[index] ?? 0);
        sums[index] = height;
        return height;
      }),
    );
    return [seconds, ...areas];
  }
  // A logarithmic scale cannot show zero, so values below 1 are shown as 1.
  const values = lines.map((line) =>
    line.values.map((value) => (isLogarithmic && value !== null ? Math.max(1, value) : value)),
  );
  return [seconds, ...values];
}

interface ChartInput {
  readonly lineShapes: string;
  readonly width: number;
  readonly height: number;
  readonly colorScheme: 'light' | 'dark';
  readonly zone: TimeZone;
  readonly isLogarithmic: boolean;
  readonly isStacked: boolean;
  readonly onHover: (hovered: HoveredInterval | null) => void;
  readonly format: (value: number) => string;
}

function toChartOptions({
  lineShapes,
  width,
  height,
  colorScheme,
  zone,
  isLogarithmic,
  isStacked,
  onHover,
  format,
}: ChartInput): uPlot.Options {
  const lines = JSON.parse(lineShapes) as readonly (readonly [string, Line['colors'], number[], boolean])[];
  const { text, grid, surface } = AXIS_COLORS[colorScheme];
  const axis = {
    stroke: text,
    grid: { stroke: grid, width: 1 },
    ticks: { show: false },
    font: '11px Inter, system-ui, sans-serif',
  };
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    tzDate: (seconds) =>
      zone === 'utc' ? uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC') : new Date(seconds * 1_000),
    scales: {
      x: { time: true },
      y: isLogarithmic
        ? { distr: 3, log: 10, range: (_chart, min, max) => findEnclosingTicks(min, max) }
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
        size: 52,
        ...(isLogarithmic
          ? {
              splits: (_chart, _axis, min, max) => DURATION_TICKS_MS.filter((tick) => tick >= min && tick <= max),
              filter: (_chart, splits) => [...splits],
            }
          : { incrs: AXIS_STEPS }),
        values: (_chart, splits) => splits.map((value) => (isLogarithmic ? formatDuration(value) : format(value))),
      },
    ],
    series: [
      {},
      ...lines.map(([label, colors, dashPattern, showPoints]) => ({
        label,
        stroke: colors[colorScheme === 'dark' ? 1 : 0],
        width: isStacked ? 0 : 1.5,
        dash: dashPattern,
        spanGaps: false,
        points: { show: showPoints, size: 5 },
        ...(isStacked ? { fill: `${colors[colorScheme === 'dark' ? 1 : 0]}${AREA_OPACITY}` } : {}),
      })),
    ],
    // The filled area of a series ends at the line of the series below it.
    bands: isStacked ? lines.slice(1).map((_, index) => ({ series: [index + 2, index + 1] })) : [],
    hooks: {
      setCursor: [
        (chart) => {
          const { idx } = chart.cursor;
          const timeSeconds = idx === null || idx === undefined ? undefined : chart.data[0][idx];
          if (idx === null || idx === undefined || timeSeconds === undefined) return onHover(null);
          onHover({ index: idx, leftPx: chart.valToPos(timeSeconds, 'x') + chart.bbox.left / uPlot.pxRatio });
        },
      ],
      draw: [(chart) => fadeLastInterval(chart, surface, text)],
    },
  };
}

/** The opacity of an area as two hexadecimal digits, which are appended to the color of the area. */
const AREA_OPACITY = 'a0';

/** Fades the last interval, which is incomplete: covers it with the translucent surface color and adds a label. */
function fadeLastInterval(chart: uPlot, surface: string, text: string): void {
  const [from, until] = chart.data[0].slice(-2);
  if (from === undefined || until === undefined) return;
  const { ctx, bbox } = chart;
  const startX = chart.valToPos(from, 'x', true);
  ctx.save();
  ctx.globalAlpha = 0.65;
  ctx.fillStyle = surface;
  ctx.fillRect(startX, bbox.top, bbox.left + bbox.width - startX + 2 * uPlot.pxRatio, bbox.height);
  ctx.globalAlpha = 1;
  ctx.fillStyle = text;
  ctx.font = `${11 * uPlot.pxRatio}px Inter, system-ui, sans-serif`;
  ctx.textAlign = 'right';
  ctx.textBaseline = 'top';
  ctx.fillText(INCOMPLETE_LABEL, bbox.left + bbox.width, bbox.top + 2 * uPlot.pxRatio);
  ctx.restore();
}

/** The possible steps of the value axis. The steps are whole numbers, because the values are counts of messages. */
const AXIS_STEPS = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

/**
 * Returns the limits of the logarithmic axis: the last tick that is not above `min`, and the first tick that is not
 * below `max`.
 */
function findEnclosingTicks(min: number | null, max: number | null): [number, number] {
  const from = DURATION_TICKS_MS.findLast((tick) => tick <= Math.max(1, min ?? 1)) ?? 1;
  const until = DURATION_TICKS_MS.find((tick) => tick >= (max ?? 1) && tick > from);
  return [from, until ?? Math.max(max ?? 1, from * 10)];
}

/** The tick values of a logarithmic axis of durations, in ms. */
const DURATION_TICKS_MS = [1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 86_400_000, 864_000_000];

/**
 * Returns the labels of the time axis. A label is a time of day. The first label of a day also has the date below the
 * time. If the steps are days, the labels are dates.
 */
function formatTimeLabels(seconds: readonly number[], stepSeconds: number): string[] {
  let previousDay = '';
  return seconds.map((timeSeconds) => {
    const isoTime = new Date(timeSeconds * 1_000).toISOString();
    const localTime = toZonedTime(isoTime).slice(11);
    const date = formatDayOfYear(isoTime);
    const shownDay = date === previousDay ? '' : date;
    previousDay = date;
    if (stepSeconds >= 86_400) return shownDay;
    return shownDay === '' ? localTime.slice(0, 5) : `${localTime.slice(0, 5)}\n${shownDay}`;
  });
}

/** Describes the chart for screen readers: the maximum of each line, and a reference to the table of the figures. */
function describeLines(lines: readonly Line[], format: (value: number) => string, hasTable: boolean): string {
  const descriptions = lines.map(({ label, values }) => {
    const knownValues = values.filter((value) => value !== null);
    return knownValues.length === 0 ? `${label}: no values` : `${label}: maximum ${format(Math.max(...knownValues))}`;
  });
  return `${descriptions.join('; ')}.${hasTable ? ' The same figures are in the table below.' : ''}`;
}

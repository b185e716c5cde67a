import { styleText } from 'node:util';
import type { State } from '../model/message.ts';
import { toPrintable } from '../printing/escape.ts';
import { formatCount, formatSpan, formatTime, shortenText } from '../printing/text.ts';

export type Style = 'success' | 'error' | 'warning' | 'dimmed' | 'heading';

const FORMATS = { success: 'green', error: 'red', warning: 'yellow', dimmed: 'dim', heading: 'bold' } as const;

/** Adds no color for a pipe, or if NO_COLOR is set. */
export function applyStyle(style: Style, text: string): string {
  return styleText(FORMATS[style], text, { stream: process.stdout });
}

export type Cell = string | { readonly text: string; readonly style: Style };

export const LEVEL_STYLES = { ok: 'success', warning: 'warning', failure: 'error' } as const;

const COLUMN_GAP = 2;
/** A column is never narrower than its heading. */
const MIN_COLUMN_WIDTH = 8;

export interface TableOptions {
  /** The columns of free text, which are truncated if the table is wider than the terminal. */
  readonly truncatedHeadings?: readonly string[];
  readonly width?: number;
}

/**
 * If the table is too wide, the widest columns of free text are truncated, then the last of them omitted, then the last
 * of the others, and a line names them. Never the first column; ids are never truncated.
 */
export function formatTable(
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
  { truncatedHeadings = [], width = getTerminalWidth() }: TableOptions = {},
): string {
  const toPlainText = (cell: Cell): string => toPrintable(typeof cell === 'string' ? cell : cell.text);
  const columns = headings.map((heading, index) => ({
    heading,
    index,
    width: rows.reduce((max, row) => Math.max(max, [...toPlainText(row[index] ?? '')].length), heading.length),
    minWidth: truncatedHeadings.includes(heading) ? Math.max(MIN_COLUMN_WIDTH, heading.length) : Infinity,
  }));
  const { shown, omitted } = fitColumns(columns, width);
  const formatLine = (cells: readonly Cell[]): string =>
    shown
      .map((column, position) => {
        const cell = cells[column.index] ?? '';
        const text = shortenText(toPlainText(cell), column.width);
        const isLast = position === shown.length - 1;
        const padding = isLast ? '' : ' '.repeat(column.width - [...text].length + COLUMN_GAP);
        return (typeof cell === 'string' ? text : applyStyle(cell.style, text)) + padding;
      })
      .join('');
  const lines = [headings.map((text) => ({ text, style: 'heading' as const })), ...rows].map(
    (row) => `${formatLine(row).trimEnd()}\n`,
  );
  const note = `${omitted.map(({ heading }) => heading).join(', ')}: not shown, because the terminal is too narrow`;
  return lines.join('') + (omitted.length === 0 ? '' : `${applyStyle('dimmed', shortenText(note, width))}\n`);
}

export function formatList<T>(
  items: readonly T[],
  emptyText: string,
  columns: Readonly<Record<string, (item: T) => Cell>>,
  truncatedHeadings: readonly string[] = [],
): string {
  if (items.length === 0) return emptyText;
  const rows = items.map((item) => Object.values(columns).map((getCell) => getCell(item)));
  return formatTable(Object.keys(columns), rows, { truncatedHeadings });
}

interface Column {
  readonly heading: string;
  readonly index: number;
  readonly width: number;
  readonly minWidth: number;
}

function fitColumns(columns: readonly Column[], terminalWidth: number) {
  const computeTotalWidth = (measuredColumns: readonly Column[]) =>
    measuredColumns.reduce((sum, { width }) => sum + width, COLUMN_GAP * (measuredColumns.length - 1));
  const omittedColumns: Column[] = [];
  for (let shownColumns = columns; ; ) {
    const widths = shownColumns.map(({ width }) => width);
    for (let excessWidth = computeTotalWidth(shownColumns) - terminalWidth; excessWidth > 0; excessWidth -= 1) {
      const widestIndex = shownColumns.reduce((bestIndex, { minWidth }, index) => {
        const width = widths[index] ?? 0;
        return width > minWidth && width > (widths[bestIndex] ?? 0) ? index : bestIndex;
      }, -1);
      if (widestIndex === -1) break;
      widths[widestIndex] = (widths[widestIndex] ?? 0) - 1;
    }
    const fittedColumns = shownColumns.map((column, index) => ({ ...column, width: widths[index] ?? 0 }));
    const [, ...others] = shownColumns;
    const lastColumn = others.findLast(({ minWidth }) => minWidth !== Infinity) ?? others.at(-1);
    if (computeTotalWidth(fittedColumns) <= terminalWidth || lastColumn === undefined)
      return { shown: fittedColumns, omitted: omittedColumns.sort((first, second) => first.index - second.index) };
    omittedColumns.push(lastColumn);
    shownColumns = shownColumns.filter((column) => column !== lastColumn);
  }
}

function getTerminalWidth(): number {
  const { isTTY, columns } = process.stdout;
  return isTTY && columns > 0 ? columns : Infinity;
}

export function formatPairs(entries: readonly (readonly [string, Cell])[]): string {
  const width = entries.reduce((width, [name]) => Math.max(width, name.length), 0);
  return entries
    .map(([name, cell]) => {
      const text = typeof cell === 'string' ? toPrintable(cell) : applyStyle(cell.style, toPrintable(cell.text));
      return `${applyStyle('heading', name)}${' '.repeat(width - name.length + 2)}${text}\n`;
    })
    .join('');
}

export function formatTimeText(isoTime: string | null, defaultText = ''): string {
  return isoTime === null ? defaultText : formatTime(Date.parse(isoTime));
}

export function createStateCell(state: State): Cell {
  return { text: state, style: STATE_STYLES[state] };
}

const STATE_STYLES: Readonly<Record<State, Style>> = {
  queued: 'warning',
  sending: 'warning',
  delivered: 'success',
  bounced: 'error',
  complained: 'error',
  suppressed: 'dimmed',
  expired: 'error',
  cancelled: 'dimmed',
  uncertain: 'error',
};

/** A slow terminal must not delay the work. */
const MIN_REDRAW_INTERVAL_MS = 100;
const BAR_WIDTH = 20;
const ERASE_LINE = '\r\u001b[K';

export interface ProgressStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export class StatusLine {
  readonly #stream: ProgressStream;
  #shown = '';

  constructor(stream: ProgressStream) {
    this.#stream = stream;
  }

  show(text: string): void {
    if (this.#stream.isTTY !== true || text === this.#shown) return;
    // A wrapped line could not be erased.
    this.#stream.write(ERASE_LINE + shortenText(text, (this.#stream.columns ?? 80) - 1));
    this.#shown = text;
  }

  writeLine(line: string): void {
    const shownText = this.#shown;
    this.clear();
    this.#stream.write(`${line}\n`);
    if (shownText !== '') this.show(shownText);
  }

  clear(): void {
    if (this.#shown !== '') this.#stream.write(ERASE_LINE);
    this.#shown = '';
  }
}

export class RowProgress {
  readonly #line: StatusLine;
  readonly #now: () => number;
  readonly #startedAt: number;
  #drawnAt: number;

  constructor(line: StatusLine, now: () => number) {
    this.#line = line;
    this.#now = now;
    this.#startedAt = now();
    this.#drawnAt = this.#startedAt;
  }

  /** `fraction` is the completed share, from 0 to 1, or null if the total is unknown. */
  update(rowCount: number, fraction: number | null): void {
    const now = this.#now();
    if (now - this.#drawnAt < MIN_REDRAW_INTERVAL_MS) return;
    this.#drawnAt = now;
    this.#line.show(formatProgress(rowCount, fraction, now - this.#startedAt));
  }
}

/** Such as `[#####...............] 25 % 250,000 rows 125,000/s 6 s left`. */
export function formatProgress(rows: number, fraction: number | null, elapsedMs: number): string {
  const rowsPerSecond = elapsedMs <= 0 ? 0 : Math.round((rows / elapsedMs) * 1000);
  const rowsText = `${formatCount(rows)} rows  ${formatCount(rowsPerSecond)}/s`;
  if (fraction === null) return rowsText;
  const clampedFraction = Math.min(1, Math.max(0, fraction));
  const filledWidth = Math.floor(clampedFraction * BAR_WIDTH);
  const bar = `[${'#'.repeat(filledWidth)}${'.'.repeat(BAR_WIDTH - filledWidth)}] ${String(Math.floor(clampedFraction * 100)).padStart(3)} %`;
  const remainingText =
    clampedFraction === 0 ? '' : `  ${formatSpan((elapsedMs / clampedFraction) * (1 - clampedFraction))} left`;
  return `${bar}  ${rowsText}${remainingText}`;
}

/** Waits until standard output has written its buffer, so that a slow reader does not fill the memory. */
export async function waitForDrain(): Promise<void> {
  const { stdout } = process;
  if (stdout.writableNeedDrain) await new Promise<void>((resolve) => stdout.once('drain', resolve));
}

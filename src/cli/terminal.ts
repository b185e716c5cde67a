/** Text for the terminal: aligned tables, times, styles, and the progress of a long command. */
import { styleText } from 'node:util';
import type { State } from '../model/message.ts';
import { toPrintable } from '../printing/escape.ts';
import { formatCount, formatSpan, formatTime, shortenText } from '../printing/text.ts';

export type Style = 'success' | 'error' | 'warning' | 'dimmed' | 'heading';

const FORMATS = { success: 'green', error: 'red', warning: 'yellow', dimmed: 'dim', heading: 'bold' } as const;

/** Adds color on a terminal that supports it, unless NO_COLOR is set. Returns plain text for a pipe. */
export function applyStyle(style: Style, text: string): string {
  return styleText(FORMATS[style], text, { stream: process.stdout });
}

/** The content of a cell: text, or text with a style. */
export type Cell = string | { readonly text: string; readonly style: Style };

const COLUMN_GAP = 2;
/** The minimum width of a truncated column in characters. A column is never narrower than its heading. */
const MIN_COLUMN_WIDTH = 8;

export interface TableOptions {
  /**
   * Headings of the columns of free text, which are truncated if the table is wider than the terminal. By default no
   * column is truncated.
   */
  readonly truncatedHeadings?: readonly string[];
  /**
   * The width of the terminal in characters. The default is the width of standard output. For a pipe or a file, the
   * default is unlimited.
   */
  readonly width?: number;
}

/**
 * Formats headings and rows as aligned columns, two spaces apart. A column has the width of its widest cell. If the
 * table is wider than the terminal, the widest columns of free text are truncated with `…`. If the table is still too
 * wide, the last of these columns are omitted, then the last of the other columns. A line below the table names the
 * omitted columns. The first column is never omitted. Columns without free text, such as ids, are never truncated.
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

interface Column {
  readonly heading: string;
  readonly index: number;
  readonly width: number;
  /** The minimum width after truncation. Infinity for a column that is not truncated. */
  readonly minWidth: number;
}

/**
 * Shrinks the widest columns of free text until the table fits. If the table still does not fit, omits the last column
 * of free text and shrinks the other columns of free text again. If no column of free text remains, omits the last
 * column.
 */
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

/**
 * Returns the width of the terminal in characters. Returns Infinity unless standard output is a terminal that reports
 * its width.
 */
function getTerminalWidth(): number {
  const { isTTY, columns } = process.stdout;
  return isTTY && columns > 0 ? columns : Infinity;
}

/** Returns one line with name and value for each entry. The values are aligned. */
export function formatPairs(entries: readonly (readonly [string, Cell])[]): string {
  const width = entries.reduce((width, [name]) => Math.max(width, name.length), 0);
  return entries
    .map(([name, cell]) => {
      const text = typeof cell === 'string' ? toPrintable(cell) : applyStyle(cell.style, toPrintable(cell.text));
      return `${applyStyle('heading', name)}${' '.repeat(width - name.length + 2)}${text}\n`;
    })
    .join('');
}

/** Converts an ISO 8601 time to the form of `formatTime`. Returns `defaultText` for null. */
export function formatIsoTime(isoTime: string | null, defaultText = ''): string {
  return isoTime === null ? defaultText : formatTime(Date.parse(isoTime));
}

/** Returns a cell with the state of a message. */
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

/** Minimum time between two redraws, so that a slow terminal does not delay the work. */
const MIN_REDRAW_INTERVAL_MS = 100;
const BAR_WIDTH = 20;
const ERASE_LINE = '\r\u001b[K';

/** The terminal to which progress is written, such as `process.stderr`. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** The progress line of one terminal. */
export class StatusLine {
  readonly #stream: ProgressStream;
  #shown = '';

  constructor(stream: ProgressStream) {
    this.#stream = stream;
  }

  /** Replaces the progress line. Without a terminal, writes nothing. */
  show(text: string): void {
    if (this.#stream.isTTY !== true || text === this.#shown) return;
    // The text is one column shorter than the terminal, because a wrapped line could not be erased.
    this.#stream.write(ERASE_LINE + shortenText(text, (this.#stream.columns ?? 80) - 1));
    this.#shown = text;
  }

  /** Writes a permanent line above the progress line. */
  writeLine(line: string): void {
    const shownText = this.#shown;
    this.clear();
    this.#stream.write(`${line}\n`);
    if (shownText !== '') this.show(shownText);
  }

  /** Erases the progress line. */
  clear(): void {
    if (this.#shown !== '') this.#stream.write(ERASE_LINE);
    this.#shown = '';
  }
}

/** The progress of work on rows, shown in a `StatusLine`. */
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

  /**
   * Updates the progress line. `fraction` is the completed share, from 0 to 1, or null if the total is unknown. Within
   * the minimum interval between two redraws, the call has no effect.
   */
  update(rowCount: number, fraction: number | null): void {
    const now = this.#now();
    if (now - this.#drawnAt < MIN_REDRAW_INTERVAL_MS) return;
    this.#drawnAt = now;
    this.#line.show(formatProgress(rowCount, fraction, now - this.#startedAt));
  }
}

/** Returns a text such as `[#####...............] 25 % 250,000 rows 125,000/s 6 s left`. */
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

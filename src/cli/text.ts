/**
 * Formats text for the terminal: aligned tables, times, styles. Text from messages and remote servers may contain
 * terminal escapes and bidi controls; `toPrintable` replaces them.
 */
import { styleText } from 'node:util';
import type { State } from '../model/message.ts';
import { toPrintable } from '../printing/escape.ts';
import { formatTime, shortenText } from '../printing/text.ts';

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

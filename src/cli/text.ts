/**
 * Formats text for the terminal: aligned tables, times, styles. Text from messages and remote servers may contain terminal
 * escapes and bidi controls; `printable` replaces them.
 */
import { styleText } from 'node:util';
import type { State } from '../model/message.ts';
import { printable } from '../printing/escape.ts';
import { formatTime, shorten } from '../printing/text.ts';

export type Style = 'success' | 'error' | 'warning' | 'dimmed' | 'heading';

const FORMATS = { success: 'green', error: 'red', warning: 'yellow', dimmed: 'dim', heading: 'bold' } as const;

/** Adds colour on a terminal that supports it, unless NO_COLOR is set. Returns plain text for a pipe. */
export function styled(style: Style, text: string): string {
  return styleText(FORMATS[style], text, { stream: process.stdout });
}

/** A cell is its text, or text and a style. */
export type Cell = string | { readonly text: string; readonly style: Style };

const COLUMN_GAP = 2;
/** A truncated column has at least this width, or that of its heading. */
const MIN_COLUMN_WIDTH = 8;

export interface TableOptions {
  /** Headings of the columns of free text, which are truncated if the table is wider than the terminal. Default: none. */
  readonly truncated?: readonly string[];
  /** The width of the terminal in characters. Default: that of standard output, and unlimited in a pipe or a file. */
  readonly width?: number;
}

/**
 * Formats headings and rows as aligned columns, two spaces apart. A column has the width of its widest cell. If the table is wider
 * than the terminal, the widest columns of free text are truncated with `…`. If that is not enough, the last of them are omitted,
 * and a line below the table names them. Other columns, such as ids, are never changed.
 */
export function formatTable(
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
  { truncated = [], width = terminalWidth() }: TableOptions = {},
): string {
  const plainText = (cell: Cell): string => printable(typeof cell === 'string' ? cell : cell.text);
  const columns = headings.map((heading, index) => ({
    heading,
    index,
    width: rows.reduce((max, row) => Math.max(max, [...plainText(row[index] ?? '')].length), heading.length),
    minWidth: truncated.includes(heading) ? Math.max(MIN_COLUMN_WIDTH, heading.length) : Infinity,
  }));
  const { shown, omitted } = fitColumns(columns, width);
  const line = (cells: readonly Cell[]): string =>
    shown
      .map((column, position) => {
        const cell = cells[column.index] ?? '';
        const text = shorten(plainText(cell), column.width);
        const isLast = position === shown.length - 1;
        const padding = isLast ? '' : ' '.repeat(column.width - [...text].length + COLUMN_GAP);
        return (typeof cell === 'string' ? text : styled(cell.style, text)) + padding;
      })
      .join('');
  const lines = [headings.map((text) => ({ text, style: 'heading' as const })), ...rows].map(
    (row) => `${line(row).trimEnd()}\n`,
  );
  const note = `${omitted.map(({ heading }) => heading).join(', ')}: not shown, because the terminal is too narrow`;
  return lines.join('') + (omitted.length === 0 ? '' : `${styled('dimmed', shorten(note, width))}\n`);
}

interface Column {
  readonly heading: string;
  readonly index: number;
  readonly width: number;
  /** Infinite for a column that is not truncated. */
  readonly minWidth: number;
}

/** Shrinks the widest columns of free text until the table fits. If it still does not fit, omits the last of them and repeats. */
function fitColumns(columns: readonly Column[], terminal: number) {
  const totalWidth = (list: readonly Column[]) =>
    list.reduce((sum, { width }) => sum + width, COLUMN_GAP * (list.length - 1));
  const omitted: Column[] = [];
  for (let shown = columns; ; ) {
    const widths = shown.map(({ width }) => width);
    for (let excess = totalWidth(shown) - terminal; excess > 0; excess -= 1) {
      const widest = shown.reduce((best, { minWidth }, at) => {
        const width = widths[at] ?? 0;
        return width > minWidth && width > (widths[best] ?? 0) ? at : best;
      }, -1);
      if (widest === -1) break;
      widths[widest] = (widths[widest] ?? 0) - 1;
    }
    const fitted = shown.map((column, at) => ({ ...column, width: widths[at] ?? 0 }));
    const last = shown.findLast(({ minWidth }) => minWidth !== Infinity);
    if (totalWidth(fitted) <= terminal || last === undefined) return { shown: fitted, omitted };
    omitted.unshift(last);
    shown = shown.filter((column) => column !== last);
  }
}

/** Unlimited unless standard output is a terminal that reports its width. */
function terminalWidth(): number {
  const { isTTY, columns } = process.stdout;
  return isTTY && columns > 0 ? columns : Infinity;
}

/** Returns aligned `name value` lines. */
export function formatPairs(entries: readonly (readonly [string, Cell])[]): string {
  const width = entries.reduce((width, [name]) => Math.max(width, name.length), 0);
  return entries
    .map(([name, cell]) => {
      const text = typeof cell === 'string' ? printable(cell) : styled(cell.style, printable(cell.text));
      return `${styled('heading', name)}${' '.repeat(width - name.length + 2)}${text}\n`;
    })
    .join('');
}

/** Formats an ISO 8601 time in the form of `time`. Returns `otherwise` for null. */
export function isoText(at: string | null, defaultText = ''): string {
  return at === null ? defaultText : formatTime(Date.parse(at));
}

export function stateCell(state: State): Cell {
  return { text: state, style: STATE_STYLE[state] };
}

const STATE_STYLE: Readonly<Record<State, Style>> = {
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

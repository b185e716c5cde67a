/**
 * Formats text for the terminal: aligned tables, times, styles. Text from messages and remote servers may contain terminal
 * escapes and bidi controls; `printable` replaces them.
 */
import { styleText } from 'node:util';
import type { State } from '../model/message.ts';
import { printable } from '../printing/escape.ts';
import { formatTime } from '../printing/text.ts';

export type Style = 'success' | 'error' | 'warning' | 'dimmed' | 'heading';

const FORMATS = { success: 'green', error: 'red', warning: 'yellow', dimmed: 'dim', heading: 'bold' } as const;

/** Adds colour on a terminal that supports it, unless NO_COLOR is set. Returns plain text for a pipe. */
export function styled(style: Style, text: string): string {
  return styleText(FORMATS[style], text, { stream: process.stdout });
}

/** A cell is its text, or text and a style. */
export type Cell = string | { readonly text: string; readonly style: Style };

/** Formats headings and rows as aligned columns, two spaces apart. A column has the width of its widest cell. */
export function formatTable(headings: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const plainText = (cell: Cell): string => printable(typeof cell === 'string' ? cell : cell.text);
  const widths = headings.map((heading, column) =>
    rows.reduce((width, row) => Math.max(width, [...plainText(row[column] ?? '')].length), heading.length),
  );
  const line = (cells: readonly Cell[]): string =>
    cells
      .map((cell, column) => {
        const text = plainText(cell);
        const last = column === cells.length - 1;
        const padding = last ? '' : ' '.repeat((widths[column] ?? 0) - [...text].length + 2);
        return (typeof cell === 'string' ? text : styled(cell.style, text)) + padding;
      })
      .join('');
  return [headings.map((text) => ({ text, style: 'heading' as const })), ...rows]
    .map((row) => `${line(row).trimEnd()}\n`)
    .join('');
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

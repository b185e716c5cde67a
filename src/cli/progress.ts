/**
 * Shows the progress of a long command in one line of the terminal. This line is overwritten, and erased at the end.
 * Lines written with `writeLine` are permanent. A pipe or a file receives only the permanent lines.
 */
import { formatCount, formatSpan, shortenText } from '../printing/text.ts';

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

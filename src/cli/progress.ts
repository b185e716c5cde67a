/**
 * The progress of a long command: one line on the terminal that is overwritten, and erased at the end. A pipe or a file gets
 * only the permanent lines.
 */
import { formatCount, formatSpan, shorten } from '../printing/text.ts';

/** Minimum time between two redraws: a slow terminal must not delay the work. */
const MIN_REDRAW_INTERVAL_MS = 100;
const BAR_WIDTH = 20;
const ERASE_LINE = '\r\u001b[K';

/** The injected terminal: `process.stderr`. */
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

  /** Replaces the line; without a terminal it writes nothing. */
  show(text: string): void {
    if (this.#stream.isTTY !== true || text === this.#shown) return;
    // One column less than the width: a wrapped line could not be erased.
    this.#stream.write(ERASE_LINE + shorten(text, (this.#stream.columns ?? 80) - 1));
    this.#shown = text;
  }

  /** Writes a permanent line above the progress line. */
  writeLine(line: string): void {
    const shown = this.#shown;
    this.clear();
    this.#stream.write(`${line}\n`);
    if (shown !== '') this.show(shown);
  }

  /** Erases the line. */
  clear(): void {
    if (this.#shown !== '') this.#stream.write(ERASE_LINE);
    this.#shown = '';
  }
}

/** Progress over rows. */
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
   * Updates the progress line. `fraction` is from 0 to 1, or null if the total is unknown. A call between two redraws
   * returns at once.
   */
  update(rows: number, fraction: number | null): void {
    const now = this.#now();
    if (now - this.#drawnAt < MIN_REDRAW_INTERVAL_MS) return;
    this.#drawnAt = now;
    this.#line.show(progressText(rows, fraction, now - this.#startedAt));
  }
}

/** Returns `[#####...............] 25 % 250,000 rows 125,000/s 6 s left`. */
export function progressText(rows: number, fraction: number | null, elapsedMs: number): string {
  const perSecond = elapsedMs <= 0 ? 0 : Math.round((rows / elapsedMs) * 1000);
  const rowsText = `${formatCount(rows)} rows  ${formatCount(perSecond)}/s`;
  if (fraction === null) return rowsText;
  const clampedFraction = Math.min(1, Math.max(0, fraction));
  const filledWidth = Math.floor(clampedFraction * BAR_WIDTH);
  const bar = `[${'#'.repeat(filledWidth)}${'.'.repeat(BAR_WIDTH - filledWidth)}] ${String(Math.floor(clampedFraction * 100)).padStart(3)} %`;
  const remainingText =
    clampedFraction === 0 ? '' : `  ${formatSpan((elapsedMs / clampedFraction) * (1 - clampedFraction))} left`;
  return `${bar}  ${rowsText}${remainingText}`;
}

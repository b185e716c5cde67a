/**
 * What a person sees while a long command works: one line on the terminal that is written over and wiped in the end.
 * In a pipe or a file there is none of it, and lines meant to stay are all that is written.
 */
import { formatSpan, shorten } from '../printing/text.ts';

/** Drawn again no sooner than this: a terminal over a slow line must not hold the work up. */
const REDRAW_MS = 100;
const BAR_WIDTH = 20;
const WIPE = '\r\u001b[K';

/** The terminal, as it is handed in: `process.stderr`. */
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

  /** Replaces the line; nothing where there is no terminal. */
  show(text: string): void {
    if (this.#stream.isTTY !== true || text === this.#shown) return;
    // One column less than there is: a terminal that wraps would leave the first half behind.
    this.#stream.write(WIPE + shorten(text, (this.#stream.columns ?? 80) - 1));
    this.#shown = text;
  }

  /** Writes a line that stays, above the one that is written over. */
  writeLine(line: string): void {
    const shown = this.#shown;
    this.clear();
    this.#stream.write(`${line}\n`);
    if (shown !== '') this.show(shown);
  }

  /** Wipes it. */
  clear(): void {
    if (this.#shown !== '') this.#stream.write(WIPE);
    this.#shown = '';
  }
}

/** Progress over rows, whose whole is known as a fraction or not at all. */
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

  /** `fraction` from 0 to 1, or null where nobody knows how much there is. Cheap between two drawings. */
  update(rows: number, fraction: number | null): void {
    const now = this.#now();
    if (now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    this.#line.show(progressText(rows, fraction, now - this.#startedAt));
  }
}

/** `[#####...............]  25 %  250,000 rows  125,000/s  6 s left`. */
export function progressText(rows: number, fraction: number | null, elapsedMs: number): string {
  const perSecond = elapsedMs <= 0 ? 0 : Math.round((rows / elapsedMs) * 1000);
  const counted = `${formatCount(rows)} rows  ${formatCount(perSecond)}/s`;
  if (fraction === null) return counted;
  const part = Math.min(1, Math.max(0, fraction));
  const full = Math.floor(part * BAR_WIDTH);
  const bar = `[${'#'.repeat(full)}${'.'.repeat(BAR_WIDTH - full)}] ${String(Math.floor(part * 100)).padStart(3)} %`;
  const left = part === 0 ? '' : `  ${formatSpan((elapsedMs / part) * (1 - part))} left`;
  return `${bar}  ${counted}${left}`;
}

/** `1,000,000`, whatever the machine's language. */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

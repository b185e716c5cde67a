/**
 * Records the SMTP transcript of one attempt. The command `message show` prints this transcript. Lines of the client
 * begin with `C: `, lines of the server with `S: `, and remarks with `* `. A transcript has at most 100 lines of up to
 * 500 characters. Callers must not add credentials or message content.
 */
import type { MonotonicClock } from '../../clock.ts';
import { sanitizeLine } from './protocol.ts';

const MAX_LINES = 100;
const MAX_LINE_LENGTH = 500;

export class Transcript {
  readonly lines: string[] = [];
  /** The time of each line, in whole milliseconds after the creation of the transcript. */
  readonly offsetsMs: number[] = [];
  readonly #clock: Pick<MonotonicClock, 'monotonic'>;
  readonly #startedMs: number;

  constructor(clock: Pick<MonotonicClock, 'monotonic'>) {
    this.#clock = clock;
    this.#startedMs = clock.monotonic();
  }

  addClientLine(line: string): void {
    this.#add('C: ', line);
  }

  addServerLine(line: string): void {
    this.#add('S: ', line);
  }

  addRemark(line: string): void {
    this.#add('* ', line);
  }

  #add(prefix: string, line: string): void {
    if (this.lines.length > MAX_LINES) return;
    this.lines.push(this.lines.length === MAX_LINES ? '* (truncated)' : prefix + sanitizeLine(line, MAX_LINE_LENGTH));
    this.offsetsMs.push(Math.round(this.#clock.monotonic() - this.#startedMs));
  }
}

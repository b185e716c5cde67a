/**
 * Standard output as the log's way out, for readers that may be slow, stalled or gone.
 *
 * Promises: writing never blocks the event loop; lines leave whole and in order; at most `MOST_HELD` characters wait,
 * and of what comes on top lines are dropped and counted, and a line of the log says so as soon as there is room again.
 * A write to a full pipe ends at once where the pipe is non-blocking, as the command line makes it (cli/main.ts); any
 * other would keep one thread of the pool, and the end of the process, until the reader reads.
 */
import { write, writeSync } from 'node:fs';

/** How much waits for a reader that stalls, in characters. */
const MOST_HELD = 1_048_576;
/** Written out at once when this much has gathered; less waits for the next flush. */
const GATHERED = 4_096;
/** Pauses between tries while the reader takes nothing, doubled from the first to the last. */
const FIRST_PAUSE_MS = 10;
const LAST_PAUSE_MS = 250;
/** How long a reader that takes nothing holds up a close, and the end of the process. */
const CLOSE_MS = 1_000;
const EXIT_MS = 100;
const UNDER_WAY_MS = 20;

const STDOUT = 1;
const EMPTY = Buffer.alloc(0);

export interface Output {
  /** Takes one line, its line feed included. */
  write(line: string): void;
  /** Begins to write out what has gathered. */
  flush(): void;
  /** Resolves once everything is written, or after a second. */
  close(): Promise<void>;
  /** Lines dropped so far. */
  dropped(): number;
}

/**
 * Opens standard output; `droppedLine` makes the line that tells how many were dropped. Lines wait, bounded as for a stalled
 * reader, until `after` has resolved; a close and the end of the process write them out without it.
 */
export function standardOutput(droppedLine: (count: number) => string, after: Promise<unknown> | null = null): Output {
  let held = after !== null;
  let gathered = '';
  let leaving: Buffer = EMPTY;
  let underWay = false;
  let pauseMs = 0;
  let retry: NodeJS.Timeout | null = null;
  let dropped = 0;
  let untold = 0;
  let whenEmpty: (() => void) | null = null;

  /** The next bytes to write: first the rest of what is leaving, then everything gathered behind it. */
  function next(): Buffer {
    if (leaving.length > 0) return leaving;
    let text = gathered;
    gathered = '';
    if (untold > 0) {
      text += droppedLine(untold);
      untold = 0;
    }
    leaving = Buffer.from(text);
    return leaving;
  }

  function begin(): void {
    if (underWay || retry !== null || (held && whenEmpty === null)) return;
    const bytes = next();
    if (bytes.length === 0) {
      whenEmpty?.();
      return;
    }
    underWay = true;
    write(STDOUT, bytes, 0, bytes.length, null, written);
  }

  function written(error: Error | null, count: number): void {
    underWay = false;
    if (error === null) {
      leaving = leaving.subarray(count);
      pauseMs = 0;
      if (leaving.length > 0 || untold > 0 || gathered.length >= GATHERED || whenEmpty !== null) begin();
      return;
    }
    // EAGAIN is a full pipe. A reader that went away, or a full disk, may come back: lines wait for either, and then drop.
    pauseMs = Math.min(LAST_PAUSE_MS, pauseMs === 0 ? FIRST_PAUSE_MS : pauseMs * 2);
    retry = setTimeout(() => {
      retry = null;
      begin();
    }, pauseMs).unref();
  }

  /** What a process that ends without a close still holds. */
  function atExit(): void {
    if (underWay) {
      // No callback comes any more: the write is given time to happen, and taken as done.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, UNDER_WAY_MS);
      leaving = EMPTY;
    }
    const giveUpAt = performance.now() + EXIT_MS;
    while (next().length > 0 && performance.now() < giveUpAt) {
      try {
        leaving = leaving.subarray(writeSync(STDOUT, leaving));
      } catch {
        // Asked again until the time is up.
      }
    }
  }

  void after?.then(() => {
    held = false;
    begin();
  });
  process.once('exit', atExit);
  return {
    write(line) {
      if (gathered.length + leaving.length + line.length > MOST_HELD) {
        dropped += 1;
        untold += 1;
        return;
      }
      gathered += line;
      if (gathered.length >= GATHERED) begin();
    },
    flush: begin,
    async close() {
      let late: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        whenEmpty = resolve;
        late = setTimeout(resolve, CLOSE_MS);
        begin();
      });
      clearTimeout(late);
      whenEmpty = null;
      process.removeListener('exit', atExit);
    },
    dropped: () => dropped,
  };
}

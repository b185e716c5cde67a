/**
 * Running time: how long the service has run, independent of steps of its clock. The age of a message is measured in running time, so
 * neither a step of the clock nor downtime makes a message old (docs/decisions/age.md).
 *
 * Guarantees: an age is never greater than the real time since acceptance, except for clock steps below `MAX_CLOCK_DEVIATION_MS`.
 * Time that no monotonic clock confirms does not count. Pure.
 */

/** A greater difference between the clock and the monotonic clock between two readings is a step of the clock. */
export const MAX_CLOCK_DEVIATION_MS = 5_000;
/** The maximum number of segments. The two oldest are then merged, which makes old messages younger, never older. */
const MAX_STRETCHES = 200;

/** A part of the running time without a step of the clock. It ends where the next segment begins. */
export interface ClockSegment {
  /** Running time at its start. */
  readonly fromMs: number;
  /** Clock minus running time in this segment. */
  readonly aheadMs: number;
  /** The earliest time that the clock can have shown in it. */
  readonly leastAt: number;
}

export interface RunningTime {
  readonly ranMs: number;
  /** The time of the clock at `ranMs`. */
  readonly seenAt: number;
  /** In order, at least one. */
  readonly stretches: readonly ClockSegment[];
}

/** The running time of an installation that has stored none. Messages accepted earlier age by the clock. */
export function startRunningTime(now: number): RunningTime {
  return { ranMs: now, seenAt: now, stretches: [{ fromMs: 0, aheadMs: 0, leastAt: 0 }] };
}

/**
 * The running time when the clock shows `now`. `passedMs` is at least the monotonic time since the last reading. The advance of the
 * clock counts if `passedMs` confirms it. Otherwise it is a step and does not count.
 */
export function advanceRunningTime(before: RunningTime, now: number, passedMs: number): RunningTime {
  const shownMs = now - before.seenAt;
  if (shownMs >= -MAX_CLOCK_DEVIATION_MS && shownMs <= passedMs + MAX_CLOCK_DEVIATION_MS) {
    return { ...before, ranMs: before.ranMs + shownMs, seenAt: now };
  }
  const { ranMs } = before;
  // Messages accepted between the step and this reading have times after the step.
  const stretch = { fromMs: ranMs, aheadMs: now - ranMs, leastAt: now - Math.ceil(passedMs) - MAX_CLOCK_DEVIATION_MS };
  return { ranMs, seenAt: now, stretches: merged([...before.stretches, stretch]) };
}

function merged(stretches: readonly ClockSegment[]): readonly ClockSegment[] {
  const [first, second, ...others] = stretches;
  if (first === undefined || second === undefined || stretches.length <= MAX_STRETCHES) return stretches;
  const both = {
    fromMs: first.fromMs,
    aheadMs: Math.min(first.aheadMs, second.aheadMs),
    leastAt: Math.min(first.leastAt, second.leastAt),
  };
  return [both, ...others];
}

/** The latest time for which everything dated up to it has an age of at least `ageMs`. */
export function cutoffForAge({ ranMs, stretches }: RunningTime, ageMs: number): number {
  const from = ranMs - ageMs;
  let least = Number.POSITIVE_INFINITY;
  for (const [index, { fromMs, aheadMs, leastAt }] of stretches.entries()) {
    const end = stretches[index + 1]?.fromMs ?? Number.POSITIVE_INFINITY;
    if (end < from) continue;
    // In the segment in which the window begins, the start of the window counts. A later segment is in the window as a whole.
    least = Math.min(least, index === 0 || fromMs < from ? Math.min(from, end) + aheadMs : leastAt - 1);
  }
  return least;
}

/** The age of something dated `at`; never negative. If the clock showed `at` twice, the later time counts. */
export function runningAge({ ranMs, stretches }: RunningTime, at: number): number {
  for (let index = stretches.length - 1; index >= 0; index -= 1) {
    const stretch = stretches[index];
    if (stretch === undefined || (index > 0 && at < stretch.leastAt)) continue;
    const end = stretches[index + 1]?.fromMs ?? ranMs;
    const began = index === 0 ? at - stretch.aheadMs : Math.max(stretch.fromMs, at - stretch.aheadMs);
    return Math.max(0, ranMs - Math.min(began, end));
  }
  return 0;
}

/**
 * Running time: how long the service has run, whatever its clock showed. The age of a message is measured in it, so that a
 * step of the clock, and a time in which nothing ran, make no message old (docs/decisions/age.md).
 *
 * Guarantees: an age is never greater than the real time since acceptance, but for steps below `MAX_CLOCK_DEVIATION_MS`; it is
 * smaller where time passed that nothing confirms. Pure.
 */

/** What the clock may differ from the monotonic clock between two readings without having been stepped. */
export const MAX_CLOCK_DEVIATION_MS = 5_000;
/** Stretches kept; beyond it the two oldest become one, which makes old messages younger, never older. */
const MAX_STRETCHES = 200;

/** Running time in which the clock ran evenly. It ends where the next one begins. */
export interface ClockSegment {
  /** Running time at its beginning. */
  readonly fromMs: number;
  /** Clock minus running time within it. */
  readonly aheadMs: number;
  /** The least that the clock can have shown in it. */
  readonly leastAt: number;
}

export interface RunningTime {
  readonly ranMs: number;
  /** What the clock showed then. */
  readonly seenAt: number;
  /** In order, at least one. */
  readonly stretches: readonly ClockSegment[];
}

/** The running time of an installation that has kept none; earlier acceptances count by the clock. */
export function startRunningTime(now: number): RunningTime {
  return { ranMs: now, seenAt: now, stretches: [{ fromMs: 0, aheadMs: 0, leastAt: 0 }] };
}

/**
 * The running time when the clock shows `now`. `passedMs` is the monotonic time since the last reading, or more. An advance
 * of the clock that it confirms counts; any other is a step, and nothing counts.
 */
export function advanceRunningTime(before: RunningTime, now: number, passedMs: number): RunningTime {
  const shownMs = now - before.seenAt;
  if (shownMs >= -MAX_CLOCK_DEVIATION_MS && shownMs <= passedMs + MAX_CLOCK_DEVIATION_MS) {
    return { ...before, ranMs: before.ranMs + shownMs, seenAt: now };
  }
  const { ranMs } = before;
  // What was accepted after the step and before this reading bears a time from here on.
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

/** The greatest time such that whatever the clock dated up to then has run for at least `ageMs`. */
export function cutoffForAge({ ranMs, stretches }: RunningTime, ageMs: number): number {
  const from = ranMs - ageMs;
  let least = Number.POSITIVE_INFINITY;
  for (const [index, { fromMs, aheadMs, leastAt }] of stretches.entries()) {
    const end = stretches[index + 1]?.fromMs ?? Number.POSITIVE_INFINITY;
    if (end < from) continue;
    // Within the stretch the window begins in, its first moment counts; a later stretch lies in the window as a whole.
    least = Math.min(least, index === 0 || fromMs < from ? Math.min(from, end) + aheadMs : leastAt - 1);
  }
  return least;
}

/** How long what the clock dated `at` has run; never negative. Where the clock showed `at` twice, the later counts. */
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

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
const MAX_SEGMENTS = 200;

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
  readonly segments: readonly ClockSegment[];
}

/** The running time of an installation that has stored none. Messages accepted earlier age by the clock. */
export function startRunningTime(now: number): RunningTime {
  return { ranMs: now, seenAt: now, segments: [{ fromMs: 0, aheadMs: 0, leastAt: 0 }] };
}

/**
 * The running time when the clock shows `now`. `passedMs` is at least the monotonic time since the last reading. The advance of the
 * clock counts if `passedMs` confirms it. Otherwise it is a step and does not count.
 */
export function advanceRunningTime(before: RunningTime, now: number, passedMs: number): RunningTime {
  const clockAdvanceMs = now - before.seenAt;
  if (clockAdvanceMs >= -MAX_CLOCK_DEVIATION_MS && clockAdvanceMs <= passedMs + MAX_CLOCK_DEVIATION_MS) {
    return { ...before, ranMs: before.ranMs + clockAdvanceMs, seenAt: now };
  }
  const { ranMs } = before;
  // Messages accepted between the step and this reading have times after the step.
  const segment = { fromMs: ranMs, aheadMs: now - ranMs, leastAt: now - Math.ceil(passedMs) - MAX_CLOCK_DEVIATION_MS };
  return { ranMs, seenAt: now, segments: mergeOldestSegments([...before.segments, segment]) };
}

function mergeOldestSegments(segments: readonly ClockSegment[]): readonly ClockSegment[] {
  const [first, second, ...others] = segments;
  if (first === undefined || second === undefined || segments.length <= MAX_SEGMENTS) return segments;
  const mergedSegment = {
    fromMs: first.fromMs,
    aheadMs: Math.min(first.aheadMs, second.aheadMs),
    leastAt: Math.min(first.leastAt, second.leastAt),
  };
  return [mergedSegment, ...others];
}

/** The latest time for which everything dated up to it has an age of at least `ageMs`. */
export function cutoffForAge({ ranMs, segments }: RunningTime, ageMs: number): number {
  const from = ranMs - ageMs;
  let cutoff = Number.POSITIVE_INFINITY;
  for (const [index, { fromMs, aheadMs, leastAt }] of segments.entries()) {
    const end = segments[index + 1]?.fromMs ?? Number.POSITIVE_INFINITY;
    if (end < from) continue;
    // In the segment in which the window begins, the start of the window counts. A later segment is in the window as a whole.
    cutoff = Math.min(cutoff, index === 0 || fromMs < from ? Math.min(from, end) + aheadMs : leastAt - 1);
  }
  return cutoff;
}

/** The age of something dated `at`; never negative. If the clock showed `at` twice, the later time counts. */
export function runningAge({ ranMs, segments }: RunningTime, at: number): number {
  for (let index = segments.length - 1; index >= 0; index -= 1) {
    const segment = segments[index];
    if (segment === undefined || (index > 0 && at < segment.leastAt)) continue;
    const end = segments[index + 1]?.fromMs ?? ranMs;
    const startedAt = index === 0 ? at - segment.aheadMs : Math.max(segment.fromMs, at - segment.aheadMs);
    return Math.max(0, ranMs - Math.min(startedAt, end));
  }
  return 0;
}

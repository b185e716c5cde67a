/**
 * Computes the running time: the time for which the service has run, independent of steps of the clock. The age of a
 * message is measured in running time, so neither a step of the clock nor downtime increases the age of a message
 * (docs/decisions/age.md).
 *
 * Guarantees: the age of a message is never greater than the real time since its acceptance, except for clock steps
 * below `MAX_CLOCK_DEVIATION_MS`. Time that no monotonic clock confirms does not count. Pure.
 */

/**
 * The maximum difference between the advance of the clock and the advance of the monotonic clock from one reading to
 * the next. A greater difference counts as a step of the clock.
 */
export const MAX_CLOCK_DEVIATION_MS = 5_000;
/**
 * The maximum number of segments. If this number is exceeded, the two oldest segments are merged. A merge can reduce
 * the age of a message, but cannot increase it.
 */
const MAX_SEGMENTS = 200;

/** A period of the running time without a step of the clock. The period ends where the next segment begins. */
export interface ClockSegment {
  /** The running time at the start of the segment. */
  readonly fromMs: number;
  /** The clock time minus the running time, which is constant in this segment. */
  readonly aheadMs: number;
  /** The earliest possible clock time in this segment. */
  readonly leastAt: number;
}

export interface RunningTime {
  readonly runningMs: number;
  /** The clock time at the running time `runningMs`. */
  readonly seenAt: number;
  /** The segments, oldest first. There is at least one segment. */
  readonly segments: readonly ClockSegment[];
}

/**
 * Returns the initial running time of an installation. The age of messages that were accepted before `now` is measured
 * by the clock.
 */
export function startRunningTime(now: number): RunningTime {
  return { runningMs: now, seenAt: now, segments: [{ fromMs: 0, aheadMs: 0, leastAt: 0 }] };
}

/**
 * Returns the running time at the clock time `now`. `passedMs` is at least the monotonic time since the last reading.
 * If `passedMs` confirms the advance of the clock, the advance is added to the running time. Otherwise, the advance
 * counts as a step of the clock and is not added.
 */
export function advanceRunningTime(previous: RunningTime, now: number, passedMs: number): RunningTime {
  const clockAdvanceMs = now - previous.seenAt;
  if (clockAdvanceMs >= -MAX_CLOCK_DEVIATION_MS && clockAdvanceMs <= passedMs + MAX_CLOCK_DEVIATION_MS) {
    return { ...previous, runningMs: previous.runningMs + clockAdvanceMs, seenAt: now };
  }
  const { runningMs } = previous;
  // Messages that were accepted between the step and this reading have times of the changed clock. `leastAt` is
  // therefore the earliest time that the changed clock can have shown.
  const segment = {
    fromMs: runningMs,
    aheadMs: now - runningMs,
    leastAt: now - Math.ceil(passedMs) - MAX_CLOCK_DEVIATION_MS,
  };
  return { runningMs, seenAt: now, segments: mergeOldestSegments([...previous.segments, segment]) };
}

function mergeOldestSegments(segments: readonly ClockSegment[]): readonly ClockSegment[] {
  const [oldestSegment, nextSegment, ...laterSegments] = segments;
  if (oldestSegment === undefined || nextSegment === undefined || segments.length <= MAX_SEGMENTS) return segments;
  const mergedSegment = {
    fromMs: oldestSegment.fromMs,
    aheadMs: Math.min(oldestSegment.aheadMs, nextSegment.aheadMs),
    leastAt: Math.min(oldestSegment.leastAt, nextSegment.leastAt),
  };
  return [mergedSegment, ...laterSegments];
}

/**
 * Returns the latest clock time for which every message accepted at this time or earlier has an age of at least
 * `ageMs`.
 */
export function computeAgeCutoff({ runningMs, segments }: RunningTime, ageMs: number): number {
  const windowStartMs = runningMs - ageMs;
  let cutoff = Number.POSITIVE_INFINITY;
  for (const [index, { fromMs, aheadMs, leastAt }] of segments.entries()) {
    const segmentEndMs = segments[index + 1]?.fromMs ?? Number.POSITIVE_INFINITY;
    if (segmentEndMs < windowStartMs) continue;
    // The window is the last `ageMs` of the running time. In the segment that contains the start of the window, this
    // start is the cutoff. Later segments are entirely within the window.
    cutoff = Math.min(
      cutoff,
      index === 0 || fromMs < windowStartMs ? Math.min(windowStartMs, segmentEndMs) + aheadMs : leastAt - 1,
    );
  }
  return cutoff;
}

/**
 * Returns the age of a message accepted at the clock time `at`. The age is never negative. If the clock showed `at`
 * twice because it was set back, the later occurrence is used.
 */
export function computeRunningAgeMs({ runningMs, segments }: RunningTime, at: number): number {
  for (let index = segments.length - 1; index >= 0; index -= 1) {
    const segment = segments[index];
    if (segment === undefined || (index > 0 && at < segment.leastAt)) continue;
    const segmentEndMs = segments[index + 1]?.fromMs ?? runningMs;
    const acceptedRunningMs = index === 0 ? at - segment.aheadMs : Math.max(segment.fromMs, at - segment.aheadMs);
    return Math.max(0, runningMs - Math.min(acceptedRunningMs, segmentEndMs));
  }
  return 0;
}

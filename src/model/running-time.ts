/**
 * The time for which the service has run. The age of a message is measured in it, so neither a step of the clock nor
 * downtime increases the age (docs/decisions/age.md): it never exceeds the real time, except for steps below
 * `MAX_CLOCK_DEVIATION_MS`. Pure.
 */

/** A greater difference between clock and monotonic clock from one reading to the next is a step of the clock. */
export const MAX_CLOCK_DEVIATION_MS = 5_000;
/** Above it the two oldest segments are merged, which can reduce the age of a message, but not increase it. */
const MAX_SEGMENTS = 200;

/** A period without a step of the clock. It ends where the next segment begins. */
export interface ClockSegment {
  readonly fromMs: number;
  /** Clock time minus running time, constant in this segment. */
  readonly aheadMs: number;
  /** The earliest possible clock time in this segment. */
  readonly leastAt: number;
}

export interface RunningTime {
  readonly runningMs: number;
  readonly seenAt: number;
  /** Oldest first, at least one. */
  readonly segments: readonly ClockSegment[];
}

/** Messages that were accepted before `now` are measured by the clock. */
export function startRunningTime(now: number): RunningTime {
  return { runningMs: now, seenAt: now, segments: [{ fromMs: 0, aheadMs: 0, leastAt: 0 }] };
}

/** `passedMs`: the least monotonic time that passed. An advance that it does not confirm is a step of the clock. */
export function advanceRunningTime(previous: RunningTime, now: number, passedMs: number): RunningTime {
  const clockAdvanceMs = now - previous.seenAt;
  if (clockAdvanceMs >= -MAX_CLOCK_DEVIATION_MS && clockAdvanceMs <= passedMs + MAX_CLOCK_DEVIATION_MS) {
    return { ...previous, runningMs: previous.runningMs + clockAdvanceMs, seenAt: now };
  }
  const { runningMs } = previous;
  // Messages between the step and this reading have times of the changed clock: this is the earliest it can have shown.
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

/** The latest clock time for which every message accepted until then is at least `ageMs` old. */
export function computeAgeCutoff({ runningMs, segments }: RunningTime, ageMs: number): number {
  const windowStartMs = runningMs - ageMs;
  let cutoff = Number.POSITIVE_INFINITY;
  for (const [index, { fromMs, aheadMs, leastAt }] of segments.entries()) {
    const segmentEndMs = segments[index + 1]?.fromMs ?? Number.POSITIVE_INFINITY;
    if (segmentEndMs < windowStartMs) continue;
    // The start of the window is the cutoff of its segment. Later segments are entirely within the window.
    cutoff = Math.min(
      cutoff,
      index === 0 || fromMs < windowStartMs ? Math.min(windowStartMs, segmentEndMs) + aheadMs : leastAt - 1,
    );
  }
  return cutoff;
}

/** Never negative. If the clock showed `at` twice, the later occurrence counts. */
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

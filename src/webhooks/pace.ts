/**
 * Decides how long the webhook worker pauses between two runs, so that webhooks do not slow down the acceptance and the
 * delivery of messages. Without I/O.
 *
 * Guarantees: while the node accepts and settles fewer messages per second than `MIN_MESSAGES_PER_SECOND`, or its main
 * thread is not saturated, the pause decreases to 0. While the main thread is saturated and the rate of messages is
 * higher, the pause increases to `MAX_PAUSE_MS`. After `MAX_YIELD_MS` of such a load the pause is at most
 * `MAX_LATER_PAUSE_MS`, so that the delay of webhooks has a limit under a continuous load.
 */

/** The interval in which the load is measured. */
const SAMPLE_MS = 100;
/** The minimum utilization, from 0 to 1, at which the main thread is regarded as saturated. */
const MIN_SATURATED_UTILIZATION = 0.8;
/** The rate of accepted and settled messages below which the webhook worker does not pause. */
const MIN_MESSAGES_PER_SECOND = 200;
const FIRST_PAUSE_MS = 10;
export const MAX_PAUSE_MS = 40;
/** The duration of saturation after which the pause is at most `MAX_LATER_PAUSE_MS`. */
export const MAX_YIELD_MS = 30_000;
export const MAX_LATER_PAUSE_MS = 5;
/**
 * The maximum number of attempts that one run starts, and of events that it moves, if the worker pauses between runs.
 */
export const MAX_ATTEMPTS_PER_PACED_RUN = 16;
export const MAX_EVENTS_PER_PACED_RUN = 32;

export interface WebhookPace {
  /** Counts accepted and settled messages. */
  countMessages(count: number): void;
  /**
   * Returns the minimum time from the start of a run to the start of the next run, in milliseconds. A value of 0 means
   * no pause.
   */
  getPauseMs(): number;
}

/**
 * Creates the controller of the pauses between runs. `monotonic` returns milliseconds. `readUtilization` returns the
 * part of the time since the last call in which the main thread was busy, from 0 to 1.
 */
export function createWebhookPace(monotonic: () => number, readUtilization: () => number): WebhookPace {
  let sampledAt = monotonic();
  let messageCount = 0;
  let pauseMs = 0;
  /** The time at which the worker began to pause, or null while it does not pause. */
  let saturatedSince: number | null = null;

  function sampleLoad(now: number): void {
    const messagesPerSecond = (messageCount * 1_000) / (now - sampledAt);
    sampledAt = now;
    messageCount = 0;
    const isSaturated = readUtilization() >= MIN_SATURATED_UTILIZATION && messagesPerSecond >= MIN_MESSAGES_PER_SECOND;
    if (isSaturated) {
      saturatedSince ??= now;
      const maxPauseMs = now - saturatedSince < MAX_YIELD_MS ? MAX_PAUSE_MS : MAX_LATER_PAUSE_MS;
      pauseMs = Math.min(maxPauseMs, Math.max(FIRST_PAUSE_MS, 2 * pauseMs));
      return;
    }
    pauseMs = pauseMs <= FIRST_PAUSE_MS ? 0 : pauseMs / 2;
    if (pauseMs === 0) saturatedSince = null;
  }

  return {
    countMessages(count) {
      messageCount += count;
    },
    getPauseMs() {
      const now = monotonic();
      if (now - sampledAt >= SAMPLE_MS) sampleLoad(now);
      return pauseMs;
    },
  };
}

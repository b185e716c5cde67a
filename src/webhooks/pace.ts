/**
 * Decides how long the webhook worker pauses between two runs, so that webhooks do not slow down messages: only while
 * the node moves messages and its main thread is saturated, and after `MAX_YIELD_MS` only shortly. Pure.
 */

const SAMPLE_MS = 100;
const MIN_SATURATED_UTILIZATION = 0.8;
const MIN_MESSAGES_PER_SECOND = 200;
const FIRST_PAUSE_MS = 10;
export const MAX_PAUSE_MS = 40;
/** After this duration of saturation the pause is at most `MAX_LATER_PAUSE_MS`. */
export const MAX_YIELD_MS = 30_000;
export const MAX_LATER_PAUSE_MS = 5;
/** Attempts and events of one run while the worker pauses. */
export const MAX_ATTEMPTS_PER_PACED_RUN = 16;
export const MAX_EVENTS_PER_PACED_RUN = 32;

export interface WebhookPace {
  countMessages(count: number): void;
  /** From the start of a run to the start of the next; 0 means no pause. */
  getPauseMs(): number;
}

/** `readUtilization`: the busy part of the main thread since the last call, from 0 to 1. */
export function createWebhookPace(monotonic: () => number, readUtilization: () => number): WebhookPace {
  let sampledAt = monotonic();
  let messageCount = 0;
  let pauseMs = 0;
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

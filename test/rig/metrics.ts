/** Metrics over a store without messages, for tests that replace some of their sources. */
import { createMetrics, type MetricsOptions } from '../../src/observability/metrics.ts';

export function createTestMetrics(options: Partial<MetricsOptions> = {}) {
  return createMetrics({
    clock: { now: () => 10_000, after: () => () => undefined },
    readQueueStatistics: async () => ({ queued: 0, sending: 0, uncertain: 0, held: 0, oldest: null }),
    readLastFeedbackAt: async () => null,
    readWebhookStatistics: async () => [],
    notificationTargets: [],
    routeNames: ['default'],
    readRouteStates: () => [{ name: 'default', state: 'usable' }],
    refusalReasons: ['invalid-key', 'throttled'],
    getDroppedLineCount: () => 0,
    ...options,
  });
}

import { expect, test } from 'vitest';
import type { QueueStatistics } from '../../../src/model/overview.ts';
import { createMetrics } from '../../../src/observability/metrics.ts';

const QUEUE_STATISTICS: QueueStatistics = {
  queued: 3,
  sending: 2,
  uncertain: 1,
  oldest: { id: 'first', acceptedAt: 4000 },
};

function createTestMetrics(
  readQueueStatistics: () => Promise<QueueStatistics> = () => Promise.resolve(QUEUE_STATISTICS),
) {
  const clock = { at: 10_000, now: () => clock.at, after: () => () => {} };
  return {
    clock,
    metrics: createMetrics({ clock, readQueueStatistics, refusalReasons: ['invalid-key', 'throttled'] }),
  };
}

test('each call increases its metric, and every series starts at zero', async () => {
  const { metrics } = createTestMetrics();
  expect((await metrics.scrape()).text).toContain('postrider_refused_total{reason="invalid-key"} 0');
  metrics.countAccepted(12);
  metrics.countAccepted(12);
  metrics.countReplayed();
  metrics.countIgnoredFields(3);
  metrics.countRefused('invalid-key');
  metrics.countAttempt('delivered', 30);
  metrics.countDeferred();
  metrics.recordCommit('accept', 8, 4);
  const { text, contentType } = await metrics.scrape();
  expect(contentType).toContain('text/plain');
  for (const line of [
    'postrider_accepted_total 2',
    'postrider_replayed_total 1',
    'postrider_ignored_fields_total 3',
    'postrider_refused_total{reason="invalid-key"} 1',
    'postrider_attempts_total{outcome="delivered"} 1',
    'postrider_deferred_total 1',
    'postrider_accept_duration_seconds_count 2',
    'postrider_attempt_duration_seconds_sum 0.03',
    'postrider_commit_size_sum{kind="accept"} 8',
    'postrider_commit_duration_seconds_sum{kind="accept"} 0.004',
    'postrider_queue_depth{state="queued"} 3',
    'postrider_queue_oldest_age_seconds 6',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
  expect(text).toContain('nodejs_eventloop_lag_seconds');
});

test('every alarm reason has a series before its first alarm, so that an alert detects the first increase', async () => {
  const { metrics } = createTestMetrics();
  const lines = (await metrics.scrape()).text.split('\n');
  for (const reason of [
    'configuration',
    'reputation',
    'signing',
    'domain-failing',
    'domain-blocked',
    'return-path-failing',
    'account-locked',
    'database-files',
  ])
    expect(lines).toContain(`postrider_alarms_total{reason="${reason}"} 0`);
});

test('scrapes query the store at most once per second', async () => {
  let queryCount = 0;
  const { metrics, clock } = createTestMetrics(() => {
    queryCount += 1;
    return Promise.resolve(QUEUE_STATISTICS);
  });
  await Promise.all([metrics.scrape(), metrics.scrape(), metrics.scrape()]);
  clock.at += 999;
  await metrics.scrape();
  expect(queryCount).toBe(1);
  clock.at += 1;
  await metrics.scrape();
  expect(queryCount).toBe(2);
});

test('if the store does not answer, the exposition omits only the metrics of the queue', async () => {
  let isFailing = false;
  const { metrics, clock } = createTestMetrics(() =>
    isFailing ? Promise.reject(new Error('unavailable')) : Promise.resolve(QUEUE_STATISTICS),
  );
  await metrics.scrape();
  isFailing = true;
  clock.at += 1000;
  const { text } = await metrics.scrape();
  expect(text).toContain('postrider_accepted_total 0');
  expect(text).not.toMatch(/^postrider_queue_depth\{/m);
  expect(text).not.toMatch(/^postrider_queue_oldest_age_seconds /m);
});

test('the metrics of webhooks are the sums over all endpoints and the age of the oldest delivery, and at most 100 endpoints have their own series', async () => {
  const statistics = [
    { webhookId: 1, pendingCount: 3, oldestPendingAt: 4_000, failedCount: 1 },
    { webhookId: 2, pendingCount: 0, oldestPendingAt: null, failedCount: 2 },
  ];
  const metrics = createMetrics({
    clock: { now: () => 10_000, after: () => () => undefined },
    readQueueStatistics: async () => ({ queued: 0, sending: 0, uncertain: 0, oldest: null }),
    readWebhookStatistics: async () => statistics,
    refusalReasons: [],
  });
  for (let webhookId = 1; webhookId <= 150; webhookId += 1) metrics.countWebhookAttempt(webhookId, false);
  metrics.countWebhookAttempt(1, true);
  const lines = (await metrics.scrape()).text.split('\n');
  expect(lines).toContain('postrider_webhooks_pending 3');
  expect(lines).toContain('postrider_webhooks_failed 3');
  expect(lines).toContain('postrider_webhook_oldest_age_seconds 6');
  expect(lines).toContain('postrider_webhook_attempts_total{result="failed"} 150');
  expect(lines).toContain('postrider_webhook_attempts_total{result="succeeded"} 1');
  expect(lines).toContain('postrider_webhook_failures_total{webhook="other"} 50');
  expect(lines.filter((line) => line.startsWith('postrider_webhook_failures_total{'))).toHaveLength(101);
});

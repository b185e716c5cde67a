import { expect, test } from 'vitest';
import type { QueueStatistics } from '../../../src/model/attention.ts';
import { createEvents } from '../../../src/observability/events.ts';
import { countInMetrics, type MetricsOptions } from '../../../src/observability/metrics.ts';
import { createAttempt } from '../../rig/messages.ts';
import { createTestMetrics } from '../../rig/metrics.ts';

const QUEUE_STATISTICS: QueueStatistics = {
  queued: 3,
  sending: 2,
  uncertain: 1,
  held: 0,
  oldest: { id: 'first', acceptedAt: 4000 },
};

function createMetricsRig(readQueueStatistics = async () => QUEUE_STATISTICS, options: Partial<MetricsOptions> = {}) {
  const clock = { at: 10_000, now: () => clock.at, after: () => () => {} };
  const metrics = createTestMetrics({ clock, readQueueStatistics, ...options });
  const { publish, subscribe } = createEvents(clock);
  subscribe(countInMetrics(() => metrics).handlers);
  return { clock, metrics, publish };
}

test('each event increases its metric, and every series starts at zero', async () => {
  const { metrics, publish } = createMetricsRig();
  const zeroLines = (await metrics.scrape()).text.split('\n');
  for (const series of [
    'refused_total{reason="invalid-key"}',
    'accepted_total',
    'alarms_total{reason="configuration"}',
    'alarms_total{reason="reputation"}',
    'alarms_total{reason="signing"}',
    'alarms_total{reason="domain-failing"}',
    'alarms_total{reason="domain-blocked"}',
    'alarms_total{reason="return-path-failing"}',
    'alarms_total{reason="account-locked"}',
    'alarms_total{reason="database-files"}',
  ])
    expect(zeroLines).toContain(`postrider_${series} 0`);
  const message = { at: 0, id: 'm-1', accountId: 1, keyId: 1, to: 'ada@example.com', tookMs: 12 } as const;
  const accepted = { ...message, from: 'shop@example.org', state: 'queued', acceptedAt: 0 } as const;
  publish({ ...accepted, type: 'message.accepted' });
  publish({ ...accepted, type: 'message.accepted' });
  publish({ ...accepted, type: 'message.accepted', to: 'success@simulator.postrider.test' });
  publish({ ...message, type: 'message.replayed' });
  publish({ type: 'request.fields_ignored', at: 0, count: 3 });
  publish({ type: 'request.refused', at: 0, code: 'invalid-key', accountId: null, keyId: null });
  publish({ ...message, type: 'attempt.ended', attempts: 1, attempt: { ...createAttempt(), tookMs: 30 } });
  publish({ type: 'store.committed', at: 0, kind: 'accept', size: 8, tookMs: 4 });
  const { text, contentType } = await metrics.scrape();
  expect(contentType).toContain('text/plain');
  for (const line of [
    'accepted_total 2',
    'replayed_total 1',
    'ignored_fields_total 3',
    'refused_total{reason="invalid-key"} 1',
    'attempts_total{route="default",outcome="delivered"} 1',
    'accept_duration_seconds_count 2',
    'attempt_duration_seconds_sum 0.03',
    'commit_size_sum{kind="accept"} 8',
    'commit_duration_seconds_sum{kind="accept"} 0.004',
    'queue_depth{state="queued"} 3',
    'queue_oldest_age_seconds 6',
  ])
    expect(text.split('\n')).toContain(`postrider_${line}`);
  expect(text).toContain('nodejs_eventloop_lag_seconds');
});

test('scrapes query the store at most once per second', async () => {
  let queryCount = 0;
  const { metrics, clock } = createMetricsRig(() => {
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
  const { metrics, clock } = createMetricsRig(() =>
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
  const { metrics, publish } = createMetricsRig(undefined, { readWebhookStatistics: async () => statistics });
  const members = {
    at: 0,
    deliveryId: 'd',
    eventType: 'message.bounced',
    status: 500,
    tookMs: 1,
    error: 'no',
  } as const;
  for (let webhookId = 1; webhookId <= 150; webhookId += 1)
    publish({ ...members, type: 'webhook.delivery_failed', webhookId });
  publish({ ...members, type: 'webhook.attempt_succeeded', webhookId: 1 });
  const lines = (await metrics.scrape()).text.split('\n');
  expect(lines).toContain('postrider_webhooks_pending 3');
  expect(lines).toContain('postrider_webhooks_failed 3');
  expect(lines).toContain('postrider_webhook_oldest_age_seconds 6');
  expect(lines).toContain('postrider_webhook_attempts_total{result="failed"} 150');
  expect(lines).toContain('postrider_webhook_attempts_total{result="succeeded"} 1');
  expect(lines).toContain('postrider_webhook_failures_total{webhook="other"} 50');
  expect(lines.filter((line) => line.startsWith('postrider_webhook_failures_total{'))).toHaveLength(101);
});

test('each route has the state that this node knows, and its attempts are counted apart', async () => {
  const readRouteStates = () => [
    { name: 'default', state: 'paused' } as const,
    { name: 'backup', state: 'failed' } as const,
  ];
  const metrics = createTestMetrics({ routeNames: ['default', 'backup'], readRouteStates });
  countInMetrics(() => metrics).handlers['attempt.ended']?.({
    ...{ type: 'attempt.ended', at: 0, id: 'm-1', accountId: 1, to: 'ada@example.com', attempts: 1 },
    attempt: { ...createAttempt(), route: 'backup' },
  });
  const { text } = await metrics.scrape();
  for (const line of [
    'route_state{route="default",state="paused"} 1',
    'route_state{route="default",state="usable"} 0',
    'route_state{route="backup",state="failed"} 1',
    'attempts_total{route="backup",outcome="delivered"} 1',
    'attempts_total{route="default",outcome="delivered"} 0',
  ])
    expect(text).toContain(`postrider_${line}`);
});

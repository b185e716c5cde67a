import { expect, test } from 'vitest';
import type { EventOf, ServiceEvent } from '../../../src/model/events.ts';
import type { SettledEventType } from '../../../src/model/message.ts';
import { getLatencyBucket } from '../../../src/model/traffic.ts';
import { createEvents } from '../../../src/observability/events.ts';
import { createLog, createLogHandlers } from '../../../src/observability/log.ts';
import { countInMetrics } from '../../../src/observability/metrics.ts';
import { createCountHandlers, startTrafficCounter } from '../../../src/statistics/traffic.ts';
import { trackRuntimeStatus } from '../../../src/wiring/observability.ts';
import { createAttempt } from '../../rig/messages.ts';
import { createTestMetrics } from '../../rig/metrics.ts';

const MESSAGE = { id: 'm-1', accountId: 7, to: 'ada@example.com' };
const SETTLED_EVENT_TYPES: readonly SettledEventType[] = [
  'message.delivered',
  'message.deferred',
  'message.bounced',
  'message.complained',
  'message.expired',
  'message.uncertain',
];

function createChangeEvent<Type extends SettledEventType>(
  type: Type,
  overrides: Partial<EventOf<SettledEventType>> = {},
): EventOf<Type> {
  const emptyFields = {
    acceptedAt: 0,
    attempts: 1,
    attempt: null,
    dueAt: null,
    reportedBy: null,
    detail: null,
    failure: null,
  };
  return { ...MESSAGE, ...emptyFields, suppresses: false, at: 5, ...overrides, type } as EventOf<Type>;
}

function createSubscribers(level: 'debug' | 'info' = 'debug') {
  const lines: string[] = [];
  const log = createLog({ logLevel: level, logRecipients: 'full' }, { write: (line) => lines.push(line) });
  const clock = { now: () => 5_000, after: () => () => {} };
  const metrics = createTestMetrics({ clock, getDroppedLineCount: () => 12 });
  const events = createEvents(clock);
  const status = trackRuntimeStatus();
  const writtenCounts = new Map<string, unknown>();
  const recordRows = async (_node: string, rows: readonly object[]) => {
    for (const [name, value] of Object.entries(rows[0] ?? {})) writtenCounts.set(name, value);
  };
  const traffic = startTrafficCounter({ node: 'node', clock, writeRows: recordRows, onWriteError: () => undefined });
  events.subscribe(createLogHandlers(log, 'node'));
  const { handlers, series } = countInMetrics(() => metrics);
  events.subscribe(handlers);
  events.subscribe(createCountHandlers([series, traffic]));
  events.subscribe(status.handlers);
  events.endStartup();
  return {
    events,
    publish: events.publish,
    status,
    parseLogLines: () => lines.map((line) => JSON.parse(line)),
    scrapeMetricLines: async () => (await metrics.scrape()).text.split('\n'),
    stopAndReadCounts: async () => {
      await traffic.stop();
      return Object.fromEntries(writtenCounts);
    },
  };
}

test('a bounce by a later report counts as a report and does not count as a second end of the message', async () => {
  const { publish, parseLogLines, scrapeMetricLines, stopAndReadCounts } = createSubscribers();
  publish(
    createChangeEvent('message.bounced', {
      ...{ attempts: null, acceptedAt: null, reportedBy: 'smtp', detail: 'mailbox unknown' },
      failure: { class: 'hard', category: 'mailbox-unknown', status: null, diagnostic: 'mailbox unknown' },
    }),
  );
  publish({
    type: 'message.reported',
    at: 5,
    id: 'm-1',
    verb: 'soft-bounced',
    reportedBy: 'sns',
    suppresses: false,
    failure: { class: 'soft', category: 'mailbox-full', status: '4.2.2', diagnostic: 'full' },
  });
  publish(createChangeEvent('message.complained', { reportedBy: 'smtp' }));
  expect(parseLogLines()).toMatchObject([
    {
      event: 'message.bounced',
      ...MESSAGE,
      detail: 'mailbox unknown',
      reportSource: 'smtp',
      class: 'hard',
      category: 'mailbox-unknown',
    },
    {
      event: 'message.reported',
      id: 'm-1',
      reportType: 'soft-bounced',
      reportSource: 'sns',
      class: 'soft',
      category: 'mailbox-full',
    },
    { event: 'message.complained', ...MESSAGE, reportSource: 'smtp' },
  ]);
  expect(await scrapeMetricLines()).toEqual(
    expect.arrayContaining([
      'postrider_feedback_reports_total{result="bounced"} 1',
      'postrider_feedback_reports_total{result="recorded"} 1',
      'postrider_messages_total{state="bounced"} 1',
      'postrider_feedback_reports_total{result="complained"} 1',
      'postrider_messages_total{state="complained"} 1',
      'postrider_bounced_total{class="hard",category="mailbox-unknown"} 1',
      'postrider_bounced_total{class="soft",category="mailbox-full"} 0',
    ]),
  );
  expect(await stopAndReadCounts()).toMatchObject({
    ...{ bounced: 1, complained: 1, ended: 0 },
    bounces: new Map([['hard/mailbox-unknown', 1]]),
  });
});

test('a confirmation is counted with the time since acceptance, even if it ends a message that was uncertain', async () => {
  const { publish, scrapeMetricLines, stopAndReadCounts } = createSubscribers();
  publish({
    type: 'message.confirmed',
    at: 2_000,
    ...MESSAGE,
    from: 'shop@example.org',
    acceptedAt: 0,
    reportedBy: 'postmark',
    detail: 'ok',
  });
  const report = { attempts: null, reportedBy: 'postmark', at: 2_000, acceptedAt: 0 } as const;
  publish(createChangeEvent('message.delivered', report));
  publish(createChangeEvent('message.delivered', { attempt: createAttempt() }));
  expect(await scrapeMetricLines()).toEqual(
    expect.arrayContaining([
      'postrider_confirmation_duration_seconds_count 2',
      'postrider_confirmation_duration_seconds_sum 4',
      'postrider_messages_total{state="delivered"} 2',
    ]),
  );
  expect(await stopAndReadCounts()).toMatchObject({
    ...{ delivered: 2, confirmed: 2 },
    confirmations: new Map([[getLatencyBucket(2_000), 2]]),
  });
});

test('a message that cannot be signed raises an alarm in the runtime status, the metrics and the time series', async () => {
  const { publish, status, scrapeMetricLines, stopAndReadCounts } = createSubscribers();
  publish({
    type: 'message.signing_failed',
    at: 5_000,
    error: new Error('the DKIM key of example.org cannot be opened'),
  });
  expect(status.readAlarms(5_000)).toEqual([
    { reason: 'signing', text: 'the DKIM key of example.org cannot be opened', lastAt: 5_000 },
  ]);
  expect(await scrapeMetricLines()).toContain('postrider_alarms_total{reason="signing"} 1');
  expect(await stopAndReadCounts()).toMatchObject({ alarmed: 1 });
});

test('a refusal that concerns all messages raises an alarm', async () => {
  const { publish, status, parseLogLines, scrapeMetricLines, stopAndReadCounts } = createSubscribers();
  const reply = { stage: 'auth', code: 535, enhanced: '5.7.8', text: 'wrong password' } as const;
  const attempt = createAttempt({ kind: 'deferred', reply, reason: 'configuration', scope: 'route' });
  publish({ type: 'attempt.ended', at: 5_000, ...MESSAGE, attempts: 1, attempt });
  publish({ type: 'attempt.alarm_raised', at: 5_000, ...MESSAGE, attempts: 1, attempt, reason: 'configuration' });
  expect(status.readAlarms(5_000)).toEqual([{ reason: 'configuration', text: 'wrong password', lastAt: 5_000 }]);
  expect(parseLogLines()).toMatchObject([
    { event: 'attempt.alarm_raised', level: 'warn', ...MESSAGE, reason: 'configuration', smtpCode: 535 },
  ]);
  expect(await scrapeMetricLines()).toEqual(
    expect.arrayContaining([
      'postrider_attempts_total{route="default",outcome="deferred"} 1',
      'postrider_alarms_total{reason="configuration"} 1',
    ]),
  );
  expect(await stopAndReadCounts()).toMatchObject({ alarmed: 1 });
});

test('lost database files raise an alarm that is logged with the remedy, and their restoration is logged', async () => {
  const { publish, parseLogLines, scrapeMetricLines } = createSubscribers();
  publish({ type: 'store.files_lost', at: 1, reason: 'the file was removed', remedy: 'Put it back.' });
  publish({ type: 'store.files_restored', at: 2 });
  const lostLine = { event: 'store.files_lost', level: 'error', reason: 'database-files', remedy: 'Put it back.' };
  expect(parseLogLines()).toMatchObject([lostLine, { event: 'store.files_restored' }]);
  expect(await scrapeMetricLines()).toContain('postrider_alarms_total{reason="database-files"} 1');
});

test('every recorded change of state has a log line', () => {
  const { publish, parseLogLines } = createSubscribers();
  for (const type of SETTLED_EVENT_TYPES) publish(createChangeEvent(type));
  expect(parseLogLines().map(({ event }) => event)).toEqual(SETTLED_EVENT_TYPES);
});

test('a subscriber that is added during the start receives earlier events, and a later subscriber does not', () => {
  const events = createEvents({ now: () => 0 });
  const receivedEvents: string[] = [];
  const createHandlers = (name: string) => ({
    'node.warned': ({ detail }: EventOf<'node.warned'>) => void receivedEvents.push(`${name} ${detail}`),
  });
  events.subscribe(createHandlers('first'));
  events.publish({ type: 'node.warned', at: 0, detail: 'one' });
  events.subscribe(createHandlers('second'));
  events.endStartup();
  events.subscribe(createHandlers('late'));
  events.publish({ type: 'node.warned', at: 0, detail: 'two' });
  expect(receivedEvents).toEqual(['first one', 'second one', 'first two', 'second two', 'late two']);
});

test('an error of a subscriber affects neither the publisher nor other subscribers, and is reported', () => {
  const events = createEvents({ now: () => 0 });
  const receivedEvents: ServiceEvent[] = [];
  const failingHandler = () => {
    throw new Error('broken');
  };
  events.subscribe({ 'node.draining': failingHandler, 'node.operation_failed': failingHandler });
  events.subscribe({
    'node.draining': (event) => receivedEvents.push(event),
    'node.operation_failed': (event) => receivedEvents.push(event),
  });
  events.publish({ type: 'node.draining', at: 0 });
  expect(receivedEvents.map(({ type }) => type)).toEqual(['node.operation_failed', 'node.draining']);
  expect(receivedEvents[0]).toMatchObject({ operation: 'node.draining', error: new Error('broken') });
});

test('the metrics contain the number of dropped log lines', async () => {
  expect(await createSubscribers().scrapeMetricLines()).toContain('postrider_log_dropped_total 12');
});

test('the log names the route whose circuit breaker changes', () => {
  const { publish, parseLogLines } = createSubscribers();
  publish({ type: 'circuit_breaker.opened', at: 1, route: 'backup', retryAt: 2_000 });
  publish({ type: 'circuit_breaker.half_opened', at: 2, route: 'backup', retryAt: 3_000 });
  publish({ type: 'circuit_breaker.closed', at: 3, route: 'backup', retryAt: null });
  expect(parseLogLines()).toMatchObject([
    { event: 'circuit_breaker.opened', level: 'warn', route: 'backup', retryAt: '1970-01-01T00:00:02.000Z' },
    { event: 'circuit_breaker.half_opened', level: 'debug', route: 'backup' },
    { event: 'circuit_breaker.closed', level: 'info', route: 'backup' },
  ]);
});

/** Events after the commit: each subscriber derives what it shows from them, and publishers fail because of none. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { EventOf, ServiceEvent, SettledType } from '../../../src/model/events.ts';
import { createEvents } from '../../../src/observability/events.ts';
import { createLog, LOG_FIELDS, LOG_VERBS } from '../../../src/observability/log.ts';
import { logLines } from '../../../src/observability/log-lines.ts';
import { createMetrics, metricHandlers } from '../../../src/observability/metrics.ts';
import { createStanding, standingHandlers } from '../../../src/observability/standing.ts';
import { countTraffic, trafficHandlers } from '../../../src/observability/traffic.ts';
import { attemptWith } from '../../rig/mail.ts';

const MESSAGE = { id: 'm-1', accountId: 7, to: 'ada@example.com' };
const SETTLED: readonly SettledType[] = [
  'message.delivered',
  'message.deferred',
  'message.bounced',
  'message.complained',
  'message.expired',
  'message.uncertain',
];

/** A change of state by the queue without an attempt; `given` replaces members. */
function changed<Type extends SettledType>(type: Type, given: Partial<EventOf<SettledType>> = {}): EventOf<Type> {
  const none = { acceptedAt: 0, attempts: 1, attempt: null, dueAt: null, reportedBy: null, detail: null };
  return { ...MESSAGE, ...none, suppresses: false, at: 5, ...given, type } as EventOf<Type>;
}

function made(level: 'debug' | 'info' = 'debug') {
  const lines: string[] = [];
  const log = createLog(level, { write: (line) => lines.push(line) });
  const clock = { now: () => 5_000, after: () => () => {} };
  const queueFigures = () => Promise.resolve({ queued: 0, sending: 0, uncertain: 0, oldest: null });
  const metrics = createMetrics({ clock, queueFigures, reasons: ['invalid-key'], droppedLines: () => 12 });
  const events = createEvents(clock);
  const standing = createStanding();
  const written = new Map<string, number>();
  const put = async (_node: string, rows: readonly object[]) => {
    for (const [name, value] of Object.entries(rows[0] ?? {})) if (typeof value === 'number') written.set(name, value);
  };
  const traffic = countTraffic({ node: 'node', clock, put, failed: () => undefined });
  events.subscribe(logLines(log, 'node'));
  events.subscribe(metricHandlers(metrics));
  events.subscribe(trafficHandlers(traffic));
  events.subscribe(standingHandlers(standing));
  events.started();
  return {
    events,
    publish: events.publish,
    standing,
    logged: () => lines.map((line) => JSON.parse(line)),
    figures: async () => (await metrics.scrape()).text.split('\n'),
    series: async () => {
      await traffic.stop();
      return Object.fromEntries(written);
    },
  };
}

test('every change of a settlement is counted and logged: the simulator’s complaint too', async () => {
  const { publish, logged, figures, series } = made();
  publish(changed('message.delivered', { attempt: attemptWith() }));
  publish(changed('message.complained', { detail: 'complaint of the mailbox simulator' }));
  expect(logged()).toMatchObject([
    { verb: 'delivered', ...MESSAGE, attempts: 1, remote: 'relay.test:25', code: 250, tookMs: 2 },
    { verb: 'complained', ...MESSAGE, detail: 'complaint of the mailbox simulator' },
  ]);
  expect(await figures()).toEqual(
    expect.arrayContaining(['postrider_mail_total{state="delivered"} 1', 'postrider_mail_total{state="complained"} 1']),
  );
  expect(await series()).toMatchObject({ delivered: 1, complained: 1, ended: 1 });
});

test('a message found suppressed is counted and logged, beside its acceptance', async () => {
  const { publish, logged, figures, series } = made();
  const accepted = { type: 'message.accepted', at: 5, ...MESSAGE, keyId: 1, acceptedAt: 2, tookMs: 3 } as const;
  publish({ ...accepted, state: 'suppressed' });
  publish({ type: 'message.suppressed', at: 5, ...MESSAGE });
  expect(logged()).toMatchObject([
    { verb: 'accepted', id: 'm-1', state: 'suppressed' },
    { verb: 'suppressed', ...MESSAGE },
  ]);
  expect(await figures()).toEqual(
    expect.arrayContaining(['postrider_accepted_total 1', 'postrider_mail_total{state="suppressed"} 1']),
  );
  expect(await series()).toMatchObject({ accepted: 1, suppressed: 1, ended: 1 });
});

test('a bounce that a report tells of later is no further end, and is counted as a report', async () => {
  const { publish, logged, figures, series } = made();
  publish(changed('message.bounced', { attempts: null, acceptedAt: null, reportedBy: 'smtp', detail: 'gone' }));
  publish({ type: 'message.reported', at: 5, id: 'm-1', verb: 'soft-bounced', reportedBy: 'sns', suppresses: false });
  expect(logged()).toMatchObject([
    { verb: 'bounced', ...MESSAGE, detail: 'gone', reason: 'feedback:smtp' },
    { verb: 'noted', id: 'm-1', detail: 'soft-bounced', reason: 'feedback:sns' },
  ]);
  expect(await figures()).toEqual(
    expect.arrayContaining([
      'postrider_feedback_total{kind="bounced"} 1',
      'postrider_feedback_total{kind="noted"} 1',
      'postrider_mail_total{state="bounced"} 1',
    ]),
  );
  expect(await series()).toMatchObject({ bounced: 1, ended: 0 });
});

test('a message that cannot be signed is an alarm in the runtime status, the metrics and the time series', async () => {
  const { publish, standing, figures, series } = made();
  publish({ type: 'message.unsigned', at: 5_000, error: new Error('the DKIM key of example.org cannot be opened') });
  expect(standing.read(5_000).alarms).toEqual([
    { reason: 'signing', text: 'the DKIM key of example.org cannot be opened', lastAt: 5_000 },
  ]);
  expect(await figures()).toContain('postrider_alarms_total{reason="signing"} 1');
  expect(await series()).toMatchObject({ alarmed: 1 });
});

test('a refusal of this service itself is an alarm, and the last failure of the next hop', async () => {
  const { publish, standing, logged, figures, series } = made();
  const reply = { stage: 'auth', code: 535, enhanced: '5.7.8', text: 'wrong password' } as const;
  const attempt = attemptWith({ kind: 'deferred', reply, reason: 'configuration', scope: 'transport' });
  publish({ type: 'attempt.ended', at: 5_000, ...MESSAGE, attempts: 1, attempt });
  publish({ type: 'attempt.alarming', at: 5_000, ...MESSAGE, attempts: 1, attempt, reason: 'configuration' });
  const { alarms, lastFailure } = standing.read(5_000);
  expect(alarms).toEqual([{ reason: 'configuration', text: 'wrong password', lastAt: 5_000 }]);
  expect(lastFailure).toEqual({ text: 'configuration: relay.test:25 535 5.7.8 wrong password', at: 5_000 });
  expect(logged()).toMatchObject([{ verb: 'warned', ...MESSAGE, reason: 'configuration', code: 535 }]);
  expect(await figures()).toEqual(
    expect.arrayContaining([
      'postrider_attempts_total{outcome="deferred"} 1',
      'postrider_alarms_total{reason="configuration"} 1',
    ]),
  );
  expect(await series()).toMatchObject({ alarmed: 1 });
});

test('files of the database that go are an alarm with the reason and the remedy in the log, and their return is logged', async () => {
  const { publish, logged, figures } = made();
  publish({ type: 'store.files-lost', at: 1, reason: 'the database file was removed', remedy: 'Put it back.' });
  publish({ type: 'store.files-back', at: 2 });
  expect(logged()).toMatchObject([
    {
      verb: 'failed',
      reason: 'database-files',
      detail: 'the database file was removed. Nothing is accepted.',
      error: 'Put it back.',
    },
    { verb: 'resumed' },
  ]);
  expect(await figures()).toContain('postrider_alarms_total{reason="database-files"} 1');
});

test('every recorded change of state has its line', () => {
  const { publish, logged } = made();
  for (const type of SETTLED) publish(changed(type));
  expect(logged().map(({ verb }) => `message.${verb}`)).toEqual(SETTLED);
});

test('events whose level is off have no line', () => {
  const { publish, logged } = made('info');
  publish({ type: 'request.refused', at: 1, code: 'invalid-key', accountId: null, keyId: null });
  publish(changed('message.expired', { accountId: null, to: null, attempts: null, acceptedAt: null }));
  expect(logged()).toMatchObject([{ verb: 'expired', id: 'm-1' }]);
});

test('a subscriber that joins during the start receives what was published before it, and a later one does not', () => {
  const events = createEvents({ now: () => 0 });
  const heard: string[] = [];
  const handlers = (name: string) => ({
    'node.warning': ({ detail }: EventOf<'node.warning'>) => void heard.push(`${name} ${detail}`),
  });
  events.subscribe(handlers('first'));
  events.publish({ type: 'node.warning', at: 0, detail: 'one' });
  events.subscribe(handlers('second'));
  events.started();
  events.subscribe(handlers('late'));
  events.publish({ type: 'node.warning', at: 0, detail: 'two' });
  expect(heard).toEqual(['first one', 'second one', 'first two', 'second two', 'late two']);
});

test('a subscriber that throws harms neither the publisher nor the others, and is reported', () => {
  const events = createEvents({ now: () => 0 });
  const heard: ServiceEvent[] = [];
  const broken = () => {
    throw new Error('broken');
  };
  events.subscribe({ 'node.draining': broken, 'node.fault': broken });
  events.subscribe({ 'node.draining': (event) => heard.push(event), 'node.fault': (event) => heard.push(event) });
  events.publish({ type: 'node.draining', at: 0 });
  expect(heard.map(({ type }) => type)).toEqual(['node.fault', 'node.draining']);
  expect(heard[0]).toMatchObject({ what: 'node.draining', error: new Error('broken') });
});

test('lines that the reader of the log did not take are counted', async () => {
  expect(await made().figures()).toContain('postrider_log_dropped_total 12');
});

test('the log has no verb and no field that nothing uses', () => {
  const lines = readFileSync(new URL('../../../src/observability/log-lines.ts', import.meta.url), 'utf8');
  expect(Object.keys(LOG_VERBS).filter((verb) => !lines.includes(`log.${verb}(`))).toEqual([]);
  expect(LOG_FIELDS.filter((field) => !new RegExp(`\\b${field}\\b`).test(lines))).toEqual([]);
});

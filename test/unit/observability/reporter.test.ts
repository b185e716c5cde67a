import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { afterAttempt, simulatedComplaint } from '../../../src/model/after-attempt.ts';
import type { LeasedMail } from '../../../src/model/message.ts';
import { STATES } from '../../../src/model/state-machine.ts';
import { createLog, LOG_FIELDS, LOG_VERBS } from '../../../src/observability/log.ts';
import { createMetrics } from '../../../src/observability/metrics.ts';
import { createReporter } from '../../../src/observability/reporter.ts';
import { createStanding } from '../../../src/observability/standing.ts';
import { countTraffic } from '../../../src/observability/traffic.ts';

const MAIL: LeasedMail = {
  id: 'm-1',
  accountId: 7,
  to: 'ada@example.com',
  from: 'shop@example.org',
  subject: 'SECRET',
  message: 'SECRET',
  acceptedAt: 0,
  attempts: 1,
  lease: { owner: 'node', until: 1 },
};

function made() {
  const lines: string[] = [];
  const log = createLog('debug', { write: (line) => lines.push(line) });
  const clock = { now: () => 0, after: () => () => {} };
  const queueFigures = () => Promise.resolve({ queued: 0, sending: 0, uncertain: 0, oldest: null });
  const metrics = createMetrics({ clock, queueFigures, reasons: [], droppedLines: () => 12 });
  const report = createReporter({ log, metrics, node: 'node' });
  return {
    report,
    logged: () => lines.map((line) => JSON.parse(line)),
    figures: async () => (await metrics.scrape()).text.split('\n'),
  };
}

test('every change of a settlement is counted and logged: the simulator’s complaint too', async () => {
  const { report, logged, figures } = made();
  const reply = { stage: 'content', code: 250, enhanced: '2.0.0', text: 'taken' } as const;
  const attempt = {
    outcome: { kind: 'delivered', reply },
    startedAt: 0,
    tookMs: 5,
    remote: null,
    conversation: [],
  } as const;
  const change = afterAttempt(MAIL, attempt, { maxAgeMs: 1000, onUncertain: 'resend' }, 'node', 5, 0);
  report.queue.attempted(MAIL, attempt, change);
  report.queue.followed(MAIL, simulatedComplaint(6));
  expect(logged()).toMatchObject([
    { verb: 'delivered', id: 'm-1', to: 'ada@example.com' },
    {
      verb: 'complained',
      id: 'm-1',
      accountId: 7,
      to: 'ada@example.com',
      detail: 'complaint of the mailbox simulator',
    },
  ]);
  expect(await figures()).toEqual(
    expect.arrayContaining(['postrider_mail_total{state="delivered"} 1', 'postrider_mail_total{state="complained"} 1']),
  );
});

test('a mail request found suppressed while it is claimed is counted and logged', async () => {
  const { report, logged, figures } = made();
  report.queue.suppressed({ id: 'm-1', accountId: 7, to: 'ada@example.com' });
  expect(logged()).toMatchObject([{ verb: 'suppressed', id: 'm-1', accountId: 7, to: 'ada@example.com' }]);
  expect(await figures()).toContain('postrider_mail_total{state="suppressed"} 1');
});

test('one accepted and suppressed at once is counted and logged as both', async () => {
  const { report, logged, figures } = made();
  const mail = {
    ...MAIL,
    keyId: 1,
    recipient: MAIL.to,
    idempotency: null,
    lease: null,
    suppressed: false,
  };
  report.http.accepted(mail, 'suppressed', 3);
  expect(logged()).toMatchObject([
    { verb: 'accepted', id: 'm-1', state: 'suppressed' },
    { verb: 'suppressed', id: 'm-1' },
  ]);
  expect(await figures()).toEqual(
    expect.arrayContaining(['postrider_accepted_total 1', 'postrider_mail_total{state="suppressed"} 1']),
  );
});

test('mail that cannot be signed is an alarm to whoever looks on, and in the figures over time', async () => {
  const clock = { now: () => 5_000, after: () => () => {} };
  const queueFigures = () => Promise.resolve({ queued: 1, sending: 0, uncertain: 0, oldest: null });
  const metrics = createMetrics({ clock, queueFigures, reasons: [], droppedLines: () => 0 });
  const log = createLog('debug', { write: () => undefined });
  const standing = createStanding();
  const written: number[] = [];
  const put = async (_node: string, rows: readonly { readonly alarmed: number }[]) => {
    for (const { alarmed } of rows) written.push(alarmed);
  };
  const traffic = countTraffic({ node: 'node', clock, put, failed: () => undefined });
  const report = createReporter({ log, metrics, node: 'node', standing, traffic, now: clock.now });
  report.unsigned(new Error('the DKIM key of example.org cannot be opened'));
  expect(standing.read(5_000).alarms).toEqual([
    { reason: 'signing', text: 'the DKIM key of example.org cannot be opened', lastAt: 5_000 },
  ]);
  await traffic.stop();
  expect(written).toEqual([1, 1]);
  expect((await metrics.scrape()).text).toContain('postrider_alarms_total{reason="signing"} 1');
});

test('files of the database that go are an alarm with the reason and the remedy in the log, and their return is logged', async () => {
  const { report, logged, figures } = made();
  report.files({ reason: 'the database file was removed', remedy: 'Put it back.' });
  report.files(null);
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

test('every state that feedback or the queue can lead to has its verb', () => {
  const { report, logged } = made();
  const event = { at: 0, verb: 'x', by: 'y', detail: null, attempt: null };
  for (const to of STATES) report.queue.followed(MAIL, { to, dueAt: null, event, suppress: null });
  expect(logged()).toHaveLength(STATES.length);
});

test('lines that the reader of the log did not take are counted', async () => {
  expect(await made().figures()).toContain('postrider_log_dropped_total 12');
});

test('the log has no verb and no field that nothing uses', () => {
  const read = (path: string) => readFileSync(new URL(`../../../src/${path}`, import.meta.url), 'utf8');
  const users = read('observability/reporter.ts') + read('observability/feedback-reporter.ts') + read('main.ts');
  expect(Object.keys(LOG_VERBS).filter((verb) => !users.includes(`log.${verb}(`))).toEqual([]);
  expect(LOG_FIELDS.filter((field) => !new RegExp(`\\b${field}\\b`).test(users))).toEqual([]);
});

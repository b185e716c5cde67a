/** Notices out of a queue that repeats, reorders and fails: each is deleted only once it is recorded. */
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../../src/clock.ts';
import type { Taken } from '../../../../src/feedback/intake.ts';
import { createSqsPoller } from '../../../../src/feedback/ses/sqs-poller.ts';
import type { FeedbackReport } from '../../../../src/store/feedback.ts';
import { CREDENTIALS } from '../../../rig/ses-fake.ts';
import { sesEvent, TOPIC } from '../../../rig/sns.ts';
import { startSqsFake } from '../../../rig/sqs-fake.ts';

beforeEach(() => {
  for (const [name, value] of Object.entries(CREDENTIALS)) vi.stubEnv(name, value);
  return () => vi.unstubAllEnvs();
});

async function rig({ take = async () => 'recorded' as Taken, topics = [] as string[], quick = false } = {}) {
  const queue = await startSqsFake();
  onTestFinished(() => queue.close());
  const [reports, refusals, faults]: [FeedbackReport[], string[], string[]] = [[], [], []];
  const poller = createSqsPoller({
    queueUrl: queue.queueUrl,
    region: 'eu-west-1',
    // Pauses after faults are not waited out where a test is not about them.
    clock: quick ? { ...systemClock, after: (ms, run) => systemClock.after(Math.min(ms, 20), run) } : systemClock,
    random: () => 0,
    topics,
    take: (report) => {
      reports.push(report);
      return take();
    },
    refused: (reason) => refusals.push(reason),
    failed: (what, error) => faults.push(`${what}: ${String(error)}`),
  });
  let closed: Promise<void> | null = null;
  const close = () => {
    closed ??= poller.close();
    return closed;
  };
  onTestFinished(close);
  return { queue, reports, refusals, faults, close, start: () => poller.start() };
}

const bounce = (reference = 'ses-1') => sesEvent('Bounce', reference, 'rita@example.com');
const envelope = (text: string, topic = TOPIC) =>
  JSON.stringify({ Type: 'Notification', TopicArn: topic, Message: text });

test('a notice is recorded and only then deleted, raw or in the envelope of SNS', async () => {
  let record: (taken: Taken) => void = () => undefined;
  let recorded = false;
  const { queue, reports, start } = await rig({
    take: () => (recorded ? Promise.resolve('recorded') : new Promise((resolve) => (record = resolve))),
  });
  await start();
  queue.send(bounce());
  await expect.poll(() => reports.length).toBe(1);
  expect(queue.left).toBe(1);
  recorded = true;
  record('recorded');
  await expect.poll(() => queue.left).toBe(0);
  queue.send(envelope(bounce('ses-2')));
  await expect.poll(() => queue.left).toBe(0);
  expect(reports.map(({ about, source }) => [about, source])).toEqual([
    [{ reference: 'ses-1' }, 'sqs'],
    [{ reference: 'ses-2' }, 'sqs'],
  ]);
});

test('what the store does not take stays in the queue and comes again', async () => {
  const answers: (() => Promise<Taken>)[] = [() => Promise.reject(new Error('disk full')), async () => 'not-yet'];
  const { queue, reports, refusals, faults, start } = await rig({
    take: () => (answers.shift() ?? (async () => 'recorded' as const))(),
  });
  await start();
  queue.send(bounce());
  await expect.poll(() => refusals).toEqual(['store']);
  expect(faults).toEqual(['feedback: Error: disk full']);
  queue.showAgain();
  await expect.poll(() => queue.visibilities).toEqual([30]);
  expect(queue.left).toBe(1);
  queue.showAgain();
  await expect.poll(() => queue.left).toBe(0);
  expect(reports).toHaveLength(3);
});

test('after an hour in the queue a notice is kept for the operator if it cannot be applied', async () => {
  const { queue, reports, start } = await rig();
  await start();
  queue.send(bounce(), Date.now() - 2 * 3_600_000);
  queue.send(bounce('ses-2'));
  await expect.poll(() => queue.left).toBe(0);
  expect(new Map(reports.map(({ about, last }) => [JSON.stringify(about), last]))).toEqual(
    new Map([
      ['{"reference":"ses-1"}', true],
      ['{"reference":"ses-2"}', false],
    ]),
  );
});

test('garbage is handed on to be kept, and another topic’s message is refused; neither comes again', async () => {
  const { queue, reports, refusals, start } = await rig({ topics: [TOPIC] });
  await start();
  queue.send('hello');
  queue.send(envelope(bounce(), `${TOPIC}2`));
  await expect.poll(() => queue.left).toBe(0);
  expect(reports).toMatchObject([{ about: null, notices: [{ kind: 'unknown' }] }]);
  expect(refusals).toEqual(['sqs-topic']);
});

test('a queue that fails is asked again, and nothing is lost', async () => {
  const { queue, reports, faults, start } = await rig({ quick: true });
  queue.failNext(6);
  for (let n = 0; n < 25; n += 1) queue.send(bounce(`ses-${n}`));
  await start();
  await expect.poll(() => queue.left).toBe(0);
  expect(new Set(reports.map(({ about }) => JSON.stringify(about))).size).toBe(25);
  expect(faults.length).toBeGreaterThan(0);
  expect(faults[0]).toMatch(/^sqs: /);
});

test('it ends without waiting for the messages that it has asked for', async () => {
  const { queue, close, start } = await rig();
  await start();
  await expect.poll(() => queue.polling).toBe(4);
  await close();
  await expect.poll(() => queue.polling).toBe(0);
  expect(queue.emptyAnswers).toBe(0);
});

import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../../src/clock.ts';
import type { RecordResult } from '../../../../src/feedback/intake.ts';
import { createSqsPoller, findQueueRegion } from '../../../../src/feedback/ses/sqs-poller.ts';
import type { FeedbackReport } from '../../../../src/model/feedback.ts';
import { stubCredentials } from '../../../rig/ses-fake.ts';
import { createSesEvent, TOPIC } from '../../../rig/sns.ts';
import { startSqsFake } from '../../../rig/sqs-fake.ts';

stubCredentials();

interface RigParts {
  readonly recordReport?: (report: FeedbackReport) => Promise<RecordResult>;
  readonly topics?: string[];
  readonly isBackoffShort?: boolean;
}

async function createRig({
  recordReport = async () => 'recorded',
  topics = [],
  isBackoffShort = false,
}: RigParts = {}) {
  const queue = await startSqsFake();
  onTestFinished(() => queue.close());
  const [reports, refusals, faults]: [FeedbackReport[], string[], string[]] = [[], [], []];
  const poller = createSqsPoller({
    queueUrl: queue.queueUrl,
    region: 'eu-west-1',
    // Backoff is shortened in tests that do not check its intervals.
    clock: isBackoffShort
      ? { ...systemClock, after: (ms, run) => systemClock.after(Math.min(ms, 20), run) }
      : systemClock,
    random: () => 0,
    topics,
    recordReport: (report) => {
      reports.push(report);
      return recordReport(report);
    },
    publish: ({ reason }) => refusals.push(reason),
    onError: (operation, error) => faults.push(`${operation}: ${String(error)}`),
  });
  let closePromise: Promise<void> | null = null;
  const close = () => {
    closePromise ??= poller.close();
    return closePromise;
  };
  onTestFinished(close);
  return { queue, reports, refusals, faults, close, start: () => poller.start() };
}

const createBounce = (reference = 'ses-1') => createSesEvent('Bounce', reference, 'rita@example.com');
const createEnvelope = (text: string, topic = TOPIC) =>
  JSON.stringify({ Type: 'Notification', TopicArn: topic, Message: text });

test('an event, raw or in the envelope of SNS, is deleted only after it is recorded', async () => {
  let completeRecord: (result: RecordResult) => void = () => undefined;
  let isRecorded = false;
  const { queue, reports, start } = await createRig({
    recordReport: () =>
      isRecorded ? Promise.resolve('recorded') : new Promise((resolve) => (completeRecord = resolve)),
  });
  await start();
  queue.send(createBounce());
  await expect.poll(() => reports.length).toBe(1);
  expect(queue.remainingCount).toBe(1);
  isRecorded = true;
  completeRecord('recorded');
  await expect.poll(() => queue.remainingCount).toBe(0);
  queue.send(createEnvelope(createBounce('ses-2')));
  await expect.poll(() => queue.remainingCount).toBe(0);
  expect(reports.map(({ messageRef, source }) => [messageRef, source])).toEqual([
    [{ reference: 'ses-1' }, 'sqs'],
    [{ reference: 'ses-2' }, 'sqs'],
  ]);
});

test('an event that the store cannot record stays in the queue and is delivered again', async () => {
  const answers: (() => Promise<RecordResult>)[] = [
    () => Promise.reject(new Error('disk full')),
    async () => 'not-yet',
  ];
  const { queue, reports, refusals, faults, start } = await createRig({
    recordReport: () => (answers.shift() ?? (async () => 'recorded' as const))(),
  });
  await start();
  queue.send(createBounce());
  await expect.poll(() => faults).toEqual(['feedback: Error: disk full']);
  expect(refusals).toEqual(['store']);
  queue.endVisibilityTimeouts();
  await expect.poll(() => queue.visibilityTimeoutsS).toEqual([30]);
  expect(queue.remainingCount).toBe(1);
  queue.endVisibilityTimeouts();
  await expect.poll(() => queue.remainingCount).toBe(0);
  expect(reports).toHaveLength(3);
});

test('an event that cannot be applied after one hour in the queue is stored for the operator', async () => {
  const { queue, reports, start } = await createRig({
    recordReport: async ({ isFinal }) => (isFinal ? 'recorded' : 'not-yet'),
  });
  await start();
  queue.send(createBounce(), Date.now() - 2 * 3_600_000);
  await expect.poll(() => queue.remainingCount).toBe(0);
  expect(reports.map(({ isFinal }) => isFinal)).toEqual([false, true]);
  queue.send(createBounce('ses-2'));
  await expect.poll(() => queue.visibilityTimeoutsS).toEqual([30]);
  expect(queue.remainingCount).toBe(1);
  expect(reports.map(({ isFinal }) => isFinal)).toEqual([false, true, false]);
});

test('content that is not an event and a message of a topic that is not configured are stored for the operator and deleted from the queue', async () => {
  const { queue, reports, refusals, start } = await createRig({ topics: [TOPIC] });
  await start();
  queue.send('hello');
  queue.send(createEnvelope(createBounce(), `${TOPIC}2`));
  queue.send(`{"eventType":"Bounce","mail":{"messageId":"a"},"bounce":${'['.repeat(100_000)}${']'.repeat(100_000)}}`);
  await expect.poll(() => queue.remainingCount).toBe(0);
  const reasons = reports.flatMap(({ messageRef, events }) =>
    messageRef === null ? events.map((event) => (event.kind === 'unknown' ? event.reason : event.kind)) : [],
  );
  expect(reasons.sort()).toEqual([
    'the event is not a JSON object',
    `the topic is ${TOPIC}2, which is not in POSTRIDER_SES_TOPICS`,
  ]);
  expect(refusals).toEqual(['sqs-topic']);
});

test('no event is lost when the queue fails, disconnects, loses deletions and repeats events', async () => {
  const { queue, reports, faults, start } = await createRig({ isBackoffShort: true });
  queue.failNextRequests(6);
  queue.disconnectNextRequests(3);
  queue.ignoreNextDeletions(5);
  for (let n = 0; n < 25; n += 1) queue.send(createBounce(`ses-${n}`));
  await start();
  await expect
    .poll(() => {
      queue.endVisibilityTimeouts();
      return queue.remainingCount;
    })
    .toBe(0);
  const digests = new Map(reports.map(({ messageRef, digest }) => [JSON.stringify(messageRef), digest]));
  expect(digests.size).toBe(25);
  // All copies of an event have the same digest, so the store applies the event once.
  expect(new Set(reports.map(({ digest }) => digest)).size).toBe(25);
  expect(reports.length).toBeGreaterThan(25);
  expect(faults.length).toBeGreaterThan(0);
  expect(faults[0]).toMatch(/^sqs: /);
});

test.each([
  ['sqs.eu-west-1.amazonaws.com', 'eu-west-1'],
  ['sqs.cn-north-1.amazonaws.com.cn', 'cn-north-1'],
  ['sqs-fips.us-gov-west-1.amazonaws.com', 'us-gov-west-1'],
  ['vpce-0a1b-2c3d.sqs.eu-central-1.vpce.amazonaws.com', 'eu-central-1'],
  ['eu-west-1.queue.amazonaws.com', 'eu-west-1'],
  ['queue.amazonaws.com', null],
  ['127.0.0.1', null],
  ['localhost', null],
])('the region of a queue at %s is %s', (host, region) => {
  expect(findQueueRegion(host)).toBe(region);
});

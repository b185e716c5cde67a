import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import {
  createReportReader,
  createThreadReader,
  MAX_PENDING,
  READ_TIMEOUT_MS,
} from '../../../src/feedback/thread-reader.ts';
import type { FeedbackEvent } from '../../../src/model/feedback.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const HOSTILE_THREAD = new URL('../../rig/hostile-report-reader-thread.ts', import.meta.url);
const BOUNCE = Buffer.from(
  'From: MAILER-DAEMON@relay.example\r\nSubject: Undelivered Mail\r\n\r\n<a@b.example>: no such user',
);

function createRig() {
  const clock = createVirtualClock(Date.now());
  const faults: string[] = [];
  const reader = createReportReader({
    clock,
    prepareThread: () => undefined,
    onError: (_, error) => faults.push(String(error)),
    threadModule: HOSTILE_THREAD,
  });
  onTestFinished(() => reader.close());
  return { clock, reader, faults };
}

test('a report whose parsing exceeds the timeout is refused as too expensive, and the reports after it are still parsed', async () => {
  const { clock, reader, faults } = createRig();
  // After this read, the thread has started, and the clock can advance.
  await reader.read(BOUNCE);
  const hostileRead = reader.read(Buffer.from('spin'));
  const waitingRead = reader.read(BOUNCE);
  let hasHostileReadEnded = false;
  void hostileRead.then(() => {
    hasHostileReadEnded = true;
  });
  await expect
    .poll(async () => {
      await clock.advance(READ_TIMEOUT_MS / 2);
      return hasHostileReadEnded;
    })
    .toBe(true);
  expect(await hostileRead).toEqual({ kind: 'too-expensive' });
  expect(await waitingRead).toMatchObject({ kind: 'read', value: [{ kind: 'bounce', recipient: 'a@b.example' }] });
  expect(faults).toEqual([]);
});

test('a job that exhausts the memory of its thread is too expensive, and the next job is read', async () => {
  const faults: string[] = [];
  const reader = createThreadReader<Uint8Array, readonly FeedbackEvent[]>({
    clock: systemClock,
    prepareThread: () => undefined,
    onError: (_, error) => faults.push(String(error)),
    module: HOSTILE_THREAD,
    name: 'postrider-test',
    operation: 'test',
    timeoutMs: 600_000,
    maxOldGenerationSizeMb: 32,
    maxPending: MAX_PENDING,
    failedValue: [],
  });
  onTestFinished(() => reader.close());
  expect(await reader.read(Buffer.from('exhaust'), 1)).toEqual({ kind: 'too-expensive' });
  expect(await reader.read(BOUNCE, 1)).toMatchObject({ kind: 'read', value: [{ kind: 'bounce' }] });
  expect(faults).toHaveLength(1);
});

test('waiting reports are bounded in number and bytes, and a read above these limits returns busy immediately', async () => {
  const { reader } = createRig();
  const readPromises = [reader.read(Buffer.from('spin'))];
  for (let n = 1; n < MAX_PENDING.jobCount; n += 1) readPromises.push(reader.read(BOUNCE));
  expect(await reader.read(BOUNCE)).toEqual({ kind: 'busy' });
  const settledReads = Promise.allSettled(readPromises);
  await reader.close();
  expect((await settledReads).every(({ status }) => status === 'rejected')).toBe(true);
  await expect(reader.read(BOUNCE)).rejects.toThrow('closed');

  const otherReader = createRig().reader;
  const largeReport = Buffer.alloc(MAX_PENDING.bytes);
  const firstRead = otherReader.read(largeReport);
  expect(await otherReader.read(BOUNCE)).toEqual({ kind: 'busy' });
  expect(await firstRead).toMatchObject({ kind: 'read' });
  expect(await otherReader.read(BOUNCE)).toMatchObject({ kind: 'read' });
});

test('a report is refused if its thread cannot be started, and the next one is read', async () => {
  let isBroken = true;
  const prepareThread = () => {
    if (isBroken) throw new Error('no thread');
  };
  const reader = createReportReader({ clock: systemClock, prepareThread, onError: () => undefined });
  onTestFinished(() => reader.close());
  await expect(reader.read(BOUNCE)).rejects.toThrow('no thread');
  isBroken = false;
  expect(await reader.read(BOUNCE)).toMatchObject({
    kind: 'read',
    value: [{ kind: 'bounce', failure: { class: 'hard' } }],
  });
});

/** The thread that reads reports: a report that costs too much time or memory does not affect other reports. */
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createReportReader, MAX_PENDING, READ_TIMEOUT_MS } from '../../../src/feedback/report-reader.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const HOSTILE = new URL('../../rig/hostile-report-reader-thread.ts', import.meta.url);
const BOUNCE = Buffer.from(
  'From: MAILER-DAEMON@relay.example\r\nSubject: Undelivered Mail\r\n\r\n<a@b.example>: no such user',
);

function rig() {
  const clock = createVirtualClock(Date.now());
  const faults: string[] = [];
  const reader = createReportReader({
    clock,
    beforeThread: () => undefined,
    onError: (_, error) => faults.push(String(error)),
    threadModule: HOSTILE,
  });
  onTestFinished(() => reader.close());
  return { clock, reader, faults };
}

test('a report that exceeds the timeout is too expensive, and the reports after it are read', async () => {
  const { clock, reader, faults } = rig();
  // The thread has started, so the clock can advance.
  await reader.read(BOUNCE);
  const hostile = reader.read(Buffer.from('spin'));
  const waiting = reader.read(BOUNCE);
  let over = false;
  void hostile.then(() => {
    over = true;
  });
  await expect
    .poll(async () => {
      await clock.advance(READ_TIMEOUT_MS / 2);
      return over;
    })
    .toBe(true);
  expect(await hostile).toEqual({ kind: 'too-expensive' });
  expect(await waiting).toMatchObject({ kind: 'read', events: [{ kind: 'bounce', recipient: 'a@b.example' }] });
  expect(faults).toEqual([]);
});

test('a report that exhausts the memory of the thread is too expensive, and the next report is read', async () => {
  const { reader, faults } = rig();
  expect(await reader.read(Buffer.from('exhaust'))).toEqual({ kind: 'too-expensive' });
  expect(await reader.read(BOUNCE)).toMatchObject({ kind: 'read', events: [{ kind: 'bounce' }] });
  expect(faults).toHaveLength(1);
});

test('waiting reports are bounded in number and bytes, and a further read returns busy at once', async () => {
  const { reader } = rig();
  const reads = [reader.read(Buffer.from('spin'))];
  for (let n = 1; n < MAX_PENDING.reports; n += 1) reads.push(reader.read(BOUNCE));
  expect(await reader.read(BOUNCE)).toEqual({ kind: 'busy' });
  const settled = Promise.allSettled(reads);
  await reader.close();
  expect((await settled).every(({ status }) => status === 'rejected')).toBe(true);
  await expect(reader.read(BOUNCE)).rejects.toThrow('closed');

  const other = rig().reader;
  const large = Buffer.alloc(MAX_PENDING.bytes);
  const first = other.read(large);
  expect(await other.read(BOUNCE)).toEqual({ kind: 'busy' });
  expect(await first).toMatchObject({ kind: 'read' });
  expect(await other.read(BOUNCE)).toMatchObject({ kind: 'read' });
});

test('the default thread reads a report', async () => {
  const reader = createReportReader({ clock: systemClock, beforeThread: () => undefined, onError: () => undefined });
  onTestFinished(() => reader.close());
  expect(await reader.read(BOUNCE)).toMatchObject({
    kind: 'read',
    events: [{ kind: 'bounce', mailboxMissing: true }],
  });
});

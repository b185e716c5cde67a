import { expect, test } from 'vitest';
import { countMessages } from '../../../src/operations/message-search.ts';
import { changeMessages } from '../../../src/operations/messages.ts';
import { createMessage } from '../../rig/messages.ts';
import { createOperationRig, type OperationRig } from './operation-rig.ts';

async function runAll(rig: OperationRig, input: Readonly<Record<string, string>>) {
  const total = { done: 0, refused: 0, batches: 0 };
  for (let cursor: string | null = ''; cursor !== null; ) {
    const rawInput: Readonly<Record<string, string>> = cursor === '' ? input : { ...input, cursor };
    const batch = await rig.performSuccessfully(changeMessages, rawInput);
    total.done += batch.done;
    total.refused += batch.refused;
    total.batches += 1;
    cursor = batch.next;
  }
  return total;
}

test('a run changes every message that matches the filter in batches, and has one audit log entry', async () => {
  const rig = await createOperationRig();
  await rig.store.accept(Array.from({ length: 120 }, (_, index) => createMessage({ acceptedAt: rig.now - index })));
  await rig.store.accept([createMessage({ to: 'other@example.org', acceptedAt: rig.now })]);
  const filter = { domain: 'example.com', state: 'queued' };
  expect(await rig.performSuccessfully(countMessages, filter)).toEqual({ count: 120, isComplete: true });
  expect(await runAll(rig, { ...filter, action: 'cancel' })).toEqual({ done: 120, refused: 0, batches: 3 });
  expect(await rig.listAudit()).toEqual(['cli:tester message.change state=queued domain=example.com']);
  expect(rig.events.filter(({ type }) => type === 'message.cancelled')).toHaveLength(120);
  // The second run resends each message once, and the third run resends no message.
  const endedFilter = { domain: 'example.com', state: 'cancelled', action: 'resend' };
  expect(await runAll(rig, endedFilter)).toMatchObject({ done: 120, refused: 0 });
  expect(await runAll(rig, endedFilter)).toMatchObject({ done: 0, refused: 120 });
  expect(await rig.performSuccessfully(countMessages, filter)).toEqual({ count: 120, isComplete: true });
});

test('a change without a filter is refused, a cursor from a different run is refused, and neither changes a message', async () => {
  const rig = await createOperationRig();
  await rig.store.accept(Array.from({ length: 60 }, (_, index) => createMessage({ acceptedAt: rig.now - index })));
  expect(await rig.perform(changeMessages, { action: 'cancel' })).toMatchObject({ error: { code: 'invalid' } });
  expect(await rig.perform(changeMessages, { action: 'delete', state: 'queued' })).toMatchObject({
    error: { code: 'invalid' },
  });
  const batch = await rig.performSuccessfully(changeMessages, { action: 'retry', state: 'queued' });
  for (const cursor of [batch.next ?? '', '7.abc', (batch.next ?? '').replace(/^\d+/, '99')])
    for (const action of ['cancel', 'resend'])
      expect(await rig.perform(changeMessages, { action, state: 'queued', cursor })).toMatchObject({
        error: { code: 'invalid', field: 'cursor' },
      });
  expect(await rig.performSuccessfully(countMessages, { state: 'queued' })).toEqual({ count: 60, isComplete: true });
});

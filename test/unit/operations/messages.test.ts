import { expect, test } from 'vitest';
import type { Scope } from '../../../src/model/audit.ts';
import { createOperatorMessageId, getIdTimestamp, isMessageId } from '../../../src/model/submission.ts';
import { toAttemptDetails } from '../../../src/operations/message-details.ts';
import { countMessages, exportMessages } from '../../../src/operations/message-search.ts';
import {
  cancelMessage,
  changeMessages,
  explainMessage,
  resendMessage,
  retryMessage,
  showMessage,
} from '../../../src/operations/messages.ts';
import { perform, performDownload } from '../../../src/operations/operation.ts';
import { createAttempt, createMessage } from '../../rig/messages.ts';
import { createOperationRig, type OperationRig } from './operation-rig.ts';

test('a retry and a cancellation publish an event after the commit, and only if they changed a message', async () => {
  const rig = await createOperationRig();
  const message = createMessage();
  await rig.store.accept([message]);
  const at = rig.now;
  await rig.performSuccessfully(retryMessage, { id: message.id });
  await rig.performSuccessfully(cancelMessage, { id: message.id });
  expect(await rig.perform(retryMessage, { id: message.id })).toMatchObject({ error: { code: 'conflict' } });
  expect(await rig.perform(cancelMessage, { id: message.id })).toMatchObject({ error: { code: 'conflict' } });
  expect(await rig.perform(cancelMessage, { id: createMessage().id })).toMatchObject({ error: { code: 'not-found' } });
  expect(rig.events).toEqual([
    { type: 'message.retried', at, id: message.id },
    { type: 'message.cancelled', at, id: message.id, to: message.to },
  ]);
});

test('a token with the scope read sees a message without its body', async () => {
  const rig = await createOperationRig();
  const message = createMessage({ message: 'the secret body' });
  await rig.store.accept([message]);
  const show = async (scope: Scope) => perform(showMessage, { id: message.id }, { ...rig.context, scope });
  for (const scope of ['content', 'full', 'all'] as const)
    expect(await show(scope)).toMatchObject({ value: { id: message.id, message: 'the secret body' } });
  const shown = await show('read');
  expect(shown).toMatchObject({ value: { id: message.id, subject: message.subject, message: null } });
  expect(JSON.stringify(shown)).not.toContain('secret body');
});

test('a message can be resent only in a terminal state, and the resend publishes an event of an accepted message', async () => {
  const rig = await createOperationRig();
  const message = createMessage();
  await rig.store.accept([message]);
  expect(await rig.perform(resendMessage, { id: message.id })).toMatchObject({ error: { code: 'conflict' } });
  expect(await rig.perform(resendMessage, { id: createMessage().id })).toMatchObject({ error: { code: 'not-found' } });
  await rig.performSuccessfully(cancelMessage, { id: message.id });
  const resentMessage = await rig.performSuccessfully(resendMessage, { id: message.id });
  expect(resentMessage).toMatchObject({ resendOf: message.id, state: 'queued' });
  expect(rig.events.at(-1)).toMatchObject({
    type: 'message.accepted',
    id: resentMessage.id,
    state: 'queued',
    keyId: message.keyId,
  });
  expect(await rig.performSuccessfully(showMessage, { id: resentMessage.id })).toMatchObject({
    resendOf: message.id,
    resentAs: [],
  });
  expect(await rig.performSuccessfully(showMessage, { id: message.id })).toMatchObject({
    resendOf: null,
    resentAs: [resentMessage.id],
  });
  const { explanation } = await rig.performSuccessfully(explainMessage, { id: resentMessage.id });
  expect(explanation.join(' ')).toContain(message.id);
});

test('a resend is refused if the domain of the sender is not authenticated', async () => {
  const rig = await createOperationRig({ POSTRIDER_TRANSPORT: 'smtp://relay.example:25' });
  const message = createMessage({ from: 'shop@mail.example.org' });
  await rig.store.accept([message]);
  await rig.performSuccessfully(cancelMessage, { id: message.id });
  expect(await rig.perform(resendMessage, { id: message.id })).toMatchObject({
    error: { code: 'conflict', message: expect.stringContaining('is not authenticated') },
  });
  expect((await rig.store.listAudit(null, 9)).map(({ action }) => action)).toEqual(['message.cancel']);
});

test('a transcript without times is shown without times', () => {
  const { lineOffsetsMs, ...attempt } = createAttempt();
  expect(toAttemptDetails({ ...attempt, lineOffsetsMs: [0, 2] }).transcriptOffsetsMs).toEqual(lineOffsetsMs);
  expect(toAttemptDetails(attempt)).toMatchObject({ transcript: attempt.transcript, transcriptOffsetsMs: null });
  expect(toAttemptDetails({ ...attempt, lineOffsetsMs: [0] }).transcriptOffsetsMs).toBeNull();
});

test('the id of a resent message is a valid message id that contains the time of the resend', () => {
  const id = createOperatorMessageId(Date.UTC(2030, 0, 1), (bytes) => Buffer.alloc(bytes, 0xff));
  expect([isMessageId(id), getIdTimestamp(id)]).toEqual([true, Date.UTC(2030, 0, 1)]);
});

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

test('a cell that a spreadsheet would evaluate begins with an apostrophe, and cells are quoted', async () => {
  const rig = await createOperationRig();
  await rig.store.accept([createMessage({ subject: '=SUM(A1), "b"' })]);
  const pages = await rig.download(exportMessages, {});
  const csv = exportMessages.formatPage(pages.flat() as Parameters<typeof exportMessages.formatPage>[0]);
  expect(csv).toContain(`,"'=SUM(A1), ""b""",`);
});

test('an export ends at its limit with a notice that states the limit, and reads one page at a time', async () => {
  const rig = await createOperationRig();
  await rig.store.accept(Array.from({ length: 2_100 }, (_, index) => createMessage({ acceptedAt: rig.now + index })));
  let readCount = 0;
  const context = {
    ...rig.context,
    store: {
      ...rig.context.store,
      searchMessages: (...args: Parameters<typeof rig.store.searchMessages>) => {
        readCount += 1;
        return rig.store.searchMessages(...args);
      },
    },
  };
  const download = await performDownload(exportMessages, { limit: '1500' }, context);
  if (!download.ok) throw new Error(download.error.message);
  const pages = download.value[Symbol.asyncIterator]();
  expect((await pages.next()).value).toHaveLength(1_000);
  expect(readCount).toBe(1);
  expect((await pages.next()).value).toHaveLength(500);
  expect((await pages.next()).value).toEqual([{ notice: expect.stringContaining('1,500 messages') }]);
  expect((await pages.next()).done).toBe(true);
  const completeDownload = await rig.download(exportMessages, {});
  expect(completeDownload.flat()).toHaveLength(2_100);
});

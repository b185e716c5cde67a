import { expect, test } from 'vitest';
import type { Scope } from '../../../src/model/audit.ts';
import { createOperatorMessageId, getIdTimestamp, isMessageId } from '../../../src/model/submission.ts';
import { toAttemptDetails } from '../../../src/operations/message-details.ts';
import {
  cancelMessage,
  explainMessage,
  resendMessage,
  retryMessage,
  showMessage,
} from '../../../src/operations/messages.ts';
import { perform } from '../../../src/operations/operation.ts';
import { createAttempt, createMessage } from '../../rig/messages.ts';
import { createOperationRig } from './operation-rig.ts';

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

/** Tests the events of operations on messages. */
import { expect, test } from 'vitest';
import { cancelMessage, retryMessage } from '../../../src/operations/messages.ts';
import { newMessage } from '../../rig/messages.ts';
import { operationRig } from './operation-rig.ts';

test('a retry and a cancellation are published after their commit, and only if they changed something', async () => {
  const rig = await operationRig();
  const mail = newMessage();
  await rig.store.accept([mail]);
  const at = rig.now;
  await rig.performOk(retryMessage, { id: mail.id });
  await rig.performOk(cancelMessage, { id: mail.id });
  expect(await rig.perform(retryMessage, { id: mail.id })).toMatchObject({ error: { code: 'conflict' } });
  expect(await rig.perform(cancelMessage, { id: mail.id })).toMatchObject({ error: { code: 'conflict' } });
  expect(await rig.perform(cancelMessage, { id: newMessage().id })).toMatchObject({ error: { code: 'not-found' } });
  expect(rig.events).toEqual([
    { type: 'message.retried', at, id: mail.id },
    { type: 'message.cancelled', at, id: mail.id },
  ]);
});

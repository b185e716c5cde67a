import { expect, test } from 'vitest';
import { submitAccepted } from '../rig/service.ts';
import { startWebhookReceiver } from '../rig/webhook-receiver.ts';
import { createScenario, sendRequest, signInToService } from './running-service.ts';

interface ShownMessage {
  readonly state: string;
  readonly events: readonly { readonly type: string }[];
}

const SETTINGS = { POSTRIDER_WEBHOOK_TARGETS: 'any' };
const rig = createScenario();
const folder = rig.createFolder();
const service = await rig.serve(folder, SETTINGS);
const session = await signInToService(service);

const submitTo = (to: string) => submitAccepted(service.publicUrl, service.key, { to });

async function callApi<T>(method: string, path: string, body?: object): Promise<T> {
  const headers = { ...session, Origin: service.operatorUrl };
  const init =
    body === undefined
      ? { method, headers }
      : { method, headers: { ...headers, 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  return JSON.parse((await sendRequest(`${service.operatorUrl}/api/v1${path}`, init)).text) as T;
}
const addRule = (rule: object) => callApi('POST', '/inbox/rules', rule);
const listRules = () => callApi<readonly object[]>('GET', '/inbox/rules');
const showMessage = (id: string) => callApi<ShownMessage>('GET', `/messages/${id}`);
test('a rule with the reply of an unknown mailbox bounces the message and suppresses the recipient, and a webhook reports the bounce', async () => {
  const receiver = await startWebhookReceiver();
  try {
    await callApi('POST', '/webhooks', { url: receiver.url, events: 'message.bounced' });
    await addRule({ match: 'Gone@gone.example', code: 550, enhanced: '5.1.1', text: 'No such user' });
    const id = await submitTo('gone@gone.example');
    await expect.poll(() => receiver.receivedWebhooks.length).toBe(1);
    expect(JSON.parse(receiver.receivedWebhooks[0]?.body ?? '')).toMatchObject({
      type: 'message.bounced',
      data: { id, state: 'bounced', class: 'hard', category: 'mailbox-unknown', diagnostic: '550 5.1.1 No such user' },
    });
    expect((await showMessage(id)).state).toBe('bounced');
    const suppressedMessageId = await submitTo('gone@gone.example');
    await expect.poll(async () => (await showMessage(suppressedMessageId)).state).toBe('suppressed');
    expect((await listRules())[0]).toMatchObject({
      lastUse: { message: id, recipient: 'gone@gone.example', suppressed: ['default'] },
    });
    await callApi('DELETE', '/accounts/default/suppressions/gone@gone.example');
    const deliveredMessageId = await submitTo('gone@gone.example');
    await expect.poll(async () => (await showMessage(deliveredMessageId)).state).toBe('delivered');
  } finally {
    await receiver.close();
  }
});

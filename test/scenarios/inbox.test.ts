import { beforeAll, expect, test } from 'vitest';
import { runJsonCommand, submitAccepted } from '../rig/service.ts';
import type { SessionHeaders } from '../rig/session.ts';
import { startWebhookReceiver } from '../rig/webhook-receiver.ts';
import { createScenario, type RunningService, sendRequest, signInToService } from './running-service.ts';

interface ShownMessage {
  readonly state: string;
  readonly events: readonly { readonly type: string }[];
}

const SETTINGS = { POSTRIDER_WEBHOOK_TARGETS: 'any' };
const rig = createScenario();
let folder = '';
let service: RunningService;
let session: SessionHeaders;

beforeAll(async () => {
  folder = rig.createFolder();
  service = await rig.serve(folder, SETTINGS);
  session = await signInToService(service);
});

const runJson = <T>(...args: readonly string[]) => runJsonCommand<T>(folder, args, SETTINGS);
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
test('a captured message with hostile content is returned as data, its HTML cannot run code, and it is returned only with authentication', async () => {
  const subject = '"><img src=x onerror=alert(1)>{"__proto__":1}\u2028\u2029 {{constructor}} #{7*7} <!--';
  const html = `<html><body><link rel="preconnect" href="https://evil.example/">${subject}</body></html>`;
  const id = await submitAccepted(service.publicUrl, service.key, { subject, message: `<!doctype html>${html}` });
  const fetchInbox = (path: string, headers: Record<string, string> = session) =>
    sendRequest(`${service.operatorUrl}/api/v1/inbox${path}`, { headers });
  await expect.poll(async () => (await fetchInbox(`/${id}`)).status).toBe(200);
  const [listResponse, messageResponse] = [await fetchInbox(''), await fetchInbox(`/${id}`)];
  expect(JSON.parse(listResponse.text)).toMatchObject({ messages: [{ id, subject }] });
  expect(JSON.parse(messageResponse.text)).toMatchObject({ id, subject, html: true });
  for (const { headers } of [listResponse, messageResponse])
    expect(Object.fromEntries(headers)).toMatchObject({
      ...{ 'content-type': 'application/json; charset=utf-8', 'x-content-type-options': 'nosniff' },
    });
  const htmlResponse = await fetchInbox(`/${id}/html`);
  expect(Object.fromEntries(htmlResponse.headers)).toMatchObject({
    'content-security-policy':
      "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
    'content-type': 'text/html; charset=utf-8',
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-store',
  });
  expect(htmlResponse.text.trimEnd()).toBe(
    `<!doctype html><base target="_blank">${html.replaceAll('<link', '<x-link')}`,
  );
  expect(Object.fromEntries((await fetchInbox(`/${id}/source`)).headers)).toMatchObject({
    'content-security-policy': "default-src 'none'; sandbox",
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
  });

  const { token } = await runJson<{ token: string }>('token', 'create', 'inbox');
  for (const path of ['', `/${id}`, `/${id}/source`, `/${id}/html`]) {
    expect((await fetchInbox(path, { Authorization: `Bearer ${token}` })).status).toBe(200);
    const refused = await fetchInbox(path, { Authorization: `Bearer ${token}x` });
    expect([path, refused.status, refused.text.includes('constructor')]).toEqual([path, 401, false]);
  }
});

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

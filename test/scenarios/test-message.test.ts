/** Tests the operation that sends a test message through the public listener. The listener of the tests uses HTTPS. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { runJsonCommand } from '../rig/service.ts';
import { getCertificate } from '../rig/smtp-certificate.ts';
import { createScenario, type RunningService } from './running-service.ts';

interface TestOutcome {
  readonly id: string | null;
  readonly request: { readonly url: string; readonly body: string };
  readonly response: { readonly status: number; readonly body: string };
}

const rig = createScenario();
const folder = rig.createFolder();
let service: RunningService;
let token = '';

beforeAll(async () => {
  const { cert, key } = await getCertificate('mail.example');
  writeFileSync(join(folder, 'cert.pem'), cert);
  writeFileSync(join(folder, 'key.pem'), key, { mode: 0o600 });
  service = await rig.serve(folder, { POSTRIDER_TLS_CERT: 'cert.pem', POSTRIDER_TLS_KEY: 'key.pem' });
  ({ token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'ci']));
});

async function callApi<T>(method: string, path: string, body?: object): Promise<{ status: number; body: T }> {
  const response = await fetch(`${service.operatorUrl}/api/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as T };
}

const FIELDS = { to: 'ada@example.com', from: 'shop@example.org', subject: 'Hello', message: 'one\r\n\ttwo\n' };
const sendTest = (input: object) => callApi<TestOutcome>('POST', '/messages/test', { account: 'default', ...input });

test('the public listener accepts a test message, the operation returns the request with a shortened key, and the key is revoked', async () => {
  const { status, body } = await sendTest(FIELDS);
  expect(status).toBe(200);
  expect(body).toMatchObject({
    request: {
      method: 'POST',
      url: `${service.publicUrl}/api/v1/send-mail`,
      headers: [
        { name: 'Authorization', value: expect.stringMatching(/^pr_.{7}…$/) },
        { name: 'Content-Type', value: 'application/json' },
      ],
    },
    response: { status: 201, body: JSON.stringify({ result: { id: body.id } }) },
  });
  expect(JSON.parse(body.request.body)).toEqual(FIELDS);
  expect((await callApi('GET', `/messages/${body.id}`)).body).toMatchObject({ to: FIELDS.to, message: FIELDS.message });
  const { body: keys } = await callApi<readonly { name: string; state: string }[]>('GET', '/accounts/default/keys');
  expect(keys.filter(({ name }) => name === 'test message')).toMatchObject([{ state: 'revoked' }]);
  const { body: entries } = await callApi<readonly object[]>('GET', '/audit?limit=2');
  expect(entries).toMatchObject([
    { actor: 'token:ci', action: 'key.revoke' },
    { actor: 'token:ci', action: 'key.create', target: 'default' },
  ]);
});

test('for a refused test message, the operation returns the response that a client would receive', async () => {
  expect((await sendTest({ to: 'ada', from: 'shop@example.org', subject: 's', message: 'm' })).body).toMatchObject({
    id: null,
    response: { status: 400, body: '{"result":"error","message":"Invalid email address: to"}' },
  });
  expect((await sendTest({ to: 'ada@example.com', from: '', message: 'm' })).body.response).toMatchObject({
    status: 400,
    body: '{"result":"error","message":"Missing required fields: from, subject"}',
  });
  await callApi('POST', '/accounts', { name: 'locked' });
  await callApi('POST', '/accounts/locked/lock', { reason: 'unpaid' });
  expect((await sendTest({ ...FIELDS, account: 'locked' })).body.response).toMatchObject({
    status: 401,
    body: '{"result":"error","message":"Account locked"}',
  });
});

test('a repeated test message with the same idempotency key returns the id of the first message', async () => {
  const input = { ...FIELDS, idempotencyKey: 'test-1' };
  const firstOutcome = await sendTest(input);
  expect(firstOutcome.body.response.status).toBe(201);
  expect((await sendTest(input)).body).toMatchObject({
    id: firstOutcome.body.id,
    response: { headers: expect.arrayContaining([{ name: 'Idempotency-Replayed', value: 'true' }]) },
  });
});

test('an invalid idempotency key is refused by the public listener, or by the operation if no header can contain the key', async () => {
  expect((await sendTest({ ...FIELDS, idempotencyKey: 'two words' })).body.response.status).toBe(400);
  expect(await sendTest({ ...FIELDS, idempotencyKey: 'snowman ☃' })).toMatchObject({
    status: 400,
    body: { code: 'invalid', field: 'idempotencyKey' },
  });
});

test('the operation refuses a test message for an unknown account with 404', async () => {
  expect(await sendTest({ ...FIELDS, account: 'nobody' })).toMatchObject({
    status: 404,
    body: { code: 'not-found', field: 'account' },
  });
});

test.each([
  ['subject', 'two\nlines'],
  ['message', 'a NUL \u0000 in a text'],
  ['message', 'an escape \u001b[31m in a text'],
])('a control character in the %s of a test message is refused', async (field, value) => {
  expect(await sendTest({ ...FIELDS, [field]: value })).toMatchObject({
    status: 400,
    body: { code: 'invalid', field, message: `${field} must not contain control characters` },
  });
});

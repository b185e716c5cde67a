import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import PostalMime from 'postal-mime';
import { expect, test } from 'vitest';
import { runJsonCommand, submit, submitAccepted } from '../rig/service.ts';
import { getCertificate } from '../rig/smtp-certificate.ts';
import {
  countValues,
  createScenario,
  type RunningService,
  readMessageId,
  sendRequest,
  signInToService,
} from './running-service.ts';

const rig = createScenario();
const JSON_TYPE = { 'Content-Type': 'application/json' };
const VALID_REQUEST = {
  to: 'rita@example.com',
  from: 'shop@example.org',
  subject: 'Your receipt',
  message: 'Thank you.',
};

const folder = rig.createFolder();
const service = await rig.serve(folder);
const session = await signInToService(service);

interface Request {
  readonly method?: string;
  readonly path?: string;
  readonly key?: string;
  readonly type?: string;
  readonly body?: unknown;
}

function sendTo(at: RunningService, { method = 'POST', path = '/api/v1/send-mail', ...request }: Request) {
  const { key = at.key, type = 'application/json', body = VALID_REQUEST } = request;
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return sendRequest(at.publicUrl + path, {
    method,
    headers: { Authorization: key, 'Content-Type': type },
    ...(method === 'GET' ? {} : { body: text }),
  });
}

// test/unit/http checks every refusal.
test.each<readonly [request: Request, status: number, message: string]>([
  [{ path: '/nowhere' }, 404, 'Not found'],
  [{ method: 'GET' }, 405, 'Method not allowed'],
  [{ key: `pr_${'A'.repeat(43)}` }, 401, 'Invalid API key'],
  [{ type: 'text/plain' }, 400, 'Content-Type must be application/json'],
  [{ body: ' '.repeat(1_048_577) }, 400, 'Request body too large'],
  [{ body: '{"to":' }, 400, 'Invalid JSON payload'],
  [{ body: { to: null, from: '', subject: 'x' } }, 400, 'Missing required fields: to, from, message'],
  [{ body: { ...VALID_REQUEST, to: ['rita@example.com'] } }, 400, 'Fields must be strings: to'],
  [{ body: { ...VALID_REQUEST, to: 'a@example.com\r\nBcc: b@example.com' } }, 400, 'Invalid email address: to'],
])(
  'the request %j receives the specified status and message, and stores no message',
  async (request, status, message) => {
    const { volumeUsed } = await runJsonCommand<{ volumeUsed: number }>(folder, ['account', 'show', 'default']);
    const answer = await sendTo(service, request);
    expect([answer.status, answer.text]).toEqual([status, JSON.stringify({ result: 'error', message })]);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect([answer.headers.get('server'), answer.headers.get('x-powered-by')]).toEqual([null, null]);
    expect(answer.headers.get('allow')).toBe(status === 405 ? 'POST' : null);
    expect(await runJsonCommand(folder, ['account', 'show', 'default'])).toMatchObject({ volumeUsed });
  },
);

test.each([
  ['text', `.dot\n..dots\r\n\tTäb 🚀 ${'lang'.repeat(400)}\nFrom here\n`, null],
  ['HTML', '\n <!DOCTYPE HTML><html><p>Hé</p></html>', 'Hé'],
])('a message with any Unicode text arrives unchanged after decoding: %s', async (_name, message, textOfHtml) => {
  const subject = '  Ünïcödé 🚀 =?utf-8?q?no?=  ';
  const id = await submitAccepted(service.publicUrl, service.key, { subject, message });
  const path = `${service.operatorUrl}/api/v1/inbox/${id}/source`;
  const fetchSource = () => fetch(path, { headers: session });
  await expect.poll(async () => (await fetchSource()).status).toBe(200);
  const source = Buffer.from(await (await fetchSource()).arrayBuffer());
  const { text, html, subject: parsedSubject } = await PostalMime.parse(source);
  const content = textOfHtml === null ? text : html;
  expect(content?.replaceAll('\r\n', '\n').trim()).toBe(message.replaceAll('\r\n', '\n').trim());
  expect([textOfHtml === null ? html : text?.trim(), parsedSubject?.trim()]).toEqual([
    textOfHtml ?? undefined,
    subject.trim(),
  ]);
  const lines = source.toString('latin1').split('\r\n');
  expect(lines.filter((line) => line.length > 998 || /[\r\n]/.test(line))).toEqual([]);
});

test('fifty concurrent requests with the same idempotency key and payload create one message, and a repeated request after a restart creates none', async () => {
  const headers = { 'Idempotency-Key': 'order-17' };
  const separateFolder = rig.createFolder();
  const firstService = await rig.serve(separateFolder);
  const submitWithIdempotencyKey = async (target: RunningService, overrides = {}) => {
    const answer = await submit(target.publicUrl, firstService.key, overrides, headers);
    return { status: answer.status, text: await answer.text(), replayed: answer.headers.get('idempotency-replayed') };
  };
  const answers = await Promise.all(Array.from({ length: 50 }, () => submitWithIdempotencyKey(firstService)));
  expect(countValues(answers.map(({ status }) => status))).toEqual({ 201: 50 });
  expect(new Set(answers.map(({ text }) => readMessageId(text))).size).toBe(1);
  expect(countValues(answers.map(({ replayed }) => String(replayed)))).toEqual({ null: 1, true: 49 });
  await firstService.stop();
  const restartedService = await rig.serve(separateFolder);
  expect(await submitWithIdempotencyKey(restartedService)).toEqual({
    ...{ status: 201, text: answers[0]?.text, replayed: 'true' },
  });
  expect(await submitWithIdempotencyKey(restartedService, { message: 'Other' })).toMatchObject({
    status: 400,
    text: '{"result":"error","message":"Idempotency-Key was already used with another payload"}',
  });
  expect(await runJsonCommand(separateFolder, ['account', 'show', 'default'])).toMatchObject({ volumeUsed: 1 });
  expect(await runJsonCommand(separateFolder, ['message', 'list'])).toHaveLength(1);
  await restartedService.stop();
});

test('the public listener uses HTTPS, and a test message is sent over HTTPS with its certificate', async () => {
  const secureFolder = rig.createFolder();
  const settings: Record<string, string> = {};
  for (const [name, content] of Object.entries(await getCertificate('mail.example.org'))) {
    settings[`POSTRIDER_TLS_${name.toUpperCase()}`] = join(secureFolder, `${name}.pem`);
    writeFileSync(join(secureFolder, `${name}.pem`), content, { mode: 0o600 });
  }
  const secureService = await rig.serve(secureFolder, settings);
  await expect(fetch(secureService.publicUrl.replace('https:', 'http:'))).rejects.toThrow();
  const answer = await sendRequest(`${secureService.operatorUrl}/api/v1/messages/test`, {
    method: 'POST',
    headers: { ...(await signInToService(secureService)), Origin: secureService.operatorUrl, ...JSON_TYPE },
    body: JSON.stringify({ account: 'default', ...VALID_REQUEST }),
  });
  expect(JSON.parse(answer.text)).toMatchObject({
    request: { url: `${secureService.publicUrl}/api/v1/send-mail` },
    response: { status: 201 },
  });
  expect(secureService.publicUrl).toMatch(/^https:/);
  await secureService.stop();
});

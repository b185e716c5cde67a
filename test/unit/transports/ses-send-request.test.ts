import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { SESv2Client, SendEmailCommand } from '@aws-sdk/client-sesv2';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import type { SesMessage } from '../../../src/transports/ses/client.ts';
import { createSesClient } from '../../../src/transports/ses/client.ts';
import { CREDENTIALS, stubCredentials } from '../../rig/ses-fake.ts';

stubCredentials();

interface ReceivedRequest {
  readonly line: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}
interface Answer {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

async function startRecorder() {
  const requests: ReceivedRequest[] = [];
  const recorder = { requests, endpoint: '', answer: {} as Answer };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      requests.push({ line: `${request.method} ${request.url}`, headers: request.headers, body });
      const { status = 200, headers = {}, body: answerBody = '{"MessageId":"id-1"}' } = recorder.answer;
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(answerBody);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  recorder.endpoint = `http://127.0.0.1:${address !== null && typeof address === 'object' ? address.port : 0}`;
  return recorder;
}

async function createClient(endpoint: string, clock = systemClock) {
  const client = await createSesClient({ region: 'eu-west-1', endpoint, configurationSet: null }, 4, clock);
  onTestFinished(() => client.close());
  return client;
}

const MESSAGE: SesMessage = {
  id: '01a20553-c3b4-7000-b949-24b56b662c23',
  to: '"a\\"b"@example.com',
  data: Buffer.from('Subject: a\r\n\r\n\u00fcber "quoted"\r\n'),
  configurationSet: 'news',
};
const signal = () => new AbortController().signal;

function computeAuthorization({ line, headers, body }: ReceivedRequest, region: string, secret: string): string {
  const [, id = '', signedNames = ''] =
    /Credential=([^/]+)\/.*SignedHeaders=([^,]+)/.exec(headers.authorization ?? '') ?? [];
  const [method, path] = line.split(' ');
  const time = String(headers['x-amz-date']);
  const scope = `${time.slice(0, 8)}/${region}/ses/aws4_request`;
  const computeSha256 = (text: string) => createHash('sha256').update(text).digest('hex');
  const fields = signedNames.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const canonicalRequest = [method, path, '', fields.join(''), signedNames, computeSha256(body)].join('\n');
  const key = [time.slice(0, 8), region, 'ses', 'aws4_request'].reduce<Buffer>(
    (previous, part) => createHmac('sha256', previous).update(part).digest(),
    Buffer.from(`AWS4${secret}`),
  );
  const text = ['AWS4-HMAC-SHA256', time, scope, computeSha256(canonicalRequest)].join('\n');
  const signature = createHmac('sha256', key).update(text).digest('hex');
  return `AWS4-HMAC-SHA256 Credential=${id}/${scope}, SignedHeaders=${signedNames}, Signature=${signature}`;
}

test('a request has the request line, the members and the header fields of a request of the SDK', async () => {
  const recorder = await startRecorder();
  const client = await createClient(recorder.endpoint);
  expect(await client.send(MESSAGE, signal())).toBe('id-1');
  const sdk = new SESv2Client({ region: 'eu-west-1', endpoint: recorder.endpoint, maxAttempts: 1 });
  onTestFinished(() => sdk.destroy());
  await sdk.send(
    new SendEmailCommand({
      Destination: { ToAddresses: [MESSAGE.to] },
      Content: { Raw: { Data: MESSAGE.data } },
      EmailTags: [{ Name: 'postrider-id', Value: MESSAGE.id }],
      ConfigurationSetName: 'news',
    }),
  );
  const [own, expected] = recorder.requests;
  expect(own?.line).toBe(expected?.line);
  expect(JSON.parse(own?.body ?? '')).toEqual(JSON.parse(expected?.body ?? ''));
  const listFields = (headers: IncomingHttpHeaders | undefined) =>
    Object.keys(headers ?? {}).filter((name) => !name.startsWith('amz-sdk-') && name !== 'connection');
  expect(listFields(own?.headers).sort()).toEqual(listFields(expected?.headers).sort());
  for (const name of ['content-type', 'host']) expect(own?.headers[name]).toBe(expected?.headers[name]);
});

test('independent code accepts the signature, with and without a session token', async () => {
  const recorder = await startRecorder();
  await (await createClient(recorder.endpoint)).send(MESSAGE, signal());
  vi.stubEnv('AWS_SESSION_TOKEN', 'session-token');
  await (await createClient(recorder.endpoint)).send({ ...MESSAGE, configurationSet: null }, signal());
  for (const request of recorder.requests)
    expect(request.headers.authorization).toBe(
      computeAuthorization(request, 'eu-west-1', CREDENTIALS.AWS_SECRET_ACCESS_KEY),
    );
  expect(recorder.requests.map(({ headers }) => headers['x-amz-security-token'])).toEqual([undefined, 'session-token']);
  expect(recorder.requests[1]?.headers.authorization).toContain('x-amz-security-token');
  expect(Object.keys(JSON.parse(recorder.requests[1]?.body ?? ''))).not.toContain('ConfigurationSetName');
});

test('the time of the signature follows the clock of the provider', async () => {
  const recorder = await startRecorder();
  const clock = { ...systemClock, now: () => Date.UTC(2030, 0, 1, 12) };
  recorder.answer = { status: 403, headers: { date: new Date(Date.UTC(2030, 0, 1, 13)).toUTCString() }, body: '{}' };
  const client = await createClient(recorder.endpoint, clock);
  await expect(client.send(MESSAGE, signal())).rejects.toMatchObject({ $metadata: { httpStatusCode: 403 } });
  recorder.answer = {};
  await client.send(MESSAGE, signal());
  expect(recorder.requests.map(({ headers }) => headers['x-amz-date'])).toEqual([
    '20300101T120000Z',
    '20300101T130000Z',
  ]);
});

test.each<[string, Answer, string, string]>([
  [
    'in the header field',
    { headers: { 'x-amzn-errortype': 'MessageRejected' }, body: '{"message":"no"}' },
    'MessageRejected',
    'no',
  ],
  [
    'with a URL',
    { headers: { 'x-amzn-errortype': 'MessageRejected:http://a.example/' }, body: '{"Message":"no"}' },
    'MessageRejected',
    'no',
  ],
  [
    'in the body, with a namespace',
    { body: '{"__type":"com.amazonaws.sesv2#NotFoundException","message":"no"}' },
    'NotFoundException',
    'no',
  ],
  ['nowhere', { body: '{"message":"no"}' }, 'UnknownError', 'no'],
  ['nowhere if the body is not JSON', { body: '<html>busy</html>' }, 'UnknownError', '<html>busy</html>'],
  ['nowhere if the JSON is not an object', { body: '[null]' }, 'UnknownError', '[null]'],
])('the name of an error is found %s', async (_place, answer, name, message) => {
  const recorder = await startRecorder();
  recorder.answer = { status: 400, ...answer };
  const client = await createClient(recorder.endpoint);
  await expect(client.send(MESSAGE, signal())).rejects.toMatchObject({
    name,
    message,
    wasSent: true,
    $metadata: { httpStatusCode: 400 },
  });
});

import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { expect, test } from 'vitest';
import { DISCONNECTS, sendAndDisconnect, type Target } from '../rig/hostile-peer.ts';
import { createSeededRandom } from '../rig/random.ts';
import { IS_LONG_RUN } from '../rig/sample.ts';
import { runJsonCommand, submitAccepted } from '../rig/service.ts';
import { getCertificate } from '../rig/smtp-certificate.ts';
import { TOPIC } from '../rig/sns.ts';
import { createScenario, type ServiceProcess } from './running-service.ts';

const rig = createScenario();
const SAMPLE_COUNT = 1;
const MAX_CONCURRENT_TASKS = 24;

function listDisconnectPositions(length: number, random: () => number): readonly number[] {
  if (IS_LONG_RUN) return Array.from({ length: length + 1 }, (_, position) => position);
  return [0, length, ...Array.from({ length: SAMPLE_COUNT }, () => 1 + Math.floor(random() * (length - 1)))];
}

const createHttpRequest = (line: string, headers: readonly string[] = [], body = '') =>
  `${line} HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers.map((header) => `${header}\r\n`).join('')}\r\n${body}`;

function createRequests(authorization: string, path: string): Readonly<Record<string, string>> {
  const body = JSON.stringify({ to: 'rita@example.com', from: 'shop@example.org', subject: 'x', message: 'y' });
  const createPost = (headers: readonly string[], content = body) =>
    createHttpRequest(`POST ${path}`, ['Content-Type: application/json', ...headers], content);
  const length = `Content-Length: ${body.length}`;
  const post = createPost([authorization, length]);
  const get = createHttpRequest('GET /healthz');
  return {
    get,
    post,
    'post without a key': createPost([length]),
    connect: 'CONNECT x:1 HTTP/1.1\r\n\r\n',
    'connect after other requests': `${post}${get}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`,
    upgrade: createHttpRequest('GET /', ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: eA==']),
    'expect continue': createPost([authorization, length, 'Expect: 100-continue']),
    'expect tea': createPost([authorization, length, 'Expect: tea']),
    chunked: createPost([authorization, 'Transfer-Encoding: chunked'], `5\r\n{"to"\r\n3\r\n:1}\r\n0\r\n\r\n`),
    pipelined: get.repeat(12) + post.repeat(3),
    malformed: 'GET / HTTP/9.9\r\n: \0\r\n\r\n',
    'malformed after a valid request': `${post}garbage\r\n\r\n`,
    'HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0',
  };
}

const SMTP_SESSION =
  'EHLO a.example\r\nMAIL FROM:<>\r\nRCPT TO:<postmaster@bounces.example.org>\r\nDATA\r\nSubject: x\r\n\r\nx\r\n.\r\nQUIT\r\n';

async function recordClientHello(): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  connectTls({ port, host: '127.0.0.1', servername: 'localhost' }).on('error', () => undefined);
  const [socket] = (await once(server, 'connection')) as [Socket];
  socket.on('error', () => undefined);
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  server.close();
  return bytes;
}

async function disconnectEverywhere(
  target: Target,
  payloads: Readonly<Record<string, string | Buffer>>,
  waitForResponse = false,
): Promise<void> {
  const random = createSeededRandom(12);
  const tasks = Object.values(payloads).flatMap((payload) => {
    const bytes = Buffer.from(payload as string, 'latin1');
    return listDisconnectPositions(bytes.length, random).flatMap((position) =>
      DISCONNECTS.map(
        (disconnectKind) => () => sendAndDisconnect(target, bytes, position, disconnectKind, waitForResponse),
      ),
    );
  });
  const runTasks = async (): Promise<void> => {
    for (let task = tasks.pop(); task !== undefined; task = tasks.pop()) await task();
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_TASKS }, runTasks));
}

const getPort = (address: string | null): number => Number(address?.split(':').at(-1));

async function checkListeners(service: ServiceProcess, secure: boolean): Promise<void> {
  expect(service.child.exitCode).toBe(null);
  expect(service.stderr()).not.toMatch(/uncaught|unhandled|ECONNRESET|EPIPE|TypeError/i);
  if (!secure) expect((await fetch(`${service.publicUrl}/healthz`)).status).toBe(200);
  expect((await fetch(`${service.operatorUrl}/healthz`)).status).toBe(200);
  const socket = connect(getPort(service.feedback.smtp), '127.0.0.1');
  const [greeting] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  expect(greeting.toString()).toMatch(/^220 |^421 /);
}

async function startService(secure: boolean) {
  const folder = rig.createFolder();
  const settings: Record<string, string> = {
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.org',
    POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0',
    POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
    POSTRIDER_SES_TOPICS: TOPIC,
  };
  if (secure) {
    for (const [name, content] of Object.entries(await getCertificate())) {
      writeFileSync(join(folder, `${name}.pem`), content);
      settings[`POSTRIDER_TLS_${name.toUpperCase()}`] = join(folder, `${name}.pem`);
    }
  }
  return { folder, settings, service: await rig.serveProcess(folder, settings) };
}

test.each([
  ['plain', false],
  ['TLS', true],
])('no reset, half-close or close after any byte stops the service or a listener: %s', async (_name, secure) => {
  const { folder, settings, service } = await startService(secure);
  const { key, feedback } = service;
  const smtp = getPort(feedback.smtp);
  const events = Number(new URL(feedback.http?.split(', ')[0] ?? '').port);
  const publicPort = getPort(service.publicUrl);
  const payloads = createRequests(`Authorization: ${key}`, '/api/v1/send-mail');
  await disconnectEverywhere({ port: publicPort, tls: secure }, payloads);
  const firstBytesByProtocol = { hello: await recordClientHello(), plain: createHttpRequest('GET /') };
  for (const port of [publicPort, events]) await disconnectEverywhere({ port, tls: false }, firstBytesByProtocol);
  await checkListeners(service, secure);

  const { token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'ci'], settings);
  const authorizationHeader = `Authorization: Bearer ${token}`;
  const operator = { port: getPort(service.operatorUrl), tls: false };
  if (!secure || IS_LONG_RUN) {
    const csv = 'address\nada@example.com\n';
    const longRequests = {
      'live updates': createHttpRequest('GET /api/v1/events', [authorizationHeader]),
      download: createHttpRequest('GET /api/v1/accounts/default/suppressions/export', [authorizationHeader]),
      upload: createHttpRequest(
        'POST /api/v1/accounts/default/suppressions/import',
        [authorizationHeader, 'Content-Type: text/csv', `Content-Length: ${csv.length}`],
        csv,
      ),
      metrics: createHttpRequest('GET /metrics'),
      page: createHttpRequest('GET /'),
    };
    await disconnectEverywhere(operator, {
      ...createRequests(authorizationHeader, '/api/v1/accounts'),
      ...longRequests,
    });
    await disconnectEverywhere(operator, longRequests, true);
    await checkListeners(service, secure);
  }

  await disconnectEverywhere({ port: events, tls: secure }, createRequests('X: y', '/ses'));
  await disconnectEverywhere(
    { port: smtp, tls: false },
    { smtp: SMTP_SESSION, starttls: 'EHLO a\r\nSTARTTLS\r\n', hello: firstBytesByProtocol.hello },
  );
  await checkListeners(service, secure);

  // Closed connections do not count towards the limit of 50 live update streams of an actor.
  const streams = await Promise.all(
    Array.from({ length: 40 }, () =>
      fetch(`${service.operatorUrl}/api/v1/events`, { headers: { Authorization: `Bearer ${token}` } }),
    ),
  );
  expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200));
  await Promise.all(streams.map(({ body }) => body?.cancel()));
  if (!secure) await submitAccepted(service.publicUrl, key);
  expect(await service.stop()).toBe(0);
});

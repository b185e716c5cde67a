import type { Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import {
  createHttpHandler,
  HANDLER_LIMITS,
  type HandlerLimits,
  type HandlerRequest,
} from '../../../src/transports/ses/client.ts';
import { startLoopbackServer } from '../../rig/loopback.ts';

const startPeer = async (serve: (socket: Socket) => void) => (await startLoopbackServer(serve)).port;

async function sendRequest(
  port: number,
  changes: Partial<HandlerRequest> = {},
  limits: Partial<HandlerLimits> = {},
  abortSignal?: AbortSignal,
) {
  const handler = createHttpHandler(2, systemClock, { ...HANDLER_LIMITS, ...limits });
  onTestFinished(() => handler.destroy());
  const headers = { host: 'ses.example', 'content-length': String(changes.body?.length ?? 0) };
  const request = {
    protocol: 'http:',
    hostname: '127.0.0.1',
    port,
    method: 'POST',
    path: '/v2/x',
    headers,
    ...changes,
  };
  let isSent = false;
  const onSent = (): void => {
    isSent = true;
  };
  try {
    return await handler.handle(request, abortSignal === undefined ? { onSent } : { onSent, abortSignal });
  } catch (error) {
    throw Object.assign(error as Error, { sent: isSent });
  }
}

const respondWith = (body: string) => (socket: Socket) => {
  socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`));
};

test('a response has its status, headers and complete body', async () => {
  const { response } = await sendRequest(await startPeer(respondWith('{"MessageId":"1"}')), { body: '{}' });
  expect([response.statusCode, response.headers['content-length'], response.body.toString()]).toEqual([
    200,
    '17',
    '{"MessageId":"1"}',
  ]);
});

test('a connection that fails after the request reports the request as sent', async () => {
  const port = await startPeer((socket) => socket.once('data', () => socket.destroy()));
  await expect(sendRequest(port, { body: '{}' })).rejects.toMatchObject({ sent: true });
});

test('a connection that fails during the request reports the request as not sent', async () => {
  const body = Buffer.alloc(64 * 1024 * 1024);
  const port = await startPeer((socket) => {
    socket.once('data', () => {
      socket.pause();
      socket.resetAndDestroy();
    });
  });
  await expect(sendRequest(port, { body })).rejects.toMatchObject({ sent: false });
});

test.each([
  [
    'a TLS handshake that never ends',
    { protocol: 'https:' },
    { connectMs: 50 },
    'no connection within 0.05 seconds',
    false,
  ],
  ['a request without a response', {}, { responseMs: 50 }, 'no response within 0.05 seconds', true],
] as const)('%s fails at its time limit', async (_name, changes, limits, message, sent) => {
  const port = await startPeer(() => undefined);
  await expect(sendRequest(port, { ...changes, body: '{}' }, limits)).rejects.toMatchObject({ message, sent });
});

test('a response that is too large is an error', async () => {
  const port = await startPeer((socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      const writeMore = (): boolean =>
        socket.write(`8000\r\n${'x'.repeat(0x8000)}\r\n`, () => socket.writable && writeMore());
      writeMore();
    });
  });
  await expect(sendRequest(port, { body: '{}' })).rejects.toMatchObject({
    message: 'the response has more than 65536 bytes',
    sent: true,
  });
});

test('an idle connection is closed before the peer closes it', async () => {
  let isClosed = false;
  const port = await startPeer((socket) => {
    respondWith('{}')(socket);
    socket.on('close', () => {
      isClosed = true;
    });
  });
  await sendRequest(port, { body: '{}' }, { idleMs: 50 });
  await expect.poll(() => isClosed).toBe(true);
});

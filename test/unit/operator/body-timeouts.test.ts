/** Tests of timeouts for slow bodies: a timeout for each request, which each chunk of an upload restarts. */
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { BodyTimeouts } from '../../../src/operator/body-timeouts.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { createConnections } from '../../rig/connections.ts';

/** Starts a server and sends it the header of a request with a body of 3 bytes. Calls `onRequest` with the request. */
async function startServer(onRequest: (request: IncomingMessage, bodyTimeouts: BodyTimeouts) => void) {
  const clock = createVirtualClock(0);
  const bodyTimeouts = new BodyTimeouts(clock, createConnections());
  const firstRequest = Promise.withResolvers<IncomingMessage>();
  const server = createServer((request) => {
    bodyTimeouts.start(request);
    onRequest(request, bodyTimeouts);
    firstRequest.resolve(request);
  });
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let receivedText = '';
  socket.on('data', (chunk: Buffer) => {
    receivedText += chunk.toString();
  });
  const receivedAtClose = new Promise<string>((resolve) => socket.on('close', () => resolve(receivedText)));
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n');
  return { clock, socket, request: await firstRequest.promise, receivedAtClose };
}

test('a body that is incomplete after 30 s causes a 408, and the connection is closed', async () => {
  const { clock, receivedAtClose } = await startServer((request) => void request.resume());
  await clock.advance(30_000);
  expect(await receivedAtClose).toMatch(/^HTTP\/1\.1 408 .*Request timeout/s);
});

test('each chunk of an upload restarts its timeout', async () => {
  const chunks: string[] = [];
  const { clock, socket, receivedAtClose, request } = await startServer((upload, bodyTimeouts) =>
    upload.on('data', (chunk: Buffer) => {
      chunks.push(chunk.toString());
      bodyTimeouts.restart(upload);
    }),
  );
  for (const chunk of ['a', 'b']) {
    socket.write(chunk);
    await expect.poll(() => chunks.join('')).toContain(chunk);
    await clock.advance(29_000);
    expect(request.destroyed).toBe(false);
  }
  await clock.advance(1_000);
  expect(await receivedAtClose).toMatch(/^HTTP\/1\.1 408 /);
});

test('a complete body does not time out during a long response', async () => {
  const { clock, socket, request } = await startServer((upload) => void upload.resume());
  socket.write('abc');
  await expect.poll(() => request.complete).toBe(true);
  await clock.advance(600_000);
  expect(socket.destroyed).toBe(false);
  socket.destroy();
});

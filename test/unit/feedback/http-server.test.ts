/** Tests the limits of the listener for provider events on loopback. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createBodyReader, REQUEST_TIME_LIMITS, sendResponse } from '../../../src/feedback/http-server.ts';

test('a request gets a 503 and a closed connection if its body exceeds the total limit of all bodies, and a closed connection releases the bytes of its body', async () => {
  const bodies = createBodyReader(systemClock, REQUEST_TIME_LIMITS.bodyTimeout, 1_000);
  const server = createServer((request, response) => {
    void bodies.read(request, 10_000).then(({ kind }) => {
      if (kind !== 'aborted') sendResponse(response, { status: kind === 'busy' ? 503 : 200, message: kind });
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const post = (sentBytes: number, lengthBytes: number) => {
    const socket = connect(port, '127.0.0.1');
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${lengthBytes}\r\n\r\n${'x'.repeat(sentBytes)}`);
    return socket;
  };
  const waitingSocket = post(600, 5_000);
  await once(server, 'request');
  // The stream ends after the response, because the server closes the connection.
  const refusal = await text(post(600, 5_000));
  expect(refusal).toMatch(/^HTTP\/1\.1 503 /);
  expect(refusal.toLowerCase()).toContain('connection: close');
  waitingSocket.destroy();
  const readStatus = async () =>
    (await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: 'x'.repeat(900) })).status;
  await expect.poll(readStatus).toBe(200);
});

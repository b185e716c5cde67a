import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/clock.ts';
import { Capacity } from '../../../src/http/capacity.ts';
import { CONNECTION_LIMITS, Connections } from '../../../src/http/connections.ts';
import { SERVER_LIMITS } from '../../../src/http/server.ts';
import type { DropReason } from '../../../src/model/events.ts';
import type { AcceptResult } from '../../../src/model/message.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { listenOnFreePort } from '../../rig/free-port.ts';
import { selectCaseCount } from '../../rig/sample.ts';
import { getCertificate } from '../../rig/smtp-certificate.ts';
import {
  ACCEPTED,
  type Client,
  connectClient,
  createRawRequest,
  LISTENER_SETTINGS,
  MESSAGE,
  type Rig,
  startListener,
  waitUntil,
} from './rig.ts';

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

const HEALTH_REQUEST = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';
const AUTHENTICATED_REQUEST = createRawRequest(JSON.stringify(MESSAGE)).replace('Connection: close\r\n', '');
const countResponses = (receivedText: string): number => receivedText.split('HTTP/1.1 ').length - 1;

describe('responses to input that is not an HTTP request', () => {
  test('the response to a CONNECT follows the response to a previous request that is being committed', async () => {
    let commit = (_result: AcceptResult): void => {};
    const rig = await startListener({ submit: () => new Promise((resolve) => (commit = resolve)) });
    const { socket, readReceived, isClosed } = await connectClient(rig);
    socket.write(`${AUTHENTICATED_REQUEST}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`);
    await waitUntil(
      () => rig.recordedEvents.submittedMessages.length === 1 && rig.recordedEvents.refusals.length === 1,
    );
    commit(ACCEPTED);
    await waitUntil(isClosed);
    expect([...readReceived().matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)).toEqual(['201', '404']);
  });

  test('requests that precede malformed data are all answered before the connection is closed', async () => {
    const commits: ((result: AcceptResult) => void)[] = [];
    const rig = await startListener({ submit: () => new Promise((resolve) => commits.push(resolve)) });
    const { socket, readReceived, isClosed } = await connectClient(rig);
    socket.write(`${AUTHENTICATED_REQUEST}${AUTHENTICATED_REQUEST}garbage garbage\r\n\r\n`);
    await waitUntil(() => commits.length === 2);
    for (const commit of commits) commit(ACCEPTED);
    await waitUntil(isClosed);
    expect([...readReceived().matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)).toEqual(['201', '201']);
  });
});

describe('pipelining', () => {
  test('pipelined messages with a valid key are all accepted in order', async () => {
    const rig = await startListener();
    const { socket, readReceived } = await connectClient(rig);
    const bodies = Array.from({ length: 100 }, (_, index) => JSON.stringify({ ...MESSAGE, subject: `n ${index}` }));
    socket.write(bodies.map((body) => createRawRequest(body).replace('Connection: close\r\n', '')).join(''));
    await waitUntil(() => countResponses(readReceived()) === 100);
    expect(rig.recordedEvents.submittedMessages.map(({ subject }) => subject)).toEqual(
      bodies.map((_, index) => `n ${index}`),
    );
    expect(readReceived().match(/HTTP\/1\.1 201/g)).toHaveLength(100);
  });

  test('a connection with too many unanswered requests is paused until half of them are answered', async () => {
    const commits: (() => void)[] = [];
    const rig = await startListener({
      limits: { maxUnanswered: 4 },
      submit: () => new Promise((resolve) => commits.push(() => resolve(ACCEPTED))),
    });
    const { socket, readReceived } = await connectClient(rig);
    socket.write(`${HEALTH_REQUEST}${AUTHENTICATED_REQUEST.repeat(40)}`);
    await waitUntil(() => commits.length >= 3);
    // These requests on other connections give the listener time to read more data from the paused connection.
    for (let n = 0; n < 20; n += 1) await fetch(`${rig.address.url}/healthz`);
    expect(commits.length).toBeLessThanOrEqual(6);
    while (countResponses(readReceived()) < 41) {
      commits.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(rig.recordedEvents.submittedMessages).toHaveLength(40);
  });

  test('clients that pipeline requests and never read responses are disconnected and do not delay other clients', async () => {
    const rig = await startListener({
      limits: { unreadResponseTimeoutMs: 400, timeoutCheckMs: 50, maxUnanswered: 1_000 },
    });
    const clients = await Promise.all(Array.from({ length: selectCaseCount(3, 30) }, () => connectClient(rig, true)));
    const pipelinedRequests = Buffer.from(HEALTH_REQUEST.repeat(200_000));
    for (const { socket } of clients) socket.write(pipelinedRequests);
    let servedCount = 0;
    while (!clients.every(({ socket, isClosed }) => isClosed() || socket.destroyed || !socket.writable)) {
      expect((await fetch(`${rig.address.url}/healthz`)).status).toBe(200);
      servedCount += 1;
      // A paused client detects the closed connection when it reads.
      if (rig.recordedEvents.dropReasons.length === clients.length) for (const { socket } of clients) socket.resume();
    }
    expect(servedCount).toBeGreaterThan(0);
    expect(rig.recordedEvents.dropReasons).toEqual(clients.map(() => 'unread-answers'));
  });

  test('at most `maxPaused` connections are paused, and further connections with pipelined requests are closed', async () => {
    const rig = await startListener({ limits: { maxPaused: 3 }, submit: () => new Promise(() => undefined) });
    const clients = await Promise.all(Array.from({ length: 6 }, () => connectClient(rig)));
    for (const { socket } of clients) socket.write(`${HEALTH_REQUEST}${AUTHENTICATED_REQUEST.repeat(30)}`);
    await waitUntil(() => clients.filter(({ isClosed }) => isClosed()).length === 3);
    expect(rig.recordedEvents.dropReasons).toEqual(['pipelining', 'pipelining', 'pipelining']);
    expect((await fetch(`${rig.address.url}/healthz`)).status).toBe(200);
  });
});

test('each time the timer runs, one paused unauthenticated connection is resumed', async () => {
  const resumeCallbacks: (() => void)[] = [];
  const connections = new Connections({
    limits: CONNECTION_LIMITS,
    clock: {
      now: systemClock.now,
      after(delayMs, run) {
        if (delayMs === CONNECTION_LIMITS.unauthenticatedReadIntervalMs) resumeCallbacks.push(run);
        return () => undefined;
      },
    },
    capacity: new Capacity(SERVER_LIMITS, systemClock),
    isExemptFromPeerShare: () => true,
    onDrop: () => undefined,
  });
  const servedCounts = new Map<number, number>();
  const server = createServer((incoming, response) => {
    const port = incoming.socket.remotePort ?? 0;
    servedCounts.set(port, (servedCounts.get(port) ?? 0) + 1);
    response.end('ok');
  });
  connections.attach(server);
  const port = await listenOnFreePort(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const waitForPendingReads = async () => {
    for (let n = 0; n < 50; n += 1) await (await fetch(`http://127.0.0.1:${port}/`)).text();
  };
  const ports = await Promise.all(
    ['first', 'second'].map(async () => {
      const socket = connect(port, '127.0.0.1');
      sockets.push(socket);
      socket.resume();
      await once(socket, 'connect');
      socket.write(HEALTH_REQUEST.repeat(1_000));
      return socket.localPort ?? 0;
    }),
  );
  const readCounts = () => ports.map((port) => servedCounts.get(port) ?? 0);
  await waitUntil(
    () => resumeCallbacks.length === 1 && readCounts().every((count) => count > CONNECTION_LIMITS.maxUnanswered),
  );
  await waitForPendingReads();
  const countsBefore = readCounts();
  for (const count of countsBefore) expect(count).toBeLessThan(100);
  resumeCallbacks.shift()?.();
  await waitUntil(
    () => resumeCallbacks.length === 1 && readCounts().some((count, index) => count > (countsBefore[index] ?? 0)),
  );
  await waitForPendingReads();
  const countsAfter = readCounts();
  expect(countsAfter.filter((count, index) => count > (countsBefore[index] ?? 0))).toHaveLength(1);
  for (const count of countsAfter) expect(count).toBeLessThan(200);
});

describe('a response that is larger than the buffers of the operating system', () => {
  const responseBytes = 20_000_000;

  async function startDownloadServer(
    tls: boolean,
    { unreadResponseTimeoutMs = 400, clock = systemClock }: { unreadResponseTimeoutMs?: number; clock?: Clock } = {},
  ): Promise<{ readonly port: number; readonly dropReasons: DropReason[] }> {
    const dropReasons: DropReason[] = [];
    const connections = new Connections({
      limits: { ...CONNECTION_LIMITS, unreadResponseTimeoutMs, timeoutCheckMs: 50 },
      clock,
      capacity: new Capacity(SERVER_LIMITS, clock),
      isExemptFromPeerShare: () => true,
      onDrop: (reason) => dropReasons.push(reason),
    });
    const sendLargeBody: RequestListener = (_request, response) => response.end(Buffer.alloc(responseBytes));
    const server = tls ? createTlsServer(await getCertificate(), sendLargeBody) : createServer(sendLargeBody);
    server.on('connect', (_request, socket) => connections.endWithResponse(socket, 'HTTP/1.1 404 Not Found\r\n\r\n'));
    connections.attach(server);
    const port = await listenOnFreePort(server);
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return { port, dropReasons };
  }

  function connectTo(port: number, tls: boolean): Socket {
    const socket = tls ? connectTls({ port, rejectUnauthorized: false }) : connect(port, '127.0.0.1');
    sockets.push(socket);
    return socket.on('error', () => undefined);
  }

  test.each([
    ['sends no further data', false, HEALTH_REQUEST, ''],
    ['sends no further data over TLS', true, HEALTH_REQUEST, ''],
    ['pipelines a CONNECT', false, `${HEALTH_REQUEST}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`, ''],
    ['sends empty lines', false, HEALTH_REQUEST, '\r\n'],
    ['sends empty lines over TLS', true, HEALTH_REQUEST, '\r\n'],
  ])(
    'causes a disconnect if the client does not read it and %s',
    async (_description, tls, requestText, repeatedText) => {
      const { port, dropReasons } = await startDownloadServer(tls);
      const socket = connectTo(port, tls);
      socket.pause();
      socket.write(requestText);
      const interval = setInterval(() => repeatedText !== '' && socket.write(repeatedText), 50);
      onTestFinished(() => clearInterval(interval));
      await waitUntil(() => dropReasons.length > 0);
      expect(dropReasons).toEqual(['unread-answers']);
    },
  );

  test.each([false, true])('and the next response reach a client that reads slowly (TLS: %s)', async (tls) => {
    const checks: (() => void)[] = [];
    const clock = {
      now: systemClock.now,
      after(_delayMs: number, run: () => void) {
        checks.push(run);
        return () => undefined;
      },
    };
    // The client is checked after each half megabyte that it has read. The timeout is twenty checks, so the client needs
    // twice as long for each response.
    const { port, dropReasons } = await startDownloadServer(tls, { unreadResponseTimeoutMs: 1_000, clock });
    const socket = connectTo(port, tls);
    let [readBytes, checkCount] = [0, 0];
    socket.on('data', (chunk: Buffer) => {
      readBytes += chunk.length;
      if (readBytes < (checkCount + 1) * 500_000) return;
      checkCount += 1;
      for (const check of checks.splice(0)) check();
    });
    for (let responseCount = 1; responseCount <= 2; responseCount += 1) {
      socket.write(HEALTH_REQUEST);
      await waitUntil(() => readBytes > responseCount * responseBytes);
    }
    expect([dropReasons, checkCount >= 80]).toEqual([[], true]);
  });
});

/** Connects an unauthenticated and an authenticated client, and waits for their first responses. */
async function connectBoth(rig: Rig): Promise<readonly [Client, Client]> {
  const clients = [await connectClient(rig), await connectClient(rig)] as const;
  clients[0].socket.write(HEALTH_REQUEST);
  clients[1].socket.write(AUTHENTICATED_REQUEST);
  await waitUntil(() => clients.every(({ readReceived }) => countResponses(readReceived()) === 1));
  return clients;
}

describe('a full listener', () => {
  test('counts a TLS connection before its handshake and authenticates it after the handshake', async () => {
    const folder = createTemporaryFolder();
    const { cert, key } = await getCertificate();
    const paths = { certPath: join(folder, 'cert.pem'), keyPath: join(folder, 'key.pem') };
    writeFileSync(paths.certPath, cert);
    writeFileSync(paths.keyPath, key);
    const rig = await startListener({
      limits: { maxConnections: 5 },
      settings: { ...LISTENER_SETTINGS, tls: paths },
    });
    let receivedText = '';
    let isClosed = false;
    const authenticatedSocket = connectTls({ port: rig.address.port, host: '127.0.0.1', rejectUnauthorized: false });
    sockets.push(authenticatedSocket);
    authenticatedSocket.on('data', (chunk: Buffer) => {
      receivedText += chunk.toString('latin1');
    });
    authenticatedSocket.on('close', () => {
      isClosed = true;
    });
    authenticatedSocket.write(AUTHENTICATED_REQUEST);
    await waitUntil(() => countResponses(receivedText) === 1);
    const idleClients: Client[] = [];
    for (let n = 0; n < 20; n += 1) idleClients.push(await connectClient(rig));
    await waitUntil(() => idleClients.filter(({ isClosed }) => isClosed()).length === 16);
    expect(isClosed).toBe(false);
    authenticatedSocket.write(AUTHENTICATED_REQUEST);
    await waitUntil(() => countResponses(receivedText) === 2);
  });

  test('unauthenticated and authenticated connections have different idle timeouts, which Keep-Alive announces', async () => {
    const rig = await startListener({
      limits: { unauthenticatedKeepAliveTimeoutMs: 1_000, keepAliveTimeoutMs: 65_000 },
    });
    const [anonymousClient, authenticatedClient] = await connectBoth(rig);
    await waitUntil(anonymousClient.isClosed);
    expect(anonymousClient.readReceived()).toMatch(/\r\nKeep-Alive: timeout=1\r\n/);
    expect(authenticatedClient.readReceived()).toMatch(/\r\nKeep-Alive: timeout=65\r\n/);
    expect(authenticatedClient.isClosed()).toBe(false);
  });

  test('empty lines keep an authenticated connection open, but not an unauthenticated one', async () => {
    const rig = await startListener({ limits: { unauthenticatedHeadersTimeoutMs: 500, timeoutCheckMs: 50 } });
    const [anonymousClient, authenticatedClient] = await connectBoth(rig);
    const interval = setInterval(() => {
      for (const { socket } of [anonymousClient, authenticatedClient]) socket.write('\r\n');
    }, 20);
    onTestFinished(() => clearInterval(interval));
    await waitUntil(anonymousClient.isClosed);
    expect(authenticatedClient.isClosed()).toBe(false);
    authenticatedClient.socket.write(AUTHENTICATED_REQUEST);
    await waitUntil(() => countResponses(authenticatedClient.readReceived()) === 2);
  });
});

/** Connections as the public listener holds them: resets, pipelining, unread answers, a full listener. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { CONNECTION_LIMITS, Connections } from '../../../src/http/connections.ts';
import type { ListenerOptions } from '../../../src/http/listener-options.ts';
import type { DropReason } from '../../../src/model/events.ts';
import type { AcceptResult } from '../../../src/model/message.ts';
import { temporaryFolder } from '../../rig/folder.ts';
import { sampleOrFull } from '../../rig/sample.ts';
import { certificateFor } from '../../rig/smtp-certificate.ts';
import { ACCEPTED, MESSAGE, type Rig, rawRequest, startRig, waitUntil } from './rig.ts';

const rigs: Rig[] = [];
const sockets: Socket[] = [];
async function startListener(changes: Partial<ListenerOptions> = {}): Promise<Rig> {
  const rig = await startRig(changes);
  rigs.push(rig);
  return rig;
}
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const rig of rigs.splice(0)) await rig.listener.close();
});

interface Client {
  readonly socket: Socket;
  readonly received: () => string;
  readonly isClosed: () => boolean;
}

/** A connection that reads unless `deaf`. */
async function connectClient(rig: Rig, neverReads = false): Promise<Client> {
  let [received, isClosed] = ['', false];
  const socket = connect(rig.address.port, '127.0.0.1');
  sockets.push(socket);
  if (neverReads) socket.pause();
  else
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  return { socket, received: () => received, isClosed: () => isClosed };
}

const HEALTH_REQUEST = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';
const AUTHENTICATED_REQUEST = rawRequest(JSON.stringify(MESSAGE)).replace('Connection: close\r\n', '');
const countResponses = (received: string): number => received.split('HTTP/1.1 ').length - 1;

describe('answers below HTTP', () => {
  test('a CONNECT that is reset at once leaves the process and the listener alone', async () => {
    const rig = await startListener();
    for (let n = 0; n < 50; n += 1) {
      const { socket, isClosed } = await connectClient(rig);
      socket.write('CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n');
      socket.resetAndDestroy();
      await waitUntil(isClosed);
    }
    expect((await fetch(`${rig.address.url}/healthz`)).status).toBe(200);
  });

  test('a CONNECT behind a request that is being committed is answered after it, never in its place', async () => {
    let commit = (_result: AcceptResult): void => {};
    const rig = await startListener({ submit: () => new Promise((resolve) => (commit = resolve)) });
    const { socket, received, isClosed } = await connectClient(rig);
    socket.write(`${AUTHENTICATED_REQUEST}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`);
    await waitUntil(() => rig.recorded.submitted.length === 1 && rig.recorded.refused.length === 1);
    commit(ACCEPTED);
    await waitUntil(isClosed);
    expect([...received().matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)).toEqual(['201', '404']);
  });

  test('garbage behind several requests lets each of them be answered first', async () => {
    const commits: ((sendLargeBody: AcceptResult) => void)[] = [];
    const rig = await startListener({ submit: () => new Promise((resolve) => commits.push(resolve)) });
    const { socket, received, isClosed } = await connectClient(rig);
    socket.write(`${AUTHENTICATED_REQUEST}${AUTHENTICATED_REQUEST}garbage garbage\r\n\r\n`);
    await waitUntil(() => commits.length === 2);
    for (const commit of commits) commit(ACCEPTED);
    await waitUntil(isClosed);
    expect([...received().matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)).toEqual(['201', '201']);
  });
});

describe('pipelining', () => {
  test('a client that reads gets every answer, however many requests it sends at once', async () => {
    const rig = await startListener();
    const { socket, received, isClosed } = await connectClient(rig);
    socket.write(
      `${HEALTH_REQUEST.repeat(1_999)}${HEALTH_REQUEST.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')}`,
    );
    await waitUntil(isClosed);
    expect(received().match(/HTTP\/1\.1 200/g)).toHaveLength(2_000);
    expect(rig.recorded.dropped).toEqual([]);
  });

  test('messages that are pipelined under a key are all accepted, in order', async () => {
    const rig = await startListener();
    const { socket, received } = await connectClient(rig);
    const bodies = Array.from({ length: 100 }, (_, n) => JSON.stringify({ ...MESSAGE, subject: `n ${n}` }));
    socket.write(bodies.map((one) => rawRequest(one).replace('Connection: close\r\n', '')).join(''));
    await waitUntil(() => countResponses(received()) === 100);
    expect(rig.recorded.submitted.map(({ subject }) => subject)).toEqual(bodies.map((_, n) => `n ${n}`));
    expect(received().match(/HTTP\/1\.1 201/g)).toHaveLength(100);
  });

  test('a connection with unanswered requests is not read further until half of them are answered', async () => {
    const commits: (() => void)[] = [];
    const rig = await startListener({
      limits: { maxUnanswered: 4 },
      submit: () => new Promise((resolve) => commits.push(() => resolve(ACCEPTED))),
    });
    const { socket, received } = await connectClient(rig);
    socket.write(`${HEALTH_REQUEST}${AUTHENTICATED_REQUEST.repeat(40)}`);
    await waitUntil(() => commits.length >= 3);
    // Other connections have been served meanwhile: what is read, is read by then.
    for (let n = 0; n < 20; n += 1) await fetch(`${rig.address.url}/healthz`);
    expect(commits.length).toBeLessThanOrEqual(6);
    while (countResponses(received()) < 41) {
      commits.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(rig.recorded.submitted).toHaveLength(40);
  });

  test('clients that pipeline and never read are not read, are closed, and delay nobody', async () => {
    const rig = await startListener({ limits: { unreadResponseTimeoutMs: 400, timeoutCheckMs: 50 } });
    const clients = await Promise.all(Array.from({ length: sampleOrFull(3, 30) }, () => connectClient(rig, true)));
    const flood = Buffer.from(HEALTH_REQUEST.repeat(200_000));
    for (const { socket } of clients) socket.write(flood);
    let served = 0;
    while (!clients.every(({ socket, isClosed }) => isClosed() || socket.destroyed || !socket.writable)) {
      expect((await fetch(`${rig.address.url}/healthz`)).status).toBe(200);
      served += 1;
      // A paused client hears of the end once it tries to read.
      if (rig.recorded.dropped.length === clients.length) for (const { socket } of clients) socket.resume();
    }
    expect(served).toBeGreaterThan(0);
    expect(rig.recorded.dropped).toEqual(clients.map(() => 'unread-answers'));
  });

  test('at most so many connections wait with pipelined requests; one more is closed', async () => {
    const rig = await startListener({ limits: { maxPaused: 3 }, submit: () => new Promise(() => undefined) });
    const clients = await Promise.all(Array.from({ length: 6 }, () => connectClient(rig)));
    for (const { socket } of clients) socket.write(`${HEALTH_REQUEST}${AUTHENTICATED_REQUEST.repeat(30)}`);
    await waitUntil(() => clients.filter(({ isClosed }) => isClosed()).length === 3);
    expect(rig.recorded.dropped).toEqual(['pipelining', 'pipelining', 'pipelining']);
    expect((await fetch(`${rig.address.url}/healthz`)).status).toBe(200);
  });
});

test('keyless connections that pipeline are read on one at a time, and only when the clock says so', async () => {
  const resumes: (() => void)[] = [];
  const connections = new Connections({
    limits: CONNECTION_LIMITS,
    clock: {
      now: systemClock.now,
      after(delayMs, run) {
        if (delayMs === CONNECTION_LIMITS.unauthenticatedReadIntervalMs) resumes.push(run);
        return () => undefined;
      },
    },
    isExemptFromPeerShare: () => true,
    onDrop: () => undefined,
  });
  const served = new Map<number, number>();
  const server = createServer((incoming, response) => {
    const port = incoming.socket.remotePort ?? 0;
    served.set(port, (served.get(port) ?? 0) + 1);
    response.end('ok');
  });
  connections.attach(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  /** Enough turns of the event loop for whatever may still be read to be read. */
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
  const counts = () => ports.map((one) => served.get(one) ?? 0);
  await waitUntil(() => resumes.length === 1 && counts().every((count) => count > CONNECTION_LIMITS.maxUnanswered));
  await waitForPendingReads();
  const before = counts();
  for (const count of before) expect(count).toBeLessThan(100);
  resumes.shift()?.();
  await waitUntil(() => resumes.length === 1 && counts().some((count, at) => count > (before[at] ?? 0)));
  await waitForPendingReads();
  const after = counts();
  expect(after.filter((count, at) => count > (before[at] ?? 0))).toHaveLength(1);
  for (const count of after) expect(count).toBeLessThan(200);
});

describe('an answer larger than what the system buffers', () => {
  const bytes = 20_000_000;

  async function startDownloadServer(tls: boolean): Promise<{ readonly port: number; readonly dropped: DropReason[] }> {
    const dropped: DropReason[] = [];
    const connections = new Connections({
      limits: { ...CONNECTION_LIMITS, unreadResponseTimeoutMs: 400, timeoutCheckMs: 50 },
      clock: systemClock,
      isExemptFromPeerShare: () => true,
      onDrop: (reason) => dropped.push(reason),
    });
    const sendLargeBody: RequestListener = (_request, response) => response.end(Buffer.alloc(bytes));
    const server = tls ? createTlsServer(await certificateFor(), sendLargeBody) : createServer(sendLargeBody);
    server.on('connect', (_request, socket) => connections.endWithResponse(socket, 'HTTP/1.1 404 Not Found\r\n\r\n'));
    connections.attach(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return { port: (server.address() as AddressInfo).port, dropped };
  }

  function connectTo(port: number, tls: boolean): Socket {
    const socket = tls ? connectTls({ port, rejectUnauthorized: false }) : connect(port, '127.0.0.1');
    sockets.push(socket);
    return socket.on('error', () => undefined);
  }

  test.each([
    ['then sends nothing', false, HEALTH_REQUEST, ''],
    ['then sends nothing, under TLS', true, HEALTH_REQUEST, ''],
    ['asked for a tunnel behind it', false, `${HEALTH_REQUEST}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`, ''],
    ['goes on sending empty lines', false, HEALTH_REQUEST, '\r\n'],
    ['goes on sending empty lines under TLS', true, HEALTH_REQUEST, '\r\n'],
  ])(
    'that a client does not read ends the connection where it %s',
    async (_description, tls, received, repeatedText) => {
      const { port, dropped } = await startDownloadServer(tls);
      const socket = connectTo(port, tls);
      socket.pause();
      socket.write(received);
      const interval = setInterval(() => repeatedText !== '' && socket.write(repeatedText), 50);
      onTestFinished(() => clearInterval(interval));
      await waitUntil(() => dropped.length > 0);
      expect(dropped).toEqual(['unread-answers']);
    },
  );

  test.each([false, true])('reaches a client that reads slowly, and so does the next (TLS: %s)', async (tls) => {
    const { port, dropped } = await startDownloadServer(tls);
    const socket = connectTo(port, tls);
    let read = 0;
    // Some 10 MB a second: an answer takes several times the limit.
    socket.on('data', (chunk: Buffer) => {
      read += chunk.length;
      socket.pause();
      setTimeout(() => socket.resume(), chunk.length / 10_000);
    });
    socket.write(HEALTH_REQUEST);
    await waitUntil(() => read > bytes);
    socket.write(HEALTH_REQUEST);
    await waitUntil(() => read > 2 * bytes);
    expect(dropped).toEqual([]);
  });
});

describe('a full listener', () => {
  test('closes idle keyless connections first, and one that has presented a key stays', async () => {
    const rig = await startListener({ limits: { maxConnections: 10 } });
    const authenticated = await connectClient(rig);
    authenticated.socket.write(AUTHENTICATED_REQUEST);
    await waitUntil(() => countResponses(authenticated.received()) === 1);
    const idleClients: Client[] = [];
    for (let n = 0; n < 40; n += 1) idleClients.push(await connectClient(rig));
    await waitUntil(() => idleClients.filter(({ isClosed }) => isClosed()).length === 31);
    expect(authenticated.isClosed()).toBe(false);
    authenticated.socket.write(AUTHENTICATED_REQUEST);
    await waitUntil(() => countResponses(authenticated.received()) === 2);
    expect(rig.recorded.dropped).toEqual(Array.from({ length: 31 }, () => 'full'));
  });

  test('lets a key in while others keep it full', async () => {
    const rig = await startListener({ limits: { maxConnections: 10 } });
    for (let n = 0; n < 30; n += 1) await connectClient(rig);
    const newClient = await connectClient(rig);
    newClient.socket.write(AUTHENTICATED_REQUEST);
    await waitUntil(() => countResponses(newClient.received()) === 1);
    expect(newClient.received()).toMatch(/^HTTP\/1\.1 201 /);
  });

  test('counts TLS connections from before their handshake, and knows them after it', async () => {
    const folder = temporaryFolder();
    const { cert, key } = await certificateFor();
    const paths = { certPath: join(folder, 'cert.pem'), keyPath: join(folder, 'key.pem') };
    writeFileSync(paths.certPath, cert);
    writeFileSync(paths.keyPath, key);
    const rig = await startListener({
      limits: { maxConnections: 5 },
      settings: {
        listen: { host: '127.0.0.1', port: 0 },
        tls: paths,
        senders: 'any',
        transport: { kind: 'capture' },
        maxRequestBytes: 65_536,
        trustedProxies: [],
      },
    });
    let received = '';
    let closed = false;
    const authenticated = connectTls({ port: rig.address.port, host: '127.0.0.1', rejectUnauthorized: false });
    sockets.push(authenticated);
    authenticated.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    authenticated.on('close', () => {
      closed = true;
    });
    authenticated.write(AUTHENTICATED_REQUEST);
    await waitUntil(() => countResponses(received) === 1);
    const idleClients: Client[] = [];
    for (let n = 0; n < 20; n += 1) idleClients.push(await connectClient(rig));
    await waitUntil(() => idleClients.filter(({ isClosed }) => isClosed()).length === 16);
    expect(closed).toBe(false);
    authenticated.write(AUTHENTICATED_REQUEST);
    await waitUntil(() => countResponses(received) === 2);
  });

  test('a keyless connection idles for a short time, one with a key for long, and each is told how long', async () => {
    const rig = await startListener({
      limits: { unauthenticatedKeepAliveTimeoutMs: 1_000, keepAliveTimeoutMs: 65_000 },
    });
    const [anonymous, authenticated] = [await connectClient(rig), await connectClient(rig)];
    authenticated.socket.write(AUTHENTICATED_REQUEST);
    anonymous.socket.write(HEALTH_REQUEST);
    await waitUntil(() => countResponses(authenticated.received()) === 1 && countResponses(anonymous.received()) === 1);
    await waitUntil(anonymous.isClosed);
    expect(anonymous.received()).toMatch(/\r\nKeep-Alive: timeout=1\r\n/);
    expect(authenticated.received()).toMatch(/\r\nKeep-Alive: timeout=65\r\n/);
    expect(authenticated.isClosed()).toBe(false);
  });

  test('a keyless connection is not held open by empty lines, and one with a key is left alone', async () => {
    const rig = await startListener({ limits: { unauthenticatedHeadersTimeoutMs: 500, timeoutCheckMs: 50 } });
    const [anonymous, authenticated] = [await connectClient(rig), await connectClient(rig)];
    authenticated.socket.write(AUTHENTICATED_REQUEST);
    anonymous.socket.write(HEALTH_REQUEST);
    await waitUntil(() => countResponses(authenticated.received()) === 1 && countResponses(anonymous.received()) === 1);
    const interval = setInterval(() => {
      for (const { socket } of [anonymous, authenticated]) socket.write('\r\n');
    }, 20);
    onTestFinished(() => clearInterval(interval));
    await waitUntil(anonymous.isClosed);
    expect(authenticated.isClosed()).toBe(false);
    authenticated.socket.write(AUTHENTICATED_REQUEST);
    await waitUntil(() => countResponses(authenticated.received()) === 2);
  });
});

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
import { ACCEPTED, MAIL, type Rig, request, startRig, until } from './rig.ts';

const rigs: Rig[] = [];
const sockets: Socket[] = [];
async function rigged(changes: Partial<ListenerOptions> = {}): Promise<Rig> {
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
  readonly text: () => string;
  readonly ended: () => boolean;
}

/** A connection that reads unless `deaf`. */
async function client(rig: Rig, deaf = false): Promise<Client> {
  let [text, ended] = ['', false];
  const socket = connect(rig.at.port, '127.0.0.1');
  sockets.push(socket);
  if (deaf) socket.pause();
  else
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    ended = true;
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  return { socket, text: () => text, ended: () => ended };
}

const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';
const keyed = request(JSON.stringify(MAIL)).replace('Connection: close\r\n', '');
const answers = (text: string): number => text.split('HTTP/1.1 ').length - 1;

describe('answers below HTTP', () => {
  test('a CONNECT that is reset at once leaves the process and the listener alone', async () => {
    const rig = await rigged();
    for (let n = 0; n < 50; n += 1) {
      const { socket, ended } = await client(rig);
      socket.write('CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n');
      socket.resetAndDestroy();
      await until(ended);
    }
    expect((await fetch(`${rig.at.url}/healthz`)).status).toBe(200);
  });

  test('a CONNECT behind a request that is being committed is answered after it, never in its place', async () => {
    let commit = (_answer: AcceptResult): void => {};
    const rig = await rigged({ submit: () => new Promise((resolve) => (commit = resolve)) });
    const { socket, text, ended } = await client(rig);
    socket.write(`${keyed}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`);
    await until(() => rig.seen.submitted.length === 1 && rig.seen.refused.length === 1);
    commit(ACCEPTED);
    await until(ended);
    expect([...text().matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)).toEqual(['201', '404']);
  });

  test('garbage behind several requests lets each of them be answered first', async () => {
    const commits: ((answer: AcceptResult) => void)[] = [];
    const rig = await rigged({ submit: () => new Promise((resolve) => commits.push(resolve)) });
    const { socket, text, ended } = await client(rig);
    socket.write(`${keyed}${keyed}garbage garbage\r\n\r\n`);
    await until(() => commits.length === 2);
    for (const commit of commits) commit(ACCEPTED);
    await until(ended);
    expect([...text().matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)).toEqual(['201', '201']);
  });
});

describe('pipelining', () => {
  test('a client that reads gets every answer, however many requests it sends at once', async () => {
    const rig = await rigged();
    const { socket, text, ended } = await client(rig);
    socket.write(`${HEALTH.repeat(1_999)}${HEALTH.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')}`);
    await until(ended);
    expect(text().match(/HTTP\/1\.1 200/g)).toHaveLength(2_000);
    expect(rig.seen.dropped).toEqual([]);
  });

  test('messages that are pipelined under a key are all accepted, in order', async () => {
    const rig = await rigged();
    const { socket, text } = await client(rig);
    const bodies = Array.from({ length: 100 }, (_, n) => JSON.stringify({ ...MAIL, subject: `n ${n}` }));
    socket.write(bodies.map((one) => request(one).replace('Connection: close\r\n', '')).join(''));
    await until(() => answers(text()) === 100);
    expect(rig.seen.submitted.map(({ subject }) => subject)).toEqual(bodies.map((_, n) => `n ${n}`));
    expect(text().match(/HTTP\/1\.1 201/g)).toHaveLength(100);
  });

  test('a connection with unanswered requests is not read further until half of them are answered', async () => {
    const commits: (() => void)[] = [];
    const rig = await rigged({
      limits: { maxUnanswered: 4 },
      submit: () => new Promise((resolve) => commits.push(() => resolve(ACCEPTED))),
    });
    const { socket, text } = await client(rig);
    socket.write(`${HEALTH}${keyed.repeat(40)}`);
    await until(() => commits.length >= 3);
    // Other connections have been served meanwhile: what is read, is read by then.
    for (let n = 0; n < 20; n += 1) await fetch(`${rig.at.url}/healthz`);
    expect(commits.length).toBeLessThanOrEqual(6);
    while (answers(text()) < 41) {
      commits.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(rig.seen.submitted).toHaveLength(40);
  });

  test('clients that pipeline and never read are not read, are closed, and delay nobody', async () => {
    const rig = await rigged({ limits: { unreadResponseTimeoutMs: 400, timeoutCheckMs: 50 } });
    const clients = await Promise.all(Array.from({ length: sampleOrFull(3, 30) }, () => client(rig, true)));
    const flood = Buffer.from(HEALTH.repeat(200_000));
    for (const { socket } of clients) socket.write(flood);
    let served = 0;
    while (!clients.every(({ socket, ended }) => ended() || socket.destroyed || !socket.writable)) {
      expect((await fetch(`${rig.at.url}/healthz`)).status).toBe(200);
      served += 1;
      // A paused client hears of the end once it tries to read.
      if (rig.seen.dropped.length === clients.length) for (const { socket } of clients) socket.resume();
    }
    expect(served).toBeGreaterThan(0);
    expect(rig.seen.dropped).toEqual(clients.map(() => 'unread-answers'));
  });

  test('at most so many connections wait with pipelined requests; one more is closed', async () => {
    const rig = await rigged({ limits: { maxPaused: 3 }, submit: () => new Promise(() => undefined) });
    const clients = await Promise.all(Array.from({ length: 6 }, () => client(rig)));
    for (const { socket } of clients) socket.write(`${HEALTH}${keyed.repeat(30)}`);
    await until(() => clients.filter(({ ended }) => ended()).length === 3);
    expect(rig.seen.dropped).toEqual(['pipelining', 'pipelining', 'pipelining']);
    expect((await fetch(`${rig.at.url}/healthz`)).status).toBe(200);
  });
});

test('keyless connections that pipeline are read on one at a time, and only when the clock says so', async () => {
  const turns: (() => void)[] = [];
  const connections = new Connections({
    limits: CONNECTION_LIMITS,
    clock: {
      now: systemClock.now,
      after(delayMs, run) {
        if (delayMs === CONNECTION_LIMITS.unauthenticatedReadIntervalMs) turns.push(run);
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
  const settled = async () => {
    for (let n = 0; n < 50; n += 1) await (await fetch(`http://127.0.0.1:${port}/`)).text();
  };
  const ports = await Promise.all(
    ['first', 'second'].map(async () => {
      const socket = connect(port, '127.0.0.1');
      sockets.push(socket);
      socket.resume();
      await once(socket, 'connect');
      socket.write(HEALTH.repeat(1_000));
      return socket.localPort ?? 0;
    }),
  );
  const counts = () => ports.map((one) => served.get(one) ?? 0);
  await until(() => turns.length === 1 && counts().every((count) => count > CONNECTION_LIMITS.maxUnanswered));
  await settled();
  const before = counts();
  for (const count of before) expect(count).toBeLessThan(100);
  turns.shift()?.();
  await until(() => turns.length === 1 && counts().some((count, at) => count > (before[at] ?? 0)));
  await settled();
  const after = counts();
  expect(after.filter((count, at) => count > (before[at] ?? 0))).toHaveLength(1);
  for (const count of after) expect(count).toBeLessThan(200);
});

describe('an answer larger than what the system buffers', () => {
  const bytes = 20_000_000;

  async function downloads(tls: boolean): Promise<{ readonly port: number; readonly dropped: DropReason[] }> {
    const dropped: DropReason[] = [];
    const connections = new Connections({
      limits: { ...CONNECTION_LIMITS, unreadResponseTimeoutMs: 400, timeoutCheckMs: 50 },
      clock: systemClock,
      isExemptFromPeerShare: () => true,
      onDrop: (reason) => dropped.push(reason),
    });
    const answer: RequestListener = (_request, response) => response.end(Buffer.alloc(bytes));
    const server = tls ? createTlsServer(await certificateFor(), answer) : createServer(answer);
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

  function visitor(port: number, tls: boolean): Socket {
    const socket = tls ? connectTls({ port, rejectUnauthorized: false }) : connect(port, '127.0.0.1');
    sockets.push(socket);
    return socket.on('error', () => undefined);
  }

  test.each([
    ['then sends nothing', false, HEALTH, ''],
    ['then sends nothing, under TLS', true, HEALTH, ''],
    ['asked for a tunnel behind it', false, `${HEALTH}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`, ''],
    ['goes on sending empty lines', false, HEALTH, '\r\n'],
    ['goes on sending empty lines under TLS', true, HEALTH, '\r\n'],
  ])('that a client does not read ends the connection where it %s', async (_what, tls, text, drip) => {
    const { port, dropped } = await downloads(tls);
    const socket = visitor(port, tls);
    socket.pause();
    socket.write(text);
    const dripping = setInterval(() => drip !== '' && socket.write(drip), 50);
    onTestFinished(() => clearInterval(dripping));
    await until(() => dropped.length > 0);
    expect(dropped).toEqual(['unread-answers']);
  });

  test.each([false, true])('reaches a client that reads slowly, and so does the next (TLS: %s)', async (tls) => {
    const { port, dropped } = await downloads(tls);
    const socket = visitor(port, tls);
    let read = 0;
    // Some 10 MB a second: an answer takes several times the limit.
    socket.on('data', (chunk: Buffer) => {
      read += chunk.length;
      socket.pause();
      setTimeout(() => socket.resume(), chunk.length / 10_000);
    });
    socket.write(HEALTH);
    await until(() => read > bytes);
    socket.write(HEALTH);
    await until(() => read > 2 * bytes);
    expect(dropped).toEqual([]);
  });
});

describe('a full listener', () => {
  test('closes idle keyless connections first, and one that has presented a key stays', async () => {
    const rig = await rigged({ limits: { maxConnections: 10 } });
    const known = await client(rig);
    known.socket.write(keyed);
    await until(() => answers(known.text()) === 1);
    const idle: Client[] = [];
    for (let n = 0; n < 40; n += 1) idle.push(await client(rig));
    await until(() => idle.filter(({ ended }) => ended()).length === 31);
    expect(known.ended()).toBe(false);
    known.socket.write(keyed);
    await until(() => answers(known.text()) === 2);
    expect(rig.seen.dropped).toEqual(Array.from({ length: 31 }, () => 'full'));
  });

  test('lets a key in while others keep it full', async () => {
    const rig = await rigged({ limits: { maxConnections: 10 } });
    for (let n = 0; n < 30; n += 1) await client(rig);
    const late = await client(rig);
    late.socket.write(keyed);
    await until(() => answers(late.text()) === 1);
    expect(late.text()).toMatch(/^HTTP\/1\.1 201 /);
  });

  test('counts TLS connections from before their handshake, and knows them after it', async () => {
    const folder = temporaryFolder();
    const { cert, key } = await certificateFor();
    const paths = { certPath: join(folder, 'cert.pem'), keyPath: join(folder, 'key.pem') };
    writeFileSync(paths.certPath, cert);
    writeFileSync(paths.keyPath, key);
    const rig = await rigged({
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
    let text = '';
    let closed = false;
    const known = connectTls({ port: rig.at.port, host: '127.0.0.1', rejectUnauthorized: false });
    sockets.push(known);
    known.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    known.on('close', () => {
      closed = true;
    });
    known.write(keyed);
    await until(() => answers(text) === 1);
    const idle: Client[] = [];
    for (let n = 0; n < 20; n += 1) idle.push(await client(rig));
    await until(() => idle.filter(({ ended }) => ended()).length === 16);
    expect(closed).toBe(false);
    known.write(keyed);
    await until(() => answers(text) === 2);
  });

  test('a keyless connection idles for a short time, one with a key for long, and each is told how long', async () => {
    const rig = await rigged({ limits: { unauthenticatedKeepAliveTimeoutMs: 1_000, keepAliveTimeoutMs: 65_000 } });
    const [stranger, known] = [await client(rig), await client(rig)];
    known.socket.write(keyed);
    stranger.socket.write(HEALTH);
    await until(() => answers(known.text()) === 1 && answers(stranger.text()) === 1);
    await until(stranger.ended);
    expect(stranger.text()).toMatch(/\r\nKeep-Alive: timeout=1\r\n/);
    expect(known.text()).toMatch(/\r\nKeep-Alive: timeout=65\r\n/);
    expect(known.ended()).toBe(false);
  });

  test('a keyless connection is not held open by empty lines, and one with a key is left alone', async () => {
    const rig = await rigged({ limits: { unauthenticatedHeadersTimeoutMs: 500, timeoutCheckMs: 50 } });
    const [stranger, known] = [await client(rig), await client(rig)];
    known.socket.write(keyed);
    stranger.socket.write(HEALTH);
    await until(() => answers(known.text()) === 1 && answers(stranger.text()) === 1);
    const dripping = setInterval(() => {
      for (const { socket } of [stranger, known]) socket.write('\r\n');
    }, 20);
    onTestFinished(() => clearInterval(dripping));
    await until(stranger.ended);
    expect(known.ended()).toBe(false);
    known.socket.write(keyed);
    await until(() => answers(known.text()) === 2);
  });
});

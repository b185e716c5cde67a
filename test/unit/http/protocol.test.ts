import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { ListenerOptions } from '../../../src/http/listener-options.ts';
import type { AcceptResult } from '../../../src/model/message.ts';
import {
  ACCEPTED,
  account,
  apiKey,
  got,
  KEY,
  MAIL,
  parsed,
  post,
  type Rig,
  raw,
  request,
  startRig,
  until,
} from './rig.ts';

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

const error = (message: string) => ({ result: 'error', message });
const body = JSON.stringify(MAIL);
const QUICK = { headersTimeoutMs: 150, requestTimeoutMs: 300, timeoutCheckMs: 20 };

/** A connection, what came over it so far, and whether it has ended. */
async function opened(rig: Rig): Promise<{ socket: Socket; text: () => string; ended: () => boolean }> {
  let text = '';
  let ended = false;
  const socket = connect(rig.at.port, '127.0.0.1');
  sockets.push(socket);
  socket.on('data', (chunk) => {
    text += chunk.toString();
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    ended = true;
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  return { socket, text: () => text, ended: () => ended };
}

describe('requests that are none', () => {
  test.each([
    ['garbage', 'hello there\r\n\r\n'],
    ['an unknown method', request(body).replace('POST', 'PO ST')],
    ['two different lengths', request(body, ['Content-Length: 3'])],
    ['length and chunks', request(body, ['Transfer-Encoding: chunked'])],
    ['a bare line feed in the headers', 'POST /api/v1/send-mail HTTP/1.1\nHost: a\n\n'],
    ['folded headers', request(body, ['X-A: b\r\n c'])],
    ['a NUL in a header', request(body, ['X-A: b\0c'])],
    ['a negative length', request('').replace('Content-Length: 0', 'Content-Length: -1')],
  ])('%s: 400 in the same shape, connection closed', async (_name, bytes) => {
    const rig = await rigged();
    const answer = parsed(await raw(rig, bytes));
    expect([answer.status, answer.body]).toEqual([400, error('Malformed HTTP request')]);
    expect(answer.head).toContain('Content-Type: application/json');
    expect(rig.seen.submitted).toHaveLength(0);
  });

  test('a request is submitted once at most, whatever follows on its connection', async () => {
    let commit = (_answer: AcceptResult): void => {};
    const rig = await rigged({ submit: () => new Promise((resolve) => (commit = resolve)) });
    const { socket, text, ended } = await opened(rig);
    socket.write(request(body).replace('Connection: close\r\n', ''));
    await until(() => rig.seen.submitted.length === 1);
    socket.write('garbage garbage\r\n\r\n');
    // A whole round trip on another connection: the garbage has been read by then.
    await fetch(`${rig.at.url}/healthz`);
    expect(text()).toBe('');
    commit(ACCEPTED);
    await until(ended);
    expect(text()).toMatch(/^HTTP\/1\.1 201 /);
    expect(text().match(/HTTP\/1\.1 /g)).toHaveLength(1);
  });

  test('headers over 16 KiB: 431', async () => {
    const rig = await rigged();
    const answer = parsed(await raw(rig, request(body, [`X-Long: ${'x'.repeat(20_000)}`])));
    expect([answer.status, answer.body]).toEqual([431, error('Request header fields too large')]);
  });

  test('no Host and two Hosts: 400', async () => {
    const rig = await rigged();
    const message = 'Exactly one Host header is required';
    for (const bytes of [request(body).replace('Host: localhost\r\n', ''), request(body, ['hOST: localhost'])]) {
      expect(parsed(await raw(rig, bytes))).toMatchObject({ status: 400, body: error(message) });
    }
    expect(rig.seen.submitted).toHaveLength(0);
  });

  test('an expectation other than 100-continue: 417; CONNECT: 404', async () => {
    const rig = await rigged();
    expect(parsed(await raw(rig, request(body, ['Expect: tea'])))).toMatchObject({
      status: 417,
      body: error('Expectation failed'),
    });
    const tunnel = 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n';
    expect(parsed(await raw(rig, tunnel))).toMatchObject({ status: 404, body: error('Not found') });
  });

  test('an Upgrade is ignored', async () => {
    const rig = await rigged();
    const answer = await raw(rig, request(body, ['Upgrade: h2c']));
    expect(parsed(answer).status).toBe(201);
  });
});

describe('slow clients', () => {
  test('headers that never end: 408', async () => {
    const rig = await rigged({ limits: QUICK });
    const { socket, text, ended } = await opened(rig);
    socket.write('POST /api/v1/send-mail HTTP/1.1\r\nHost: a\r\nX-Slow:');
    await until(ended);
    expect(parsed(text())).toMatchObject({ status: 408, body: error('Request timeout') });
  });

  test('a connection that says nothing is ended', async () => {
    const rig = await rigged({ limits: QUICK });
    const { ended } = await opened(rig);
    await until(ended);
  });

  test('a body that trickles: 408, and the request counts no more as in flight', async () => {
    const rig = await rigged({ limits: { ...QUICK, maxInFlight: 1 } });
    const { socket, text, ended } = await opened(rig);
    socket.write(`${request('').replace('Content-Length: 0', 'Content-Length: 1000')}{"to":`);
    await until(ended);
    expect(parsed(text())).toMatchObject({ status: 408, body: error('Request timeout') });
    // On a busy machine a whole request, too, may take longer than these limits.
    await eventually(rig, 201);
  });

  test('a refused body that never comes holds the connection no longer than the linger time', async () => {
    const rig = await rigged({ limits: { lingerMs: 50 } });
    const { socket, text, ended } = await opened(rig);
    socket.write(request('').replace(KEY, 'wrong').replace('Content-Length: 0', 'Content-Length: 1000'));
    await until(ended);
    expect(parsed(text())).toMatchObject({ status: 401 });
  });

  test('a refused body may still arrive before the connection is closed, so that the answer is not lost', async () => {
    const rig = await rigged({ limits: { lingerMs: 60_000 } });
    const { socket, text, ended } = await opened(rig);
    socket.write(request('').replace(KEY, 'wrong').replace('Content-Length: 0', 'Content-Length: 1000'));
    await until(() => text().includes('Invalid API key'));
    // A round trip on another connection: a close would have been seen by then.
    await fetch(`${rig.at.url}/healthz`);
    await fetch(`${rig.at.url}/healthz`);
    expect(ended()).toBe(false);
    socket.write('x'.repeat(1000));
    await until(ended);
    expect(text()).toMatch(/\r\nConnection: close\r\n/);
  });

  const slow = `${request('').replace('Content-Length: 0', 'Content-Length: 1000')}{`;
  const OTHER = `pr_${'o'.repeat(43)}`;

  test('slow bodies of one account refuse that account alone, and only until they end', async () => {
    const rig = await rigged({ limits: { maxReadingPerAccount: 3, maxInFlight: 1 } });
    rig.directory.apply({
      revision: 2,
      accounts: [account({ id: 2 })],
      keys: [apiKey(OTHER, { id: 2, accountId: 2 })],
    });
    const clients = await Promise.all([1, 2, 3].map(() => opened(rig)));
    for (const { socket } of clients) socket.write(slow);
    await until(() => rig.seen.passed === 3);
    const refused = await post(rig, MAIL);
    expect([refused.status, refused.body, refused.headers.get('retry-after')]).toEqual([
      429,
      error('Too many requests'),
      '1',
    ]);
    expect(rig.seen.refused).toEqual(['too-many-bodies']);
    for (let i = 0; i < 20; i += 1) expect((await post(rig, MAIL, { Authorization: OTHER })).status).toBe(201);
    clients[0]?.socket.destroy();
    await eventually(rig, 201);
  });

  test('a body that arrives counts as in flight only once it is whole', async () => {
    let commit = (_answer: AcceptResult): void => {};
    const rig = await rigged({
      limits: { maxInFlight: 1 },
      submit: () => new Promise((resolve) => (commit = resolve)),
    });
    const { socket, text } = await opened(rig);
    const whole = request(body);
    socket.write(whole.slice(0, -1));
    await until(() => rig.seen.passed === 1);
    const first = post(rig, MAIL);
    await until(() => rig.seen.submitted.length === 1);
    socket.write(whole.slice(-1));
    await until(() => text() !== '');
    expect(parsed(text())).toMatchObject({ status: 429, body: error('Too many requests') });
    commit(ACCEPTED);
    expect((await first).status).toBe(201);
  });

  test('what all bodies hold together is bounded, and so is the share of one account', async () => {
    const pending: (() => void)[] = [];
    const rig = await rigged({
      limits: { maxBufferedBytes: 8_000 },
      submit: () => new Promise((resolve) => pending.push(() => resolve(ACCEPTED))),
    });
    rig.directory.apply({
      revision: 2,
      accounts: [2, 3].map((id) => account({ id })),
      keys: [2, 3].map((id) => apiKey(`${OTHER.slice(0, -1)}${id}`, { id, accountId: id })),
    });
    const large = { ...MAIL, message: 'x'.repeat(3_000) };
    const as = (id: number) => ({ Authorization: id === 1 ? KEY : `${OTHER.slice(0, -1)}${id}` });
    const first = post(rig, large);
    await until(() => pending.length === 1);
    // Half of the whole is the most that one account may hold.
    expect((await post(rig, large)).status).toBe(429);
    const second = post(rig, large, as(2));
    await until(() => pending.length === 2);
    expect((await post(rig, large, as(3))).status).toBe(429);
    expect(rig.seen.refused).toEqual(['too-many-bodies', 'overloaded']);
    for (const answer of pending.splice(0)) answer();
    expect([(await first).status, (await second).status]).toEqual([201, 201]);
    const third = post(rig, large, as(3));
    await until(() => pending.length === 1);
    pending[0]?.();
    expect((await third).status).toBe(201);
  });

  test('a client that leaves in the middle of its body counts no more', async () => {
    const rig = await rigged({ limits: { maxReadingPerAccount: 1 } });
    const { socket } = await opened(rig);
    socket.write(slow);
    await until(() => rig.seen.passed === 1);
    expect((await post(rig, MAIL)).status).toBe(429);
    socket.destroy();
    await eventually(rig, 201);
  });

  test('a body that is still arriving when the drain begins is waited for and answered', async () => {
    const rig = await rigged();
    const { socket, text, ended } = await opened(rig);
    const whole = request(body);
    socket.write(whole.slice(0, -1));
    await until(() => rig.seen.passed === 1);
    const drained = rig.listener.drain(60_000);
    await expect(fetch(`${rig.at.url}/healthz`)).rejects.toThrow();
    socket.write(whole.slice(-1));
    await drained;
    await until(ended);
    expect(text()).toMatch(/^HTTP\/1\.1 201 /);
  });

  async function eventually(rig: Rig, status: number): Promise<void> {
    while ((await post(rig, MAIL)).status !== status);
  }
});

describe('the observer', () => {
  test('hears of every refusal, also of those below HTTP', async () => {
    // Short for the one request that never ends, long for the others on a busy machine.
    const limits = { ...QUICK, headersTimeoutMs: 2_000, requestTimeoutMs: 4_000 };
    const rig = await rigged({ limits, notReadyReason: () => 'no' });
    await raw(rig, 'hello there\r\n\r\n');
    await raw(rig, request(body).replace('Host: localhost\r\n', ''));
    await raw(rig, request(body, ['Expect: tea']));
    await raw(rig, request(body, [`X-Long: ${'x'.repeat(20_000)}`]));
    await raw(rig, 'POST /api/v1/send-mail HTTP/1.1\r\nHost: a\r\nX-Slow:');
    await raw(rig, 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n');
    await fetch(`${rig.at.url}/readyz`);
    expect(rig.seen.refused).toEqual([
      'malformed-request',
      'invalid-host',
      'expectation-failed',
      'headers-too-large',
      'request-timeout',
      'not-found',
      'not-ready',
    ]);
  });

  test('hears nothing of a client that just went away', async () => {
    const rig = await rigged();
    const { socket } = await opened(rig);
    socket.write('POST /api/v1/send-mail HTTP/1.1\r\nHo');
    await fetch(`${rig.at.url}/healthz`);
    socket.resetAndDestroy();
    await fetch(`${rig.at.url}/healthz`);
    expect(rig.seen.refused).toEqual([]);
  });
});

describe('health', () => {
  test('/healthz and /readyz answer GET and HEAD, without a key; others are not allowed', async () => {
    let reason: string | null = null;
    const rig = await rigged({ notReadyReason: () => reason });
    const ask = async (path: string, method = 'GET') => got(await fetch(rig.at.url + path, { method }));
    expect(await ask('/healthz')).toMatchObject({ status: 200, body: { result: 'ok', message: 'alive' } });
    expect(await ask('/readyz')).toMatchObject({ status: 200, body: { result: 'ok', message: 'ready' } });
    expect(await ask('/readyz', 'HEAD')).toMatchObject({ status: 200, text: '' });
    const refused = await ask('/readyz', 'POST');
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    reason = 'the store cannot commit';
    expect(await ask('/readyz')).toMatchObject({ status: 503, body: error('Not ready: the store cannot commit') });
    expect(await ask('/healthz')).toMatchObject({ status: 200 });
  });
});

describe('drain', () => {
  test('answers what is in flight, is no longer ready, takes no new connection, and ends', async () => {
    let commit = (_answer: AcceptResult): void => {};
    const rig = await rigged({ submit: () => new Promise((resolve) => (commit = resolve)) });
    const idle = await opened(rig);
    const busy = await opened(rig);
    busy.socket.write(request(body).replace('Connection: close\r\n', ''));
    await until(() => rig.seen.submitted.length === 1);
    const drained = rig.listener.drain(60_000);
    await expect(fetch(`${rig.at.url}/readyz`)).rejects.toThrow();
    commit(ACCEPTED);
    await drained;
    await until(() => busy.ended() && idle.ended());
    expect(busy.text()).toMatch(/^HTTP\/1\.1 201 /);
    expect(busy.text()).toMatch(/\r\nConnection: close\r\n/);
  });

  test('readyz says draining on a connection that is still there', async () => {
    let commit = (_answer: AcceptResult): void => {};
    const rig = await rigged({ submit: () => new Promise((resolve) => (commit = resolve)) });
    const { socket, text, ended } = await opened(rig);
    socket.write(request(body).replace('Connection: close\r\n', ''));
    await until(() => rig.seen.submitted.length === 1);
    const second = await opened(rig);
    second.socket.write('GET /readyz HTTP/1.1\r\nHost: a\r\n');
    await fetch(`${rig.at.url}/healthz`);
    const drained = rig.listener.drain(60_000);
    second.socket.write('\r\n');
    await until(second.ended);
    expect(parsed(second.text())).toMatchObject({ status: 503, body: error('Not ready: draining') });
    commit(ACCEPTED);
    await drained;
    await until(ended);
    expect(text()).toMatch(/^HTTP\/1\.1 201 /);
    socket.destroy();
  });

  test('ends within its bound when an answer never comes', async () => {
    const rig = await rigged({ submit: () => new Promise(() => {}) });
    const { socket, ended } = await opened(rig);
    socket.write(request(body));
    await until(() => rig.seen.submitted.length === 1);
    await rig.listener.drain(50);
    await until(ended);
  });
});

describe('start', () => {
  const at = (host: string, port: number) => ({
    settings: {
      listen: { host, port },
      tls: null,
      senders: 'any' as const,
      transport: { kind: 'capture' as const },
      maxRequestBytes: 1000,
      trustedProxies: [],
    },
  });

  test('a port in use is one clear line', async () => {
    const rig = await rigged();
    await expect(startRig(at('127.0.0.1', rig.at.port))).rejects.toThrow(
      `POSTRIDER_LISTEN 127.0.0.1:${rig.at.port}: the port is in use; stop the process that has it, or choose another`,
    );
  });

  test('an address of another machine is one clear line', async () => {
    await expect(startRig(at('192.0.2.1', 0))).rejects.toThrow(
      /^POSTRIDER_LISTEN 192\.0\.2\.1:0: this machine has no such address; /,
    );
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findIgnoredFields } from '../../../src/http/protocol.ts';
import type { AcceptResult } from '../../../src/model/message.ts';
import { selectCaseCount } from '../../rig/sample.ts';
import {
  ACCEPTED,
  connectClient,
  createAccount,
  createApiKey,
  createRawRequest,
  KEY,
  MESSAGE,
  parseRawResponse,
  postBody,
  type Rig,
  sendRaw,
  startListener,
  toReceivedResponse,
  waitUntil,
} from './rig.ts';

const createErrorBody = (message: string) => ({ result: 'error', message });
const body = JSON.stringify(MESSAGE);
const SHORT_TIMEOUTS = { headersTimeoutMs: 150, requestTimeoutMs: 300, timeoutCheckMs: 20 };

describe('a malformed request', () => {
  test.each([
    ['text that is not HTTP', 'hello there\r\n\r\n'],
    ['a space in the method', createRawRequest(body).replace('POST', 'PO ST')],
    ['two different values of Content-Length', createRawRequest(body, ['Content-Length: 3'])],
    ['Content-Length and Transfer-Encoding', createRawRequest(body, ['Transfer-Encoding: chunked'])],
    ['Transfer-Encoding in HTTP/1.0', 'POST /api/v1/send-mail HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['a bare line feed in the headers', 'POST /api/v1/send-mail HTTP/1.1\nHost: a\n\n'],
    ['a folded header', createRawRequest(body, ['X-A: b\r\n c'])],
    ['a NUL in a header', createRawRequest(body, ['X-A: b\0c'])],
    ['a negative Content-Length', createRawRequest('').replace('Content-Length: 0', 'Content-Length: -1')],
  ])('with %s is refused with a 400 and the common error body, and the connection is closed', async (_name, bytes) => {
    const rig = await startListener();
    const response = parseRawResponse(await sendRaw(rig, bytes));
    expect([response.status, response.body]).toEqual([400, createErrorBody('Malformed HTTP request')]);
    expect(response.head).toContain('Content-Type: application/json');
    expect(rig.recordedEvents.submittedMessages).toHaveLength(0);
  });

  test('headers above 16 KiB cause status 431', async () => {
    const rig = await startListener();
    const response = parseRawResponse(await sendRaw(rig, createRawRequest(body, [`X-Long: ${'x'.repeat(20_000)}`])));
    expect([response.status, response.body]).toEqual([431, createErrorBody('Request header fields too large')]);
  });

  test('a request without a Host header or with two Host headers causes status 400', async () => {
    const rig = await startListener();
    const message = 'Exactly one Host header is required';
    for (const bytes of [
      createRawRequest(body).replace('Host: localhost\r\n', ''),
      createRawRequest(body, ['hOST: localhost']),
    ]) {
      expect(parseRawResponse(await sendRaw(rig, bytes))).toMatchObject({
        status: 400,
        body: createErrorBody(message),
      });
    }
    expect(rig.recordedEvents.submittedMessages).toHaveLength(0);
  });

  test('an expectation other than 100-continue causes status 417, and CONNECT causes status 404', async () => {
    const rig = await startListener();
    expect(parseRawResponse(await sendRaw(rig, createRawRequest(body, ['Expect: tea'])))).toMatchObject({
      status: 417,
      body: createErrorBody('Expectation failed'),
    });
    const connectRequest = 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n';
    expect(parseRawResponse(await sendRaw(rig, connectRequest))).toMatchObject({
      status: 404,
      body: createErrorBody('Not found'),
    });
  });
});

describe('slow clients', () => {
  test('incomplete headers cause status 408', async () => {
    const rig = await startListener({ limits: SHORT_TIMEOUTS });
    const { socket, readReceived, isClosed } = await connectClient(rig);
    socket.write('POST /api/v1/send-mail HTTP/1.1\r\nHost: a\r\nX-Slow:');
    await waitUntil(isClosed);
    expect(parseRawResponse(readReceived())).toMatchObject({ status: 408, body: createErrorBody('Request timeout') });
  });

  test('an incomplete body causes status 408, and the request is no longer counted as in flight', async () => {
    const rig = await startListener({ limits: { ...SHORT_TIMEOUTS, maxInFlight: 1 } });
    const { socket, readReceived, isClosed } = await connectClient(rig);
    socket.write(`${createRawRequest('').replace('Content-Length: 0', 'Content-Length: 1000')}{"to":`);
    await waitUntil(isClosed);
    expect(parseRawResponse(readReceived())).toMatchObject({ status: 408, body: createErrorBody('Request timeout') });
    // On a slow machine, a complete request can also exceed these timeouts.
    await postUntilStatus(rig, 201);
  });

  test('if the body of a refused request does not arrive, the connection is closed after the linger time', async () => {
    const rig = await startListener({ limits: { maxLingerMs: 50 } });
    const { socket, readReceived, isClosed } = await connectClient(rig);
    socket.write(createRawRequest('').replace(KEY, 'wrong').replace('Content-Length: 0', 'Content-Length: 1000'));
    await waitUntil(isClosed);
    expect(parseRawResponse(readReceived())).toMatchObject({ status: 401 });
  });

  test('the connection remains open for the body of a refused request, so that the client receives the response', async () => {
    const rig = await startListener({ limits: { maxLingerMs: 60_000 } });
    const { socket, readReceived, isClosed } = await connectClient(rig);
    socket.write(createRawRequest('').replace(KEY, 'wrong').replace('Content-Length: 0', 'Content-Length: 1000'));
    await waitUntil(() => readReceived().includes('Invalid API key'));
    // During these requests, the client would detect that the server has closed the first connection.
    await fetch(`${rig.address.url}/healthz`);
    await fetch(`${rig.address.url}/healthz`);
    expect(isClosed()).toBe(false);
    socket.write('x'.repeat(1000));
    await waitUntil(isClosed);
    expect(readReceived()).toMatch(/\r\nConnection: close\r\n/);
  });

  const incompleteRequest = `${createRawRequest('').replace('Content-Length: 0', 'Content-Length: 1000')}{`;
  const OTHER_KEY = `pr_${'o'.repeat(43)}`;

  test('too many incomplete bodies of an account cause refusals for this account only, until one of their connections is closed', async () => {
    const rig = await startListener({ limits: { maxBodiesPerOwner: 3, maxInFlight: 1 } });
    rig.keyCache.apply({
      revision: 2,
      accounts: [createAccount({ id: 2 })],
      keys: [createApiKey(OTHER_KEY, { id: 2, accountId: 2 })],
    });
    const clients = await Promise.all([1, 2, 3].map(() => connectClient(rig)));
    for (const { socket } of clients) socket.write(incompleteRequest);
    await waitUntil(() => rig.recordedEvents.authenticatedRequestCount === 3);
    const refusedResponse = await postBody(rig, MESSAGE);
    expect([refusedResponse.status, refusedResponse.body, refusedResponse.headers.get('retry-after')]).toEqual([
      429,
      createErrorBody('Too many requests'),
      '1',
    ]);
    expect(rig.recordedEvents.refusals).toEqual(['too-many-bodies']);
    for (let i = 0; i < 20; i += 1)
      expect((await postBody(rig, MESSAGE, { Authorization: OTHER_KEY })).status).toBe(201);
    clients[0]?.socket.destroy();
    await postUntilStatus(rig, 201);
  });

  test('a request counts as in flight only after its body is complete', async () => {
    let commit = (_result: AcceptResult): void => {};
    const rig = await startListener({
      limits: { maxInFlight: 1 },
      submit: () => new Promise((resolve) => (commit = resolve)),
    });
    const { socket, readReceived } = await connectClient(rig);
    const fullRequest = createRawRequest(body);
    socket.write(fullRequest.slice(0, -1));
    await waitUntil(() => rig.recordedEvents.authenticatedRequestCount === 1);
    const firstResponse = postBody(rig, MESSAGE);
    await waitUntil(() => rig.recordedEvents.submittedMessages.length === 1);
    socket.write(fullRequest.slice(-1));
    await waitUntil(() => readReceived() !== '');
    expect(parseRawResponse(readReceived())).toMatchObject({ status: 429, body: createErrorBody('Too many requests') });
    commit(ACCEPTED);
    expect((await firstResponse).status).toBe(201);
  });

  test('the total size of the bodies in memory is limited for all accounts together and for each account', async () => {
    const pendingCommits: (() => void)[] = [];
    const rig = await startListener({
      limits: { maxBytes: 8_000 },
      submit: () => new Promise((resolve) => pendingCommits.push(() => resolve(ACCEPTED))),
    });
    rig.keyCache.apply({
      revision: 2,
      accounts: [2, 3].map((id) => createAccount({ id })),
      keys: [2, 3].map((id) => createApiKey(`${OTHER_KEY.slice(0, -1)}${id}`, { id, accountId: id })),
    });
    const largeMessage = { ...MESSAGE, message: 'x'.repeat(3_000) };
    const createAuthorization = (id: number) => ({ Authorization: id === 1 ? KEY : `${OTHER_KEY.slice(0, -1)}${id}` });
    const firstResponse = postBody(rig, largeMessage);
    await waitUntil(() => pendingCommits.length === 1);
    // The limit of one account is half of the total limit.
    expect((await postBody(rig, largeMessage)).status).toBe(429);
    const secondResponse = postBody(rig, largeMessage, createAuthorization(2));
    await waitUntil(() => pendingCommits.length === 2);
    expect((await postBody(rig, largeMessage, createAuthorization(3))).status).toBe(429);
    expect(rig.recordedEvents.refusals).toEqual(['too-many-bodies', 'overloaded']);
    for (const commit of pendingCommits.splice(0)) commit();
    expect([(await firstResponse).status, (await secondResponse).status]).toEqual([201, 201]);
    const thirdResponse = postBody(rig, largeMessage, createAuthorization(3));
    await waitUntil(() => pendingCommits.length === 1);
    pendingCommits[0]?.();
    expect((await thirdResponse).status).toBe(201);
  });

  test('a drain waits for a body that is still being received and responds to the request', async () => {
    const rig = await startListener();
    const { socket, readReceived, isClosed } = await connectClient(rig);
    const fullRequest = createRawRequest(body);
    socket.write(fullRequest.slice(0, -1));
    await waitUntil(() => rig.recordedEvents.authenticatedRequestCount === 1);
    const drain = rig.listener.drain(60_000);
    await expect(fetch(`${rig.address.url}/healthz`)).rejects.toThrow();
    socket.write(fullRequest.slice(-1));
    await drain;
    await waitUntil(isClosed);
    expect(readReceived()).toMatch(/^HTTP\/1\.1 201 /);
  });

  async function postUntilStatus(rig: Rig, status: number): Promise<void> {
    while ((await postBody(rig, MESSAGE)).status !== status);
  }
});

describe('the published events', () => {
  test('contain every refusal, including those of malformed requests', async () => {
    // The timeouts are short for the incomplete request, and long enough for the complete requests on a slow machine.
    const limits = { ...SHORT_TIMEOUTS, headersTimeoutMs: 2_000, requestTimeoutMs: 4_000 };
    const rig = await startListener({ limits, getNotReadyReason: () => 'no' });
    await sendRaw(rig, 'hello there\r\n\r\n');
    await sendRaw(rig, createRawRequest(body).replace('Host: localhost\r\n', ''));
    await sendRaw(rig, createRawRequest(body, ['Expect: tea']));
    await sendRaw(rig, createRawRequest(body, [`X-Long: ${'x'.repeat(20_000)}`]));
    await sendRaw(rig, 'POST /api/v1/send-mail HTTP/1.1\r\nHost: a\r\nX-Slow:');
    await sendRaw(rig, 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n');
    await fetch(`${rig.address.url}/readyz`);
    expect(rig.recordedEvents.refusals).toEqual([
      ...'malformed-request invalid-host expectation-failed headers-too-large request-timeout'.split(' '),
      ...'not-found not-ready'.split(' '),
    ]);
  });

  test('contain no refusal for a client that disconnected', async () => {
    const rig = await startListener();
    const { socket } = await connectClient(rig);
    socket.write('POST /api/v1/send-mail HTTP/1.1\r\nHo');
    await fetch(`${rig.address.url}/healthz`);
    socket.resetAndDestroy();
    await fetch(`${rig.address.url}/healthz`);
    expect(rig.recordedEvents.refusals).toEqual([]);
  });
});

describe('health', () => {
  test('/healthz and /readyz support GET and HEAD without a key, and refuse other methods', async () => {
    let reason: string | null = null;
    const rig = await startListener({ getNotReadyReason: () => reason });
    const fetchPath = async (path: string, method = 'GET') =>
      toReceivedResponse(await fetch(rig.address.url + path, { method }));
    expect(await fetchPath('/healthz')).toMatchObject({ status: 200, body: { result: 'ok', message: 'alive' } });
    expect(await fetchPath('/readyz')).toMatchObject({ status: 200, body: { result: 'ok', message: 'ready' } });
    expect(await fetchPath('/readyz', 'HEAD')).toMatchObject({ status: 200, text: '' });
    // An encoded path is the same path. A path that cannot be decoded is unknown.
    expect(await fetchPath('/%72eadyz?a=b')).toMatchObject({ status: 200 });
    expect(await fetchPath('/readyz%ff')).toMatchObject({ status: 404 });
    const refusedResponse = await fetchPath('/readyz', 'POST');
    expect([refusedResponse.status, refusedResponse.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    reason = 'the store cannot commit';
    expect(await fetchPath('/readyz')).toMatchObject({
      status: 503,
      body: createErrorBody('Not ready: the store cannot commit'),
    });
    expect(await fetchPath('/healthz')).toMatchObject({ status: 200 });
  });
});

describe('drain', () => {
  test('answers requests in flight, refuses new connections, and ends', async () => {
    let commit = (_result: AcceptResult): void => {};
    const rig = await startListener({ submit: () => new Promise((resolve) => (commit = resolve)) });
    const idleConnection = await connectClient(rig);
    const busyConnection = await connectClient(rig);
    busyConnection.socket.write(createRawRequest(body).replace('Connection: close\r\n', ''));
    await waitUntil(() => rig.recordedEvents.submittedMessages.length === 1);
    const drain = rig.listener.drain(60_000);
    await expect(fetch(`${rig.address.url}/readyz`)).rejects.toThrow();
    commit(ACCEPTED);
    await drain;
    await waitUntil(() => busyConnection.isClosed() && idleConnection.isClosed());
    expect(busyConnection.readReceived()).toMatch(/^HTTP\/1\.1 201 /);
    expect(busyConnection.readReceived()).toMatch(/\r\nConnection: close\r\n/);
  });

  test('/readyz reports draining on a connection that was opened before the drain', async () => {
    let commit = (_result: AcceptResult): void => {};
    const rig = await startListener({ submit: () => new Promise((resolve) => (commit = resolve)) });
    const { socket, readReceived, isClosed } = await connectClient(rig);
    socket.write(createRawRequest(body).replace('Connection: close\r\n', ''));
    await waitUntil(() => rig.recordedEvents.submittedMessages.length === 1);
    const secondConnection = await connectClient(rig);
    secondConnection.socket.write('GET /readyz HTTP/1.1\r\nHost: a\r\n');
    await fetch(`${rig.address.url}/healthz`);
    const drain = rig.listener.drain(60_000);
    secondConnection.socket.write('\r\n');
    await waitUntil(secondConnection.isClosed);
    expect(parseRawResponse(secondConnection.readReceived())).toMatchObject({
      status: 503,
      body: createErrorBody('Not ready: draining'),
    });
    commit(ACCEPTED);
    await drain;
    await waitUntil(isClosed);
    expect(readReceived()).toMatch(/^HTTP\/1\.1 201 /);
    socket.destroy();
  });

  test('ends within its timeout if a request is never answered', async () => {
    const rig = await startListener({ submit: () => new Promise(() => {}) });
    const { socket, isClosed } = await connectClient(rig);
    socket.write(createRawRequest(body));
    await waitUntil(() => rig.recordedEvents.submittedMessages.length === 1);
    await rig.listener.drain(50);
    await waitUntil(isClosed);
  });
});

const FIELDS = { to: 'a@b.example', from: 'c@d.example', subject: 's', message: 'm' };

function readIgnoredFields(extraMembers: string): ReturnType<typeof findIgnoredFields> {
  const body = Buffer.from(`{${extraMembers}${extraMembers === '' ? '' : ','}${JSON.stringify(FIELDS).slice(1)}`);
  return findIgnoredFields(body, JSON.parse(body.toString()));
}

test('a body without unknown members has no ignored fields', () => {
  expect(readIgnoredFields('')).toBeNull();
  expect(readIgnoredFields('"to":"x@y.example"')).toBeNull();
});

test.each([
  ['"cc":1,"attachments":[]', 2, ['cc', 'attachments']],
  ['"attachments":[],"cc":1', 2, ['attachments', 'cc']],
  // The names are in the order of the body. A JavaScript object would list numeric names first.
  ['"zz":1,"10":2,"9":3', 3, ['zz', '10', '9']],
  ['"cc":1,"cc":2,"bcc":3', 2, ['cc', 'bcc']],
  ['"__proto__":{"to":1},"constructor":1', 2, ['__proto__', 'constructor']],
  ['"c\\u0063":1,"To":"x"', 2, ['cc', 'To']],
  // Members of nested objects are not members of the body.
  ['"a":{"b":1,"c":{"d":[{"e":1}]}},"f":["{\\"g\\":1}"],"h":"\\"i\\":{"', 3, ['a', 'f', 'h']],
  ['"":1,"é":2,"a b":3,"a,b":4,"a\\r\\nSet-Cookie":5,"a\\u0000":6,"\\ud800":7', 7, []],
  [`"${'n'.repeat(64)}":1,"${'n'.repeat(65)}":2`, 2, ['n'.repeat(64)]],
  [`"${'\\u006e'.repeat(64)}":1`, 1, ['n'.repeat(64)]],
  [' \n"a" \t: {} , "b" : "\\\\" , "c":"\\\\\\"","d":1', 4, ['a', 'b', 'c', 'd']],
])('the ignored fields of a body that begins with %s are counted and listed', (extraMembers, count, names) => {
  expect(readIgnoredFields(extraMembers)).toEqual({ count, names });
});

test('at most ten names are listed, and all unknown members are counted', () => {
  const extraMembers = Array.from({ length: 5_000 }, (_, index) => `"x${index}":${index}`).join(',');
  expect(readIgnoredFields(extraMembers)).toEqual({
    count: 5_000,
    names: Array.from({ length: 10 }, (_, index) => `x${index}`),
  });
});

test('for any JSON object, the names are the first ten unknown members that are allowed in a header', () => {
  const name = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 6 }),
    fc.constantFrom('cc', 'bcc', '10', '__proto__', 'a"b', 'a\\'),
  );
  fc.assert(
    fc.property(fc.dictionary(name, fc.jsonValue(), { maxKeys: 12 }), (extraMembers) => {
      const unknownNames = Object.keys(extraMembers).filter((member) => !Object.hasOwn(FIELDS, member));
      const text = JSON.stringify(extraMembers).slice(1, -1);
      const ignoredFields = readIgnoredFields(text);
      expect(ignoredFields?.count ?? 0).toBe(unknownNames.length);
      const permittedNames = unknownNames.filter((member) => /^[A-Za-z0-9_-]{1,64}$/.test(member));
      expect(ignoredFields?.names ?? []).toEqual(permittedNames.slice(0, 10));
    }),
    { seed: 28, numRuns: selectCaseCount(100, 500) },
  );
});

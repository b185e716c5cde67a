import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import type { ListenerOptions } from '../../../src/http/listener.ts';
import { computeFingerprint } from '../../../src/http/protocol.ts';
import type { AcceptResult } from '../../../src/model/message.ts';
import { createSmtpSetting } from '../../rig/smtp-message.ts';
import {
  ACCEPTED,
  connectClient,
  createAccount,
  createApiKey,
  createRawRequest,
  KEY,
  LISTENER_SETTINGS,
  MESSAGE,
  NO_LIMITS,
  parseRawResponse,
  postBody,
  sendRaw,
  startListener,
  toReceivedResponse,
  waitUntil,
} from './rig.ts';

const createErrorBody = (message: string) => ({ result: 'error', message });
const withSubmitResult = (result: AcceptResult) => ({ submit: () => Promise.resolve(result) });
const withSettings = (changes: Partial<ListenerOptions['settings']>): { settings: ListenerOptions['settings'] } => ({
  settings: { ...LISTENER_SETTINGS, ...changes },
});
const SMTP_TRANSPORT = createSmtpSetting(25);

describe('201', () => {
  test('contains exactly result.id, a lower-case UUIDv7, and no header that names the server software', async () => {
    const rig = await startListener();
    const response = await postBody(rig, { ...MESSAGE, unknown: { member: 1 } });
    expect(response.status).toBe(201);
    expect(response.text).toBe(`{"result":{"id":"${rig.recordedEvents.submittedMessages[0]?.id}"}}`);
    expect(response.text).toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.headers.get('server')).toBeNull();
    expect(response.headers.get('x-powered-by')).toBeNull();
    expect(response.headers.get('ratelimit')).toBeNull();
    expect(rig.recordedEvents.acceptedCount).toBe(1);
  });

  test('an account can refuse unknown members, after missing fields and types are checked', async () => {
    const rig = await startListener();
    rig.keyCache.apply({ revision: 2, accounts: [createAccount({ unknownFields: 'refuse' })], keys: [] });
    const refuse = async (body: object) => (await postBody(rig, body)).body;
    expect(await refuse({ ...MESSAGE, cc: 'x', html: '', 'prix €': 1 })).toMatchObject({
      message: 'Unknown fields: cc, html',
    });
    expect(await refuse({ ...MESSAGE, subject: 1, cc: 'x' })).toMatchObject({
      message: 'Fields must be strings: subject',
    });
    expect(rig.recordedEvents.submittedMessages).toEqual([]);
    expect((await postBody(rig, MESSAGE)).status).toBe(201);
  });

  test('lists the ignored members, also for a replay, and no other response lists them', async () => {
    const rig = await startListener();
    const body = { cc: 'x', ...MESSAGE, attachments: [], 'prix €': 1 };
    expect((await postBody(rig, body)).headers.get('postrider-ignored-fields')).toBe('cc, attachments');
    expect((await postBody(rig, { ...MESSAGE, 'prix €': 1 })).headers.get('postrider-ignored-fields')).toBeNull();
    expect((await postBody(rig, MESSAGE)).headers.get('postrider-ignored-fields')).toBeNull();
    expect((await postBody(rig, { ...body, to: 'x' })).headers.get('postrider-ignored-fields')).toBeNull();
    expect(rig.recordedEvents.ignoredFieldCounts).toEqual([3, 1]);
    const replayingListener = await startListener(
      withSubmitResult({ kind: 'replayed', id: '01936f2e-7c4b-7a10-9b1e-5d0c3a9f4e21' }),
    );
    const replayedResponse = await postBody(replayingListener, body, { 'Idempotency-Key': 'k' });
    expect(replayedResponse.headers.get('idempotency-replayed')).toBe('true');
    expect(replayedResponse.headers.get('postrider-ignored-fields')).toBe('cc, attachments');
    const exhaustedListener = await startListener(
      withSubmitResult({ kind: 'refused', reason: 'volume-exhausted', limits: { rate: null } }),
    );
    expect((await postBody(exhaustedListener, body)).headers.get('postrider-ignored-fields')).toBeNull();
    expect([
      replayingListener.recordedEvents.ignoredFieldCounts,
      exhaustedListener.recordedEvents.ignoredFieldCounts,
    ]).toEqual([[3], []]);
  });

  test('is sent only after the commit', async () => {
    let commit = (_result: AcceptResult): void => {};
    const rig = await startListener({ submit: () => new Promise((resolve) => (commit = resolve)) });
    let isAnswered = false;
    const response = postBody(rig, MESSAGE).finally(() => {
      isAnswered = true;
    });
    await waitUntil(() => rig.recordedEvents.submittedMessages.length === 1);
    expect((await fetch(`${rig.address.url}/healthz`)).status).toBe(200);
    expect(isAnswered).toBe(false);
    commit(ACCEPTED);
    expect((await response).status).toBe(201);
  });

  test('is sent after the four fields were submitted unchanged, with the ids of the account and of the key', async () => {
    const rig = await startListener();
    const submittedFields = {
      to: 'Ada@EXAMPLE.com',
      from: 'shop@example.org',
      subject: 'Grüße 👋',
      message: 'a\r\nb\u2028c',
    };
    await postBody(rig, submittedFields);
    expect(rig.recordedEvents.submittedMessages[0]).toMatchObject({
      ...submittedFields,
      accountId: 1,
      keyId: 1,
      idempotency: null,
      lease: null,
    });
  });

  test('is sent for requests with a query, an absolute target, a chunked body, content type parameters or HTTP/1.0', async () => {
    const rig = await startListener();
    const body = JSON.stringify(MESSAGE);
    expect((await postBody(rig, MESSAGE, {}, '/api/v1/send-mail?a=1&b[__proto__]=2')).status).toBe(201);
    expect((await postBody(rig, MESSAGE, { 'Content-Type': 'Application/JSON ; charset=utf-8' })).status).toBe(201);
    expect((await postBody(rig, MESSAGE, { 'Content-Encoding': 'identity' })).status).toBe(201);
    expect(
      parseRawResponse(await sendRaw(rig, createRawRequest(body, [], `http://localhost/api/v1/send-mail`))).status,
    ).toBe(201);
    const http10Request = `POST /api/v1/send-mail HTTP/1.0\r\nAuthorization: ${KEY}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    expect(parseRawResponse(await sendRaw(rig, http10Request)).status).toBe(201);
    const chunkedRequest = `POST /api/v1/send-mail HTTP/1.1\r\nHost: a\r\nAuthorization: ${KEY}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\n${body.slice(0, 5)}\r\n${(body.length - 5).toString(16)}\r\n${body.slice(5)}\r\n0\r\n\r\n`;
    expect(parseRawResponse(await sendRaw(rig, chunkedRequest)).status).toBe(201);
  });
});

describe('401', () => {
  test.each([
    ['absent', {}],
    ['empty', { Authorization: '' }],
    ['unknown', { Authorization: `pr_${'x'.repeat(43)}` }],
    ['preceded by a scheme word', { Authorization: `Bearer ${KEY}` }],
    ['very long', { Authorization: 'x'.repeat(8000) }],
  ])('a key that is %s is invalid', async (_name, headers: Record<string, string>) => {
    const rig = await startListener();
    const response = await toReceivedResponse(
      await fetch(`${rig.address.url}/api/v1/send-mail`, { method: 'POST', headers, body: JSON.stringify(MESSAGE) }),
    );
    expect([response.status, response.body]).toEqual([401, createErrorBody('Invalid API key')]);
    expect(rig.recordedEvents.submittedMessages).toHaveLength(0);
  });

  test('a request with two Authorization headers is refused', async () => {
    const rig = await startListener();
    expect(
      parseRawResponse(await sendRaw(rig, createRawRequest(JSON.stringify(MESSAGE), ['Authorization: other']))),
    ).toMatchObject({ status: 401, body: createErrorBody('Invalid API key') });
  });

  test('if the store reports a locked account, the message is `Account locked`', async () => {
    const rig = await startListener(withSubmitResult({ kind: 'locked' }));
    expect(await postBody(rig, MESSAGE)).toMatchObject({ status: 401, body: createErrorBody('Account locked') });
  });

  test('is sent instead of 100 Continue for an invalid key; a valid key gets 100 Continue', async () => {
    const rig = await startListener();
    const body = JSON.stringify(MESSAGE);
    const invalidKeyResponse = await sendRaw(
      rig,
      createRawRequest('', [`Expect: 100-continue`])
        .replace(KEY, 'wrong')
        .replace('Content-Length: 0', 'Content-Length: 9'),
    );
    expect(invalidKeyResponse).toMatch(/^HTTP\/1\.1 401 /);
    const validKeyResponse = await sendRaw(rig, createRawRequest(body, ['Expect: 100-continue']));
    expect(validKeyResponse).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /);
  });
});

describe('400', () => {
  const JSON_TYPE = 'Content-Type: application/json\r\n';
  test.each([
    '',
    ...['text/plain', 'application/jsonx', '', ';', 'application /json'].map((type) => `Content-Type: ${type}\r\n`),
  ])('is the response to the content type %j', async (line) => {
    const rig = await startListener();
    const request = createRawRequest(JSON.stringify(MESSAGE)).replace(JSON_TYPE, line);
    expect(parseRawResponse(await sendRaw(rig, request))).toMatchObject({
      ...{ status: 400, body: createErrorBody('Content-Type must be application/json') },
    });
  });

  test('is the response to a compressed body', async () => {
    const rig = await startListener();
    const response = await postBody(rig, MESSAGE, { 'Content-Encoding': 'gzip' });
    expect(response).toMatchObject({ status: 400, body: createErrorBody('Content-Encoding must be identity') });
  });

  test('a body above the limit, with Content-Length or chunked, gets a response, and the connection is closed', async () => {
    const rig = await startListener(withSettings({ maxRequestBytes: 1000 }));
    const largestBody = JSON.stringify({
      ...MESSAGE,
      message: 'x'.repeat(1000 - JSON.stringify({ ...MESSAGE, message: '' }).length),
    });
    expect(largestBody).toHaveLength(1000);
    expect((await postBody(rig, largestBody)).status).toBe(201);
    const oversizedResponse = await postBody(rig, `${largestBody} `);
    expect([oversizedResponse.status, oversizedResponse.body]).toEqual([
      400,
      createErrorBody('Request body too large'),
    ]);
    expect(oversizedResponse.headers.get('connection')).toBe('close');
    const chunk = `400\r\n${'x'.repeat(1024)}\r\n`;
    const chunkedResponse = await sendRaw(
      rig,
      `POST /api/v1/send-mail HTTP/1.1\r\nHost: a\r\nAuthorization: ${KEY}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}${chunk}${chunk}`,
    );
    expect(parseRawResponse(chunkedResponse)).toMatchObject({
      status: 400,
      body: createErrorBody('Request body too large'),
    });
  });

  const HEADERS = `POST /api/v1/send-mail HTTP/1.1\r\nHost: a\r\nAuthorization: ${KEY}\r\nContent-Type: application/json\r\n`;
  const BODY = JSON.stringify(MESSAGE);
  const formatChunked = (extension: string, size: number, trailers = '') =>
    `${HEADERS}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n${[...BODY.matchAll(new RegExp(`[^]{1,${size}}`, 'g'))].map(([part]) => `${part.length.toString(16)}${extension}\r\n${part}\r\n`).join('')}0\r\n${trailers}\r\n`;
  const plainRequest = `${HEADERS}Content-Length: ${BODY.length}\r\n\r\n${BODY}`;

  test.each([
    ['one extension of 1,500 bytes', formatChunked(`;a=${'x'.repeat(1_500)}`, BODY.length)],
    ['small extensions of many chunks', formatChunked(`;${'x'.repeat(20)}`, 1)],
    ['trailers', formatChunked('', BODY.length, `X-Trailer: ${'x'.repeat(1_500)}\r\n`)],
  ])('chunks with more than 1 KiB of extensions are refused: %s', async (_, request) => {
    const rig = await startListener();
    expect(parseRawResponse(await sendRaw(rig, request))).toMatchObject({ status: 400 });
    // On a connection with a key, a chunked request with its extensions is refused from the second on.
    const later = await sendRaw(rig, formatChunked('', 1).replace('Connection: close\r\n', '') + request);
    expect(later.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 201', 'HTTP/1.1 400']);
    expect(rig.recordedEvents.submittedMessages).toHaveLength(1);
  });

  test('chunks of one byte, an extension of 900 bytes and pipelined requests are accepted', async () => {
    const rig = await startListener();
    for (const request of [formatChunked('', 1), formatChunked(`;${'x'.repeat(900)}`, BODY.length)]) {
      expect(parseRawResponse(await sendRaw(rig, request))).toMatchObject({ status: 201 });
      const kept = request.replace('Connection: close\r\n', '');
      const answers = await sendRaw(rig, plainRequest + kept.repeat(4) + plainRequest + request);
      expect(answers.match(/HTTP\/1\.1 201/g)).toHaveLength(7);
    }
  });
});

describe('404 and 405', () => {
  test.each([
    ...'/ /api/v1/send-mail/ /api/v2/send-mail /API/V1/send-mail /%zz /api/v1/send-mail%00'.split(' '),
    ...'/metrics'.split(' '),
  ])('%s is not found for any method', async (path) => {
    const rig = await startListener();
    for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
      const response = await toReceivedResponse(await fetch(rig.address.url + path, { method }));
      expect([response.status, response.body]).toEqual([404, createErrorBody('Not found')]);
    }
  });

  test.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY', 'TRACE'])(
    '%s on the operation is refused with the header Allow, before the check of the key',
    async (method) => {
      const rig = await startListener();
      const response = await sendRaw(
        rig,
        `${method} /api/v1/send-mail?x HTTP/1.1\r\nHost: a\r\nContent-Type: text/x\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi`,
      );
      expect(response).toMatch(/^HTTP\/1\.1 405 Method Not Allowed\r\n/);
      expect(response).toMatch(/\r\nAllow: POST\r\n/);
      if (method === 'HEAD') expect(response.endsWith('\r\n\r\n')).toBe(true);
      else expect(parseRawResponse(response).body).toEqual(createErrorBody('Method not allowed'));
    },
  );
});

describe('403', () => {
  test.each(['volume-exhausted', 'volume-expired', 'rate-limit-exceeded'] as const)(
    'is the response to the refusal `%s` of the store',
    async (reason) => {
      const rate = { limit: 10, periodMs: 3_600_000, remaining: 0, resetMs: 1_234_001 };
      const rig = await startListener(withSubmitResult({ kind: 'refused', reason, limits: { rate } }));
      const response = await postBody(rig, MESSAGE);
      expect([response.status, response.body]).toEqual([403, createErrorBody('Invalid tokens or rate limit exceeded')]);
      expect(response.headers.get('postrider-reason')).toBe(reason);
      expect(response.headers.get('retry-after')).toBe(reason === 'rate-limit-exceeded' ? '1235' : null);
      expect(response.headers.get('ratelimit')).toBe('"rate";r=0;t=1235');
      expect(response.headers.get('ratelimit-policy')).toBe('"rate";q=10;w=3600');
      expect(rig.recordedEvents.refusals).toEqual([reason]);
    },
  );

  test('a sender domain must be authenticated for the account, unless the setting `senders` is `any` or every route is `capture`', async () => {
    const domains = { isAuthenticated: (id: number, domain: string) => id === 1 && domain === 'xn--bcher-kva.example' };
    const authenticatedSenderListener = await startListener({
      ...withSettings({
        senders: 'authenticated',
        routes: [
          { name: 'default', transport: { kind: 'capture' } },
          { name: 'backup', transport: SMTP_TRANSPORT },
        ],
      }),
      domains,
    });
    const refusedResponse = await postBody(authenticatedSenderListener, MESSAGE);
    expect([refusedResponse.status, refusedResponse.body]).toEqual([
      403,
      createErrorBody('Invalid tokens or rate limit exceeded'),
    ]);
    expect(refusedResponse.headers.get('postrider-reason')).toBe('sender-not-authenticated');
    expect((await postBody(authenticatedSenderListener, { ...MESSAGE, from: 'a@Bücher.example' })).status).toBe(201);
    const anySenderListener = await startListener({
      ...withSettings({ senders: 'any', routes: [{ name: 'default', transport: SMTP_TRANSPORT }] }),
      domains,
    });
    expect((await postBody(anySenderListener, MESSAGE)).status).toBe(201);
    const captureListener = await startListener({ ...withSettings({ senders: 'authenticated' }), domains });
    expect((await postBody(captureListener, MESSAGE)).status).toBe(201);
  });
});

describe('429', () => {
  test('the throttle admits exactly its burst and reports the time of the next token', async () => {
    let now = 1_000_000;
    const rig = await startListener({ clock: { now: () => now, monotonic: () => now, after: () => () => {} } });
    rig.keyCache.apply({
      revision: 2,
      accounts: [createAccount({ limits: { ...NO_LIMITS, throttle: { perSecond: 2, burst: 3 } } })],
      keys: [],
    });
    const firstResponse = await postBody(rig, MESSAGE);
    expect(firstResponse.headers.get('ratelimit-policy')).toBe('"throttle";q=3;w=2');
    expect(firstResponse.headers.get('ratelimit')).toBe('"throttle";r=2;t=1');
    const statuses = await Promise.all(
      [1, 2, 3, 4, 5].map(() => postBody(rig, MESSAGE).then((response) => response.status)),
    );
    expect(statuses.sort()).toEqual([201, 201, 429, 429, 429]);
    const excessResponse = await postBody(rig, MESSAGE);
    expect(excessResponse.body).toEqual(createErrorBody('Too many requests'));
    expect(excessResponse.headers.get('retry-after')).toBe('1');
    expect(excessResponse.headers.get('ratelimit')).toBe('"throttle";r=0;t=1');
    now += 500;
    expect((await postBody(rig, MESSAGE)).status).toBe(201);
    expect((await postBody(rig, MESSAGE)).status).toBe(429);
    rig.keyCache.apply({ revision: 3, accounts: [createAccount()], keys: [] });
    expect((await postBody(rig, MESSAGE)).status).toBe(201);
  });

  test('a 201 has the headers of the throttle and of the rate limit', async () => {
    const rate = { limit: 1000, periodMs: 3_600_000, remaining: 999, resetMs: 3_599_001 };
    const rig = await startListener(withSubmitResult({ kind: 'accepted', state: 'queued', limits: { rate } }));
    rig.keyCache.apply({
      revision: 2,
      accounts: [createAccount({ limits: { ...NO_LIMITS, throttle: { perSecond: 50, burst: 200 } } })],
      keys: [],
    });
    const response = await postBody(rig, MESSAGE);
    expect(response.headers.get('ratelimit-policy')).toBe('"throttle";q=200;w=4, "rate";q=1000;w=3600');
    expect(response.headers.get('ratelimit')).toBe('"throttle";r=199;t=1, "rate";r=999;t=3600');
  });

  test('after the check of the key, load is shed if the load signal reports overload or too many requests are in flight', async () => {
    let isOverloaded = true;
    const pendingSubmits: ((result: AcceptResult) => void)[] = [];
    const rig = await startListener({
      loadSignal: () => (isOverloaded ? { isOverloaded: true, retryAfterMs: 2500 } : { isOverloaded: false }),
      limits: { maxInFlight: 2 },
      submit: () => new Promise((resolve) => pendingSubmits.push(resolve)),
    });
    expect((await postBody(rig, MESSAGE, { Authorization: 'wrong' })).status).toBe(401);
    const shedResponse = await postBody(rig, MESSAGE);
    expect([shedResponse.status, shedResponse.body, shedResponse.headers.get('retry-after')]).toEqual([
      429,
      createErrorBody('Too many requests'),
      '3',
    ]);
    isOverloaded = false;
    const firstResponses = [postBody(rig, MESSAGE), postBody(rig, MESSAGE)];
    await waitUntil(() => pendingSubmits.length === 2);
    const excessResponse = await postBody(rig, MESSAGE);
    expect([excessResponse.status, excessResponse.headers.get('retry-after')]).toEqual([429, '1']);
    for (const resolveSubmit of pendingSubmits.splice(0)) resolveSubmit(ACCEPTED);
    expect((await Promise.all(firstResponses)).map((response) => response.status)).toEqual([201, 201]);
    const nextResponse = postBody(rig, MESSAGE);
    await waitUntil(() => pendingSubmits.length === 1);
    pendingSubmits[0]?.(ACCEPTED);
    expect((await nextResponse).status).toBe(201);
  });
});

describe('500', () => {
  const fail = () => {
    throw new Error('disk /var/secret is full');
  };
  test.each([
    ['a store that cannot commit', async () => fail()],
    ['an exception in a dependency', fail],
  ])('%s causes a 500 with Retry-After and without internal details', async (_name, submit) => {
    const rig = await startListener({ submit });
    const response = await postBody(rig, MESSAGE);
    expect([response.status, response.body]).toEqual([500, createErrorBody('Internal server error')]);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(String(rig.recordedEvents.errors[0])).toContain('disk');
    expect(rig.recordedEvents.acceptedCount).toBe(0);
  });
});

describe('Idempotency-Key', () => {
  test('is submitted with a fingerprint of exactly the fields to, from, subject and message', async () => {
    const rig = await startListener();
    await postBody(rig, MESSAGE, { 'Idempotency-Key': 'order-1' });
    await postBody(
      rig,
      { extra: 1, message: MESSAGE.message, subject: MESSAGE.subject, from: MESSAGE.from, to: MESSAGE.to },
      { 'Idempotency-Key': 'order-1' },
    );
    await postBody(rig, { ...MESSAGE, subject: `${MESSAGE.subject} ` }, { 'Idempotency-Key': 'order-1' });
    const [firstIdempotency, secondIdempotency, thirdIdempotency] = rig.recordedEvents.submittedMessages.map(
      (message) => message.idempotency,
    );
    expect(firstIdempotency?.key).toBe('order-1');
    expect(firstIdempotency?.fingerprint).toMatch(/^[0-9a-f]{64}$/);
    expect(secondIdempotency).toEqual(firstIdempotency);
    expect(thirdIdempotency?.fingerprint).not.toBe(firstIdempotency?.fingerprint);
  });

  test('different field values have different fingerprints, even if their concatenation is the same', () => {
    const fields = [
      ['a', 'b', 'c', 'd'],
      ['ab', '', 'c', 'd'],
      ['a', 'bc', '', 'd'],
      ['', '', '', 'abcd'],
      ['a', '1:b', 'c', 'd'],
    ];
    const fingerprints = fields.map(([to = '', from = '', subject = '', message = '']) =>
      computeFingerprint({ to, from, subject, message }),
    );
    expect(new Set(fingerprints).size).toBe(fields.length);
  });

  test('a replay returns the original id and the header Idempotency-Replayed', async () => {
    const id = '01936f2e-7c4b-7a10-9b1e-5d0c3a9f4e21';
    const rig = await startListener(withSubmitResult({ kind: 'replayed', id }));
    const response = await postBody(rig, MESSAGE, { 'Idempotency-Key': 'a' });
    expect([response.status, response.body]).toEqual([201, { result: { id } }]);
    expect(response.headers.get('idempotency-replayed')).toBe('true');
    expect(rig.recordedEvents.replayedCount).toBe(1);
  });

  test('the same key with another payload causes a 400', async () => {
    const rig = await startListener(withSubmitResult({ kind: 'idempotency-conflict' }));
    const response = await postBody(rig, MESSAGE, { 'Idempotency-Key': 'a' });
    expect(response).toMatchObject({
      status: 400,
      body: createErrorBody('Idempotency-Key was already used with another payload'),
    });
  });

  test('must have 1 to 255 visible ASCII characters and occur once', async () => {
    const rig = await startListener();
    const postWithKeyLines = async (lines: readonly string[]) =>
      parseRawResponse(await sendRaw(rig, createRawRequest(JSON.stringify(MESSAGE), lines))).status;
    expect(await postWithKeyLines([`Idempotency-Key: ${'~'.repeat(255)}`])).toBe(201);
    expect(await postWithKeyLines(['Idempotency-Key: !'])).toBe(201);
    expect(await postWithKeyLines([`Idempotency-Key: ${'x'.repeat(256)}`])).toBe(400);
    expect(await postWithKeyLines(['Idempotency-Key:'])).toBe(400);
    expect(await postWithKeyLines(['Idempotency-Key: a b'])).toBe(400);
    expect(await postWithKeyLines(['Idempotency-Key: é'])).toBe(400);
    expect(await postWithKeyLines(['Idempotency-Key: a', 'Idempotency-Key: b'])).toBe(400);
  });
});

describe('a key that is not in the cache', () => {
  const NEW_KEY = `pr_${'f'.repeat(43)}`;
  const foundKeys = {
    revision: 9,
    accounts: [createAccount({ id: 2 })],
    keys: [createApiKey(NEW_KEY, { id: 2, accountId: 2 })],
  };

  test('is looked up in the store and accepted, and the next request causes no query', async () => {
    const queries: (readonly string[])[] = [];
    const rig = await startListener({
      findKeys: (hashes) => {
        queries.push(hashes);
        return Promise.resolve(foundKeys);
      },
    });
    for (let n = 0; n < 2; n += 1) expect((await postBody(rig, MESSAGE, { Authorization: NEW_KEY })).status).toBe(201);
    expect(queries).toEqual([[createApiKey(NEW_KEY).hash]]);
    expect(rig.recordedEvents.submittedMessages.map(({ keyId, accountId }) => [keyId, accountId])).toEqual([
      [2, 2],
      [2, 2],
    ]);
  });

  test('is refused if the store reports that it is unknown or revoked, or that its account is locked', async () => {
    const results: (typeof foundKeys)[] = [
      { ...foundKeys, keys: [], accounts: [] },
      { ...foundKeys, keys: [createApiKey(NEW_KEY, { id: 2, accountId: 2, revokedAt: 1 })] },
      { ...foundKeys, accounts: [createAccount({ id: 2, locked: { reason: 'x', at: 1 } })] },
    ];
    for (const [n, message] of ['Invalid API key', 'Invalid API key', 'Account locked'].entries()) {
      const rig = await startListener({ findKeys: () => Promise.resolve(results[n] ?? foundKeys) });
      const response = await postBody(rig, MESSAGE, { Authorization: NEW_KEY });
      expect([response.status, response.body]).toEqual([401, createErrorBody(message)]);
      expect(rig.recordedEvents.authenticatedRequestCount).toBe(0);
    }
  });

  test('causes no query if the Authorization header is absent, empty, repeated or too long', async () => {
    const rig = await startListener({ findKeys: () => expect.unreachable() });
    for (const lines of [[], [''], [NEW_KEY, NEW_KEY], ['k'.repeat(513)]]) {
      const headers = lines.map((value) => `Authorization: ${value}`);
      const request = createRawRequest('{}', headers).replace(`Authorization: ${KEY}\r\n`, '');
      expect([lines, parseRawResponse(await sendRaw(rig, request)).status]).toEqual([lines, 401]);
    }
    expect(rig.recordedEvents.errors).toEqual([]);
  });

  test('is counted as a refusal if the client disconnects during the query', async () => {
    const lookup = Promise.withResolvers<typeof foundKeys>();
    let queryCount = 0;
    const findKeys = () => {
      queryCount += 1;
      return lookup.promise;
    };
    const rig = await startListener({ findKeys });
    const { socket } = await connectClient(rig);
    socket.write(createRawRequest('{}').replace(KEY, NEW_KEY));
    await waitUntil(() => queryCount === 1);
    socket.resetAndDestroy();
    lookup.resolve({ ...foundKeys, accounts: [], keys: [] });
    await waitUntil(() => rig.recordedEvents.refusals.length > 0);
    expect(rig.recordedEvents.refusals).toEqual(['invalid-key']);
  });

  test('causes a 500 and a published error if the store does not respond', async () => {
    const rig = await startListener({ findKeys: () => Promise.reject(new Error('the store does not respond')) });
    const response = await postBody(rig, MESSAGE, { Authorization: NEW_KEY });
    expect([response.status, response.body]).toEqual([500, createErrorBody('Internal server error')]);
    expect(rig.recordedEvents.errors).toHaveLength(1);
    expect(rig.recordedEvents.refusals).toEqual(['internal-error']);
    // Cached keys remain valid.
    expect((await postBody(rig, MESSAGE)).status).toBe(201);
  });

  test('a drain waits for a request whose key is being looked up', async () => {
    const lookup = Promise.withResolvers<typeof foundKeys>();
    let queryCount = 0;
    const delays: number[] = [];
    const rig = await startListener({
      findKeys: () => {
        queryCount += 1;
        return lookup.promise;
      },
      clock: {
        ...systemClock,
        after: (delayMs, run) => {
          delays.push(delayMs);
          return systemClock.after(delayMs, run);
        },
      },
    });
    const pendingResponse = postBody(rig, MESSAGE, { Authorization: NEW_KEY });
    await waitUntil(() => queryCount === 1);
    delays.length = 0;
    const drain = rig.listener.drain(60_000);
    // Without pending requests, the listener would immediately set a shorter timeout to close its connections.
    expect(delays).toEqual([60_000]);
    lookup.resolve(foundKeys);
    expect((await pendingResponse).status).toBe(201);
    await drain;
  });
});

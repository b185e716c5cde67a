/**
 * Tests `send` of the client library with scripted responses and a clock that advances only when a pause or a time
 * limit of the client elapses.
 */
import { describe, expect, test } from 'vitest';
import {
  type ClientOptions,
  createClient,
  type Fetch,
  SendError,
  type SendOptions,
} from '../../../clients/typescript/src/index.ts';

const KEY = 'pr_secretsecretsecretsecretsecretsecretsecret42';
const ID = '0199c2a4-7b1e-7000-8000-5a0c3f1e9d42';
const MESSAGE = { to: 'ada@example.com', from: 'shop@example.org', subject: 'Receipt', message: 'Thank you.' };
const JSON_TYPE = { 'Content-Type': 'application/json' };

type ResponseStep = (init: Parameters<Fetch>[1], url: string) => Promise<Response>;

const answer =
  (status: number, body: unknown, headers: Record<string, string> = {}): ResponseStep =>
  async () =>
    new Response(typeof body === 'string' ? body : JSON.stringify(body), {
      status,
      headers: { ...JSON_TYPE, ...headers },
    });
const accept = (headers?: Record<string, string>) => answer(201, { result: { id: ID } }, headers);
const refuse = (status: number, message: string, headers?: Record<string, string>) =>
  answer(status, { result: 'error', message }, headers);
const reset: ResponseStep = () => Promise.reject(new TypeError('fetch failed'));
/** Never responds, and ignores the abort of the request. */
const neverRespond: ResponseStep = () => new Promise(() => undefined);

interface Rig {
  readonly requests: { readonly url: string; readonly init: Parameters<Fetch>[1] }[];
  /** The pauses and time limits that have elapsed, in order. */
  readonly pausesMs: number[];
  send(fields?: object, options?: SendOptions): Promise<Awaited<ReturnType<ReturnType<typeof createClient>['send']>>>;
}

/** Resolves after `turns` turns of the event loop. */
async function waitTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/**
 * A pause or a time limit elapses after this number of turns of the event loop. The client needs fewer turns to read a
 * scripted response, so that a time limit elapses only if its request hangs.
 */
const TURN_COUNT = 50;
/** Creates a client that receives one step as the response to each request. The last step is repeated. */
function createRig(steps: readonly ResponseStep[], options: Partial<ClientOptions> = {}): Rig {
  let nowMs = 0;
  const requests: Rig['requests'] = [];
  const pausesMs: number[] = [];
  const client = createClient({
    baseUrl: 'https://mail.example.org',
    apiKey: KEY,
    fetch: (url, init) => {
      requests.push({ url, init });
      const step = steps[Math.min(requests.length, steps.length) - 1] ?? neverRespond;
      return step(init, url);
    },
    clock: {
      now: () => nowMs,
      schedule(callback, delayMs) {
        let isCancelled = false;
        void waitTurns(TURN_COUNT).then(() => {
          if (isCancelled) return;
          nowMs += delayMs;
          pausesMs.push(delayMs);
          callback();
        });
        return () => {
          isCancelled = true;
        };
      },
    },
    random: () => 0,
    ...options,
  });
  return {
    requests,
    pausesMs,
    send: (fields = {}, sendOptions = {}) => client.send({ ...MESSAGE, ...fields }, sendOptions),
  };
}

async function catchSendError(rig: Rig, fields: object = {}, options: SendOptions = {}): Promise<SendError> {
  const error: unknown = await rig.send(fields, options).then(
    () => new Error('accepted'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof SendError)) throw error;
  return error;
}

describe('send', () => {
  test('submits the four fields, the API key, the content type and an idempotency key, and returns the id', async () => {
    const rig = createRig([accept()], { baseUrl: 'https://mail.example.org/base/' });
    const result = await rig.send();
    expect(result).toEqual({
      id: ID,
      replayed: false,
      ignoredFields: [],
      idempotencyKey: expect.stringMatching(/^[0-9a-f-]{36}$/),
      attempts: 1,
    });
    expect(rig.requests).toHaveLength(1);
    const { url, init } = rig.requests[0] ?? { url: '', init: null };
    expect(url).toBe('https://mail.example.org/base/api/v1/send-mail');
    expect(init).toMatchObject({
      method: 'POST',
      redirect: 'manual',
      headers: { Authorization: KEY, ...JSON_TYPE, 'Idempotency-Key': result.idempotencyKey },
    });
    expect(JSON.parse(init?.body ?? '')).toEqual(MESSAGE);
  });

  test('returns the ignored fields and whether the idempotency key was used before', async () => {
    const rig = createRig([accept({ 'Postrider-Ignored-Fields': 'cc, attachments', 'Idempotency-Replayed': 'true' })]);
    const result = await rig.send({ cc: 'x', attachments: [], idempotencyKey: 'receipt-1' });
    expect(result).toMatchObject({ replayed: true, ignoredFields: ['cc', 'attachments'], idempotencyKey: 'receipt-1' });
    expect(JSON.parse(rig.requests[0]?.init.body ?? '')).toEqual({ ...MESSAGE, cc: 'x', attachments: [] });
  });

  test('repeats the request with the same generated idempotency key after 408, 429, 5xx and a lost connection', async () => {
    const rig = createRig(
      [
        answer(408, '<html>'),
        refuse(429, 'Too many requests'),
        reset,
        answer(502, '<html>'),
        refuse(500, 'x'),
        accept(),
      ],
      { maxAttempts: 6 },
    );
    const result = await rig.send();
    expect(result).toMatchObject({ id: ID, attempts: 6 });
    const keys = rig.requests.map(({ init }) => init.headers['Idempotency-Key']);
    expect(keys).toEqual(Array(6).fill(result.idempotencyKey));
  });

  test('pauses with exponential backoff and jitter, and at least for the time in Retry-After', async () => {
    const stepsWithoutHeader = [refuse(500, 'x')];
    const lowestRig = createRig(stepsWithoutHeader, { random: () => 0 });
    await catchSendError(lowestRig);
    expect(lowestRig.pausesMs).toEqual([250, 500, 1000, 2000]);
    const highestRig = createRig(stepsWithoutHeader, { random: () => 1 - Number.EPSILON });
    await catchSendError(highestRig);
    expect(highestRig.pausesMs.map(Math.round)).toEqual([500, 1000, 2000, 4000]);
    const retryAfterSecondsRig = createRig([refuse(429, 'x', { 'Retry-After': '7' }), accept()], { random: () => 0 });
    await retryAfterSecondsRig.send();
    expect(retryAfterSecondsRig.pausesMs).toEqual([7250]);
    const date = new Date(Date.now() + 20_000).toUTCString();
    const retryAfterDateRig = createRig([answer(503, 'maintenance', { 'Retry-After': date }), accept()]);
    await retryAfterDateRig.send();
    expect(retryAfterDateRig.pausesMs[0]).toBeGreaterThan(10_000);
    expect(retryAfterDateRig.pausesMs[0]).toBeLessThan(20_251);
  });

  test('aborts a running attempt at the total time limit, and does not begin a pause that would exceed this limit', async () => {
    const longRetryAfterRig = createRig([refuse(429, 'x', { 'Retry-After': '60' })]);
    expect(await catchSendError(longRetryAfterRig)).toMatchObject({
      kind: 'throttled',
      retryAfterMs: 60_000,
      attempts: 1,
    });
    expect(longRetryAfterRig.pausesMs).toEqual([]);
    const hangingRig = createRig([neverRespond], { timeoutMs: 10_000, maxTotalMs: 25_000, maxAttempts: 100 });
    expect(await catchSendError(hangingRig)).toMatchObject({
      kind: 'timeout',
      status: null,
      mayBeAccepted: true,
      attempts: 3,
    });
    expect(hangingRig.pausesMs.reduce((sum, pauseMs) => sum + pauseMs)).toBe(25_000);
  });

  test.each([
    [400, 'Missing required fields: to', {}, 'invalid-request', null],
    [404, 'Not found', {}, 'invalid-request', null],
    [401, 'Invalid API key', {}, 'unauthorized', null],
    [
      403,
      'Invalid tokens or rate limit exceeded',
      { 'Postrider-Reason': 'volume-exhausted' },
      'forbidden',
      'volume-exhausted',
    ],
  ])(
    'does not repeat a request after status %i, and reports the request as refused',
    async (status, message, headers, kind, reason) => {
      const rig = createRig([refuse(status, message, headers)]);
      const error = await catchSendError(rig, { idempotencyKey: 'receipt-1' });
      expect(error).toMatchObject({ kind, status, reason, attempts: 1, mayBeAccepted: false });
      expect(error.message).toBe(`${status} ${message}${reason === null ? '' : ` (${reason})`}`);
    },
  );

  test('if the result of any attempt is unknown, reports that the message may have been accepted', async () => {
    const refusedRig = createRig([refuse(429, 'x'), refuse(401, 'Invalid API key')]);
    expect(await catchSendError(refusedRig)).toMatchObject({ kind: 'unauthorized', mayBeAccepted: false, attempts: 2 });
    const unknownResultRig = createRig([reset, refuse(401, 'Invalid API key')]);
    expect(await catchSendError(unknownResultRig)).toMatchObject({
      kind: 'unauthorized',
      mayBeAccepted: true,
      attempts: 2,
    });
    const serverErrorRig = createRig([refuse(500, 'Internal server error')]);
    expect(await catchSendError(serverErrorRig)).toMatchObject({
      kind: 'server-error',
      mayBeAccepted: true,
      attempts: 5,
    });
  });

  test.each<[string, ResponseStep]>([
    ['status 200 with an HTML page of a proxy', answer(200, '<html>Sign in</html>')],
    ['status 201 with an HTML page of a proxy', answer(201, '<html>Created</html>')],
    ['status 200 with the body of an acceptance', answer(200, { result: { id: ID } })],
    ['a truncated 201', answer(201, `{"result":{"id":"${ID}"`)],
    ['a 201 without an id', answer(201, { result: {} })],
    ['a 201 whose id is not a UUID', answer(201, { result: { id: '42' } })],
    ['a 201 whose body is null', answer(201, 'null')],
    ['a 204', async () => new Response(null, { status: 204 })],
    ['a redirect', answer(307, '', { Location: 'https://elsewhere.example.org/' })],
    ['a 404 of another server', answer(404, 'Not found')],
  ])('treats %s as an unexpected response: no success, no refusal, no second request', async (_, step) => {
    const rig = createRig([step]);
    expect(await catchSendError(rig)).toMatchObject({ kind: 'unexpected-response', attempts: 1, mayBeAccepted: true });
  });

  test('repeats a request if the connection is lost before the 201 response is complete', async () => {
    const breakConnection: ResponseStep = async () => {
      const parts = [new TextEncoder().encode('{"result":{"id":"')];
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          const part = parts.shift();
          if (part === undefined) controller.error(new TypeError('terminated'));
          else controller.enqueue(part);
        },
      });
      return new Response(body, { status: 201, headers: JSON_TYPE });
    };
    const rig = createRig([breakConnection, accept({ 'Idempotency-Replayed': 'true' })]);
    expect(await rig.send()).toMatchObject({ id: ID, replayed: true, attempts: 2 });
    expect(await catchSendError(createRig([breakConnection]))).toMatchObject({ kind: 'network', mayBeAccepted: true });
  });

  test('reads an endless response only up to the size limit', async () => {
    let chunkCount = 0;
    const rig = createRig([
      async () =>
        new Response(
          new ReadableStream<Uint8Array>({
            pull(controller) {
              chunkCount += 1;
              controller.enqueue(new Uint8Array(8192).fill(0x20));
            },
          }),
          { status: 201, headers: JSON_TYPE },
        ),
    ]);
    expect(await catchSendError(rig)).toMatchObject({ kind: 'unexpected-response' });
    expect(rig.requests[0]?.init.signal.aborted).toBe(true);
    expect(chunkCount).toBeLessThan(10);
  });

  test('aborts a request at its time limit, even if the response headers have arrived', async () => {
    const signals: AbortSignal[] = [];
    const respondSlowly: ResponseStep = async ({ signal }) => {
      signals.push(signal);
      return new Response(new ReadableStream({}), { status: 201, headers: JSON_TYPE });
    };
    const rig = createRig([respondSlowly], { maxAttempts: 2, timeoutMs: 3000 });
    const error = await catchSendError(rig);
    expect(error).toMatchObject({ kind: 'timeout', attempts: 2, mayBeAccepted: true });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });

  test('ends immediately when the signal of the caller is aborted: before, during and between attempts', async () => {
    const reason = new Error('the user left');
    const unusedRig = createRig([accept()]);
    const abortedOptions = { signal: AbortSignal.abort(reason) };
    expect(await catchSendError(unusedRig, {}, abortedOptions)).toMatchObject({
      kind: 'aborted',
      cause: reason,
      attempts: 0,
      mayBeAccepted: false,
    });
    expect(unusedRig.requests).toEqual([]);

    const requestController = new AbortController();
    const hangingRig = createRig([
      (init) => {
        queueMicrotask(() => requestController.abort(reason));
        return neverRespond(init, '');
      },
    ]);
    const errorDuringRequest = await catchSendError(
      hangingRig,
      { idempotencyKey: 'receipt-1' },
      { signal: requestController.signal },
    );
    expect(errorDuringRequest).toMatchObject({
      kind: 'aborted',
      cause: reason,
      attempts: 1,
      mayBeAccepted: true,
      idempotencyKey: 'receipt-1',
    });
    expect(hangingRig.requests[0]?.init.signal.aborted).toBe(true);
    expect(hangingRig.pausesMs).toEqual([]);

    const pauseController = new AbortController();
    const pausingRig = createRig([
      async (init, url) => {
        void waitTurns(TURN_COUNT / 2).then(() => pauseController.abort(reason));
        return refuse(429, 'x', { 'Retry-After': '5' })(init, url);
      },
    ]);
    expect(await catchSendError(pausingRig, {}, { signal: pauseController.signal })).toMatchObject({
      kind: 'aborted',
      attempts: 1,
      mayBeAccepted: false,
    });
    expect(pausingRig.pausesMs).toEqual([]);
  });

  test('refuses an idempotency key that no header can contain, without a request', async () => {
    for (const idempotencyKey of ['', 'with space', 'line\nbreak', 'ü']) {
      const rig = createRig([accept()]);
      await expect(rig.send({ idempotencyKey })).rejects.toThrow(/^idempotencyKey must consist of visible ASCII/);
      expect(rig.requests).toEqual([]);
    }
  });

  test('with a limit that is not a number, a failed attempt is not repeated', async () => {
    for (const limits of [{ maxTotalMs: Number.NaN }, { maxAttempts: Number.NaN }])
      expect(await catchSendError(createRig([refuse(500, 'x')], limits))).toMatchObject({
        kind: 'server-error',
        attempts: 1,
      });
  });

  test('no error contains the API key or a control character, regardless of the response of a proxy', async () => {
    const echoText = `line\r\nAuthorization: ${KEY}`;
    const echoSteps = [
      refuse(400, echoText),
      refuse(403, 'x', { 'Postrider-Reason': KEY }),
      refuse(400, `${'x'.repeat(480)}${KEY}`),
      answer(502, echoText),
    ];
    for (const step of echoSteps) {
      const error = await catchSendError(createRig([step], { maxAttempts: 1 }));
      expect(`${error.stack}${JSON.stringify(error)}`).not.toContain(KEY.slice(0, 12));
      expect(error.message).not.toMatch(/\p{Cc}/u);
      expect(error.message.length).toBeLessThanOrEqual(500);
    }
  });

  test('with the system clock, a pause ends after its time, and immediately when the signal is aborted', async () => {
    let requestCount = 0;
    const client = createClient({
      baseUrl: 'http://127.0.0.1:1',
      apiKey: KEY,
      random: () => 0,
      fetch: async (url, init) => {
        requestCount += 1;
        return (
          requestCount === 1
            ? refuse(500, 'x')
            : requestCount === 2
              ? refuse(429, 'x', { 'Retry-After': '50' })
              : accept()
        )(init, url);
      },
    });
    const startedAt = performance.now();
    const abortController = new AbortController();
    const sendPromise = client.send(MESSAGE, { signal: abortController.signal }).catch((error: unknown) => error);
    await expect.poll(() => requestCount).toBe(2);
    expect(performance.now() - startedAt).toBeGreaterThan(240);
    abortController.abort();
    expect(await sendPromise).toMatchObject({ kind: 'aborted', attempts: 2 });
    expect(performance.now() - startedAt).toBeLessThan(50_000);
  });
});

describe('createClient', () => {
  test.each([
    ...['mail.example.org', 'ftp://mail.example.org', `https://user:${KEY}@mail.example.org`],
    ...['https://mail.example.org/?a=b', ''],
  ])('refuses the base URL %s and does not print it', (baseUrl) => {
    expect(() => createClient({ baseUrl, apiKey: KEY })).toThrow(/^baseUrl must/);
    expect(() => createClient({ baseUrl, apiKey: KEY })).not.toThrow(KEY);
  });

  test.each(['', `${KEY}\n`, 'pr_ü', `Bearer ${KEY}`])('refuses an API key that no header can contain', (apiKey) => {
    expect(() => createClient({ baseUrl: 'https://mail.example.org', apiKey })).toThrow(/^apiKey must/);
    expect(() => createClient({ baseUrl: 'https://mail.example.org', apiKey })).not.toThrow(KEY);
  });
});

import { expect, test } from 'vitest';
import { type MonotonicClock, systemClock } from '../../../src/clock.ts';
import { MIN_QUERY_INTERVAL_MS } from '../../../src/http/keys.ts';
import { MAX_FAILURES } from '../../../src/http/peers.ts';
import type { OperatorToken } from '../../../src/model/account.ts';
import { TOKEN_SCOPES } from '../../../src/model/audit.ts';
import { generateToken, hashToken } from '../../../src/model/credentials.ts';
import { createApiDocument } from '../../../src/operator/api-document.ts';
import { StoreError } from '../../../src/store/error.ts';
import { signIn as beginSession } from '../../rig/session.ts';
import { createApi, createOptions, startOperatorListener } from './operator-rig.ts';
import { type RequestOptions, sendRequest as send } from './response-check.ts';

const PASSWORD = 'correct horse';
const TOKEN = `po_${'a'.repeat(43)}`;

async function startListener(delaysLookups = false, tokenText = TOKEN) {
  const store = { isUnavailable: false };
  const pendingDelays: (() => void)[] = [];
  const delaysMs: number[] = [];
  const queries: (readonly string[])[] = [];
  const intervals: (() => void)[] = [];
  let isStarted = false;
  const clock: MonotonicClock = {
    now: () => 1_000_000,
    monotonic: () => 1_000_000,
    after(delayMs, run) {
      // The periodic checks of the listener, which begin with it, have the length of a delay of a response.
      if (!isStarted) return () => undefined;
      // Heartbeats are longer than any delay of a response.
      if (delayMs > 5_000) return systemClock.after(delayMs, run);
      if (delayMs === MIN_QUERY_INTERVAL_MS) {
        intervals.push(run);
        if (!delaysLookups) for (const interval of intervals.splice(0)) queueMicrotask(interval);
        return () => undefined;
      }
      delaysMs.push(delayMs);
      pendingDelays.push(run);
      return () => undefined;
    },
  };
  const token: OperatorToken = {
    id: 1,
    name: 'ci',
    prefix: 'po_aaa',
    hash: hashToken(tokenText),
    createdAt: 0,
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: null,
  };
  const { port } = await startOperatorListener(
    createOptions({
      settings: {
        operatorListen: { host: '127.0.0.1', port: 0 },
        operatorPassword: PASSWORD,
        trustedProxies: ['127.0.0.9'],
      },
      clock,
      api: createApi({
        findTokens: async (hashes) => {
          if (store.isUnavailable) throw new StoreError('the store does not respond');
          queries.push(hashes);
          return hashes.includes(token.hash) ? [token] : [];
        },
      }),
    }),
  );
  isStarted = true;

  const sendRequest = (
    path: string,
    {
      from = '127.0.0.1',
      method,
      ...options
    }: Pick<RequestOptions, 'headers' | 'body'> & {
      readonly from?: string;
      readonly method?: string;
    } = {},
  ) =>
    send(`http://127.0.0.1:${port}`, method ?? (options.body === undefined ? 'GET' : 'POST'), path, {
      ...options,
      localAddress: from,
    });
  return {
    port,
    store,
    ask: sendRequest,
    signIn: (password: string, from?: string) =>
      sendRequest('/api/v1/sign-in', { body: { password }, ...(from === undefined ? {} : { from }) }),
    pendingDelays,
    delaysMs,
    queries,
    intervals,
    endDelays: () => {
      for (const run of pendingDelays.splice(0)) run();
    },
  };
}

const createBearerHeader = (token: string) => ({ Authorization: `Bearer ${token}` });
const createBasicHeader = (password: string) => ({
  Authorization: `Basic ${Buffer.from(`:${password}`).toString('base64')}`,
});

test('after many wrong tokens only further wrong tokens from the same address are refused, and valid credentials are accepted', async () => {
  const { ask: sendRequest, signIn } = await startListener();
  const statuses: number[] = [];
  for (let n = 0; n < 12; n += 1) {
    statuses.push((await sendRequest('/api/v1/session', { headers: createBearerHeader(`po_wrong${n}`) })).status);
  }
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
  expect((await sendRequest('/api/v1/session', { headers: createBearerHeader(TOKEN) })).status).toBe(200);
  expect((await signIn(PASSWORD)).status).toBe(200);
  expect((await sendRequest('/metrics', { headers: createBasicHeader(PASSWORD) })).status).toBe(200);
});

test.each([
  ['another site', { 'Sec-Fetch-Site': 'cross-site' }],
  ['another port of this host', { 'Sec-Fetch-Site': 'same-site' }],
  ['another origin', { Origin: 'http://127.0.0.1:1' }],
])(
  'requests from a page of %s are refused with any credentials, and are not counted as failed attempts',
  async (_name, from) => {
    const { ask: sendRequest, signIn } = await startListener();
    for (let n = 0; n < 12; n += 1) {
      for (const headers of [
        createBearerHeader('po_wrong'),
        createBearerHeader(TOKEN),
        createBasicHeader('wrong'),
        createBasicHeader(PASSWORD),
      ]) {
        expect((await sendRequest('/api/v1/session', { headers: { ...headers, ...from } })).status).toBe(403);
        expect((await sendRequest('/metrics', { headers: { ...headers, ...from } })).status).toBe(403);
      }
      expect((await sendRequest('/api/v1/sign-in', { headers: from, body: { password: 'wrong' } })).status).toBe(403);
    }
    expect((await sendRequest('/api/v1/session', { headers: createBearerHeader('po_wrong') })).status).toBe(401);
    expect((await signIn('wrong')).status).toBe(401);
    expect((await signIn(PASSWORD)).status).toBe(200);
  },
);

test('wrong passwords from many addresses delay passwords, but not sessions and tokens', async () => {
  const { ask: sendRequest, signIn, pendingDelays, delaysMs, endDelays, port } = await startListener();
  const session = await beginSession(`http://127.0.0.1:${port}`, { password: PASSWORD });
  for (let n = 0; n < 21; n += 1) expect((await signIn('guess', `127.0.1.${n + 1}`)).status).toBe(401);
  expect(pendingDelays).toHaveLength(0);
  const guesses = Array.from({ length: 15 }, (_, index) => signIn('guess', `127.0.2.${index + 1}`));
  await expect.poll(() => pendingDelays.length).toBe(15);
  const validRequests = [
    signIn(PASSWORD, '127.0.3.1'),
    sendRequest('/metrics', { headers: createBasicHeader(PASSWORD), from: '127.0.3.2' }),
  ];
  await expect.poll(() => pendingDelays.length).toBe(17);
  expect(Math.max(...delaysMs)).toBeLessThanOrEqual(5_000);
  for (let n = 0; n < 3; n += 1) {
    expect((await sendRequest('/api/v1/session', { headers: createBearerHeader(TOKEN) })).status).toBe(200);
    expect((await sendRequest('/api/v1/session', { headers: { ...session } })).status).toBe(200);
  }
  expect(pendingDelays).toHaveLength(17);
  endDelays();
  expect((await Promise.all(guesses)).map(({ status }) => status)).toEqual(Array.from({ length: 15 }, () => 401));
  expect((await Promise.all(validRequests)).map(({ status }) => status)).toEqual([200, 200]);
});

test('wrong tokens are looked up in batches, and a token that was valid before does not wait for these lookups', async () => {
  const { ask: sendRequest, queries, intervals } = await startListener(true);
  expect((await sendRequest('/api/v1/session', { headers: createBearerHeader(TOKEN) })).status).toBe(200);
  for (const run of intervals.splice(0)) run();
  queries.length = 0;
  expect((await sendRequest('/api/v1/session', { headers: createBearerHeader('po_first') })).status).toBe(401);
  const guesses = Array.from({ length: 50 }, (_, index) =>
    sendRequest('/api/v1/session', { headers: createBearerHeader(`po_wrong${index}`) }),
  );
  for (let n = 0; n < 3; n += 1)
    expect((await sendRequest('/api/v1/session', { headers: createBearerHeader(TOKEN) })).status).toBe(200);
  const tokenHash = hashToken(TOKEN);
  expect(queries).toEqual([[hashToken('po_first')], [tokenHash], [tokenHash], [tokenHash]]);
  let isAnswered = false;
  const allGuesses = Promise.all(guesses).finally(() => {
    isAnswered = true;
  });
  await expect
    .poll(() => {
      for (const run of intervals.splice(0)) run();
      return isAnswered;
    })
    .toBe(true);
  expect((await allGuesses).filter(({ status }) => status === 401)).toHaveLength(9);
  expect(new Set(queries.flat()).size).toBe(52);
});

test('while the store does not respond, the metrics route accepts a token that was valid before, and the API does not', async () => {
  const { ask: sendRequest, store } = await startListener();
  expect((await sendRequest('/metrics', { headers: createBearerHeader(TOKEN) })).status).toBe(200);
  store.isUnavailable = true;
  expect((await sendRequest('/metrics', { headers: createBearerHeader(TOKEN) })).status).toBe(200);
  expect((await sendRequest('/metrics', { headers: createBearerHeader('po_unknown') })).status).toBe(503);
  expect((await sendRequest('/api/v1/session', { headers: createBearerHeader(TOKEN) })).status).toBe(503);
});

/** The operations by GET that a token with the scope `read` may not perform, and those that `content` adds. */
const NOT_FOR_VIEWERS = ['listAudit', 'showConfig', 'listTokens'];
const CONTENT = [
  ...'showMessageSource exportMessages exportSuppressions findFeedback showInbox'.split(' '),
  ...'showMessageHtml showInboxSource showInboxHtml'.split(' '),
];
const TOKEN_OPERATIONS = ['listTokens', 'createToken', 'revokeToken'];
const UNAUTHENTICATED = 'signIn signOut createTicket showOperatorDocument readPublicDocument showLiveness'.split(' ');

test.each(TOKEN_SCOPES)(
  'a token with the scope %s is refused exactly what the scope does not permit',
  async (scope) => {
    const text = generateToken((bytes) => Buffer.alloc(bytes, 1), scope).token;
    const { ask: sendRequest } = await startListener(false, text);
    const headers = createBearerHeader(text);
    const isRefused = (method: string, id: string): boolean => {
      if (id === 'showMetrics') return false;
      if (scope === 'metrics') return true;
      if (scope === 'full') return TOKEN_OPERATIONS.includes(id);
      return method !== 'GET' || NOT_FOR_VIEWERS.includes(id) || (scope === 'read' && CONTENT.includes(id));
    };
    const { paths } = JSON.parse(createApiDocument('0', '/api/v1')) as {
      readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>;
    };
    const routes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => ({ path, method: method.toUpperCase(), operationId })),
    );
    expect(routes.length).toBeGreaterThan(70);
    const unexpected = [];
    for (const { path, method, operationId } of routes.filter(
      (route) => !UNAUTHENTICATED.includes(route.operationId),
    )) {
      // A permitted request ends with 400 because of the unknown parameter, before any operation.
      const url = `${path.replace(/\{\w+\}/g, '1')}?unknown=1`;
      const { status } = await sendRequest(url, {
        headers,
        method,
        ...(method === 'GET' || method === 'DELETE' ? {} : { body: { unknown: 1 } }),
      });
      if ((status === 403) !== isRefused(method, operationId)) unexpected.push([operationId, status]);
    }
    expect(unexpected).toEqual([]);
  },
);

test('a session can make changes only from a page of the listener', async () => {
  const { ask: sendRequest, port } = await startListener();
  const url = `http://127.0.0.1:${port}`;
  const session = await beginSession(url, { password: PASSWORD });
  const requestChange = async (headers: Record<string, string>) =>
    (await sendRequest('/api/v1/accounts', { headers: { ...session, ...headers }, body: {} })).status;
  for (const headers of [{}, { Origin: 'null' }, { Origin: 'https://elsewhere.example' }])
    expect([headers, await requestChange(headers)]).toEqual([headers, 403]);
  expect(await requestChange({ Origin: url })).not.toBe(403);
});

test('wrong passwords behind a trusted proxy count for the client that the proxy reports', async () => {
  const { ask } = await startListener();
  const sendWrongPassword = (from: string, client: string) =>
    ask('/metrics', { from, headers: { Authorization: `Basic ${btoa('x:wrong')}`, 'X-Forwarded-For': client } });
  const PROXY = '127.0.0.9';
  for (let index = 0; index < MAX_FAILURES; index += 1)
    expect((await sendWrongPassword(PROXY, '203.0.113.1')).status).toBe(401);
  expect((await sendWrongPassword(PROXY, '203.0.113.1')).status).toBe(429);
  // The client itself sent the first address of the header; the proxy added the second.
  expect((await sendWrongPassword(PROXY, '203.0.113.2, 203.0.113.1')).status).toBe(429);
  expect((await sendWrongPassword(PROXY, '203.0.113.2')).status).toBe(401);
  // The X-Forwarded-For header of a peer that is not a trusted proxy is ignored.
  for (let index = 0; index < MAX_FAILURES; index += 1)
    expect((await sendWrongPassword('127.0.0.8', `203.0.113.${index}`)).status).toBe(401);
  expect((await sendWrongPassword('127.0.0.8', '203.0.113.99')).status).toBe(429);
});

test('the session cookie is Secure if a trusted proxy reports HTTPS', async () => {
  const { ask } = await startListener();
  const signIn = (from: string, forwardedProto: string) =>
    ask('/api/v1/sign-in', { from, headers: { 'X-Forwarded-Proto': forwardedProto }, body: { password: PASSWORD } });
  expect(String((await signIn('127.0.0.9', 'https')).headers['set-cookie'])).toMatch(/; Secure;/);
  for (const [from, forwardedProto] of [
    ['127.0.0.9', 'http'],
    ['127.0.0.8', 'https'],
  ] as const)
    expect(String((await signIn(from, forwardedProto)).headers['set-cookie'])).not.toMatch(/Secure/);
});

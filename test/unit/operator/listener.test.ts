import { describe, expect, test } from 'vitest';
import { isLoopbackHost } from '../../../src/operator/access.ts';
import { createOperatorListener } from '../../../src/operator/listener.ts';
import { StoreError } from '../../../src/store/error.ts';
import { signInByLink } from '../../rig/session.ts';
import { sendRaw } from '../http/rig.ts';
import { createApi, createOptions, startOperatorListener } from './operator-rig.ts';
import { sendRequest as send } from './response-check.ts';

async function startListener(changes: Parameters<typeof createOptions>[0] = {}): Promise<number> {
  return (await startOperatorListener(createOptions(changes))).port;
}

const sendRequest = (port: number, path: string, headers: Record<string, string> = {}, method = 'GET') =>
  send(`http://127.0.0.1:${port}`, method, path, { headers, hostHeaderCount: 'Host' in headers ? 0 : 1 });

const createBasicHeader = (password: string) => ({
  Authorization: `Basic ${Buffer.from(`any:${password}`).toString('base64')}`,
});

describe('pages', () => {
  const host = 'Host: localhost';
  test.each([
    ['a request that is not HTTP', 'hello there', 400, 'Malformed HTTP request'],
    ['a target that cannot be decoded', `GET /%zz HTTP/1.1\r\n${host}`, 400, 'Malformed request target'],
    ['such a target below a page', `GET /inbox/%zz HTTP/1.1\r\n${host}`, 400, 'Malformed request target'],
    ['two Host headers', `GET / HTTP/1.1\r\n${host}\r\n${host}`, 400, 'Exactly one Host header is required'],
    ['a chunked HTTP/1.0', `GET / HTTP/1.0\r\n${host}\r\nTransfer-Encoding: chunked`, 400, 'Malformed HTTP request'],
    ['no Host header', 'GET / HTTP/1.1', 400, 'Exactly one Host header is required'],
    ['large headers', `GET / HTTP/1.1\r\n${host}\r\nX: ${'x'.repeat(20_000)}`, 431, 'Request header fields too large'],
    ['an unknown expectation', `GET / HTTP/1.1\r\n${host}\r\nExpect: tea`, 417, 'Expectation failed'],
    ['an unknown route', `GET /api/v1/send-mail HTTP/1.1\r\n${host}`, 404, 'Not found'],
    ['an unsupported method', `PROPFIND / HTTP/1.1\r\n${host}`, 405, 'Method not allowed'],
    ['an invalid method', `FETCH / HTTP/1.1\r\n${host}`, 400, 'Malformed HTTP request'],
    ['a CONNECT request', 'CONNECT a:1 HTTP/1.1\r\nHost: a:1', 405, 'Method not allowed'],
  ])('%s gets the error body of the listener and no banner', async (_name, bytes, status, message) => {
    const response = await sendRaw(
      { address: { port: await startListener() } },
      `${bytes}\r\nConnection: close\r\n\r\n`,
    );
    const [head = '', body = ''] = response.split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(JSON.parse(body)).toEqual({ result: 'error', code: expect.stringMatching(/^[a-z-]+$/), message });
    expect(head).toMatch(/\r\nX-Content-Type-Options: nosniff/i);
    expect(head).toMatch(/\r\nContent-Type: application\/json/i);
    expect(response).not.toMatch(/fastify|FST_|statusCode|server:|x-powered-by/i);
  });

  test('the response to an unknown path is the page for a browser and JSON for a program', async () => {
    const BROWSER_ACCEPT = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
    const JSON_404 = '{"result":"error","code":"not-found","message":"Not found"}';
    // The page contains no data, so it requires no password.
    for (const password of [null, 'correct horse']) {
      const port = await startListener({ password });
      for (const path of ['/nonsense', '/nonsense/of/somebody?x=1', '/message', '/apis']) {
        const page = await sendRequest(port, path, { Accept: BROWSER_ACCEPT });
        expect([path, page.status, page.headers['content-type']]).toEqual([path, 404, 'text/html; charset=utf-8']);
        expect(page.text).toContain('<title>Postrider</title>');
        expect((await sendRequest(port, path, { Accept: BROWSER_ACCEPT }, 'POST')).status).toBe(405);
      }
    }
    const openPort = await startListener();
    for (const accept of ['application/json', '*/*', ''])
      expect(await sendRequest(openPort, '/nonsense', { Accept: accept })).toMatchObject({
        status: 404,
        text: JSON_404,
      });
    for (const path of ['/api', '/api/v2/messages', '/metrics/x', '/assets/x.js', '/openapi.json/x', '/healthz/x'])
      expect([path, await sendRequest(openPort, path, { Accept: BROWSER_ACCEPT })]).toMatchObject([
        path,
        { status: 404, text: JSON_404 },
      ]);
  });

  test('an internal error causes a 500 without details and is reported', async () => {
    const errors: unknown[] = [];
    const port = await startListener({
      scrapeMetrics: () => Promise.reject(new Error('inside')),
      onError: (error) => errors.push(error),
    });
    expect(await sendRequest(port, '/metrics')).toMatchObject({
      status: 500,
      text: '{"result":"error","code":"internal","message":"Internal server error"}',
    });
    expect(errors).toHaveLength(1);
  });
});

describe('access', () => {
  test('without a password the listener binds only loopback addresses', async () => {
    for (const host of ['0.0.0.0', '::', '10.0.0.1', 'example.com']) {
      await expect(createOperatorListener(createOptions({ host })).start()).rejects.toThrow(
        /^POSTRIDER_OPERATOR_LISTEN .*: other machines could access it without a password; set POSTRIDER_OPERATOR_PASSWORD or use 127\.0\.0\.1:0$/,
      );
    }
  });

  test('without a password only requests to loopback host names are accepted, which prevents DNS rebinding', async () => {
    const port = await startListener();
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, 'LOCALHOST']) {
      expect((await sendRequest(port, '/metrics', { Host: host })).status).toBe(200);
    }
    for (const host of [
      ...'evil.example 127.0.0.1.evil.example localhost.evil.example:80 127.1 2130706433'.split(' '),
      ...'[::ffff:10.0.0.1]'.split(' '),
    ]) {
      expect((await sendRequest(port, '/metrics', { Host: host })).status).toBe(403);
    }
  });

  test('if a password is set, every route except /healthz and the files of the dashboard requires it', async () => {
    const port = await startListener({ password: 'corréct horse', host: '0.0.0.0' });
    for (const path of '/metrics /openapi.json /nothing // //healthz /healthz/ /assets'.split(' ')) {
      const response = await sendRequest(port, path);
      expect([path, response.status]).toEqual([path, 401]);
      expect(response.headers['www-authenticate']).toMatch(/^Basic realm=/);
    }
    for (const path of ['/healthz', '/', '/inbox', '/messages/m-1'])
      expect((await sendRequest(port, path)).status).toBe(200);
    const { status, headers } = await sendRequest(port, '/metrics', createBasicHeader('corréct horse'));
    expect([status, headers]).toMatchObject([
      200,
      {
        ...{ 'cache-control': 'no-store', 'cross-origin-resource-policy': 'same-origin' },
        'x-content-type-options': 'nosniff',
      },
    ]);
    expect((await sendRequest(port, '/metrics', createBasicHeader('wrong'))).status).toBe(401);
    expect((await sendRequest(port, '/metrics', { Authorization: 'Basic %%%' })).status).toBe(401);
    expect((await sendRequest(port, '/metrics', { Authorization: 'Bearer corréct' })).status).toBe(401);
  });

  test('only plain names and addresses are recognized as loopback', () => {
    for (const host of ['localhost', '127.0.0.1', '127.255.1.2', '::1', '[::1]'])
      expect(isLoopbackHost(host)).toBe(true);
    for (const host of ['', '127.0.0', '127.0.0.256', '0.0.0.0', '127.0.0.1.', '127.0.0.0x1', '::ffff:127.0.0.1']) {
      expect(isLoopbackHost(host)).toBe(false);
    }
  });
});

const rejectUnavailable = async (): Promise<never> => {
  throw new StoreError('the database does not respond');
};

async function startWithoutStore() {
  const api = createApi({
    findTokens: rejectUnavailable,
    updateTokenLastUsed: rejectUnavailable,
    endSession: rejectUnavailable,
    isSessionEnded: rejectUnavailable,
  });
  const { port, signInUrl } = await startOperatorListener(createOptions({ api, onError: () => undefined }));
  return { url: `http://127.0.0.1:${port}`, session: await signInByLink(signInUrl ?? '') };
}

test('a failed sign-out is reported, and the session remains valid', async () => {
  const { url, session } = await startWithoutStore();
  const headers = { ...session, Origin: url };
  const response = await fetch(`${url}/api/v1/sign-out`, { method: 'POST', headers });
  expect([response.status, response.headers.get('set-cookie')]).toEqual([503, null]);
  const sessionResponse = await fetch(`${url}/api/v1/session`, { headers });
  expect([sessionResponse.status, await sessionResponse.json()]).toMatchObject([200, { actor: 'page' }]);
});

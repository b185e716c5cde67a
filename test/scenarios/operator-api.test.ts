/**
 * Tests the operator API for scripts and pages: sign-in, the operations of the command line, errors, and the audit log.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ROUTE_DESCRIPTIONS } from '../../src/operator/api-document.ts';
import { runCommand, runJsonCommand, submit, submitAccepted } from '../rig/service.ts';
import { signIn } from '../rig/session.ts';
import { createScenario, type RunningService, signInToService } from './running-service.ts';

const rig = createScenario();
let folder = '';
let service: RunningService;
let token = '';

beforeAll(async () => {
  folder = rig.createFolder();
  service = await rig.serve(folder);
  ({ token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'ci']));
});
afterAll(async () => {
  await service.stop();
});

interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Headers;
}

async function sendJson(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  url = service.operatorUrl,
): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method,
    redirect: 'manual',
    headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json') === true;
  return { status: response.status, body: isJson && text !== '' ? JSON.parse(text) : text, headers: response.headers };
}
const createBearerHeader = (value = token) => ({ Authorization: `Bearer ${value}` });
const callApi = (method: string, path: string, body?: unknown) =>
  sendJson(method, `/api/v1${path}`, body, createBearerHeader());
const createErrorBody = (message: string | RegExp) => ({
  result: 'error',
  code: expect.stringMatching(/^[a-z-]+$/),
  message: typeof message === 'string' ? message : expect.stringMatching(message),
});

describe('signing in', () => {
  test('every route refuses a request without authentication', async () => {
    // A separate service is used, because wrong tokens delay further attempts.
    const separateService = await rig.serve(rig.createFolder());
    for (const headers of [
      {},
      { Cookie: 'postrider_session=x.y.z' },
      { Authorization: 'Basic OnNlY3JldA==' },
      createBearerHeader('po_wrong'),
    ]) {
      for (const { method, path, isOutsideApi, access } of ROUTE_DESCRIPTIONS) {
        if (method !== 'GET' || path.includes('{') || isOutsideApi || access === 'none') continue;
        const answer = await sendJson(method, `/api/v1${path}`, undefined, headers, separateService.operatorUrl);
        expect([path, 401, 429]).toContain(answer.status);
        expect(answer.body).toMatchObject({ result: 'error' });
      }
    }
    const answer = await sendJson('POST', '/api/v1/accounts', { name: 'stolen' }, {}, separateService.operatorUrl);
    expect([answer.status, answer.body]).toEqual([401, createErrorBody(/^Authentication is required/)]);
    await separateService.stop();
  });

  test('a Bearer header without a token is refused as a wrong token, not as a wrong password', async () => {
    const answer = await sendJson('GET', '/api/v1/accounts', undefined, createBearerHeader(''));
    expect([answer.status, answer.body]).toEqual([401, createErrorBody(/^The token is unknown/)]);
  });

  test('the sign-in link is valid once, and only requests from the origin of the listener can make changes with the session of the link', async () => {
    const newService = await rig.serve(rig.createFolder());
    const { signIn: link } = JSON.parse(newService.stdout().split('\n')[0] ?? '') as { signIn: string };
    const linkToken = new URL(link).searchParams.get('link') ?? '';
    const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
      sendJson(method, path, body, headers, newService.operatorUrl);
    // A HEAD or GET request for the link does not redeem it. The loaded page redeems it.
    for (const method of ['HEAD', 'GET']) {
      const openResponse = await send(method, link.slice(newService.operatorUrl.length));
      expect([openResponse.status, openResponse.headers.get('set-cookie')]).toEqual([200, null]);
    }
    expect(
      (await send('POST', '/api/v1/sign-in', { link: linkToken }, { Origin: 'https://evil.example' })).status,
    ).toBe(403);
    const firstSignIn = await send('POST', '/api/v1/sign-in', { link: linkToken }, { Origin: newService.operatorUrl });
    expect([firstSignIn.status, firstSignIn.body]).toEqual([
      200,
      { result: 'ok', session: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/) },
    ]);
    const cookie = firstSignIn.headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/^postrider_session=[^;]+; HttpOnly; SameSite=Strict; Path=\/; Max-Age=43200$/);
    const secret = { 'Postrider-Session': (firstSignIn.body as { session: string }).session };
    const session = { Cookie: cookie.split(';')[0] ?? '', ...secret };
    for (const headers of [{}, session]) {
      const repeatedSignIn = await send(
        'POST',
        '/api/v1/sign-in',
        { link: linkToken },
        { ...headers, Origin: newService.operatorUrl },
      );
      expect([repeatedSignIn.status, repeatedSignIn.body]).toEqual([
        403,
        createErrorBody(/^This sign-in link is invalid or has already been used/),
      ]);
    }
    expect((await send('GET', '/api/v1/accounts', undefined, session)).body).toMatchObject([{ name: 'default' }]);
    const createAccountFrom = (headers: Record<string, string>) =>
      send('POST', '/api/v1/accounts', { name: 'mine' }, { ...session, ...headers });
    for (const headers of [{}, { Origin: 'https://evil.example' }, { Origin: 'null' }]) {
      expect([(await createAccountFrom(headers)).status, headers]).toEqual([403, headers]);
    }
    expect((await createAccountFrom({ Origin: newService.operatorUrl })).status).toBe(201);
    const audit = await send('GET', '/api/v1/audit', undefined, session);
    expect(audit.body).toMatchObject([{ actor: 'page', action: 'account.create', target: 'mine' }]);
    await newService.stop();
  });

  test('the cookie and the secret of a session are valid neither alone nor together with the cookie or the secret of another session', async () => {
    const protectedService = await rig.serve(rig.createFolder(), {
      POSTRIDER_OPERATOR_PASSWORD: 'correct horse battery',
    });
    const url = protectedService.operatorUrl;
    const [firstSession, secondSession] = [
      await signIn(url, { password: 'correct horse battery' }),
      await signIn(url, { password: 'correct horse battery' }),
    ];
    const cookie = { Cookie: firstSession.Cookie };
    const secret = { 'Postrider-Session': firstSession['Postrider-Session'] };
    const alteredCookie = firstSession.Cookie.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
    // In earlier versions, a cookie contained a random token instead of the digest of the page's secret.
    const legacyCookie = firstSession.Cookie.replace(/\.[^.]+\./, '.abcdefghijkl.');
    for (const headers of [
      cookie,
      secret,
      { ...cookie, 'Postrider-Session': secondSession['Postrider-Session'] },
      { ...cookie, 'Postrider-Session': '' },
      { ...cookie, 'Postrider-Session': firstSession.Cookie.split('.')[1] ?? '' },
      { ...secret, Cookie: alteredCookie },
      { ...secret, Cookie: legacyCookie },
    ]) {
      for (const path of ['/session', '/accounts', '/events', '/inbox', '/accounts/default/suppressions/export']) {
        expect([(await sendJson('GET', `/api/v1${path}`, undefined, headers, url)).status, path, headers]).toEqual([
          401,
          path,
          headers,
        ]);
      }
      const headersWithOrigin = { ...headers, Origin: url };
      expect((await sendJson('POST', '/api/v1/accounts', { name: 'stolen' }, headersWithOrigin, url)).status).toBe(401);
      expect(
        (await sendJson('POST', '/api/v1/ticket', { path: '/api/v1/inbox/x/html' }, headersWithOrigin, url)).status,
      ).toBe(401);
      expect((await sendJson('POST', '/api/v1/sign-out', undefined, headers, url)).status).toBe(200);
    }
    // Signing out with only the cookie ends no session.
    expect((await sendJson('GET', '/api/v1/session', undefined, { ...firstSession }, url)).status).toBe(200);
    await protectedService.stop();
  });

  test('a ticket for the URL of a frame is accepted in this URL with the cookie alone, and is refused in any other request', async () => {
    const newService = await rig.serve(rig.createFolder());
    const session = await signInToService(newService);
    const get = (path: string, headers: Record<string, string>) =>
      sendJson('GET', path, undefined, headers, newService.operatorUrl);
    const cookie = { Cookie: session.Cookie };
    const message = '<!doctype html><p>In a frame</p>';
    const id = await submitAccepted(newService.publicUrl, newService.key, { message });
    const path = `/api/v1/messages/${id}/html`;
    const createTicket = async (framePath: string) => {
      const headers = { ...session, Origin: newService.operatorUrl };
      const { body } = await sendJson('POST', '/api/v1/ticket', { path: framePath }, headers, newService.operatorUrl);
      return encodeURIComponent((body as { ticket: string }).ticket);
    };
    const ticket = await createTicket(path);
    expect(await get(`${path}?ticket=${ticket}`, cookie)).toMatchObject({
      status: 200,
      body: expect.stringContaining('In a frame'),
    });
    expect((await get(`${path}?ticket=${ticket}`, {})).status).toBe(401);
    expect((await get(`${path}?ticket=x${ticket}`, cookie)).status).toBe(401);
    expect((await get(`/api/v1/inbox/${id}/html?ticket=${ticket}`, cookie)).status).toBe(401);
    for (const otherPath of ['/accounts', '/accounts/default/suppressions/export', `/inbox/${id}/source`])
      expect(
        (await get(`/api/v1${otherPath}?ticket=${await createTicket(`/api/v1${otherPath}`)}`, cookie)).status,
      ).toBe(401);
    expect((await sendJson('POST', '/api/v1/sign-out', undefined, { ...session }, newService.operatorUrl)).status).toBe(
      200,
    );
    expect((await get(`${path}?ticket=${ticket}`, cookie)).status).toBe(401);
    await newService.stop();
  });

  test('the cookie of a page loaded over HTTPS has the attribute Secure', async () => {
    const protectedService = await rig.serve(rig.createFolder(), {
      POSTRIDER_OPERATOR_PASSWORD: 'correct horse battery',
    });
    const origin = protectedService.operatorUrl.replace('http:', 'https:');
    const fetchAt = (path: string) =>
      sendJson('POST', path, { password: 'correct horse battery' }, { Origin: origin }, protectedService.operatorUrl);
    for (const path of ['/api/v1/sign-in', '/api/v1/sign-out']) {
      expect((await fetchAt(path)).headers.get('set-cookie')).toMatch(
        /; HttpOnly; SameSite=Strict; Path=\/; Secure; Max-Age=/,
      );
    }
    await protectedService.stop();
  });

  test('a session is invalid after a sign-out, even after a restart, and only a session can read the first key', async () => {
    const folder = rig.createFolder();
    const newService = await rig.serve(folder);
    const { key } = JSON.parse(newService.stdout().split('\n')[0] ?? '') as { key: string };
    const send = (method: string, path: string, headers: Record<string, string> = {}) =>
      sendJson(method, path, undefined, headers, newService.operatorUrl);
    const session: Record<string, string> = await signInToService(newService);
    expect((await send('HEAD', '/api/v1/accounts', session)).status).toBe(200);
    expect((await send('GET', '/api/v1/session', session)).body).toMatchObject({ firstKey: key });
    const { token: script } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'script']);
    expect((await send('GET', '/api/v1/session', createBearerHeader(script))).body).toMatchObject({ firstKey: null });
    const [firstKey] = await runJsonCommand<readonly { id: string }[]>(folder, ['key', 'list', 'default']);
    await runCommand(folder, ['key', 'revoke', firstKey?.id ?? '']);
    await expect
      .poll(async () => (await send('GET', '/api/v1/session', session)).body)
      .toMatchObject({ firstKey: null });
    expect((await send('POST', '/api/v1/sign-out', { ...session, Origin: 'http://evil.example' })).status).toBe(403);
    expect((await send('GET', '/api/v1/session', session)).status).toBe(200);
    expect((await send('POST', '/api/v1/sign-out', session)).status).toBe(200);
    expect((await send('GET', '/api/v1/session', session)).status).toBe(401);
    await newService.stop();
    const restartedService = await rig.serve(folder);
    expect((await sendJson('GET', '/api/v1/session', undefined, session, restartedService.operatorUrl)).status).toBe(
      401,
    );
    await restartedService.stop();
  });

  test('a page of another site cannot exhaust the sign-in attempts; a new password ends every session', async () => {
    const folder = rig.createFolder();
    const protectedService = await rig.serve(folder, { POSTRIDER_OPERATOR_PASSWORD: 'correct horse battery' });
    const signInWith = (body: unknown, headers: Record<string, string> = {}) =>
      sendJson('POST', '/api/v1/sign-in', body, headers, protectedService.operatorUrl);
    for (let n = 0; n < 12; n += 1) {
      const foreignHeaders = { Origin: 'http://evil.example', 'Content-Type': 'text/plain' };
      expect((await signInWith('{"password":"guess"}', foreignHeaders)).status).toBe(403);
      expect((await signInWith('{"password":7}')).body).toEqual(createErrorBody('Missing: password'));
    }
    const session = await signIn(protectedService.operatorUrl, { password: 'correct horse battery' });
    await protectedService.stop();
    const readSessionStatus = async (password: string) => {
      const restartedService = await rig.serve(folder, { POSTRIDER_OPERATOR_PASSWORD: password });
      const { status } = await sendJson('GET', '/api/v1/session', undefined, session, restartedService.operatorUrl);
      await restartedService.stop();
      return status;
    };
    expect(await readSessionStatus('correct horse battery')).toBe(200);
    expect(await readSessionStatus('another one entirely')).toBe(401);
  });

  test('if a password is set, there is no sign-in link, the password creates a session, and wrong passwords delay further attempts', async () => {
    const protectedService = await rig.serve(rig.createFolder(), {
      POSTRIDER_OPERATOR_PASSWORD: 'correct horse battery',
    });
    const url = protectedService.operatorUrl;
    expect(JSON.parse(protectedService.stdout().split('\n')[0] ?? '')).toMatchObject({ signIn: null });
    const signInWith = (password: string) => sendJson('POST', '/api/v1/sign-in', { password }, {}, url);
    const session = await signIn(url, { password: 'correct horse battery' });
    expect((await sendJson('GET', '/api/v1/accounts', undefined, session, url)).status).toBe(200);
    const statuses: number[] = [];
    for (let n = 0; n < 12; n += 1) statuses.push((await signInWith(`guess ${n}`)).status);
    expect(statuses.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => 401));
    const delayedSignIn = await signInWith('correct horse battery');
    expect([delayedSignIn.status, Number(delayedSignIn.headers.get('retry-after')) >= 1]).toEqual([429, true]);
    expect((await sendJson('GET', '/api/v1/accounts', undefined, session, url)).status).toBe(200);
    await protectedService.stop();
  });

  test('a revoked token is refused', async () => {
    const createdToken = await runJsonCommand<{ id: number; token: string }>(folder, ['token', 'create', 'gone']);
    expect((await sendJson('GET', '/api/v1/accounts', undefined, createBearerHeader(createdToken.token))).status).toBe(
      200,
    );
    await runCommand(folder, ['token', 'revoke', String(createdToken.id)]);
    expect((await sendJson('GET', '/api/v1/accounts', undefined, createBearerHeader(createdToken.token))).status).toBe(
      401,
    );
  });
});

test('operators can create, change, lock and unlock accounts, create and revoke keys, and show messages', async () => {
  expect((await callApi('POST', '/accounts', { name: 'acme', volume: '100', throttle: '50/s' })).status).toBe(201);
  const { body: key, status } = await callApi('POST', '/accounts/acme/keys', { name: 'web' });
  expect(status).toBe(201);
  const { key: raw, id } = key as { key: string; id: string };
  // The public listener accepts a new key within a second.
  await expect.poll(async () => (await submit(service.publicUrl, raw)).status).toBe(201);
  const message = await submitAccepted(service.publicUrl, raw);
  expect((await callApi('PATCH', '/accounts/acme', { rate: '1000/1h' })).body).toMatchObject({
    rate: '1000/1h',
    volume: 100,
  });
  expect((await callApi('POST', '/accounts/acme/lock', { reason: 'unpaid' })).body).toMatchObject({
    state: 'locked',
    reason: 'unpaid',
  });
  expect((await callApi('POST', '/accounts/acme/unlock')).body).toMatchObject({ state: 'active' });
  expect((await callApi('POST', `/keys/${id}/revoke`)).status).toBe(200);
  expect((await callApi('GET', '/accounts/acme/keys')).body).toMatchObject([{ id, name: 'web' }]);
  expect((await callApi('GET', `/messages/${message}`)).body).toMatchObject({ id: message, account: 'acme' });
  expect((await callApi('GET', `/messages/${message}/explain`)).body).toMatchObject({
    explanation: expect.arrayContaining([expect.any(String)]),
  });
});

test('suppressions, domains, feedback, settings and the audit log are available through the operator API', async () => {
  expect((await callApi('POST', '/accounts/default/suppressions', { address: 'Rita@example.com' })).body).toMatchObject(
    {
      added: true,
    },
  );
  expect((await callApi('GET', '/accounts/default/suppressions')).body).toMatchObject({
    suppressions: [{ address: 'rita@example.com', reason: 'manual' }],
    next: null,
  });
  expect((await callApi('DELETE', '/accounts/default/suppressions/rita%40example.com')).status).toBe(200);
  expect((await callApi('POST', '/accounts/*/suppressions', { address: 'all@example.com' })).status).toBe(200);
  expect(
    (await callApi('POST', '/accounts/default/domains', { domain: 'example.org', subdomains: true })).body,
  ).toMatchObject({ domain: 'example.org', status: 'pending' });
  expect((await callApi('GET', '/domains')).body).toMatchObject([{ domain: 'example.org' }]);
  expect((await callApi('DELETE', '/domains/example.org')).body).toMatchObject({ status: 'removed' });
  expect((await callApi('GET', '/feedback')).body).toEqual([]);
  expect(JSON.stringify((await callApi('GET', '/config')).body)).toContain('POSTRIDER_DATABASE');
  const { body } = await callApi('GET', '/audit?limit=3');
  expect(body).toMatchObject([
    { actor: 'token:ci', action: 'domain.remove' },
    { action: 'domain.add' },
    { action: 'suppression.add', target: '*' },
  ]);
});

test('messages can be searched by words, address and account, and the results are returned in pages', async () => {
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1)
    ids.unshift(
      await submitAccepted(service.publicUrl, service.key, {
        to: `page${n}@paging.example.com`,
        subject: `Invoice ${n} of five`,
      }),
    );
  interface Page {
    readonly messages: readonly { readonly id: string; readonly account: string }[];
    readonly next: string | null;
    readonly searchedSince: string | null;
  }
  const fetchPage = async (query: string) => (await callApi('GET', `/messages?${query}`)).body as Page;
  const listedIds: string[] = [];
  let cursor = '';
  for (let n = 0; n < 4; n += 1) {
    const { messages, next, searchedSince } = await fetchPage(`q=paging+invoice&account=default&limit=2${cursor}`);
    listedIds.push(...messages.map(({ id }) => id));
    expect(searchedSince === null).toBe(next === null);
    if (next === null) break;
    cursor = `&cursor=${next}`;
  }
  expect(listedIds).toEqual(ids);
  const newestMessage = {
    id: ids[0],
    account: 'default',
    to: 'page4@paging.example.com',
    subject: 'Invoice 4 of five',
  };
  for (const query of ['to=page4@paging.example.com', 'to=@paging.example&subject=4', 'q=4+FIV', `q=${ids[0]}`])
    expect((await fetchPage(query)).messages).toMatchObject([newestMessage]);
  expect(await fetchPage('q=nothing+of+the+kind')).toEqual({ messages: [], next: null, searchedSince: null });
  const { next } = await fetchPage('limit=1');
  const searchWithForeignCursor = await callApi('GET', `/messages?limit=1&q=other&cursor=${next}`);
  const foreignCursorError = createErrorBody(
    /^the cursor belongs to another search; omit it to start with the first page$/,
  );
  expect([searchWithForeignCursor.status, searchWithForeignCursor.body]).toEqual([
    400,
    { ...foreignCursorError, field: 'cursor' },
  ]);
  expect((await fetchPage(`limit=2&cursor=${next}`)).messages.map(({ id }) => id)).toEqual(ids.slice(1, 3));
});

describe('an invalid request receives an error with code and field, and changes nothing', () => {
  test.each([
    ['GET', '/messages?state=lost', undefined, 400, /^state: "lost" is not one of/],
    ['GET', '/messages?color=red', undefined, 400, /^Unknown parameter in the query: "color"$/],
    ['GET', '/messages?cursor=elsewhere', undefined, 400, /^the cursor belongs to another search/],
    ['GET', '/messages?limit=0', undefined, 400, /^limit:/],
    ['GET', '/messages?limit=201', undefined, 400, /^limit:/],
    ['GET', '/messages?since=yesterday', undefined, 400, /^since: "yesterday" is not a date/],
    ['GET', '/messages?account=unknown', undefined, 404, /^there is no account "unknown"/],
    ['GET', '/messages?to=!!', undefined, 400, /^to: "!!" contains no letters or digits to search for$/],
    ['GET', '/messages/0192a3b4-c5d6-7e8f-9012-3456789abcde', undefined, 404, /^there is no message/],
    ['GET', '/accounts/unknown', undefined, 404, /^there is no account "unknown"/],
    ['POST', '/accounts', {}, 400, /^Missing: name$/],
    ['POST', '/accounts', { name: 'x', nmae: 'y' }, 400, /^Unknown parameter in the body: "nmae"$/],
    ['POST', '/accounts', { name: ['x'] }, 400, /^name must be a string$/],
    ['POST', '/accounts', [], 400, /must be a JSON object/],
    ['POST', '/accounts', '{"name":', 400, /./],
    ['POST', '/accounts', { name: 'default' }, 409, /^account "default" already exists/],
    ['POST', '/accounts', { name: '--json' }, 400, /begins with a hyphen/],
    ['POST', '/accounts', { name: '*' }, 400, /^name: "\*" names/],
    ['POST', '/accounts/default/lock', { reason: '--help' }, 200, null],
    ['POST', '/accounts/default/unlock', undefined, 200, null],
    [
      'POST',
      '/accounts/default/domains',
      { domain: 'a.example', subdomains: 'yes' },
      400,
      /^subdomains must be true or false$/,
    ],
    ['POST', '/keys/key_999/revoke', undefined, 404, /^there is no valid key key_999/],
    ['GET', '/accounts/unknown/suppressions', undefined, 404, /^there is no account "unknown"/],
    ['GET', '/accounts/default/suppressions?after=elsewhere', undefined, 400, /^after: "elsewhere" is not a cursor of/],
    ['GET', '/suppressions/nonsense', undefined, 400, /^address: "nonsense" is not an email address/],
    ['GET', '/nothing', undefined, 404, /^Not found$/],
    // A value that one of the two databases cannot store is refused with both databases, before the store is called.
    ['GET', '/accounts/%00/keys', undefined, 400, /^account must not contain control characters$/],
    ['GET', '/accounts/a%00b', undefined, 400, /^account must not contain control characters$/],
    ['GET', '/accounts/a%00b/suppressions', undefined, 400, /^account must not contain control characters$/],
    ['GET', '/accounts/a%00b/suppressions/export', undefined, 400, /^account must not contain control characters$/],
    [
      'GET',
      '/accounts/default/suppressions?search=a%00b',
      undefined,
      400,
      /^search must not contain control characters$/,
    ],
    ['GET', '/messages?q=a%1Bb', undefined, 400, /^q must not contain control characters$/],
    ['GET', '/messages?account=a%00b', undefined, 400, /^account must not contain control characters$/],
    ['POST', '/accounts/default/lock', { reason: 'a\0b' }, 400, /^reason must not contain control characters$/],
    ['POST', '/tokens/99999999999/revoke', undefined, 400, /^id: "99999999999" is not the number of a token/],
    [
      'GET',
      '/feedback/99999999999999999999',
      undefined,
      400,
      /^id: "99999999999999999999" is not the number of a report/,
    ],
    ['GET', '/feedback/9007199254740991', undefined, 404, /^there is no report/],
    ['GET', '/feedback?before=9007199254740991', undefined, 200, null],
    ['GET', '/audit?before=9007199254740991', undefined, 200, null],
    ['POST', '/keys/key_999999999999999/revoke', undefined, 404, /^there is no valid key/],
    [
      'PATCH',
      '/accounts/default',
      { throttle: '999999999999999/s' },
      400,
      /^throttle: .* use numbers up to 2147483647$/,
    ],
    ['PATCH', '/accounts/default', { throttle: '1/s:2147483648' }, 400, /^throttle: .* use numbers up to 2147483647$/],
    ['POST', '/accounts', { name: 'big', throttle: '2147483647/s' }, 201, null],
    ['PATCH', '/accounts/big', { volume: '9007199254740991', rate: '9007199254740991/9999999d' }, 200, null],
    ['PATCH', '/accounts/big', { volume: '9007199254740992' }, 400, /^volume:/],
    [
      'PATCH',
      '/accounts/big',
      {},
      400,
      /^there is nothing to change; give volume, volumeExpires, .* or sesConfigurationSet$/,
    ],
    [
      'POST',
      '/accounts/default/domains',
      { domain: 'easy.example.org', easyDkim: true },
      400,
      /^easyDkim: requires POSTRIDER_TRANSPORT=ses/,
    ],
    ['PATCH', '/accounts/big', { volumeExpires: 'soon' }, 400, /^volumeExpires:/],
    ['PATCH', '/accounts/big', { rate: '9007199254740992/1h' }, 400, /^rate:/],
    ['PATCH', '/accounts/big', { volumeExpires: '9999999d' }, 200, null],
    ['GET', '/accounts/big', undefined, 200, null],
    ['POST', '/accounts/big/keys', { expires: '9999999d' }, 201, null],
  ] as const)('%s %s %j is %s', async (method, path, body, status, message) => {
    const answer = await callApi(method, path, body);
    expect(answer.status).toBe(status);
    if (message !== null) expect(answer.body).toMatchObject(createErrorBody(message));
  });
});

test('the OpenAPI document contains every route, and the reference page contains the routes and no script', async () => {
  const { body } = await sendJson('GET', '/api/v1/openapi.json');
  const { paths, openapi } = body as {
    paths: Record<string, Record<string, { operationId: string }>>;
    openapi: string;
  };
  expect(openapi).toBe('3.1.0');
  const operations = Object.values(paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  );
  expect(operations.sort()).toEqual(ROUTE_DESCRIPTIONS.map(({ operationId: operation }) => operation).sort());
  expect(new Set(operations).size).toBe(operations.length);
  const page = await sendJson('GET', '/reference');
  expect(page.status).toBe(200);
  expect(page.body).toContain('/api/v1/accounts/{account}/lock');
  expect(page.body).not.toMatch(/<script/i);
  // A link cannot point to an anchor that contains a space, and HTML does not interpret the backticks of Markdown.
  expect(page.body).not.toMatch(/(?:id|href)="[^"]* /);
  expect(page.body).not.toContain('`');
});

test('the longest possible address can be removed from a suppression list', async () => {
  const address = `${'l'.repeat(64)}@${'d'.repeat(61)}.${'d'.repeat(61)}.${'d'.repeat(61)}.com`;
  expect((await callApi('POST', '/accounts/default/suppressions', { address })).status).toBe(200);
  const path = `/accounts/default/suppressions/${encodeURIComponent(address)}`;
  expect((await callApi('DELETE', path)).status).toBe(200);
});

test('the details of a message contain its key, the attempt of each event, its wait reason, and the reason why its recipient is suppressed', async () => {
  // An earlier test unlocked the account, which takes effect within one second.
  const deferredId = await vi.waitFor(
    () => submitAccepted(service.publicUrl, service.key, { to: 'defer@simulator.postrider.test' }),
    { timeout: 120_000 },
  );
  const showMessage = async (id: string) => (await callApi('GET', `/messages/${id}`)).body;
  await expect
    .poll(() => showMessage(deferredId))
    .toMatchObject({
      state: 'queued',
      keyName: 'first',
      attempts: [{ outcome: 'deferred' }],
      events: [
        { sequence: 0, type: 'accepted', attempt: null },
        { sequence: 1, type: 'deferred', attempt: 0 },
      ],
      suppressions: [],
    });
  const queuedMessages = await callApi('GET', '/messages?state=queued&waitReason=true');
  expect(queuedMessages.body).toMatchObject({
    messages: expect.arrayContaining([
      expect.objectContaining({
        id: deferredId,
        waitReason: expect.stringMatching(/^the next attempt, in .*; the last attempt was/),
      }),
    ]),
  });

  await callApi('POST', '/accounts/default/suppressions', { address: 'gone@example.com', reason: 'complaint' });
  await callApi('POST', '/accounts/*/suppressions', { address: 'gone@example.com' });
  const suppressedId = await submitAccepted(service.publicUrl, service.key, { to: 'Gone@Example.com' });
  expect(await showMessage(suppressedId)).toMatchObject({
    state: 'suppressed',
    suppressions: [
      { list: '*', reason: 'manual', source: null },
      { list: 'default', reason: 'complaint', source: null },
    ],
  });
  expect((await callApi('GET', `/messages/${suppressedId}/explain`)).body).toMatchObject({
    explanation: expect.arrayContaining([
      expect.stringMatching(/list of the whole service since .*, added by an operator\.$/),
      expect.stringMatching(/list of account default since .*, after a complaint\.$/),
    ]),
  });
});

import { describe, expect, test } from 'vitest';
import { runJsonCommand, submitAccepted } from '../rig/service.ts';
import { type SessionHeaders, signIn } from '../rig/session.ts';
import { createScenario, type RunningService } from './running-service.ts';

const PASSWORD = 'correct horse battery';
const rig = createScenario();
const folder = rig.createFolder();
const service = await rig.serve(folder);
const passwordFolder = rig.createFolder();
let passwordService = await rig.serve(passwordFolder, { POSTRIDER_OPERATOR_PASSWORD: PASSWORD });
const { token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'ci']);

interface Answer<T = unknown> {
  readonly status: number;
  readonly body: T;
  readonly headers: Headers;
}

async function sendJson<T>(
  { operatorUrl }: Pick<RunningService, 'operatorUrl'>,
  method: string,
  path: string,
  { headers = {}, body }: { readonly headers?: Record<string, string>; readonly body?: unknown } = {},
): Promise<Answer<T>> {
  const response = await fetch(`${operatorUrl}${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json') === true;
  return { status: response.status, body: isJson && text !== '' ? JSON.parse(text) : text, headers: response.headers };
}
const createBearerHeader = (value = token) => ({ Authorization: `Bearer ${value}` });
const callApi = <T>(method: string, path: string, body?: unknown) =>
  sendJson<T>(service, method, `/api/v1${path}`, { headers: createBearerHeader(), body });

describe('a session', () => {
  test('begins with the sign-in link, which is valid once, makes changes only from the origin of the listener, and ends with the sign-out, even after a restart', async () => {
    const linkFolder = rig.createFolder();
    const linkService = await rig.serve(linkFolder);
    const { operatorUrl, key } = linkService;
    const link = new URL(linkService.signIn ?? '');
    const send = <T>(method: string, path: string, headers: Record<string, string> = {}, body?: unknown) =>
      sendJson<T>(linkService, method, path, { headers, body });
    // Opening the link does not redeem it. The loaded page redeems it.
    const openedPage = await send('GET', link.href.slice(operatorUrl.length));
    expect([openedPage.status, openedPage.headers.get('set-cookie')]).toEqual([200, null]);
    const redeem = (headers: Record<string, string>) =>
      send<{ session: string }>('POST', '/api/v1/sign-in', headers, { link: link.searchParams.get('link') });
    expect((await redeem({ Origin: 'https://evil.example' })).status).toBe(403);
    const { status, body, headers } = await redeem({ Origin: operatorUrl });
    expect([status, body]).toEqual([200, { result: 'ok', session: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/) }]);
    const cookie = headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/^postrider_session=[^;]+; HttpOnly; SameSite=Strict; Path=\/; Max-Age=43200$/);
    const session = { Cookie: cookie.split(';')[0] ?? '', 'Postrider-Session': body.session };
    for (const repeatedHeaders of [{}, session])
      expect((await redeem({ ...repeatedHeaders, Origin: operatorUrl })).status).toBe(403);

    expect((await send('GET', '/api/v1/session', session)).body).toMatchObject({ firstKey: key });
    const { token: script } = await runJsonCommand<{ token: string }>(linkFolder, ['token', 'create', 'script']);
    expect((await send('GET', '/api/v1/session', createBearerHeader(script))).body).toMatchObject({ firstKey: null });
    const createAccountFrom = async (origin: Record<string, string>) =>
      (await send('POST', '/api/v1/accounts', { ...session, ...origin }, { name: 'mine' })).status;
    expect([await createAccountFrom({}), await createAccountFrom({ Origin: operatorUrl })]).toEqual([403, 201]);
    expect((await send('GET', '/api/v1/audit', session)).body).toMatchObject([
      { actor: 'page', action: 'account.create', target: 'mine' },
      { action: 'token.create' },
    ]);

    const signOut = async (origin: Record<string, string>) =>
      (await send('POST', '/api/v1/sign-out', { ...session, ...origin })).status;
    const readSessionStatus = async (running: RunningService) =>
      (await sendJson(running, 'GET', '/api/v1/session', { headers: session })).status;
    expect([await signOut({ Origin: 'http://evil.example' }), await readSessionStatus(linkService)]).toEqual([
      403, 200,
    ]);
    expect([await signOut({}), await readSessionStatus(linkService)]).toEqual([200, 401]);
    await linkService.stop();
    const restartedService = await rig.serve(linkFolder);
    expect(await readSessionStatus(restartedService)).toBe(401);
    await restartedService.stop();
  });

  test('creates a ticket for the URL of a frame, which is accepted in this URL with the cookie, and in no other request', async () => {
    const session: SessionHeaders = await signIn(passwordService.operatorUrl, { password: PASSWORD });
    const id = await submitAccepted(passwordService.publicUrl, passwordService.key, {
      message: '<!doctype html><p>In a frame</p>',
    });
    const headers = { ...session, Origin: passwordService.operatorUrl };
    const createTicket = async (path: string) =>
      encodeURIComponent(
        (await sendJson<{ ticket: string }>(passwordService, 'POST', '/api/v1/ticket', { headers, body: { path } }))
          .body.ticket,
      );
    const get = (path: string, cookie: Record<string, string> = { Cookie: session.Cookie }) =>
      sendJson<string>(passwordService, 'GET', path, { headers: cookie });
    const path = `/api/v1/messages/${id}/html`;
    const ticket = await createTicket(path);
    expect((await get(`${path}?ticket=${ticket}`)).body).toContain('In a frame');
    expect((await get(`${path}?ticket=${ticket}`, {})).status).toBe(401);
    expect((await get(`${path}?ticket=x${ticket}`)).status).toBe(401);
    expect((await get(`/api/v1/inbox/${id}/html?ticket=${ticket}`)).status).toBe(401);
    for (const otherPath of ['/api/v1/accounts', '/api/v1/accounts/default/suppressions/export'])
      expect((await get(`${otherPath}?ticket=${await createTicket(otherPath)}`)).status).toBe(401);
    expect((await sendJson(passwordService, 'POST', '/api/v1/sign-out', { headers: { ...session } })).status).toBe(200);
    expect((await get(`${path}?ticket=${ticket}`)).status).toBe(401);
  });

  test('is invalid after the password was changed; with a password, there is no sign-in link', async () => {
    expect(passwordService.signIn).toBeNull();
    const session = await signIn(passwordService.operatorUrl, { password: PASSWORD });
    await passwordService.stop();
    const readSessionStatus = async () =>
      (await sendJson(passwordService, 'GET', '/api/v1/session', { headers: { ...session } })).status;
    passwordService = await rig.serve(passwordFolder, { POSTRIDER_OPERATOR_PASSWORD: 'another one entirely' });
    expect(await readSessionStatus()).toBe(401);
    await passwordService.stop();
    passwordService = await rig.serve(passwordFolder, { POSTRIDER_OPERATOR_PASSWORD: PASSWORD });
    expect(await readSessionStatus()).toBe(200);
  });
});

test.each([
  ['GET', '/messages?color=red', undefined, 400, /^Unknown parameter in the query: "color"$/],
  ['POST', '/accounts', { name: 'x', nmae: 'y' }, 400, /^Unknown parameter in the body: "nmae"$/],
  ['POST', '/accounts', [], 400, /must be a JSON object/],
  ['POST', '/accounts', '{"name":', 400, /./],
  // A value that one of the two databases cannot store is refused with both databases, before the store is called.
  ['GET', '/accounts/a%00b/keys', undefined, 400, /^account must not contain control characters$/],
  ['GET', '/accounts/a%00b/suppressions/export', undefined, 400, /^account must not contain control characters$/],
  [
    'GET',
    '/accounts/default/suppressions?search=a%00b',
    undefined,
    400,
    /^search must not contain control characters$/,
  ],
  ['GET', '/messages?q=a%1Bb', undefined, 400, /^q must not contain control characters$/],
  ['POST', '/accounts/default/lock', { reason: 'a\0b' }, 400, /^reason must not contain control characters$/],
  ['POST', '/messages/test', { account: 'default', message: 'a\0b' }, 400, /^message must not contain control char/],
  ['GET', '/feedback/99999999999999999999', undefined, 400, /is not the number of a report/],
  ['GET', '/feedback/9007199254740991', undefined, 404, /^there is no report/],
  ['GET', '/feedback?before=9007199254740991', undefined, 200, null],
  ['GET', '/audit?before=9007199254740991', undefined, 200, null],
  ['POST', '/keys/key_999999999999999/revoke', undefined, 404, /^there is no valid key/],
  ['PATCH', '/accounts/default', { throttle: '1/s:2147483648' }, 400, /^throttle: .* use numbers up to 2147483647$/],
  ['POST', '/accounts', { name: 'big', throttle: '2147483647/s' }, 201, null],
  ['PATCH', '/accounts/big', { volume: '9007199254740991', rate: '9007199254740991/9999999d' }, 200, null],
  ['PATCH', '/accounts/big', { volume: '9007199254740992' }, 400, /^volume:/],
  ['PATCH', '/accounts/big', { rate: '9007199254740992/1h' }, 400, /^rate:/],
  ['PATCH', '/accounts/big', { volumeExpires: '9999999d' }, 200, null],
  ['GET', '/accounts/big', undefined, 200, null],
  ['POST', '/accounts/big/keys', { expires: '9999999d' }, 201, null],
] as const)('%s %s %j is answered with %s', async (method, path, body, status, message) => {
  const answer = await callApi(method, path, body);
  expect(answer.status).toBe(status);
  if (message === null) return;
  const code = expect.stringMatching(/^[a-z-]+$/);
  expect(answer.body).toMatchObject({ result: 'error', code, message: expect.stringMatching(message) });
});

test('the details of a message contain the attempt of each event, its wait reason, and the reason why its recipient is suppressed', async () => {
  const to = 'defer@simulator.postrider.test';
  const deferredId = await submitAccepted(service.publicUrl, service.key, { to });
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
  expect((await callApi('GET', '/messages?state=queued&waitReason=true')).body).toMatchObject({
    messages: [{ id: deferredId, waitReason: expect.stringMatching(/^the next attempt, in .*; the last attempt was/) }],
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
});

describe('a test message', () => {
  interface TestOutcome {
    readonly id: string | null;
    readonly request: { readonly url: string; readonly body: string };
    readonly response: { readonly status: number; readonly body: string };
  }
  const FIELDS = { to: 'ada@example.com', from: 'shop@example.org', subject: 'Hello', message: 'one\r\n\ttwo\n' };
  const sendTest = (input: object) => callApi<TestOutcome>('POST', '/messages/test', { account: 'default', ...input });

  test('is accepted by the public listener; the result contains the request with a shortened key, which is revoked', async () => {
    const { status, body } = await sendTest(FIELDS);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      request: {
        method: 'POST',
        url: `${service.publicUrl}/api/v1/send-mail`,
        headers: [
          { name: 'Authorization', value: expect.stringMatching(/^pr_.{7}…$/) },
          { name: 'Content-Type', value: 'application/json' },
        ],
      },
      response: { status: 201, body: JSON.stringify({ result: { id: body.id } }) },
    });
    expect(JSON.parse(body.request.body)).toEqual(FIELDS);
    const { to, message } = FIELDS;
    expect((await callApi('GET', `/messages/${body.id}`)).body).toMatchObject({ to, message });
    const { body: keys } = await callApi<readonly { name: string }[]>('GET', '/accounts/default/keys');
    expect(keys.filter(({ name }) => name === 'test message')).toMatchObject([{ state: 'revoked' }]);
    expect((await callApi('GET', '/audit?limit=2')).body).toMatchObject([
      { actor: 'token:ci', action: 'key.revoke' },
      { actor: 'token:ci', action: 'key.create', target: 'default' },
    ]);
  });

  test('with the idempotency key of an earlier one has the id of that message; an invalid key is refused', async () => {
    const input = { ...FIELDS, idempotencyKey: 'test-1' };
    const { id } = (await sendTest(input)).body;
    expect((await sendTest(input)).body).toMatchObject({
      id,
      response: { headers: expect.arrayContaining([{ name: 'Idempotency-Replayed', value: 'true' }]) },
    });
    expect((await sendTest({ ...FIELDS, idempotencyKey: 'two words' })).body.response.status).toBe(400);
    // No header can contain this key, so the operation refuses it.
    const answer = await sendTest({ ...FIELDS, idempotencyKey: 'snowman ☃' });
    expect(answer).toMatchObject({ status: 400, body: { field: 'idempotencyKey' } });
  });
});

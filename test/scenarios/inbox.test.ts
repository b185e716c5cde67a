/** Tests that the inbox of `capture:` shows hostile messages as data, and only to signed-in operators. */
import { beforeAll, describe, expect, test } from 'vitest';
import { runJsonCommand, submitAccepted } from '../rig/service.ts';
import type { SessionHeaders } from '../rig/session.ts';
import { createScenario, type RunningService, sendRequest, signInToService } from './running-service.ts';

const rig = createScenario();
let folder = '';
let service: RunningService;
let session: SessionHeaders;

beforeAll(async () => {
  folder = rig.createFolder();
  service = await rig.serve(folder);
  session = await signInToService(service);
});

const fetchInbox = (path: string, headers: Record<string, string> = session, at = service) =>
  sendRequest(`${at.operatorUrl}/api/v1/inbox${path}`, { headers });

/** Submits a message and waits until it is in the inbox. */
async function captureMessage(
  mail: { subject?: string; message?: string },
  at = service,
  headers = session,
): Promise<string> {
  const id = await submitAccepted(at.publicUrl, at.key, mail);
  await expect.poll(async () => (await fetchInbox(`/${id}`, headers, at)).status).toBe(200);
  return id;
}

const HOSTILE_CONTENTS = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  '</textarea></title></style><svg onload=alert(1)>',
  '<a href="javascript:alert(1)">x</a><a href="https://evil.example/" target="_top">y</a>',
  '<meta http-equiv="refresh" content="0;url=https://evil.example/"><base href="https://evil.example/" target="_self">',
  '<style>@import "//evil.example/x.css";body{background:url(//evil.example/x.png)}</style>',
  '<link rel="preconnect" href="https://evil.example/"><link rel="stylesheet" href="//evil.example/x.css">',
  '<form action="/api/v1/tokens" method="post"><input name="name" value="x"></form>',
  '<iframe srcdoc="<script>parent.alert(1)</script>"></iframe><object data="data:text/html,x"></object>',
  '{"__proto__":1}\u2028\u2029 {{constructor}} #{7*7} <!--',
];
const HTML_SECURITY_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'; base-uri 'none'; form-action 'none'";

describe('hostile content', () => {
  test.each(HOSTILE_CONTENTS)(
    'a captured message with subject and body %j is returned as data, and its HTML cannot run code',
    async (text) => {
      const message = `<!doctype html><html><body>${text}</body></html>`;
      const id = await captureMessage({ subject: text, message });

      const listResponse = await fetchInbox('');
      expect(listResponse.headers.get('content-type')).toBe('application/json; charset=utf-8');
      const { messages } = JSON.parse(listResponse.text) as { messages: { id: string; subject: string }[] };
      expect(messages.find((listedMessage) => listedMessage.id === id)).toMatchObject({ subject: text });

      const messageResponse = await fetchInbox(`/${id}`);
      expect([
        messageResponse.headers.get('content-type'),
        messageResponse.headers.get('x-content-type-options'),
      ]).toEqual(['application/json; charset=utf-8', 'nosniff']);
      const shownMessage = JSON.parse(messageResponse.text) as {
        headers: { name: string; value: string }[];
        text: string;
        html: boolean;
      };
      expect(shownMessage).toMatchObject({ id, subject: text, html: true });
      expect(shownMessage.headers.find(({ name }) => name === 'Subject')?.value).toBe(text);

      const htmlResponse = await fetchInbox(`/${id}/html`);
      expect(htmlResponse.status).toBe(200);
      expect(Object.fromEntries(htmlResponse.headers)).toMatchObject({
        'content-security-policy': HTML_SECURITY_POLICY,
        'content-type': 'text/html; charset=utf-8',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
        'x-dns-prefetch-control': 'off',
        'cache-control': 'no-store',
      });
      expect(htmlResponse.text.trimEnd()).toBe(
        message.replace('<!doctype html>', '<!doctype html><base target="_blank">').replaceAll('<link', '<x-link'),
      );

      const sourceResponse = await fetchInbox(`/${id}/source`);
      expect(Object.fromEntries(sourceResponse.headers)).toMatchObject({
        'content-security-policy': "default-src 'none'; sandbox",
        'content-type': 'text/plain; charset=utf-8',
        'x-content-type-options': 'nosniff',
      });
    },
  );

  test('a captured message in plain text has no HTML view', async () => {
    const id = await captureMessage({ message: '<b>bold</b><script>alert(1)</script>' });
    expect(JSON.parse((await fetchInbox(`/${id}`)).text)).toMatchObject({
      html: false,
      text: expect.stringContaining('<b>bold</b><script>alert(1)</script>'),
    });
    expect((await fetchInbox(`/${id}/html`)).status).toBe(404);
  });

  test('a captured message of nearly 1 MiB is shown completely', async () => {
    const lines = 'Zwölf Boxkämpfer <b>jagen</b> Viktor.\n'.repeat(24_000);
    const htmlMessageId = await captureMessage({ message: `<html><p>${lines}</p></html>` });
    const htmlDocument = (await fetchInbox(`/${htmlMessageId}/html`)).text.trimEnd();
    expect(htmlDocument === `<base target="_blank"><html><p>${lines}</p></html>`).toBe(true);
    const plainMessage = JSON.parse((await fetchInbox(`/${await captureMessage({ message: lines })}`)).text) as {
      text: string;
    };
    expect(plainMessage.text === lines).toBe(true);
  }, 20_000);
});

describe('access', () => {
  test('the inbox requires a session, a token or the password', async () => {
    const protectedService = await rig.serve(rig.createFolder(), {
      POSTRIDER_OPERATOR_PASSWORD: 'correct horse battery',
    });
    const basicAuthorization = {
      Authorization: `Basic ${Buffer.from('any:correct horse battery').toString('base64')}`,
    };
    await submitAccepted(protectedService.publicUrl, protectedService.key, { message: '<html>secret</html>' });
    const listIds = async () =>
      (
        JSON.parse((await fetchInbox('', basicAuthorization, protectedService)).text) as { messages: { id: string }[] }
      ).messages.map(({ id }) => id);
    await expect.poll(listIds).toHaveLength(1);
    const [id] = await listIds();
    const { token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'inbox']);
    for (const path of ['', `/${id}`, `/${id}/source`, `/${id}/html`]) {
      expect((await fetchInbox(path, basicAuthorization, protectedService)).status).toBe(200);
      for (const headers of [{}, session, { Authorization: `Bearer ${token}` }]) {
        const answer = await fetchInbox(path, headers, protectedService);
        expect([path, answer.status, answer.text.includes('secret')]).toEqual([path, 401, false]);
      }
    }
    expect((await fetchInbox('', { Authorization: `Bearer ${token}` })).status).toBe(200);
    await protectedService.stop();
  });

  test('without a capture transport, the inbox routes return an error, and other routes are not affected', async () => {
    const serviceWithRelay = await rig.serve(rig.createFolder(), { POSTRIDER_TRANSPORT: 'smtp://127.0.0.1:1' });
    const headers = await signInToService(serviceWithRelay);
    for (const path of ['', '/0192a3b4-c5d6-7e8f-9012-3456789abcde', '/x/html', '/x/source']) {
      const answer = await fetchInbox(path, headers, serviceWithRelay);
      expect([path, answer.status, answer.text]).toEqual([
        path,
        404,
        '{"result":"error","code":"not-found","message":"there is no inbox; POSTRIDER_TRANSPORT=capture: stores messages in an inbox instead of sending them"}',
      ]);
    }
    await serviceWithRelay.stop();
  });
});

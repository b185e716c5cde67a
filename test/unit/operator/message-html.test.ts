/** Checks that the HTML of a message is served only to authenticated requests, with the policy of the sandboxed frame. */
import Fastify from 'fastify';
import { expect, test } from 'vitest';
import type { StoredMessage } from '../../../src/model/message.ts';
import { HTML_POLICY } from '../../../src/operator/frame-html.ts';
import { addMessageHtml } from '../../../src/operator/message-html.ts';
import { StoreError } from '../../../src/store/error.ts';

const ID = '0192a3b4-c5d6-7e8f-9012-345678900001';
const HTML = '<html><script>alert(1)</script><a href="https://evil.example/" target="_self">x</a></html>';

/** Requests the HTML of a message with this body. `undefined`: no message has the id. */
async function requestHtml(
  body: string | null | undefined,
  {
    headers = {},
    id = ID,
    signedIn = true,
  }: { headers?: Record<string, string>; id?: string; signedIn?: boolean } = {},
) {
  const app = Fastify();
  const message = body === undefined ? null : ({ id: ID, message: body } as StoredMessage);
  addMessageHtml(
    app,
    '/api/v1',
    async () => message,
    async (_request, reply) => (signedIn ? undefined : reply.code(401).send({ result: 'error' })),
  );
  return app.inject({ url: `/api/v1/messages/${id}/html`, headers });
}

test('HTML is served to a frame with a policy that forbids scripts, resources and navigation', async () => {
  const response = await requestHtml(HTML, { headers: { 'Sec-Fetch-Dest': 'iframe' } });
  expect(response.statusCode).toBe(200);
  expect(response.headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': HTML_POLICY,
    'x-dns-prefetch-control': 'off',
    vary: 'Sec-Fetch-Dest',
  });
  expect(response.body).toBe(`<base target="_blank">${HTML}`);
});

test('a message without HTML, with an erased body, or with an unknown id has no HTML', async () => {
  for (const body of ['Thank you.', '<p>no html</p>', null, undefined])
    expect([body, (await requestHtml(body)).statusCode]).toEqual([body, 404]);
  expect((await requestHtml(HTML, { id: 'x' })).statusCode).toBe(400);
});

test('a request without authentication receives no content, and a store that does not respond causes a 503', async () => {
  const response = await requestHtml(HTML, { signedIn: false });
  expect([response.statusCode, response.body.includes('alert')]).toEqual([401, false]);
  const app = Fastify();
  addMessageHtml(
    app,
    '/api/v1',
    () => Promise.reject(new StoreError('no answer')),
    async () => undefined,
  );
  expect((await app.inject({ url: `/api/v1/messages/${ID}/html` })).statusCode).toBe(503);
});

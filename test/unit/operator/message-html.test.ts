/** Checks that the HTML of a message is served with the policy of the sandboxed frame. */
import Fastify from 'fastify';
import { expect, test } from 'vitest';
import type { StoredMessage } from '../../../src/model/message.ts';
import { HTML_POLICY } from '../../../src/operator/frame-html.ts';
import { addMessageHtml } from '../../../src/operator/message-html.ts';

const ID = '0192a3b4-c5d6-7e8f-9012-345678900001';
const HTML = '<html><script>alert(1)</script><a href="https://evil.example/" target="_self">x</a></html>';

test('HTML is served to a frame with a policy that forbids scripts, resources and navigation', async () => {
  const app = Fastify();
  const message = { id: ID, message: HTML } as StoredMessage;
  addMessageHtml(
    app,
    '/api/v1',
    async () => message,
    async () => undefined,
  );
  const response = await app.inject({
    url: `/api/v1/messages/${ID}/html`,
    headers: { 'Sec-Fetch-Dest': 'iframe' },
  });
  expect(response.statusCode).toBe(200);
  expect(response.headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': HTML_POLICY,
    'x-dns-prefetch-control': 'off',
    vary: 'Sec-Fetch-Dest',
  });
  expect(response.body).toBe(`<base target="_blank">${HTML}`);
});

/** Checks that the source of a captured message is served as text, and its HTML with a policy that forbids scripts. */
import Fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { readEntity } from '../../../src/feedback/read/entity.ts';
import type { Inbox } from '../../../src/model/inbox.ts';
import { HTML_POLICY, prepareFrameHtml } from '../../../src/operator/frame-html.ts';
import { addInboxFiles } from '../../../src/operator/inbox.ts';
import { createCapturedSource } from '../../rig/captured-message.ts';

const MESSAGE_ID = '0192a3b4-c5d6-7e8f-9012-345678900001';
const UNKNOWN_ID = '0192a3b4-c5d6-7e8f-9012-345678900009';

function serveInbox(sources: Readonly<Record<string, Buffer>>, signedIn = true, capturing = true) {
  const inbox: Inbox = {
    list: async () => [],
    findEntry: async () => null,
    findSource: (id) => Promise.resolve(sources[id] ?? null),
  };
  const app = Fastify();
  addInboxFiles(app, '/api/v1', { inbox: capturing ? inbox : null, readEntity }, async (_request, reply) =>
    signedIn ? undefined : reply.code(401).send({ result: 'error', message: 'Sign in first' }),
  );
  return (path: string, headers: Record<string, string> = {}) => app.inject({ url: `/api/v1/inbox${path}`, headers });
}

const ONE_MESSAGE = { [MESSAGE_ID]: createCapturedSource('<html><p>x</p></html>') };

describe('one message', () => {
  test('the source of a message is plain text for any content', async () => {
    const source = Buffer.from('Subject: <b>x</b>\r\n\r\n<html><script>1</script>\u00ff');
    const response = await serveInbox({ [MESSAGE_ID]: source })(`/${MESSAGE_ID}/source`);
    expect(response.headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'content-security-policy': "default-src 'none'; sandbox",
    });
    expect(response.rawPayload).toEqual(source);
  });

  test('the HTML of a message without HTML is not found', async () => {
    const response = await serveInbox({ [MESSAGE_ID]: Buffer.from('Subject: x\r\n\r\n<html>') })(`/${MESSAGE_ID}/html`);
    expect([response.statusCode, response.json()]).toEqual([
      404,
      { result: 'error', code: 'not-found', message: `message ${MESSAGE_ID} has no HTML`, field: 'id' },
    ]);
  });

  test.each(['/source', '/html'])(
    '%j of an unknown message, or without a capturing transport, is not found',
    async (suffix) => {
      expect((await serveInbox(ONE_MESSAGE)(`/${UNKNOWN_ID}${suffix}`)).json()).toEqual({
        result: 'error',
        code: 'not-found',
        message: `there is no message ${UNKNOWN_ID} in the inbox; \`postrider inbox list\` lists the messages of the inbox`,
        field: 'id',
      });
      for (const id of ['..%2f..%2fetc%2fpasswd', '%00', 'x'])
        expect((await serveInbox(ONE_MESSAGE)(`/${id}${suffix}`)).statusCode).toBe(404);
      const response = await serveInbox(ONE_MESSAGE, true, false)(`/${MESSAGE_ID}${suffix}`);
      expect([response.statusCode, response.json()]).toEqual([
        404,
        {
          result: 'error',
          code: 'not-found',
          message:
            'there is no inbox; POSTRIDER_TRANSPORT=capture: stores messages in an inbox instead of sending them',
        },
      ]);
    },
  );

  test('every route requires authentication', async () => {
    for (const path of [`/${MESSAGE_ID}/source`, `/${MESSAGE_ID}/html`, `/${UNKNOWN_ID}/source`]) {
      const response = await serveInbox(ONE_MESSAGE, false)(path);
      expect([path, response.statusCode, response.body.includes('example')]).toEqual([path, 401, false]);
    }
  });
});

describe('HTML for a frame', () => {
  const BODIES = [
    '<html><base href="https://evil.example/" target="_top"><form action="/api/v1/tokens"><button>x</button></form></html>',
    '<html><style>@import "https://evil.example/x.css"; p{background:url(https://evil.example/x)}</style></html>',
    '<html>\0\u2028<plaintext><!--<![CDATA[</html>',
  ];

  test.each(BODIES)('%j is served with the same policy', async (body) => {
    const response = await serveInbox({ [MESSAGE_ID]: createCapturedSource(body) })(`/${MESSAGE_ID}/html`);
    expect(response.statusCode).toBe(200);
    expect(response.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
      'x-dns-prefetch-control': 'off',
    });
    expect(HTML_POLICY).not.toContain('allow-');
    // The HTML is unchanged except for the target of links.
    expect(response.body.replace('<base target="_blank">', '')).toBe(body);
  });

  test('is sent as plain text, with the path of its inbox page, if Sec-Fetch-Dest is not iframe', async () => {
    const request = serveInbox({
      [MESSAGE_ID]: createCapturedSource('<html><a href="https://evil.example/" target="_self">x</a></html>'),
    });
    const framedResponse = await request(`/${MESSAGE_ID}/html`, { 'Sec-Fetch-Dest': 'iframe' });
    expect([framedResponse.headers['content-type'], framedResponse.headers.vary]).toEqual([
      'text/html; charset=utf-8',
      'Sec-Fetch-Dest',
    ]);
    for (const destination of ['document', 'empty', 'object', 'embed', 'frame', '']) {
      const response = await request(`/${MESSAGE_ID}/html`, { 'Sec-Fetch-Dest': destination });
      expect([destination, response.statusCode, response.headers['content-type'], response.headers.vary]).toEqual([
        destination,
        200,
        'text/plain; charset=utf-8',
        'Sec-Fetch-Dest',
      ]);
      expect(response.body).toBe(
        `This HTML is shown only in the sandboxed frame of /inbox/${MESSAGE_ID}. Its source:\n\n` +
          '<html><a href="https://evil.example/" target="_self">x</a></html>',
      );
    }
  });

  test('opens its links in a window that the sandbox forbids, and still begins with the doctype', () => {
    expect(prepareFrameHtml('\n <!DOCTYPE html "a>b"><html></html>')).toBe(
      '\n <!DOCTYPE html "a><base target="_blank">b"><html></html>',
    );
    expect(prepareFrameHtml('<html><base target="_top">')).toBe('<base target="_blank"><html><base target="_top">');
    expect(prepareFrameHtml('<!doctype')).toBe('<base target="_blank"><!doctype');
  });

  test('disables link elements, so that they open no connection', () => {
    expect(prepareFrameHtml('<LiNk rel=preconnect href=//evil.example><link/rel=x>')).not.toMatch(/<link/i);
  });
});

/** Checks that the HTML of a captured message is served as HTML only to a frame. */
import Fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { readEntity } from '../../../src/feedback/read/entity.ts';
import type { Inbox } from '../../../src/model/inbox.ts';
import { prepareFrameHtml } from '../../../src/operator/frame-html.ts';
import { addInboxFiles } from '../../../src/operator/inbox.ts';
import { createCapturedSource } from '../../rig/captured-message.ts';

const MESSAGE_ID = '0192a3b4-c5d6-7e8f-9012-345678900001';
function serveInbox(source: Buffer) {
  const inbox: Inbox = {
    list: async () => [],
    findEntry: async () => null,
    findSource: async () => source,
  };
  const app = Fastify();
  addInboxFiles(app, '/api/v1', { inbox, readEntity }, async () => undefined);
  return (path: string, headers: Record<string, string> = {}) => app.inject({ url: `/api/v1/inbox${path}`, headers });
}

describe('HTML for a frame', () => {
  test('is sent as plain text, with the path of its inbox page, if Sec-Fetch-Dest is not iframe', async () => {
    const request = serveInbox(
      createCapturedSource('<html><a href="https://evil.example/" target="_self">x</a></html>'),
    );
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

import Fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { readEntity } from '../../../src/feedback/read/entity.ts';
import type { StoredMessage } from '../../../src/model/message.ts';
import { addMessageFiles, prepareFrameHtml } from '../../../src/operator/message-files.ts';
import { createCapturedSource } from '../../rig/captured-message.ts';

const ID = '0192a3b4-c5d6-7e8f-9012-345678900001';
const HTML = '<html><script>alert(1)</script><a href="https://evil.example/" target="_self">x</a></html>';

const SOURCE_HEADERS = {
  ...{ 'content-type': 'text/plain; charset=utf-8', 'content-security-policy': "default-src 'none'; sandbox" },
};

function request(path: string, destination: string) {
  const app = Fastify();
  const inbox = {
    list: async () => [],
    findEntry: async () => null,
    findSource: async () => createCapturedSource(HTML),
  };
  const message = { id: ID, message: HTML } as StoredMessage;
  const admit = async () => undefined;
  addMessageFiles(app, '/api/v1', { inbox, readEntity }, async () => message, admit);
  return app.inject({ url: `/api/v1/${path}/${ID}/html`, headers: { 'Sec-Fetch-Dest': destination } });
}

describe('HTML for a frame', () => {
  test.each(['inbox', 'messages'])(
    'of %s forbids scripts, resources and navigation, and is text elsewhere',
    async (path) => {
      const framed = await request(path, 'iframe');
      expect(framed.statusCode).toBe(200);
      expect(framed.headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy':
          "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
        'x-dns-prefetch-control': 'off',
        vary: 'Sec-Fetch-Dest',
      });
      expect(framed.body.trim()).toBe(`<base target="_blank">${HTML}`);
      for (const destination of ['document', 'empty', 'object', 'embed', 'frame', '']) {
        const { statusCode, headers, body } = await request(path, destination);
        expect([destination, statusCode, headers]).toMatchObject([destination, 200, SOURCE_HEADERS]);
        expect(headers.vary).toBe('Sec-Fetch-Dest');
        expect(body.trim()).toBe(
          `This HTML is shown only in the sandboxed frame of /${path}/${ID}. Its source:\n\n${HTML}`,
        );
      }
    },
  );

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

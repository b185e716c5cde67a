import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import Fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { addDashboard } from '../../../src/operator/dashboard.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';

/** This module is JavaScript because it runs while packages are installed. */
const { finishBuild } = (await import(new URL('../../../bin/finish-build.js', import.meta.url).href)) as {
  finishBuild: (newBuild: string, dist: string) => void;
};
const INDEX_HTML = '<!doctype html><meta content="__NONCE__"><style nonce="__NONCE__"></style><div id="root"></div>';
const SCRIPT = `console.log(1);${'// a comment that compresses well\n'.repeat(60)}`;
const ADDRESSES = [
  ...'/ /messages /messages/0192a3b4-c5d6-7e8f-9012-3456789abcde /messages/?state=queued'.split(' '),
  ...'/inbox /inbox/any/thing /accounts/acme /domains/example.org /suppressions /audit'.split(' '),
];

function createBuild(): string {
  const folder = join(createTemporaryFolder(), 'dist');
  mkdirSync(join(folder, 'assets'), { recursive: true });
  writeFileSync(join(folder, 'index.html'), INDEX_HTML);
  writeFileSync(join(folder, 'icon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
  writeFileSync(join(folder, 'assets', 'app-1a2b.js'), SCRIPT);
  writeFileSync(join(folder, 'assets', 'app-1a2b.js.br'), brotliCompressSync(SCRIPT));
  writeFileSync(join(folder, 'assets', 'app-1a2b.css'), 'a{color:red}');
  writeFileSync(join(folder, 'assets', 'app-1a2b.js.map'), '{}');
  writeFileSync(join(folder, '..', 'secret.js'), 'secret');
  return folder;
}

function serveDashboard(folder: string) {
  const app = Fastify();
  addDashboard(app, folder);
  return (url: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') =>
    app.inject({ url, headers, method });
}

describe('the page', () => {
  test('is identical at each path except for the nonce, which is new in page and policy for each request', async () => {
    const request = serveDashboard(createBuild());
    const nonces = new Set<string>();
    for (const address of ADDRESSES) {
      const response = await request(address);
      expect([address, response.statusCode, response.headers['content-type']]).toEqual([
        address,
        200,
        'text/html; charset=utf-8',
      ]);
      const policy = String(response.headers['content-security-policy']);
      const nonce = /style-src 'self' 'nonce-([A-Za-z0-9+/]{22}==)'/.exec(policy)?.[1] ?? '';
      expect(response.body).toBe(INDEX_HTML.replaceAll('__NONCE__', nonce));
      expect(policy).toMatch(/default-src 'none'; script-src 'self';.*base-uri 'none';.*frame-ancestors 'none'$/);
      nonces.add(nonce);
    }
    expect(nonces.size).toBe(ADDRESSES.length);
  });

  test('explains how to build the dashboard if the build is missing, and is served without a restart after the build', async () => {
    const folder = join(createTemporaryFolder(), 'dist');
    const request = serveDashboard(folder);
    const missingBuildResponse = await request('/');
    expect([missingBuildResponse.statusCode, missingBuildResponse.body.includes('npm run build')]).toEqual([200, true]);
    expect((await request('/assets/app-1a2b.js')).statusCode).toBe(404);
    mkdirSync(folder);
    writeFileSync(join(folder, 'index.html'), INDEX_HTML);
    expect((await request('/')).body).toContain('id="root"');
  });
});

describe('assets', () => {
  test('have a media type, are immutable in caches, and are compressed for clients that accept compression', async () => {
    const request = serveDashboard(createBuild());
    const plainResponse = await request('/assets/app-1a2b.js');
    expect([plainResponse.statusCode, plainResponse.body, plainResponse.headers['content-encoding']]).toEqual([
      200,
      SCRIPT,
      undefined,
    ]);
    expect(plainResponse.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
    });
    const compressedResponse = await request('/assets/app-1a2b.js', { 'Accept-Encoding': 'gzip, deflate, br' });
    expect(compressedResponse.headers['content-encoding']).toBe('br');
    expect(compressedResponse.rawPayload.length).toBeLessThan(SCRIPT.length / 4);
    expect(brotliDecompressSync(compressedResponse.rawPayload).toString()).toBe(SCRIPT);
    const style = await request('/assets/app-1a2b.css', { 'Accept-Encoding': 'br' });
    expect([style.headers['content-type'], style.headers['content-encoding']]).toEqual([
      'text/css; charset=utf-8',
      undefined,
    ]);
    const icon = await request('/icon.svg');
    expect([icon.headers['content-type'], icon.headers['cache-control']]).toEqual(['image/svg+xml', 'no-cache']);
  });

  test.each([
    ...'/assets/other.js /assets/app-1a2b.js.map /assets/app-1a2b.js.br /assets/'.split(' '),
    ...'/assets/..%2findex.html /assets/..%2f..%2fsecret.js /assets/..%5c..%5csecret.js'.split(' '),
    ...'/assets/%2e%2e%2f%2e%2e%2fsecret.js /assets/%00 /assets/../../secret.js'.split(' '),
    ...'/assets/constructor /index.html /secret.js'.split(' '),
  ])('the path %s is not found', async (path) => {
    expect((await serveDashboard(createBuild())(path)).statusCode).toBe(404);
  });
});

describe('a build while the service runs', () => {
  const createPage = (text: string) => INDEX_HTML.replace('"root"', `"root" class="${text}"`);
  const rebuild = (folder: string, name: string) => {
    const newBuild = `${folder}.new`;
    mkdirSync(join(newBuild, 'assets'), { recursive: true });
    writeFileSync(join(newBuild, 'assets', `app-${name}.js`), `${name}${SCRIPT}`);
    writeFileSync(join(newBuild, 'assets', 'shared-7g8h.js'), 'shared');
    writeFileSync(join(newBuild, 'index.html'), createPage(name));
    finishBuild(newBuild, folder);
  };

  test('is served immediately with compressed assets, and the assets of the previous build remain available', async () => {
    const folder = createBuild();
    const request = serveDashboard(folder);
    expect((await request('/')).body).not.toContain('second');
    rebuild(folder, 'second');
    expect((await request('/')).body).toContain('class="second"');
    const asset = await request('/assets/app-second.js', { 'Accept-Encoding': 'br' });
    expect([asset.headers['content-encoding'], brotliDecompressSync(asset.rawPayload).toString()]).toEqual([
      'br',
      `second${SCRIPT}`,
    ]);
    expect((await request('/assets/app-1a2b.js')).body).toBe(SCRIPT);
    expect((await request('/builds.json')).statusCode).toBe(404);
  });

  test('removes older builds', async () => {
    const folder = createBuild();
    const request = serveDashboard(folder);
    for (const name of ['a', 'b', 'c', 'd', 'e']) rebuild(folder, name);
    const names = ['app-e', 'app-d', 'app-c', 'app-b', 'app-a', 'app-1a2b', 'shared-7g8h'];
    const statuses = await Promise.all(names.map(async (name) => (await request(`/assets/${name}.js`)).statusCode));
    expect(statuses).toEqual([200, 200, 200, 404, 404, 404, 200]);
    expect(existsSync(`${folder}.new`) || existsSync(`${folder}.old`)).toBe(false);
  });
});

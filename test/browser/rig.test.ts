/**
 * Tests that the rig of the browser tests detects each fault that it checks for. Without these tests, a browser test
 * could pass although the page has a fault.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createBrowserRig } from '../rig/browser.ts';
import { type RecordingServer, startRecordingServer } from '../rig/hostile-content.ts';
import { findHorizontalOverflow, findSeriousFaults } from '../rig/page-checks.ts';

const browsers = createBrowserRig();

/** Serves and opens a page with this content; the server is closed after the test. */
async function openTestPage(html: (otherServer: RecordingServer) => string, headers: Record<string, string> = {}) {
  const otherServer = await startRecordingServer();
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', ...headers });
    response.end(
      `<!doctype html><html lang="en"><title>A page</title><link rel="icon" href="data:,"><h1>A page</h1>${html(otherServer)}`,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await otherServer.close();
  });
  const operatorUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const user = await browsers.openSignedOut({ operatorUrl, signIn: null }, { width: 360 });
  await user.visit('/');
  return { ...user, otherServer };
}

test.each<[string, (otherServer: RecordingServer) => string, RegExp]>([
  ['a dialog', () => '<script>setTimeout(() => alert(1))</script>', /^dialog: 1/],
  ['an exception', () => '<script>setTimeout(() => { throw new Error("oh") })</script>', /^exception: oh/],
  ['an error in the console', () => '<script>console.error("bad")</script>', /^error: bad/],
  [
    'a request to another server',
    ({ url }) => `<img alt="" src="${url}/pixel">`,
    /^request: GET http:\/\/127\.0\.0\.1:\d+\/pixel/,
  ],
  [
    'a request to another host name',
    () => '<img alt="" src="http://example.com/pixel">',
    /^request: GET http:\/\/example\.com\/pixel/,
  ],
  [
    'a window',
    () => '<a id="a" href="/" target="_blank">open</a><script>document.getElementById("a").click()</script>',
    /^window: /,
  ],
])('the rig detects %s', async (_name, html, line) => {
  const { listFaults, allowFaults } = await openTestPage(html);
  await expect.poll(() => listFaults().some((fault) => line.test(fault))).toBe(true);
  allowFaults(/./);
});

test('the rig detects a violation of the content security policy, which blocks the request', async () => {
  const policy = { 'Content-Security-Policy': "default-src 'none'; img-src data:" };
  const { listFaults, allowFaults, otherServer } = await openTestPage(
    ({ url }) => `<img alt="" src="${url}/pixel">`,
    policy,
  );
  await expect.poll(() => listFaults().length).toBe(1);
  expect(listFaults()[0]).toMatch(/^error: .*violates the following Content Security Policy/);
  expect(otherServer.listRequests()).toEqual([]);
  allowFaults(/./);
});

test('the page checks detect horizontal overflow and an accessibility fault', async () => {
  const { page } = await openTestPage(() => '<img src="data:," width="500" height="10">');
  expect((await findSeriousFaults(page)).join('\n')).toContain('image-alt');
  expect((await findHorizontalOverflow(page)).join('\n')).toMatch(/^\d+ px too wide/);
});

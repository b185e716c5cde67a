/**
 * Tests that a session belongs to the origin of the dashboard, including its port: a server on another port of the host
 * cannot use it.
 */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Request } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { createBrowserRig, findSignInLink } from '../rig/browser.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario } from '../scenarios/running-service.ts';

const UNAUTHORIZED_LINE = /status of 401 .*\/api\/v1\//;

const rig = createScenario();
const browsers = createBrowserRig();

/**
 * Starts a server that listens on another port of this host and records the headers of the requests that it receives.
 */
async function startOtherServer() {
  const receivedHeaders: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    receivedHeaders.push(request.headers);
    response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><title>Other</title><h1>Other</h1>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, receivedHeaders };
}

test('a server on another port of this host receives the session cookie but cannot use it', async () => {
  const service = await rig.serve(rig.createFolder());
  const { page, context, visit, allowFaults } = await browsers.openSignedIn(service, '/');
  const otherSite = await startOtherServer();
  allowFaults(/^request: GET http:\/\/127\.0\.0\.1:/, /favicon/);
  await page.goto(otherSite.url);
  const cookie = otherSite.receivedHeaders[0]?.cookie ?? '';
  expect(cookie).toMatch(/^postrider_session=/);
  expect(JSON.stringify(otherSite.receivedHeaders)).not.toContain('postrider-session"');
  expect(await page.evaluate(() => localStorage.length)).toBe(0);
  for (const path of ['/session', '/accounts', '/events', '/inbox']) {
    const responseWithCookie = await fetch(`${service.operatorUrl}/api/v1${path}`, { headers: { Cookie: cookie } });
    expect([path, responseWithCookie.status]).toEqual([path, 401]);
  }
  const signOutRequest = { method: 'POST', headers: { Cookie: cookie } };
  await fetch(`${service.operatorUrl}/api/v1/sign-out`, signOutRequest);
  await visit('/accounts');
  await page.getByRole('link', { name: 'default' }).first().waitFor();
  await context.close();
});

test('tabs share a session, and a sign-out in one tab ends the session in all tabs', async () => {
  const service = await rig.serve(rig.createFolder());
  const { page, context, allowFaults } = await browsers.openSignedOut(service);
  allowFaults(UNAUTHORIZED_LINE, /^window: /);
  await page.goto(findSignInLink(service));
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  expect(new URL(page.url()).search).toBe('');
  const tab = await context.newPage();
  await tab.goto('/messages');
  await tab.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
  await tab.getByRole('button', { name: 'Sign out' }).click();
  await tab.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();
  await tab.getByRole('textbox', { name: 'Operator password' }).waitFor();
  await page.reload();
  await page.getByRole('textbox', { name: 'Operator password' }).waitFor();
});

test('live updates show a new message, and downloads send the session header and are complete', async () => {
  const service = await rig.serve(rig.createFolder());
  const { page, visit } = await browsers.openSignedIn(service, '/inbox');
  const fileRequests: Request[] = [];
  page.on('request', (request) => {
    if (/\/(?:source|export)\b/.test(request.url())) fileRequests.push(request);
  });
  const html = '<!doctype html><p style="color: green">A green word</p>';
  await submitAccepted(service.publicUrl, service.key, { subject: 'Shown by live updates', message: html });
  await page.getByRole('link', { name: 'Shown by live updates' }).click();
  await page.frameLocator('iframe').getByText('A green word').waitFor();
  const sourceDownload = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download' }).click();
  expect(readFileSync(await (await sourceDownload).path(), 'utf8')).toContain('Subject: Shown by live updates\r\n');
  await browsers.callApi(service, 'POST', '/accounts/default/suppressions', { address: 'ada@example.com' });
  await visit('/suppressions?list=default');
  const listDownload = page.waitForEvent('download');
  await page.getByRole('button', { name: /^Export the suppression list/ }).click();
  const file = await listDownload;
  expect(file.suggestedFilename()).toBe('suppressions-default.csv');
  expect(readFileSync(await file.path(), 'utf8')).toMatch(/^address,reason,at,source\nada@example\.com,manual,/);
  expect(fileRequests.map((request) => new URL(request.url()).search)).toEqual(['', '']);
  for (const request of fileRequests) expect((await request.allHeaders())['postrider-session']).toMatch(/^.{20,}/);
});

test('if the connection is lost during a download, the page reports the failure and saves no file', async () => {
  const service = await rig.serve(rig.createFolder());
  await browsers.callApi(service, 'POST', '/accounts/default/suppressions', { address: 'ada@example.com' });
  const { page, context } = await browsers.openSignedIn(service, '/audit');
  // The body of the response fails after its first part, as after a lost connection.
  await context.addInitScript(`
    const send = window.fetch;
    window.fetch = async (...request) => {
      const response = await send(...request);
      if (!response.url.endsWith('/export')) return response;
      const parts = [new TextEncoder().encode('address,reason')];
      const body = new ReadableStream({
        pull(controller) {
          const part = parts.pop();
          if (part === undefined) controller.error(new TypeError('network error'));
          else controller.enqueue(part);
        },
      });
      return new Response(body, { headers: response.headers });
    };`);
  await page.goto('/suppressions?list=default');
  const downloads: string[] = [];
  page.on('download', (file) => downloads.push(file.suggestedFilename()));
  await page.getByRole('button', { name: /^Export the suppression list/ }).click();
  await page.getByText('The download ended before the file was complete.').waitFor();
  expect(downloads).toEqual([]);
});

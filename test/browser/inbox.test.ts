import { readFileSync } from 'node:fs';
import type { Request } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { createBrowserRig, waitForState } from '../rig/browser.ts';
import { runCurl } from '../rig/curl.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

const HTML = `<!doctype html>
<html lang="en"><title>Receipt</title><body>
<a href="http://example.com/">Pay</a>
<img src="https://example.com/x.png">
<a href="/orders/1">Order <b>now</b></a>`;

/** The console line of the browser about the image of the message, which the frame must not load. */
const BLOCKED_IMAGE_LINE = /example\.com\/x\.png' violates the following Content Security Policy/;

const rig = createScenario();
const browsers = createBrowserRig();
let service: RunningService;
let htmlMessageId = '';
let textMessageId = '';

beforeAll(async () => {
  service = await rig.serve(rig.createFolder());
  htmlMessageId = await submitAccepted(service.publicUrl, service.key, { subject: 'Your receipt', message: HTML });
  textMessageId = await submitAccepted(service.publicUrl, service.key, {
    to: 'bob@example.org',
    subject: 'Reset your password',
  });
  for (const id of [htmlMessageId, textMessageId]) await waitForState(browsers, service, id, 'delivered');
});

test('after the first start the page shows a command, and the message that the command submits appears without a reload', async () => {
  const newService = await rig.serve(rig.createFolder());
  const { page } = await browsers.openSignedIn(newService, '/');
  const emptyInbox = await browsers.openSignedIn(newService, '/inbox');
  const command = (await page.locator('pre').filter({ hasText: 'curl' }).innerText()).trim();
  await page.getByText('Waiting for your message').waitFor();
  expect((await runCurl(command)).status).toBe(201);
  await page.getByRole('link', { name: 'Show in the inbox' }).click();
  // The empty inbox opens the first message when it arrives.
  for (const inbox of [page, emptyInbox.page]) {
    await inbox.getByRole('heading', { level: 2, name: 'Hello' }).waitFor();
    await inbox.getByText('It works.').waitFor();
  }
});

test('the checklist marks a step as done while the page is open, and can be hidden and shown again', async () => {
  const newService = await rig.serve(rig.createFolder());
  const { page } = await browsers.openSignedIn(newService, '/');
  const checklist = page.getByRole('region', { name: 'Set up this installation' });
  await checklist.getByText('0 of 2 steps done').waitFor();
  await checklist.getByRole('button', { name: /^Choose a provider/ }).click();
  // The public listener refuses the first request, and the page shows the text of its response.
  await checklist.getByRole('button', { name: /^Send a test message/ }).click();
  await checklist.getByRole('textbox', { name: 'Recipient' }).fill('nobody');
  await checklist.getByRole('button', { name: 'Send test message' }).click();
  await checklist.getByText('400: Invalid email address: to').waitFor();
  await checklist.getByRole('textbox', { name: 'Recipient' }).fill('ada@example.com');
  await checklist.getByRole('button', { name: 'Send test message' }).click();
  await checklist.getByText('Your message to ada@example.com has arrived').waitFor();
  await checklist.getByText('1 of 2 steps done').waitFor();
  await checklist.getByRole('button', { name: 'Hide' }).click();
  await checklist.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Setup: 1 open step' }).click();
  await checklist.getByText('Choose a provider').waitFor();
});

test('the key / focuses the search, j and k move the focus between messages, Enter opens a message, and the URL contains the search', async () => {
  const { page, allowFaults } = await browsers.openSignedIn(service, '/inbox');
  allowFaults(BLOCKED_IMAGE_LINE);
  await page.getByRole('link', { name: 'Your receipt' }).waitFor();
  for (const key of ['j', 'j', 'k']) await page.keyboard.press(key);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 2, name: 'Reset your password' }).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/inbox/${textMessageId}`);
  await page.keyboard.press('/');
  await page.keyboard.type('RECEIPT');
  await page.getByRole('link', { name: 'Reset your password' }).waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Your receipt' }).click();
  await page.getByRole('heading', { level: 2, name: 'Your receipt' }).waitFor();
  expect(new URL(page.url()).search).toContain('q=RECEIPT');
});

test('the downloads of a message and of a suppression list send the session header and are complete', async () => {
  const { page, visit } = await browsers.openSignedIn(service, `/inbox/${textMessageId}`);
  const fileRequests: Request[] = [];
  page.on('request', (request) => {
    if (/\/(?:source|export)\b/.test(request.url())) fileRequests.push(request);
  });
  const sourceDownload = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download' }).click();
  expect(readFileSync(await (await sourceDownload).path(), 'utf8')).toContain('Subject: Reset your password\r\n');
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

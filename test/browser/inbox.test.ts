import { readFileSync } from 'node:fs';
import type { Request } from 'playwright-core';
import { expect, test } from 'vitest';
import { createBrowserRig, waitForState } from '../rig/browser.ts';
import { runCurl } from '../rig/curl.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
const service = await rig.serve(rig.createFolder());

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

test('the downloads of a message and of a suppression list send the session header and are complete', async () => {
  const id = await submitAccepted(service.publicUrl, service.key, { subject: 'Reset your password' });
  await waitForState(browsers, service, id, 'delivered');
  const { page, visit } = await browsers.openSignedIn(service, `/inbox/${id}`);
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
  expect(readFileSync(await file.path(), 'utf8')).toMatch(
    /^address,reason,at,source,expires\nada@example\.com,manual,/,
  );
  expect(fileRequests.map((request) => new URL(request.url()).search)).toEqual(['', '']);
  for (const request of fileRequests) expect((await request.allHeaders())['postrider-session']).toMatch(/^.{20,}/);
});

/**
 * Tests the first use of a new installation in the browser: sign-in link, checklist, printed command, and the message,
 * which appears without a reload.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { createBrowserRig } from '../rig/browser.ts';
import { runCurl } from '../rig/curl.ts';
import { findHorizontalOverflow, findSeriousFaults } from '../rig/page-checks.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();

test('after the first start the page shows a command, and the message that the command submits appears without a reload', async () => {
  const firstService = await rig.serveWithBanner(rig.createFolder());
  const link = /(http:\/\/\S+\/sign-in\?link=\S+)/.exec(firstService.banner)?.[1] ?? '';
  const { page } = await browsers.openSignedOut(firstService);
  await page.goto(link);
  await page.getByRole('heading', { name: 'Set up this installation' }).waitFor();
  const command = (await page.locator('pre').filter({ hasText: 'curl' }).innerText()).trim();
  await page.getByText('Waiting for your message').waitFor();
  const status = await runInShell(command);
  expect(status).toBe(201);

  await page.getByRole('link', { name: 'Show in the inbox' }).click();
  await page.getByRole('heading', { level: 2, name: 'Hello' }).waitFor();
  await page.getByText('It works.').waitFor();
  await page.goBack();

  await page.getByRole('link', { name: 'Messages' }).click();
  await page.getByRole('link', { name: 'Hello' }).click();
  await page.getByText(/The attempt at .* succeeded/).waitFor();
});

test('the checklist marks a step as done while the page is open, can be hidden and shown again, and has no serious accessibility violation', async () => {
  const service = await rig.serve(rig.createFolder());
  const { page } = await browsers.openSignedIn(service, '/');
  const checklist = page.getByRole('region', { name: 'Set up this installation' });
  await checklist.getByText('0 of 2 steps done').waitFor();
  await checklist.getByRole('button', { name: /^Choose a provider/ }).click();
  await checklist.getByText('POSTRIDER_TRANSPORT="smtp://').waitFor();
  expect(await findSeriousFaults(page)).toEqual([]);
  expect(await findHorizontalOverflow(page)).toEqual([]);
  // The public listener refuses the first request, and the page shows the text of its response.
  await checklist.getByRole('button', { name: /^Send a test message/ }).click();
  await checklist.getByRole('textbox', { name: 'Recipient' }).fill('nobody');
  await checklist.getByRole('button', { name: 'Send test message' }).click();
  await checklist.getByText('400: Invalid email address: to').waitFor();
  await checklist.getByRole('textbox', { name: 'Recipient' }).fill('ada@example.com');
  await checklist.getByRole('button', { name: 'Send test message' }).click();
  await checklist.getByText('Your message to ada@example.com has arrived').waitFor();
  await checklist.getByText('1 of 2 steps done').waitFor();
  await checklist.getByRole('button', { name: /^Send a test message.*Done$/ }).waitFor();

  await checklist.getByRole('button', { name: 'Hide' }).click();
  await checklist.waitFor({ state: 'detached' });
  await page.reload();
  await page.getByRole('button', { name: 'Setup: 1 open step' }).click();
  await checklist.getByText('Choose a provider').waitFor();
  // A locked account is shown above the checklist.
  await browsers.callApi(service, 'POST', '/accounts', { name: 'late' });
  await browsers.callApi(service, 'POST', '/accounts/late/lock', { reason: 'unpaid' });
  const failure = page.getByRole('region', { name: /^Needs attention/ }).getByText('Account late is locked');
  await failure.waitFor();
  const [failureBox, checklistBox] = [await failure.boundingBox(), await checklist.boundingBox()];
  expect(failureBox?.y ?? Number.NaN).toBeLessThan(checklistBox?.y ?? Number.NaN);
});

test('an empty inbox opens the first message when it arrives', async () => {
  const service = await rig.serve(rig.createFolder());
  const { page } = await browsers.openSignedIn(service, '/inbox');
  const command = (await page.locator('pre').filter({ hasText: 'curl' }).innerText()).trim();
  expect((await runCurl(command)).status).toBe(201);
  await page.getByRole('heading', { level: 2, name: 'Hello' }).waitFor();
  await page.getByText('It works.').waitFor();
});

test('the account page shows the account after the overview has listed the accounts for which a first key can be created', async () => {
  const folder = rig.createFolder();
  await (await rig.serve(folder)).stop();
  // The first key is no longer shown after a restart.
  const service = await rig.serve(folder);
  await browsers.callApi(service, 'POST', '/accounts', { name: 'first-message' });
  const { page } = await browsers.openSignedIn(service, '/');
  await page.getByRole('button', { name: 'Create a key' }).waitFor();
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Accounts' }).click();
  await page.getByRole('link', { name: 'first-message' }).click();
  await page.getByRole('heading', { level: 1, name: 'first-message' }).waitFor();
  await page.getByText('active').waitFor();
});

/**
 * Runs the command in a shell if curl is installed, otherwise sends the same request. Returns the status of the
 * response.
 */
async function runInShell(command: string): Promise<number> {
  try {
    await promisify(execFile)('curl', ['--version']);
  } catch {
    return (await runCurl(command)).status;
  }
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', command]);
  return Number(/^HTTP\/1\.1 (\d+)/.exec(stdout)?.[1]);
}

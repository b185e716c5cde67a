/**
 * Checks the inbox: the keyboard and the search, the findings of the checks, and rules that answer delivery attempts.
 */
import { beforeAll, expect, test, vi } from 'vitest';
import { createBrowserRig, waitForState } from '../rig/browser.ts';
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
  await vi.waitFor(
    async () => {
      const { messages } = await browsers.callApi<{ messages: readonly object[] }>(service, 'GET', '/inbox');
      expect(messages).toHaveLength(2);
    },
    { timeout: 120_000 },
  );
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

test('a new message is announced by a button, and does not move the rows of the list', async () => {
  const { page } = await browsers.openSignedIn(service, '/inbox');
  const rows = page.getByRole('navigation', { name: 'Captured messages' }).getByRole('link');
  await page.getByRole('link', { name: 'Your receipt' }).waitFor();
  const shownRows = await rows.allTextContents();
  const topRowBox = await rows.first().boundingBox();
  await submitAccepted(service.publicUrl, service.key, { to: 'cai@example.org', subject: 'Arrived later' });
  const newMessagesButton = page.getByRole('status').getByRole('button', { name: 'Show 1 new message' });
  await newMessagesButton.waitFor();
  expect(await rows.count()).toBe(shownRows.length);
  expect(await rows.first().boundingBox()).toEqual(topRowBox);
  await newMessagesButton.click();
  await expect.poll(async () => (await rows.first().textContent()) ?? '').toContain('Arrived later');
});

test('the Checks tab shows the number of findings, and lists them with their positions in the message, errors first', async () => {
  const { page, allowFaults } = await browsers.openSignedIn(service, `/inbox/${htmlMessageId}`);
  allowFaults(BLOCKED_IMAGE_LINE);
  await page.getByRole('tab', { name: 'Checks 3' }).click();
  const findings = page.getByRole('list', { name: 'Findings' }).locator(':scope > li');
  await expect
    .poll(() => findings.locator('code').allTextContents())
    .toEqual(expect.arrayContaining(['link-relative', 'link-http', 'image-alt-missing']));
  expect(await findings.first().textContent()).toContain('Error');
  expect(await findings.first().textContent()).toContain('HTML, line 5');
  expect(await findings.first().textContent()).toContain('<a href="/orders/1">');
  await page.goto(`/inbox/${textMessageId}?view=checks`);
  await page.getByText('The checks found nothing').waitFor();
});

test('a rule that is added on the page bounces the next message, and the suppression and the rule can be removed on the page', async () => {
  const { page, allowFaults } = await browsers.openSignedIn(service, '/inbox?tab=rules');
  allowFaults(/status of 400 /);
  await page.getByRole('button', { name: 'Add rule' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Address or domain').fill('not an address');
  await dialog.getByLabel('Answer').selectOption('unknown');
  await dialog.getByRole('button', { name: 'Add rule' }).click();
  await dialog.getByText('is neither an address nor a domain').waitFor();
  await dialog.getByLabel('Address or domain').fill('gone@example.org');
  await dialog.getByRole('button', { name: 'Add rule' }).click();
  const row = page.getByRole('row').filter({ hasText: 'gone@example.org' });
  await row.getByText('Suppresses the recipient').waitFor();
  await page.getByRole('tab', { name: 'Messages' }).click();
  await page.getByText('1 active rule for the next delivery attempts').waitFor();
  const id = await submitAccepted(service.publicUrl, service.key, { to: 'gone@example.org' });
  await waitForState(browsers, service, id, 'bounced');
  await page.getByRole('tab', { name: 'Rules' }).click();
  await row.getByText('gone@example.org is suppressed for').waitFor();
  await row.getByRole('button', { name: 'from the suppression list' }).click();
  await row.getByText('Suppresses the recipient').waitFor();
  expect(await browsers.callApi(service, 'GET', '/suppressions/gone@example.org')).toMatchObject({ suppressed: false });
  await row.getByRole('button', { name: 'Remove the rule' }).click();
  await page.getByText('No rules').waitFor();
});

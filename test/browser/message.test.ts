/** Tests the message page: explanation, timeline, actions, several operators at the same time. */
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { beforeAll, expect, test, vi } from 'vitest';
import { createBrowserRig, waitForState as waitForMessageState } from '../rig/browser.ts';
import { emulateDarkPhone, findHorizontalOverflow } from '../rig/page-checks.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
let service: RunningService;
const toSimulatorAddress = (name: string) => `${name}@simulator.postrider.test`;
const submitMessage = (to: string, subject: string) => submitAccepted(service.publicUrl, service.key, { to, subject });
const waitForState = (id: string, state: string) => waitForMessageState(browsers, service, id, state);

beforeAll(async () => {
  service = await rig.serve(rig.createFolder());
});

test('the message page for an unknown id states the error and links to the search', async () => {
  const { page, allowFaults } = await browsers.openSignedIn(service, '/messages/not-an-id');
  allowFaults(/status of 40[04] .*\/messages\//);
  await page.getByText('This is not a message id').waitFor();
  await page.getByRole('link', { name: 'Search messages' }).click();
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
});

test.each([
  ['success', 'delivered', /The attempt at .* succeeded/],
  ['bounce', 'bounced', /bounced \(recipient-unknown; class hard, category mailbox-unknown\)/],
  ['defer', 'queued', /One delivery attempt was made; the next attempt is at/],
  ['complaint', 'complained', /recorded as complained/],
  ['suppressed', 'suppressed', /the simulator always suppresses this address/],
])('for a message to %s@simulator, the message page shows the state %s and its reason', async (name, state, why) => {
  const id = await submitMessage(toSimulatorAddress(name), `To ${name}`);
  await waitForState(id, state);
  const { page } = await browsers.openSignedIn(service, `/messages/${id}`);
  await page.getByRole('region', { name: 'Explanation' }).getByText(why).waitFor();
  if (name === 'defer') await page.getByTitle('queued; the last attempt was deferred').waitFor();
  await page.getByRole('region', { name: 'Timeline' }).getByText('accepted', { exact: true }).waitFor();
  await page.getByRole('region', { name: 'Content' }).getByText('Thank you.').waitFor();
});

test('the list of queued messages and the message page show what a message waits for, such as a locked account', async () => {
  await browsers.callApi(service, 'POST', '/accounts', { name: 'overdue' });
  const { key } = await browsers.callApi<{ key: string }>(service, 'POST', '/accounts/overdue/keys', {});
  // Every node applies the new key within one second.
  const id = await vi.waitFor(
    () => submitAccepted(service.publicUrl, key, { to: toSimulatorAddress('defer'), subject: 'Waiting message' }),
    { timeout: 120_000 },
  );
  await waitForState(id, 'queued');
  await browsers.callApi(service, 'POST', '/accounts/overdue/lock', { reason: 'invoice open' });
  const { page } = await browsers.openSignedIn(service, `/messages/${id}`);
  await page.getByText(/It waits because account overdue was locked at .* \(invoice open\)/).waitFor();
  await page.getByRole('link', { name: 'Account overdue' }).waitFor();
  await page.getByRole('link', { name: 'Queued messages of this account' }).click();
  const waitReasonCell = page.getByRole('cell', { name: 'the unlock of its account: invoice open' });
  await expect.poll(() => waitReasonCell.count()).toBeGreaterThanOrEqual(1);
  await emulateDarkPhone(page);
  await page.getByText('Waits for the unlock of its account: invoice open').first().waitFor();
  expect(await findHorizontalOverflow(page)).toEqual([]);
});

test('when two operators cancel a message, the second operator receives an error and the cancelled message is shown', async () => {
  const id = await submitMessage(toSimulatorAddress('defer'), 'Cancelled by two');
  await waitForState(id, 'queued');
  const firstOperator = await browsers.openSignedIn(service, `/messages/${id}`);
  const secondOperator = await browsers.openSignedIn(service, `/messages/${id}`);
  secondOperator.allowFaults(/status of 409/);
  for (const { page } of [firstOperator, secondOperator]) await page.getByRole('button', { name: 'Cancel…' }).click();
  const findConfirmButton = (page: Page) => page.getByRole('dialog').getByRole('button', { name: 'Cancel message' });
  await findConfirmButton(firstOperator.page).click();
  await firstOperator.page.getByText('The message is cancelled').waitFor();
  await findConfirmButton(secondOperator.page).click();
  const line = `message ${id} is cancelled; only queued and uncertain messages can be cancelled`;
  await secondOperator.page.getByRole('dialog').getByText(line).waitFor();
  await secondOperator.page.getByRole('button', { name: 'Go back' }).click();
  await secondOperator.page.getByText('is cancelled: ended by an operator').waitFor();
});

test('an ended message can be resent on its page, and the pages of the original and the new message link to each other', async () => {
  const id = await submitMessage('again@example.com', 'Sent a second time');
  await waitForState(id, 'delivered');
  const { page } = await browsers.openSignedIn(service, `/messages/${id}`);
  await page
    .getByRole('region', { name: 'Result' })
    .getByText(/^Delivered in /)
    .waitFor();
  await page.getByRole('button', { name: 'Resend…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Resend message' }).click();
  await page.getByRole('link', { name: id }).first().waitFor();
  expect(page.url()).not.toContain(id);
  const newId = page.url().split('/').at(-1) ?? '';
  await waitForState(newId, 'delivered');
  await page.getByRole('link', { name: id }).first().click();
  await page.getByRole('region', { name: 'Timeline' }).getByRole('link', { name: newId }).waitFor();
});

test('the message page shows the HTML in a sandboxed frame, the time of each transcript line, and times in UTC or local time', async () => {
  const id = await submitAccepted(service.publicUrl, service.key, {
    to: toSimulatorAddress('success'),
    subject: 'With HTML',
    message: '<!doctype html><html><body><p>A <b>framed</b> word</p></body></html>',
  });
  await waitForState(id, 'delivered');
  const { page } = await browsers.openSignedIn(service, `/messages/${id}`);
  await page.frameLocator('iframe').getByText('A framed word').waitFor();
  expect(await page.locator('iframe').getAttribute('sandbox')).toBe('');
  const content = page.getByRole('region', { name: 'Content' });
  await content.getByText('Text', { exact: true }).click();
  await expect.poll(() => content.locator('pre').textContent()).toBe('A framed word\n');
  await content.getByText('Source', { exact: true }).click();
  await expect.poll(() => content.locator('pre').textContent()).toContain('<b>framed</b>');

  await page.getByText(/^SMTP transcript · 2 lines/).click();
  await page.getByText('+0 ms', { exact: true }).waitFor();

  const timeline = page.getByRole('region', { name: 'Timeline' });
  const { at } = await browsers.callApi<{ at: string }>(service, 'GET', `/messages/${id}`);
  await timeline.getByText(at.slice(11, 23)).waitFor();
  await timeline.getByText('Local', { exact: true }).click();
  await page.getByRole('button', { name: 'Local: show times in UTC' }).waitFor();
  await page.reload();
  await page.getByRole('button', { name: 'Local: show times in UTC' }).click();
  await timeline.getByText(at.slice(11, 23)).waitFor();
});

test('the downloaded raw source of a message equals the source that the API returns, and the downloaded header fields equal the header of that source', async () => {
  const id = await submitMessage(toSimulatorAddress('success'), 'Downloaded');
  await waitForState(id, 'delivered');
  const { source } = await browsers.callApi<{ source: string }>(service, 'GET', `/messages/${id}/source`);
  const { page } = await browsers.openSignedIn(service, `/messages/${id}`);
  const download = async (name: string) => {
    const downloadPromise = page.waitForEvent('download');
    await page.getByRole('button', { name, exact: true }).click();
    const file = await downloadPromise;
    return [file.suggestedFilename(), readFileSync(await file.path(), 'utf8')];
  };
  expect(await download('Raw source')).toEqual([`${id}.eml`, source]);
  expect(await download('Headers')).toEqual([`${id}-headers.txt`, source.slice(0, source.indexOf('\r\n\r\n') + 2)]);
  expect(source).toContain('Subject: Downloaded\r\n');
});

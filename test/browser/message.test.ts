/** Tests the message page: explanation, timeline, actions, several operators at the same time. */
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { createBrowserRig, replaceResponses, waitForState as waitForMessageState } from '../rig/browser.ts';
import { emulateDarkPhone, findHorizontalOverflow, findSeriousFaults } from '../rig/page-checks.ts';
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

test.each([
  ['01990000-0000-7000-8000-000000000001', 'No message has this id'],
  ['not-an-id', 'This is not a message id'],
])('the message page for an unknown id (%s) states the error and links to the search', async (id, title) => {
  const { page, visit, allowFaults } = await browsers.openSignedIn(service, '/audit');
  allowFaults(/status of 40[04] .*\/messages\//);
  await visit(`/messages/${id}`);
  await page.getByText(title).waitFor();
  expect(await page.getByText('postrider message list').count()).toBe(0);
  await page.getByRole('link', { name: 'Search messages' }).click();
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
});

test.each([
  ['success', 'delivered', /The attempt at .* succeeded/],
  ['bounce', 'bounced', /bounced \(recipient-unknown; class hard, category mailbox-unknown\)/],
  ['defer', 'queued', /One delivery attempt was made; the next attempt is at/],
  ['complaint', 'complained', /recorded as complained/],
  ['suppressed', 'suppressed', /the simulator always suppresses this address/],
])(
  'for a message to %s@simulator, the message page shows the state %s and its reason, in light and dark mode, on desktop and phone',
  async (name, state, why) => {
    const id = await submitMessage(toSimulatorAddress(name), `To ${name}`);
    await waitForState(id, state);
    const { page } = await browsers.openSignedIn(service, `/messages/${id}`);
    await page.getByRole('region', { name: 'Explanation' }).getByText(why).waitFor();
    if (name === 'defer') await page.getByTitle('queued; the last attempt was deferred').waitFor();
    await page.getByRole('region', { name: 'Timeline' }).getByText('accepted', { exact: true }).waitFor();
    await page.getByRole('region', { name: 'Content' }).getByText('Thank you.').waitFor();
    expect(await findSeriousFaults(page)).toEqual([]);
    await emulateDarkPhone(page);
    expect(await findSeriousFaults(page)).toEqual([]);
    expect(await findHorizontalOverflow(page)).toEqual([]);
  },
);

test('for a suppressed message, the message page states why the address is suppressed and links to the list', async () => {
  const address = 'complainer@example.com';
  await browsers.callApi(service, 'POST', '/accounts/default/suppressions', { address, reason: 'complaint' });
  const id = await submitMessage('Complainer@Example.com', 'Never to be sent');
  const { page } = await browsers.openSignedIn(service, `/messages/${id}`);
  const explanation = page.getByRole('region', { name: 'Explanation' });
  await explanation.getByText(/on the suppression list of account default since .*, after a complaint/).waitFor();
  const link = explanation.getByRole('link', { name: /on the suppression list of account default/ });
  expect(await link.getAttribute('href')).toBe('/suppressions?list=default&search=Complainer%40Example.com');
});

test('the list of queued messages and the message page show what a message waits for, such as a locked account', async () => {
  await browsers.callApi(service, 'POST', '/accounts', { name: 'overdue' });
  const { key } = await browsers.callApi<{ key: string }>(service, 'POST', '/accounts/overdue/keys', {});
  const submit = () =>
    submitAccepted(service.publicUrl, key, { to: toSimulatorAddress('defer'), subject: 'Waiting message' });
  await expect
    .poll(() =>
      submit().then(
        () => 'sent',
        () => 'refused',
      ),
    )
    .toBe('sent');
  const id = await submit();
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

test('a message can be opened and cancelled with the keyboard alone', async () => {
  const id = await submitMessage(toSimulatorAddress('defer'), 'Cancelled by keyboard');
  await waitForState(id, 'queued');
  const { page } = await browsers.openSignedIn(service, '/');
  const focusByTab = async (name: string | RegExp, role: 'link' | 'button' | 'searchbox') => {
    for (let n = 0; n < 80; n += 1) {
      await page.keyboard.press('Tab');
      const target = page.getByRole(role, { name, exact: true }).and(page.locator(':focus'));
      if ((await target.count()) === 1) return;
    }
    throw new Error(`${role} ${name} cannot be reached by Tab`);
  };
  await focusByTab('Messages', 'link');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
  await focusByTab('Search', 'searchbox');
  await page.keyboard.type('cancelled by keyboard');
  await page.getByText('All 1 shown').waitFor();
  await focusByTab('Cancelled by keyboard', 'link');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Cancelled by keyboard' }).waitFor();
  await focusByTab('Cancel…', 'button');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Cancel this message?' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  // The focus has returned to the button.
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Cancel this message?' }).waitFor();
  await focusByTab('Cancel message', 'button');
  await page.keyboard.press('Enter');
  await page.getByText('The message is cancelled').waitFor();
  await waitForState(id, 'cancelled');
  await page.getByRole('region', { name: 'Timeline' }).getByText('by an operator').waitFor();
  expect(await page.getByRole('button', { name: 'Retry now' }).count()).toBe(0);
});

test('when two operators cancel a message, the second operator receives an error and the cancelled message is shown', async () => {
  const id = await submitMessage(toSimulatorAddress('defer'), 'Cancelled by two');
  await waitForState(id, 'queued');
  const firstOperator = await browsers.openSignedIn(service, `/messages/${id}`);
  const secondOperator = await browsers.openSignedIn(service, `/messages/${id}`);
  secondOperator.allowFaults(/status of 409/);
  for (const { page } of [firstOperator, secondOperator]) await page.getByRole('button', { name: 'Cancel…' }).click();
  expect(await findSeriousFaults(firstOperator.page)).toEqual([]);
  const findConfirmButton = (page: Page) => page.getByRole('dialog').getByRole('button', { name: 'Cancel message' });
  await findConfirmButton(firstOperator.page).click();
  await firstOperator.page.getByText('The message is cancelled').waitFor();
  await findConfirmButton(secondOperator.page).click();
  const line = `message ${id} is cancelled; only queued and uncertain messages can be cancelled`;
  await secondOperator.page.getByRole('dialog').getByText(line).waitFor();
  await secondOperator.page.getByRole('button', { name: 'Go back' }).click();
  await secondOperator.page.getByText('is cancelled: ended by an operator').waitFor();
});

test('the dialog that cancels an uncertain message states that the message may have arrived', async () => {
  const id = await submitMessage(toSimulatorAddress('defer'), 'Perhaps delivered');
  await waitForState(id, 'queued');
  const { page, visit } = await browsers.openSignedIn(service, '/audit');
  await replaceResponses(page, `**/api/v1/messages/${id}`, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), state: 'uncertain' } });
  });
  await visit(`/messages/${id}`);
  await page.getByRole('button', { name: 'Cancel…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Cancel this message?' });
  await dialog.getByText('may have received it').waitFor();
  expect(await dialog.getByText('will not be sent').count()).toBe(0);
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
  const { page, visit } = await browsers.openSignedIn(service, `/messages/${id}`);
  await page.frameLocator('iframe').getByText('A framed word').waitFor();
  expect(await page.locator('iframe').getAttribute('sandbox')).toBe('');
  const content = page.getByRole('region', { name: 'Content' });
  await content.getByText('Text', { exact: true }).click();
  await expect.poll(() => content.locator('pre').textContent()).toBe('A framed word\n');
  await content.getByText('Source', { exact: true }).click();
  await expect.poll(() => content.locator('pre').textContent()).toContain('<b>framed</b>');

  await page.getByText(/^SMTP transcript · 2 lines/).click();
  await page.getByText('+0 ms', { exact: true }).waitFor();
  expect(await findSeriousFaults(page)).toEqual([]);

  const timeline = page.getByRole('region', { name: 'Timeline' });
  const { at } = await browsers.callApi<{ at: string }>(service, 'GET', `/messages/${id}`);
  await timeline.getByText(at.slice(11, 23)).waitFor();
  await timeline.getByText('Local', { exact: true }).click();
  await page.getByRole('button', { name: 'Local: show times in UTC' }).waitFor();
  await visit(`/messages/${id}`);
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

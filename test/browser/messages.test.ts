import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import {
  createBrowserRig,
  listAttributes,
  replaceResponses,
  waitForState as waitForMessageState,
} from '../rig/browser.ts';
import { findHorizontalOverflow } from '../rig/page-checks.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
const service = await rig.serve(rig.createFolder());
const toSimulatorAddress = (name: string) => `${name}@simulator.postrider.test`;
const submitMessage = (to: string, subject: string) => submitAccepted(service.publicUrl, service.key, { to, subject });
const waitForState = (id: string, state: string) => waitForMessageState(browsers, service, id, state);

const findSubjectLinks = (page: Page) => page.getByRole('table').getByRole('link');
async function openFilter(page: Page, name: string): Promise<void> {
  await page.keyboard.press('Escape');
  await page
    .getByRole('search')
    .getByRole('button', { name: new RegExp(`^${name}(:|$)`) })
    .click();
}

const findSearchBox = (page: Page) => page.getByRole('searchbox', { name: 'Search' });

test('messages are found by words, recipient, state and time, and the URL of the page contains the search', async () => {
  const ids = await Promise.all([
    submitMessage('ada@engine.example', 'Your analytical receipt'),
    submitMessage('grace@navy.example', 'Your compiled receipt'),
    submitMessage(toSimulatorAddress('bounce'), 'Your analytical refund'),
  ]);
  await Promise.all(ids.map((id, index) => waitForState(id, index === 2 ? 'bounced' : 'delivered')));
  const { page, visit } = await browsers.openSignedIn(service, '/messages');
  await findSearchBox(page).fill('analytical');
  await findSearchBox(page).press('Enter');
  await expect
    .poll(() => findSubjectLinks(page).allInnerTexts())
    .toEqual(['Your analytical refund', 'Your analytical receipt']);
  await openFilter(page, 'State');
  await page.getByRole('checkbox', { name: 'Bounced', exact: true }).check();
  await expect.poll(() => findSubjectLinks(page).allInnerTexts()).toEqual(['Your analytical refund']);
  await page.getByRole('checkbox', { name: 'Deferred', exact: true }).check();
  await openFilter(page, 'Time');
  await page.getByRole('combobox', { name: 'Accepted' }).selectOption({ label: 'in the last hour' });
  await openFilter(page, 'Account');
  await page.getByRole('checkbox', { name: 'default', exact: true }).check();
  await page.getByText('All 1 shown').waitFor();
  const sharedUrl = new URL(page.url());
  expect(Object.fromEntries(sharedUrl.searchParams)).toEqual({
    q: 'analytical',
    state: 'bounced,deferred',
    since: '1h',
    account: 'default',
  });

  // The shared URL shows the search in the page of another operator.
  await visit(sharedUrl.pathname + sharedUrl.search);
  await page.getByRole('link', { name: 'Your analytical refund' }).click();
  await page.getByRole('heading', { level: 1, name: 'Your analytical refund' }).waitFor();
  await page.goBack();
  expect(await findSearchBox(page).inputValue()).toBe('analytical');
  await page.getByRole('button', { name: 'Clear all filters' }).click();
  await openFilter(page, 'Recipient');
  await page.getByRole('textbox', { name: 'To', exact: true }).fill('grace@navy');
  await expect.poll(() => findSubjectLinks(page).allInnerTexts()).toEqual(['Your compiled receipt']);
  await page.keyboard.press('Escape');
  // An id in the search field opens the message.
  await findSearchBox(page).fill(` ${ids[0]?.toUpperCase()} `);
  await page.getByRole('heading', { level: 1, name: 'Your analytical receipt' }).waitFor();
});

test('a long list is loaded in pages, without a missing or repeated message', async () => {
  const submittedIds = await Promise.all(
    Array.from({ length: 60 }, (_, index) => submitMessage(`many${index}@example.com`, `Batched number ${index}`)),
  );
  const { page } = await browsers.openSignedIn(service, '/messages?q=batched');
  await page.getByRole('button', { name: 'Load more' }).click();
  await page.getByText('All 60 shown').waitFor();
  const shownLinks = await listAttributes(findSubjectLinks(page), 'href');
  expect(shownLinks).toEqual(
    submittedIds
      .toSorted()
      .toReversed()
      .map((id) => `/messages/${id}`),
  );
});

test('the number of matches is loaded after the rows and does not move them, and an incomplete count is shown as a minimum', async () => {
  await submitMessage('counted@example.com', 'Counted one');
  await submitMessage('counted@example.com', 'Counted two');
  const { page, visit } = await browsers.openSignedIn(service, '/audit', { width: 360 });
  const countRelease = Promise.withResolvers<void>();
  const restore = await replaceResponses(page, /\/api\/v1\/messages\/count/, async (route) => {
    await countRelease.promise;
    await route.continue();
  });
  await visit('/messages?q=counted&since=24h');
  const rows = page.getByRole('link', { name: /^Counted (one|two)$/ });
  await rows.nth(1).waitFor();
  const matchCount = page.getByRole('status').filter({ hasText: /^2 of [0-9,]+ in 24 h$/ });
  expect(await matchCount.count()).toBe(0);
  const positionBefore = await rows.first().boundingBox();
  countRelease.resolve();
  await matchCount.waitFor();
  expect(await rows.first().boundingBox()).toEqual(positionBefore);
  restore();
  await replaceResponses(page, /\/api\/v1\/messages\/count/, (route) =>
    route.fulfill({ json: { count: 10_000, isComplete: false } }),
  );
  await visit('/messages?q=counted');
  await page.getByText('10,000+ of 10,000+', { exact: true }).waitFor();
  expect(await findHorizontalOverflow(page)).toEqual([]);
});

test('a search that exceeds its time limit continues and shows its progress until it is stopped', async () => {
  const { page } = await browsers.openSignedIn(service, '/audit');
  const formatTimeBefore = (hourCount: number) =>
    new Date(Date.UTC(2026, 10, 21, 12) - hourCount * 3_600_000).toISOString();
  let isHeld = true;
  await replaceResponses(page, /\/api\/v1\/messages\?/, async (route) => {
    const hourCount = Number(new URL(route.request().url()).searchParams.get('cursor') ?? '0') + 1;
    // The second response waits until the test has checked the first response.
    if (hourCount > 1) await expect.poll(() => isHeld).toBe(false);
    const at = formatTimeBefore(hourCount);
    const message = {
      ...{ id: `01990000-0000-7000-8000-00000000000${hourCount}`, state: 'bounced', account: 'default' },
      ...{ to: 'rare@example.com', from: 'shop@example.org', subject: `Rare ${hourCount}`, reason: null },
      ...{ at, updated: at, attempts: 1, deferred: false },
    };
    const next = hourCount < 4 ? String(hourCount) : null;
    await route.fulfill({ json: { messages: [message], next, searchedSince: next === null ? null : at } });
  });
  await page.getByRole('link', { name: 'Messages' }).click();
  await page.getByText('Searching: 1 found so far, searched back to 21 Nov 2026, 11:00:00 UTC').waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  isHeld = false;
  await page.getByText('2 found, searched back to 21 Nov 2026, 10:00:00 UTC').waitFor();
  await page.getByRole('button', { name: 'Continue search' }).click();
  await page.getByText('All 4 shown').waitFor();
});

test('new messages are offered by a button and do not move the rows, and states are updated in place', async () => {
  await waitForState(await submitMessage('calm@example.com', 'Quiet one'), 'delivered');
  const { page } = await browsers.openSignedIn(service, '/messages?q=quiet');
  await page.getByText('All 1 shown').waitFor();
  const rowBox = await findSubjectLinks(page).first().boundingBox();
  await submitMessage('calm@example.com', 'Quiet two');
  await submitMessage('calm@example.com', 'Quiet three');
  const newMessagesButton = page.getByRole('button', { name: 'Show 2 new messages' });
  await newMessagesButton.waitFor();
  expect(await findSubjectLinks(page).allInnerTexts()).toEqual(['Quiet one']);
  expect(await findSubjectLinks(page).first().boundingBox()).toEqual(rowBox);
  await newMessagesButton.click();
  await expect.poll(() => findSubjectLinks(page).allInnerTexts()).toEqual(['Quiet three', 'Quiet two', 'Quiet one']);

  const id = await submitMessage(toSimulatorAddress('defer'), 'Quiet four');
  await page.getByRole('button', { name: 'Show 1 new message' }).click();
  const row = page.getByRole('row').filter({ hasText: 'Quiet four' });
  await row.getByText('deferred', { exact: true }).waitFor();
  const messageSession = await browsers.openSignedIn(service, `/messages/${id}`);
  await browsers.callApi(service, 'POST', `/messages/${id}/cancel`);
  await row.getByText('cancelled').waitFor();
  await messageSession.page.getByText('is cancelled: ended by an operator').waitFor();
});

test('the list can be used with the keyboard alone: / focuses the search, j and k move the focus between rows, x selects, Enter opens', async () => {
  for (const name of ['one', 'two'])
    await waitForState(await submitMessage('keys@example.com', `Keys ${name}`), 'delivered');
  const { page } = await browsers.openSignedIn(service, '/messages');
  await findSubjectLinks(page).first().waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('keys');
  await page.getByText('All 2 shown').waitFor();
  // While the search field has the focus, the key j enters text.
  await page.keyboard.press('j');
  await expect.poll(() => findSearchBox(page).inputValue()).toBe('keysj');
  await page.keyboard.press('Backspace');
  await page.getByText('All 2 shown').waitFor();
  await page.keyboard.press('Enter');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.locator('tr[aria-current]').filter({ hasText: 'Keys one' }).waitFor();
  await page.keyboard.press('x');
  await page.getByText('1 message selected').waitFor();
  await page.keyboard.press('k');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Keys two' }).waitFor();
});

test('selected messages are cancelled after a confirmation, and the page states how many were refused because they had ended', async () => {
  const subjects = ['Selected first', 'Selected second'];
  const ids = await Promise.all(subjects.map((subject) => submitMessage(toSimulatorAddress('defer'), subject)));
  await Promise.all(ids.map((id) => waitForState(id, 'queued')));
  const { page, allowFaults } = await browsers.openSignedIn(service, '/messages?q=selected');
  allowFaults(/status of 409/);
  const checkboxes = page.getByRole('table').getByRole('checkbox');
  await expect.poll(() => checkboxes.count()).toBe(2);
  for (const checkbox of await checkboxes.all()) await checkbox.check();
  await page.getByText('2 messages selected').waitFor();
  await browsers.callApi(service, 'POST', `/messages/${ids[0]}/cancel`);
  await page.getByRole('button', { name: 'Cancel…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel 2 messages' }).click();
  await page.getByText('1 of 2 messages cancelled, 1 refused').waitFor();
  await waitForState(ids[1] ?? '', 'cancelled');
});

test('an action on selected messages ends after the current message when the operator leaves the list', async () => {
  const subjects = ['Leaving first', 'Leaving second', 'Leaving third'];
  const ids = await Promise.all(subjects.map((subject) => submitMessage(toSimulatorAddress('defer'), subject)));
  await Promise.all(ids.map((id) => waitForState(id, 'queued')));
  const { page } = await browsers.openSignedIn(service, '/messages?q=leaving');
  const checkboxes = page.getByRole('table').getByRole('checkbox');
  await expect.poll(() => checkboxes.count()).toBe(3);
  for (const checkbox of await checkboxes.all()) await checkbox.check();
  const cancelUrls: string[] = [];
  let release = () => undefined as unknown;
  const releasePromise = new Promise<void>((resolve) => {
    release = resolve;
  });
  await replaceResponses(page, /\/messages\/[^/]+\/cancel$/, async (route) => {
    cancelUrls.push(route.request().url());
    await releasePromise;
    await route.continue();
  });
  await page.getByRole('button', { name: 'Cancel…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel 3 messages' }).click();
  await expect.poll(() => cancelUrls.length).toBe(1);
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Accounts' }).click();
  await page.getByRole('heading', { level: 1, name: 'Accounts' }).waitFor();
  const responsePromise = page.waitForResponse(/\/messages\/[^/]+\/cancel$/);
  release();
  await responsePromise;
  // If the page continued the action, it would send the next request before this message is delivered.
  await waitForState(await submitMessage(toSimulatorAddress('success'), 'Leaving last'), 'delivered');
  expect(cancelUrls).toHaveLength(1);
  const states = await Promise.all(
    ids.map(async (id) => (await browsers.callApi<{ state: string }>(service, 'GET', `/messages/${id}`)).state),
  );
  expect(states.toSorted()).toEqual(['cancelled', 'queued', 'queued']);
});

test('after the dialog has shown the number of matching messages, all of them are cancelled, and the audit log has one entry', async () => {
  const subjects = ['Bulk first', 'Bulk second', 'Bulk third'];
  const ids = await Promise.all(subjects.map((subject) => submitMessage(toSimulatorAddress('defer'), subject)));
  await Promise.all(ids.map((id) => waitForState(id, 'queued')));
  const { page } = await browsers.openSignedIn(service, '/messages?q=bulk&state=deferred');
  await page.getByRole('button', { name: 'Change all…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Change all messages that match the filter' });
  await dialog.getByText('The filter matches 3 messages.').waitFor();
  await dialog.getByRole('radio', { name: 'Cancel' }).check();
  await dialog.getByRole('button', { name: 'Cancel 3 messages' }).click();
  await dialog.getByText('Complete: 3 done.').waitFor();
  for (const id of ids) await waitForState(id, 'cancelled');
  const audit = await browsers.callApi<{ entries: { action: string; target: string }[] }>(service, 'GET', '/audit');
  expect(JSON.stringify(audit)).toContain('q=bulk state=deferred');
});

/** Tests the filters and the keyboard operation of the lists of suppressions, audit log entries and endpoints. */
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { createBrowserRig } from '../rig/browser.ts';
import { findSeriousFaults } from '../rig/page-checks.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
let service: RunningService;

beforeAll(async () => {
  service = await rig.serve(rig.createFolder(), { POSTRIDER_WEBHOOK_TARGETS: 'any' });
  for (const [address, reason] of [
    ['ada@example.com', 'bounce'],
    ['bob@example.com', 'complaint'],
    ['cai@example.org', 'manual'],
  ])
    await browsers.callApi(service, 'POST', '/accounts/default/suppressions', { address, reason });
  await browsers.callApi(service, 'POST', '/accounts', { name: 'shop' });
  await browsers.callApi(service, 'POST', '/webhooks', { url: 'http://127.0.0.1:9/first' });
  await browsers.callApi(service, 'POST', '/webhooks', { url: 'http://127.0.0.1:9/second' });
});

/** Returns the first line of each cell in a column. */
const readCells = (page: Page, column: number) =>
  page.locator(`table.list tbody tr td:nth-child(${column}) .two-lines > :first-child`).allInnerTexts();
const openFilter = (page: Page, name: RegExp) => page.getByRole('search').getByRole('button', { name }).click();

test('a suppression list is filtered by reason and source, and the explanation of an address can be opened with the keyboard', async () => {
  const { page } = await browsers.openSignedIn(service, '/suppressions?list=default');
  await expect.poll(() => readCells(page, 2)).toEqual(['ada@example.com', 'bob@example.com', 'cai@example.org']);
  await openFilter(page, /^Reason$/);
  await page.getByRole('checkbox', { name: 'Bounce' }).check();
  await page.getByRole('checkbox', { name: 'Manual' }).check();
  await expect.poll(() => readCells(page, 2)).toEqual(['ada@example.com', 'cai@example.org']);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Reason: bounce, manual' }).waitFor();
  expect(await findSeriousFaults(page)).toEqual([]);
  await openFilter(page, /^Source$/);
  await page.getByRole('radio', { name: 'A message' }).check();
  await page.getByText('No match on the suppression list of account default').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Remove the filter Source' }).click();
  await expect.poll(() => readCells(page, 2)).toEqual(['ada@example.com', 'cai@example.org']);
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({ list: 'default', reason: 'bounce,manual' });
  await page.keyboard.press('/');
  await page.keyboard.type('cai');
  await expect.poll(() => readCells(page, 2)).toEqual(['cai@example.org']);
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await expect.poll(() => readCells(page, 2)).toHaveLength(3);
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'bob@example.com is suppressed' }).waitFor();
});

test('a new entry of the audit log is announced by a button, and does not move the shown entries', async () => {
  const { page } = await browsers.openSignedIn(service, '/audit');
  await expect.poll(() => readCells(page, 1)).not.toEqual([]);
  const shownEntries = await readCells(page, 1);
  await browsers.callApi(service, 'POST', '/accounts/shop/suppressions', { address: 'dan@example.com' });
  const newEntriesButton = page.getByRole('button', { name: 'Show 1 new entry' });
  await newEntriesButton.waitFor();
  expect(await readCells(page, 1)).toEqual(shownEntries);
  await newEntriesButton.click();
  await expect.poll(() => readCells(page, 1)).toEqual(['suppression.add', ...shownEntries]);
});

test('the audit log is filtered by action and target, and the target of an entry can be opened with the keyboard', async () => {
  const { page } = await browsers.openSignedIn(service, '/audit');
  await openFilter(page, /^Action$/);
  await page.getByRole('checkbox', { name: 'Account' }).check();
  await expect.poll(() => readCells(page, 1)).toEqual(['account.create']);
  await page.keyboard.press('Escape');
  await page.getByRole('searchbox', { name: 'Search targets' }).fill('nothing');
  await page.getByText('No entry matches').waitFor();
  await page.getByRole('searchbox', { name: 'Search targets' }).fill('SHOP');
  await expect.poll(() => readCells(page, 1)).toEqual(['account.create']);
  expect(await findSeriousFaults(page)).toEqual([]);
  await page.getByRole('searchbox', { name: 'Search targets' }).blur();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'shop' }).waitFor();
});

test('the list of endpoints is filtered by state and text, and an endpoint can be opened with the keyboard', async () => {
  const { page } = await browsers.openSignedIn(service, '/webhooks');
  await expect.poll(() => readCells(page, 2)).toHaveLength(2);
  await openFilter(page, /^State$/);
  await page.getByRole('radio', { name: 'Disabled' }).check();
  await page.getByText('No endpoint matches').waitFor();
  await page.getByRole('radio', { name: 'Any' }).check();
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  await page.keyboard.type('second');
  await expect.poll(() => readCells(page, 2)).toEqual(['http://127.0.0.1:9/second']);
  await page.getByText('1 of 2 endpoints').waitFor();
  await page.keyboard.press('Enter');
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'http://127.0.0.1:9/second' }).waitFor();
});

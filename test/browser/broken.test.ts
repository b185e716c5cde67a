/** Tests that an error in the dashboard is shown where it occurs, with a remedy, and that no page is blank. */
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { createBrowserRig, replaceResponses } from '../rig/browser.ts';
import { findSeriousFaults } from '../rig/page-checks.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

/** Console lines that React and the browser write for the errors that these tests cause. */
const EXPECTED_ERRORS = /^error: (TypeError|Error|%o|Failed to load resource|Failed to fetch|The above error)/;
const ACCOUNTS_SCRIPT_PATTERN = /\/assets\/accounts-[^/]*\.js$/;

const rig = createScenario();
const browsers = createBrowserRig();
let service: RunningService;
beforeAll(async () => {
  service = await rig.serve(rig.createFolder());
});

const openPage = (page: Page, name: string) =>
  page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
const findHeading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });

/** Counts the loads of the page from now on. */
function countLoads(page: Page): () => number {
  let loadCount = 0;
  page.on('load', () => loadCount++);
  return () => loadCount;
}

describe('a missing file of the dashboard after an upgrade', () => {
  test('causes one reload of the dashboard, and the page is shown', async () => {
    const { page, allowFaults } = await browsers.openSignedIn(service, '/messages');
    allowFaults(EXPECTED_ERRORS);
    const countPageLoads = countLoads(page);
    const restore = await replaceResponses(page, ACCOUNTS_SCRIPT_PATTERN, (route) => {
      restore();
      return route.fulfill({ status: 404, body: '{}' });
    });
    await openPage(page, 'Accounts');
    await findHeading(page, 'Accounts').waitFor();
    expect(countPageLoads()).toBe(1);
  });

  test('that is still missing after the reload is reported in place of the page, and the other pages are shown', async () => {
    const { page, allowFaults } = await browsers.openSignedIn(service, '/messages');
    allowFaults(EXPECTED_ERRORS);
    const countPageLoads = countLoads(page);
    const restore = await replaceResponses(page, ACCOUNTS_SCRIPT_PATTERN, (route) =>
      route.fulfill({ status: 404, body: '{}' }),
    );
    await openPage(page, 'Accounts');
    await findHeading(page, 'This page cannot be shown').waitFor();
    await page.getByText('This page belongs to an older version of the service. Reload the page.').waitFor();
    expect(countPageLoads()).toBe(1);
    expect(await findSeriousFaults(page)).toEqual([]);
    await openPage(page, 'Domains');
    await findHeading(page, 'Domains').waitFor();
    await openPage(page, 'Accounts');
    await findHeading(page, 'This page cannot be shown').waitFor();
    expect(countPageLoads()).toBe(1);
    restore();
    await page.getByRole('button', { name: 'Try again' }).click();
    await findHeading(page, 'Accounts').waitFor();
  });

  test('causes no reload while the service does not answer', async () => {
    const { page, allowFaults } = await browsers.openSignedIn(service, '/messages');
    allowFaults(EXPECTED_ERRORS);
    const countPageLoads = countLoads(page);
    await page.route(/.*/, (route) => route.abort());
    await openPage(page, 'Accounts');
    await page.getByText('the service does not answer. Check that it is running.').waitFor();
    expect(countPageLoads()).toBe(0);
  });
});

test('an error message replaces a page that fails to render, and the other pages are shown', async () => {
  const { page, visit, allowFaults } = await browsers.openSignedIn(service, '/messages');
  allowFaults(EXPECTED_ERRORS);
  const restore = await replaceResponses(page, '**/api/v1/accounts*', (route) =>
    route.fulfill({ json: { accounts: [null] } }),
  );
  await visit('/accounts');
  await findHeading(page, 'This page cannot be shown').waitFor();
  expect(await findSeriousFaults(page)).toEqual([]);
  await openPage(page, 'Audit log');
  await findHeading(page, 'Audit log').waitFor();
  await page.goBack();
  await findHeading(page, 'This page cannot be shown').waitFor();
  restore();
  await page.getByRole('button', { name: 'Try again' }).click();
  await findHeading(page, 'Accounts').waitFor();
});

test('an error in the frame around the pages is shown on a plain page with a remedy', async () => {
  const { page, visit, allowFaults } = await browsers.openSignedIn(service, '/messages');
  allowFaults(EXPECTED_ERRORS);
  const restore = await replaceResponses(page, '**/api/v1/session', (route) => route.fulfill({ body: 'null' }));
  await visit('/domains');
  await findHeading(page, 'The dashboard cannot be shown').waitFor();
  expect(await findSeriousFaults(page)).toEqual([]);
  restore();
  await page.getByRole('button', { name: 'Reload' }).click();
  await findHeading(page, 'Domains').waitFor();
});

test('an unknown path shows "Page not found" inside the frame', async () => {
  const { page, allowFaults } = await browsers.openSignedIn(service, '/messages');
  allowFaults(/status of 404/);
  const answer = await page.goto('/nonsense');
  expect(answer?.status()).toBe(404);
  await findHeading(page, 'Page not found').waitFor();
  await openPage(page, 'Overview');
  await findHeading(page, 'Overview').waitFor();
});

test('a browser whose language is not a valid language tag shows every page', async () => {
  await submitAccepted(service.publicUrl, service.key, { subject: 'A value for the charts' });
  const { page } = await browsers.openSignedIn(service, '/messages', { locale: 'en-US@posix' });
  // If the browser reported a valid language tag, the test would check nothing.
  const language = await page.evaluate<string>('Reflect.get(Navigator.prototype, "language", navigator)');
  expect(language).toBe('en-US@posix');
  await openPage(page, 'Overview');
  await findHeading(page, 'Overview').waitFor();
  await page.getByRole('img').first().waitFor();
});

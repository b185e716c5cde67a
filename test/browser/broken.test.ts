/** What breaks in the dashboard says so where it broke, with a remedy: no page is ever blank. */
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { browserRig, standIn } from '../rig/browser.ts';
import { graveFaults } from '../rig/page-checks.ts';
import { accepted } from '../rig/service.ts';
import { type StandingService, scenario } from '../scenarios/standing.ts';

/** React tells of what a boundary caught, and the browser of what was not there. */
const TOLD = /^error: (TypeError|Error|%o|Failed to load resource|Failed to fetch|The above error)/;
const ACCOUNTS = /\/assets\/accounts-[^/]*\.js$/;

const rig = scenario();
const browsers = browserRig();
let service: StandingService;
beforeAll(async () => {
  service = await rig.serve(rig.folder());
});

const go = (page: Page, name: string) =>
  page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });

/** How often the page itself was loaded since. */
function loadsOf(page: Page): () => number {
  let loads = 0;
  page.on('load', () => loads++);
  return () => loads;
}

describe('a part of the dashboard that is gone since an upgrade', () => {
  test('makes the page load again by itself, and then it is there', async () => {
    const { page, tolerate } = await browsers.operator(service, '/messages');
    tolerate(TOLD);
    const loads = loadsOf(page);
    const restore = await standIn(page, ACCOUNTS, (route) => {
      restore();
      return route.fulfill({ status: 404, body: '{}' });
    });
    await go(page, 'Accounts');
    await heading(page, 'Accounts').waitFor();
    expect(loads()).toBe(1);
  });

  test('and is not there after that either, is said in its place, once, beside a way on and a remedy', async () => {
    const { page, tolerate } = await browsers.operator(service, '/messages');
    tolerate(TOLD);
    const loads = loadsOf(page);
    const restore = await standIn(page, ACCOUNTS, (route) => route.fulfill({ status: 404, body: '{}' }));
    await go(page, 'Accounts');
    await heading(page, 'This page cannot be shown').waitFor();
    await page.getByText('This page is of an older version of the service; load it again.').waitFor();
    expect(loads()).toBe(1);
    expect(await graveFaults(page)).toEqual([]);
    await go(page, 'Domains');
    await heading(page, 'Domains').waitFor();
    await go(page, 'Accounts');
    await heading(page, 'This page cannot be shown').waitFor();
    expect(loads()).toBe(1);
    restore();
    await page.getByRole('button', { name: 'Try again' }).click();
    await heading(page, 'Accounts').waitFor();
  });

  test('does not take the page away while the service is', async () => {
    const { page, tolerate } = await browsers.operator(service, '/messages');
    tolerate(TOLD);
    const loads = loadsOf(page);
    await page.route(/.*/, (route) => route.abort());
    await go(page, 'Accounts');
    await page.getByText('the service cannot be reached; is it running?').waitFor();
    expect(loads()).toBe(0);
  });
});

test('a page that fails as it is drawn says so in its place; the others go on', async () => {
  const { page, visit, tolerate } = await browsers.operator(service, '/messages');
  tolerate(TOLD);
  const restore = await standIn(page, '**/api/v1/accounts*', (route) => route.fulfill({ json: { accounts: [null] } }));
  await visit('/accounts');
  await heading(page, 'This page cannot be shown').waitFor();
  expect(await graveFaults(page)).toEqual([]);
  await go(page, 'Audit log');
  await heading(page, 'Audit log').waitFor();
  await page.goBack();
  await heading(page, 'This page cannot be shown').waitFor();
  restore();
  await page.getByRole('button', { name: 'Try again' }).click();
  await heading(page, 'Accounts').waitFor();
});

test('a fault in the frame itself is said on the bare page, with the remedy', async () => {
  const { page, visit, tolerate } = await browsers.operator(service, '/messages');
  tolerate(TOLD);
  const restore = await standIn(page, '**/api/v1/session', (route) => route.fulfill({ body: 'null' }));
  await visit('/domains');
  await heading(page, 'The dashboard cannot be shown').waitFor();
  expect(await graveFaults(page)).toEqual([]);
  restore();
  await page.getByRole('button', { name: 'Load it again' }).click();
  await heading(page, 'Domains').waitFor();
});

test('an address that nothing has is told by the page, inside its frame', async () => {
  const { page, tolerate } = await browsers.operator(service, '/messages');
  tolerate(/status of 404/);
  const answer = await page.goto('/nonsense');
  expect(answer?.status()).toBe(404);
  await heading(page, 'No such page').waitFor();
  await go(page, 'Overview');
  await heading(page, 'Overview').waitFor();
});

test('a browser whose language is no language tag has every page', async () => {
  await accepted(service.publicUrl, service.key, { subject: 'Something to draw' });
  const { page } = await browsers.operator(service, '/messages', { locale: 'en-US@posix' });
  // Without it this test would try nothing.
  const named = await page.evaluate<string>('Reflect.get(Navigator.prototype, "language", navigator)');
  expect(named).toBe('en-US@posix');
  await go(page, 'Overview');
  await heading(page, 'Overview').waitFor();
  await page.getByRole('img').first().waitFor();
});

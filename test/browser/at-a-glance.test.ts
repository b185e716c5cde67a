/** Tests the overview, the navigation on a phone, and the audit log. */
import { beforeAll, expect, test } from 'vitest';
import { createBrowserRig, replaceResponses } from '../rig/browser.ts';
import { findHorizontalOverflow, findSeriousFaults } from '../rig/page-checks.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
let service: RunningService;

/** Matches the text that states the start and the end of the range and of the previous period. */
const COMPARED_PERIODS =
  /^(\d+ \w+, \d\d:\d\d UTC) to .*, compared with \d+ \w+, \d\d:\d\d UTC to \d+ \w+, \d\d:\d\d UTC$/;

beforeAll(async () => {
  service = await rig.serve(rig.createFolder());
});

test('with many problems the regions Queue and Health are visible without scrolling, and a button shows all problems', async () => {
  // The setup checklist is expanded until the installation has accepted a message.
  await submitAccepted(service.publicUrl, service.key, { to: 'suppressed@simulator.postrider.test' });
  for (const name of ['one', 'two', 'three', 'four', 'five', 'six']) {
    await browsers.callApi(service, 'POST', '/accounts', { name });
    await browsers.callApi(service, 'POST', `/accounts/${name}/lock`, { reason: 'unpaid' });
  }
  const { page } = await browsers.openSignedIn(service, '/');
  await page.getByRole('link', { name: 'Health 6 failures' }).waitFor();
  const items = page.getByRole('region', { name: /^Needs attention/ }).getByRole('listitem');
  const showAllButton = page.getByRole('button', { name: /^Show all \d+/ });
  await showAllButton.waitFor();
  expect(await items.count()).toBe(3);
  for (const name of ['Queue', 'Health']) {
    const regionBox = await page.getByRole('region', { name }).boundingBox();
    expect((regionBox?.y ?? Number.POSITIVE_INFINITY) + (regionBox?.height ?? 0), name).toBeLessThan(900);
  }
  await showAllButton.focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => items.count()).toBeGreaterThanOrEqual(6);
  const showFewerButton = page.getByRole('button', { name: 'Show fewer' });
  expect(await showFewerButton.getAttribute('aria-expanded')).toBe('true');
  expect(await showFewerButton.and(page.locator(':focus')).count()).toBe(1);
  expect(await findSeriousFaults(page)).toEqual([]);
});

test('the frame of the dashboard shows the number of nodes if several are alive, and the Health page lists the open problems', async () => {
  const { page, visit } = await browsers.openSignedIn(service, '/settings');
  await page.getByText(/^v\d/).waitFor();
  const restore = await replaceResponses(page, '**/api/v1/overview?range=1h', async (route) => {
    const response = await route.fetch();
    const overview = (await response.json()) as { readonly aliveNodes: number };
    expect(overview.aliveNodes).toBe(1);
    await route.fulfill({ response, json: { ...overview, aliveNodes: 3 } });
  });
  await visit('/health');
  await page.getByText(/^3 nodes · v\d/).waitFor();
  await page.getByRole('region', { name: '6 open problems' }).getByText('Account six is locked').waitFor();
  restore();
});

test('the total of a state links to the messages in this state, unless the total is zero', async () => {
  for (const recipient of ['ada@example.com', 'bounce@simulator.postrider.test'])
    await submitAccepted(service.publicUrl, service.key, { to: recipient, subject: `To ${recipient}` });
  const { page } = await browsers.openSignedIn(service, '/?range=1h');
  const bouncedLink = page.getByRole('link', { name: 'Bounced: 1' });
  await bouncedLink.waitFor();
  await page.getByRole('link', { name: 'Delivered: 1' }).waitFor();
  expect(await page.getByRole('link', { name: /^(Accepted|Deferred|Expired): / }).count()).toBe(0);
  await page.getByText(COMPARED_PERIODS).waitFor();
  expect(await findSeriousFaults(page)).toEqual([]);
  await bouncedLink.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'To bounce@simulator.postrider.test' }).waitFor();
  await page.getByText('All 1 shown').waitFor();
  expect(new URL(page.url()).search).toBe('?state=bounced&since=1h');
});

test('a category of bounces links to the bounced messages of this category in the same range', async () => {
  const ownService = await rig.serve(rig.createFolder());
  for (const recipient of ['bounce@simulator.postrider.test', 'suppressed@simulator.postrider.test'])
    await submitAccepted(ownService.publicUrl, ownService.key, { to: recipient, subject: `To ${recipient}` });
  const { page } = await browsers.openSignedIn(ownService, '/?range=1h');
  const reasons = page.getByRole('region', { name: 'Why messages bounced' });
  await reasons.getByRole('link', { name: /^Mailbox unknown\s*1$/ }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'To bounce@simulator.postrider.test' }).waitFor();
  await page.getByText('All 1 shown').waitFor();
  expect(new URL(page.url()).search).toBe('?state=bounced&category=mailbox-unknown&since=1h');
});

test('on a phone the top bar shows the status of live updates and a button for the color scheme, and the menu contains the button Sign out', async () => {
  // The other tests do not use this service, because the sign-out ends its session.
  const ownService = await rig.serve(rig.createFolder());
  const { page, allowFaults } = await browsers.openSignedIn(ownService, '/messages', { width: 360 });
  await page.getByRole('status').filter({ hasText: 'live' }).waitFor();
  await page.getByRole('button', { name: 'Switch to dark mode' }).click();
  await page.getByRole('button', { name: 'Switch to light mode' }).waitFor();
  expect(await findHorizontalOverflow(page)).toEqual([]);
  await page.getByRole('button', { name: 'Navigation' }).click();
  expect(await findHorizontalOverflow(page)).toEqual([]);
  // Requests after the sign-out are refused.
  allowFaults(/status of 401/);
  await page.getByRole('button', { name: 'Sign out' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('it prints a new link when it starts').waitFor();
  expect(await findHorizontalOverflow(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('textbox', { name: 'Operator password' }).waitFor();
});

test('the audit log names the address that was added to a suppression list and removed from it', async () => {
  await browsers.callApi(service, 'POST', '/accounts/default/suppressions', { address: 'ada@example.com' });
  await browsers.callApi(service, 'DELETE', '/accounts/default/suppressions/ada@example.com');
  const { page } = await browsers.openSignedIn(service, '/audit');
  for (const action of ['suppression.add', 'suppression.remove']) {
    const row = page.getByRole('row').filter({ hasText: action });
    await row.getByRole('link', { name: 'ada@example.com' }).waitFor();
    await row.getByRole('link', { name: 'suppression list of account default' }).waitFor();
  }
});

import { expect, test } from 'vitest';
import { createBrowserRig, replaceResponses } from '../rig/browser.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
const service = await rig.serve(rig.createFolder());

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

test('on a phone the top bar shows the status of live updates and a button for the color scheme', async () => {
  const { page } = await browsers.openSignedIn(service, '/messages', { width: 360 });
  await page.getByRole('status').filter({ hasText: 'live' }).waitFor();
  await page.getByRole('button', { name: 'Switch to dark mode' }).click();
  await page.getByRole('button', { name: 'Switch to light mode' }).waitFor();
});

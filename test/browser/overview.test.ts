/**
 * Tests the figures: the overview with its problems and links, and the Deliverability page with stored figures (list of
 * changes, table, selected row, links of a row).
 */
import { beforeAll, expect, test } from 'vitest';
import {
  createKeyCounts,
  type DeliverabilityRow,
  formatKeyCounts,
  type MutableKeyCounts,
  REMAINDER_KEY,
  type Series,
  SPANS_MS,
} from '../../src/model/deliverability.ts';
import { getLatencyBucket, HOUR_MS } from '../../src/model/traffic.ts';
import { createBrowserRig, replaceResponses } from '../rig/browser.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

/** Matches the text that states the start and the end of the range and of the previous period. */
const COMPARED_PERIODS =
  /^(\d+ \w+, \d\d:\d\d UTC) to .*, compared with \d+ \w+, \d\d:\d\d UTC to \d+ \w+, \d\d:\d\d UTC$/;

const rig = createScenario();
const browsers = createBrowserRig();
let service: RunningService;

/** The messages of one key of a series, such as an account: their number, bounces, complaints and delivery time. */
interface KeyMessages {
  readonly count: number;
  readonly bouncedCount: number;
  readonly complainedCount: number;
  readonly deliveryMs: number;
}

const USUAL_MESSAGES: KeyMessages = { count: 2_000, bouncedCount: 10, complainedCount: 0, deliveryMs: 500 };
const SLOW_MESSAGES: KeyMessages = {
  count: 2_000,
  bouncedCount: 200,
  complainedCount: 2,
  deliveryMs: 90_000,
};

beforeAll(async () => {
  const folder = rig.createFolder();
  service = await rig.serve(folder);
  const store = await rig.openStore(folder);
  const now = Date.now();
  const listKeys = (series: Series): readonly (readonly [string, KeyMessages])[] =>
    series === 'provider'
      ? [
          ['google', USUAL_MESSAGES],
          ['microsoft', SLOW_MESSAGES],
        ]
      : [['mail.example', SLOW_MESSAGES]];
  const createRows = (at: number, adapt: (messages: KeyMessages) => KeyMessages) =>
    SPANS_MS.flatMap((spanMs) =>
      (['provider', 'recipient-domain'] as const).map((series): DeliverabilityRow => {
        const keys = listKeys(series).map(([key, messages]) => [key, toCounts(adapt(messages))] as const);
        const counts = formatKeyCounts([...keys, [REMAINDER_KEY, createKeyCounts()]]);
        return { spanMs, at: at - (at % spanMs), series, counts };
      }),
    );
  await store.writeDeliverability(
    'node',
    createRows(now, (messages) => messages),
  );
  await store.writeDeliverability(
    'node',
    createRows(now - 30 * HOUR_MS, () => USUAL_MESSAGES),
  );
});

function toCounts({ count, bouncedCount, complainedCount, deliveryMs }: KeyMessages): MutableKeyCounts {
  const counts = createKeyCounts();
  const deliveredCount = count - bouncedCount;
  Object.assign(counts, {
    accepted: count,
    delivered: deliveredCount,
    ended: count,
    bounced: bouncedCount,
    hard: bouncedCount,
    complained: complainedCount,
  });
  counts.latencies.set(getLatencyBucket(deliveryMs), deliveredCount);
  return counts;
}

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

test('the total of a state and a category of bounces link to their messages in the same range, unless the total is zero', async () => {
  await browsers.callApi(service, 'POST', '/inbox/rules', { match: 'gone.example', code: 550, enhanced: '5.1.1' });
  for (const recipient of ['ada@example.com', 'bounce@gone.example'])
    await submitAccepted(service.publicUrl, service.key, { to: recipient, subject: `To ${recipient}` });
  const { page } = await browsers.openSignedIn(service, '/?range=1h');
  const bouncedLink = page.getByRole('link', { name: 'Bounced: 1' });
  await bouncedLink.waitFor();
  await page.getByRole('link', { name: 'Delivered: 1' }).waitFor();
  expect(await page.getByRole('link', { name: /^(Accepted|Deferred|Expired): / }).count()).toBe(0);
  await page.getByText(COMPARED_PERIODS).waitFor();
  await bouncedLink.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'To bounce@gone.example' }).waitFor();
  await page.getByText('All 1 shown').waitFor();
  expect(new URL(page.url()).search).toBe('?state=bounced&since=1h');
  await page.goBack();
  const reasons = page.getByRole('region', { name: 'Why messages bounced' });
  await reasons.getByRole('link', { name: /^Mailbox unknown\s*1$/ }).focus();
  await page.keyboard.press('Enter');
  await page.getByText('All 1 shown').waitFor();
  expect(new URL(page.url()).search).toBe('?state=bounced&category=mailbox-unknown&since=1h');
});

test('on a phone the top bar shows the status of live updates and a button for the color scheme', async () => {
  const { page } = await browsers.openSignedIn(service, '/messages', { width: 360 });
  await page.getByRole('status').filter({ hasText: 'live' }).waitFor();
  await page.getByRole('button', { name: 'Switch to dark mode' }).click();
  await page.getByRole('button', { name: 'Switch to light mode' }).waitFor();
});

test('the page states which mailbox provider became slower, and shows its figures and a chart, and a row links to its messages', async () => {
  const { page, visit } = await browsers.openSignedIn(service, '/');
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Deliverability' }).click();
  await page.getByRole('heading', { level: 1, name: 'Deliverability' }).waitFor();
  const changeRegion = page.getByRole('region', { name: 'What changed' });
  await changeRegion.getByText(/:00 UTC to .*, compared with .*:00 UTC to .*:00 UTC$/).waitFor();
  await changeRegion.getByText(/Microsoft: the bounce rate rose from 0\.5 % to 10 %/).waitFor();
  const slowerProviderItem = changeRegion
    .getByRole('listitem')
    .filter({ hasText: /Microsoft: the p50 of the delivery time rose/ });
  await slowerProviderItem.waitFor();
  const row = page.getByRole('row').filter({ has: page.getByRole('button', { name: 'Microsoft' }) });
  expect(await row.textContent()).toMatch(/2,000.*90 %.*up 9\.5 pt.*200 hard.*1 min \d+ s/);

  await slowerProviderItem.getByRole('button', { name: 'Show in the chart' }).click();
  await page
    .getByRole('region', { name: 'Microsoft' })
    .getByRole('img', { name: /^Microsoft: Delivered/ })
    .waitFor();
  expect(new URL(page.url()).searchParams.get('key')).toBe('microsoft');
  await page.getByText('Time to deliver', { exact: true }).click();
  await page.getByRole('img', { name: /^Microsoft: p50: maximum 1 min \d+ s/ }).waitFor();

  const readNames = async () =>
    (await page.locator('.row-name').allTextContents()).filter((name) => /^(Google|Microsoft)$/.test(name));
  await page.getByRole('button', { name: 'Delivered' }).click();
  await expect.poll(readNames).toEqual(['Google', 'Microsoft']);
  await page.getByRole('button', { name: 'Bounced' }).click();
  await expect.poll(readNames).toEqual(['Microsoft', 'Google']);

  await visit('/deliverability?by=recipient-domain');
  await page.getByRole('row').filter({ hasText: 'mail.example' }).getByRole('link', { name: 'Bounced' }).click();
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
    domain: 'mail.example',
    state: 'bounced',
    since: '24h',
  });
});

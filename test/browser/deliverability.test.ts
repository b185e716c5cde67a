/**
 * Tests the Deliverability page with stored figures: the list of changes, the table, the selected row, and the links of
 * a row.
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
import { createBrowserRig, listAttributes } from '../rig/browser.ts';
import { emulateDarkPhone, findHorizontalOverflow, findSeriousFaults } from '../rig/page-checks.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
let service: RunningService;

/** The messages of one key of a series, such as an account: their number, bounces, complaints and delivery time. */
interface KeyMessages {
  readonly count: number;
  readonly bouncedCount: number;
  readonly complainedCount: number;
  readonly deliveryMs: number;
  /** The time after which the provider confirmed each delivery, or null without confirmations. */
  readonly confirmationMs: number | null;
}

const USUAL_MESSAGES: KeyMessages = {
  count: 2_000,
  bouncedCount: 10,
  complainedCount: 0,
  deliveryMs: 500,
  confirmationMs: 4_000,
};
const SLOW_MESSAGES: KeyMessages = {
  count: 2_000,
  bouncedCount: 200,
  complainedCount: 2,
  deliveryMs: 90_000,
  confirmationMs: null,
};

beforeAll(async () => {
  const folder = rig.createFolder();
  service = await rig.serve(folder);
  const store = await rig.openStore(folder);
  const accountId = (await store.listAccounts()).find(({ name }) => name === 'default')?.id ?? 0;
  const now = Date.now();
  const listKeys = (series: Series): readonly (readonly [string, KeyMessages])[] => {
    switch (series) {
      case 'provider':
        return [
          ['google', USUAL_MESSAGES],
          ['microsoft', SLOW_MESSAGES],
        ];
      case 'recipient-domain':
        return [['mail.example', SLOW_MESSAGES]];
      case 'account':
        return [[String(accountId), SLOW_MESSAGES]];
      case 'sending-domain':
        return [[`${accountId}/shop.example`, SLOW_MESSAGES]];
      default:
        return [];
    }
  };
  const createRows = (at: number, adapt: (messages: KeyMessages) => KeyMessages) =>
    SPANS_MS.flatMap((spanMs) =>
      (['provider', 'recipient-domain', 'account', 'sending-domain'] as const).map(
        (series): DeliverabilityRow => ({
          spanMs,
          at: at - (at % spanMs),
          series,
          counts: formatKeyCounts([
            ...listKeys(series).map(([key, messages]) => [key, toCounts(adapt(messages))] as const),
            [REMAINDER_KEY, createKeyCounts()],
          ]),
        }),
      ),
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

function toCounts({ count, bouncedCount, complainedCount, deliveryMs, confirmationMs }: KeyMessages): MutableKeyCounts {
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
  if (confirmationMs !== null) {
    counts.confirmed = deliveredCount;
    counts.confirmations.set(getLatencyBucket(confirmationMs), deliveredCount);
  }
  return counts;
}

test('the page states which mailbox provider became slower, and shows the figures of this provider, the change of each figure and a chart', async () => {
  const { page } = await browsers.openSignedIn(service, '/');
  await page.getByRole('link', { name: 'Deliverability' }).click();
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
  expect(await findSeriousFaults(page)).toEqual([]);

  await slowerProviderItem.getByRole('button', { name: 'Show in the chart' }).click();
  await page
    .getByRole('region', { name: 'Microsoft' })
    .getByRole('img', { name: /^Microsoft: Delivered/ })
    .waitFor();
  expect(new URL(page.url()).searchParams.get('key')).toBe('microsoft');
  await page.getByText('Time to deliver', { exact: true }).click();
  await page.getByRole('img', { name: /^Microsoft: p50: maximum 1 min \d+ s/ }).waitFor();

  const readNames = () => page.locator('.row-name').allTextContents();
  await page.getByRole('button', { name: 'Delivered' }).click();
  await expect.poll(readNames).toEqual(['Google', 'Microsoft']);
  await page.getByRole('button', { name: 'Bounced' }).click();
  await expect.poll(readNames).toEqual(['Microsoft', 'Google']);
  await emulateDarkPhone(page);
  expect(await findSeriousFaults(page)).toEqual([]);
  expect(await findHorizontalOverflow(page)).toEqual([]);
});

test('for a provider that confirms deliveries, a row shows the number of confirmed deliveries and the time to confirmation', async () => {
  const { page } = await browsers.openSignedIn(service, '/deliverability');
  const findRow = (name: string) => page.getByRole('row').filter({ has: page.getByRole('button', { name }) });
  expect(await findRow('Google').textContent()).toMatch(/1,990 confirmed.*(?:confirmed [34](?:\.\d+)? s.*){2}/);
  expect(await findRow('Microsoft').textContent()).not.toContain('confirmed');
  await page.getByRole('button', { name: 'Google' }).click();
  await page.getByText('Time to deliver', { exact: true }).click();
  await page.getByRole('img', { name: /^Google: p50: .*p50 until confirmed: / }).waitFor();
});

test('the row of an account shows the rates at which the account is locked, and a row has links to its messages', async () => {
  const { page, visit } = await browsers.openSignedIn(service, '/deliverability?by=account&range=7d');
  const row = page.getByRole('row').filter({ has: page.getByRole('button', { name: 'default' }) });
  await row.getByText('locks at 0.15 %').waitFor();
  await row.getByText('locks at 10 % hard').waitFor();
  const getLinks = () => listAttributes(row.getByRole('link'), 'href');
  expect(await getLinks()).toEqual([
    '/messages?account=default&since=7d',
    '/messages?account=default&state=bounced&since=7d',
    '/deliverability?account=default&range=7d',
    '/accounts/default',
  ]);
  await visit('/deliverability?by=recipient-domain');
  await page.getByRole('link', { name: 'Bounced' }).click();
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
    domain: 'mail.example',
    state: 'bounced',
    since: '24h',
  });
});

test('without messages the page states that there are none, and an unknown account causes an error with its remedy', async () => {
  const { page, visit, allowFaults } = await browsers.openSignedIn(
    service,
    '/deliverability?sendingDomain=none.example',
  );
  await page.getByText('No messages in the last 24 hours').waitFor();
  await page.getByRole('button', { name: 'Remove the filter Sending domain' }).click();
  await page.getByRole('region', { name: 'What changed' }).waitFor();
  allowFaults(/status of 404 .*\/deliverability/);
  await visit('/deliverability?account=nobody');
  await page.getByText('there is no account "nobody"').waitFor();
  await page.getByRole('button', { name: 'Try again' }).waitFor();
});

/** Tests the domain page (published and found records, alignment, zone file), and the lists of domains and accounts. */
import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import type { Deliverability } from '../../src/operations/deliverability/schemas.ts';
import type { DomainDetails } from '../../src/operations/domains/schemas.ts';
import { createBrowserRig } from '../rig/browser.ts';
import { startDns } from '../rig/dns.ts';
import { findHorizontalOverflow, findSeriousFaults } from '../rig/page-checks.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
const DOMAIN = 'shop.example.org';

test('the page shows the missing record, the alignment and the records found in DNS, and saves the records as a zone file', async () => {
  const dns = await startDns();
  onTestFinished(() => dns.close());
  const service = await rig.serve(rig.createFolder(), { POSTRIDER_DNS: `127.0.0.1:${dns.port}` });
  const { records } = await browsers.callApi<DomainDetails>(service, 'POST', '/accounts/default/domains', {
    domain: DOMAIN,
  });
  await submitAccepted(service.publicUrl, service.key, { from: `hello@${DOMAIN}` });
  await expect
    .poll(async () => {
      const path = `/deliverability?by=provider&range=7d&sendingDomain=${DOMAIN}`;
      return (await browsers.callApi<Deliverability>(service, 'GET', path)).total.delivered;
    })
    .toBe(1);
  const { page, context } = await browsers.openSignedIn(service, `/domains/${DOMAIN}`);
  await page.getByRole('note', { name: 'Not authenticated' }).waitFor();

  for (const { purpose, name, value } of records) if (purpose === 'dkim') dns.zone[name] = { TXT: [value] };
  dns.zone[`_dmarc.${DOMAIN}`] = { TXT: ['v=DMARC1; p=quarantine'] };
  await page.getByRole('button', { name: 'Verify now' }).click();
  const note = page.getByRole('note', { name: 'One record is missing: SPF' });
  await note.waitFor();
  // The DMARC record is found, with a value that differs from the suggested value.
  await page.getByRole('row').filter({ hasText: '_dmarc' }).getByText('v=DMARC1; p=quarantine').waitFor();
  const alignment = page.getByRole('region', { name: 'Alignment' });
  for (const text of [`d=${DOMAIN}, aligned`, `no SPF record at ${DOMAIN}`, 'p=quarantine, passes with DKIM'])
    await alignment.getByText(text).waitFor();
  const figures = page.getByRole('region', { name: 'Last 7 days' });
  await figures.getByText(/^1\s*message$/).waitFor();
  await figures.getByText('100 %').waitFor();

  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await note.getByRole('button', { name: 'Copy record' }).click();
  await note.getByRole('button', { name: 'Copied' }).waitFor();
  expect(await page.evaluate<string>('navigator.clipboard.readText()')).toMatch(
    /^shop\.example\.org\. IN TXT "v=spf1 [^"]*"\n$/,
  );
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Zone file' }).click(),
  ]);
  expect(download.suggestedFilename()).toBe(`${DOMAIN}.zone`);
  const zone = readFileSync(await download.path(), 'utf8');
  for (const { name, type } of records) expect(zone).toContain(`\n${name}. IN ${type} `);
  expect(await findSeriousFaults(page)).toEqual([]);
  await page.setViewportSize({ width: 360, height: 780 });
  expect(await findHorizontalOverflow(page)).toEqual([]);
});

test('on a phone the lists of domains and accounts show the reason for a state, and a row can be opened with the keyboard', async () => {
  const service = await rig.serve(rig.createFolder());
  await browsers.callApi(service, 'POST', '/accounts/default/domains', { domain: DOMAIN });
  await browsers.callApi(service, 'POST', '/accounts', { name: 'late' });
  await browsers.callApi(service, 'POST', '/accounts/late/lock', { reason: 'the invoice is open' });
  const { page, visit } = await browsers.openSignedIn(service, '/accounts?state=locked', { width: 360 });
  await page.getByText('the invoice is open').waitFor();
  await page.getByText('1 of 2 accounts').waitFor();
  await page.getByRole('button', { name: 'State: Locked' }).waitFor();
  expect(await findHorizontalOverflow(page)).toEqual([]);
  expect(await findSeriousFaults(page)).toEqual([]);
  await page.getByRole('button', { name: 'Remove the filter State' }).click();
  await page.getByText('2 accounts', { exact: true }).waitFor();

  await visit('/domains');
  await page.getByText('0 of 4 found').waitFor();
  expect(await findHorizontalOverflow(page)).toEqual([]);
  expect(await findSeriousFaults(page)).toEqual([]);
  await page.getByRole('heading', { level: 1 }).click();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: DOMAIN }).waitFor();
});

import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import type { Deliverability } from '../../src/operations/deliverability.ts';
import type { DomainDetails } from '../../src/operations/domain-details.ts';
import { createBrowserRig } from '../rig/browser.ts';
import { startDns } from '../rig/dns.ts';
import { submit, submitAccepted } from '../rig/service.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
const service = await rig.serve(rig.createFolder());
async function createAccountWithKey(name: string): Promise<string> {
  await browsers.callApi(service, 'POST', '/accounts', { name });
  const { key } = await browsers.callApi<{ key: string }>(service, 'POST', `/accounts/${name}/keys`, { name: 'web' });
  await waitForStatus(key, 201);
  return key;
}

/** Waits until a submission with the key returns `status`. Every node applies a change within one second. */
async function waitForStatus(key: string, status: number): Promise<void> {
  await expect.poll(async () => (await submit(service.publicUrl, key)).status).toBe(status);
}

test('a lock and an unlock of an account are effective for its clients and on the pages of other operators', async () => {
  const key = await createAccountWithKey('shop');
  const otherSession = await browsers.openSignedIn(service, '/accounts/shop');
  const { page } = await browsers.openSignedIn(service, '/accounts');
  await page.getByRole('link', { name: 'shop' }).click();
  await page.getByRole('button', { name: 'Lock', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Lock shop?' });
  expect(await dialog.getByRole('button', { name: 'Lock account' }).isDisabled()).toBe(true);
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('the invoice of October is open');
  await dialog.getByRole('button', { name: 'Lock account' }).click();
  await page.getByText('Locked shop.').waitFor();
  await waitForStatus(key, 401);
  for (const shownReason of [page, otherSession.page])
    await shownReason.getByText('the invoice of October is open').waitFor();

  await page.getByRole('button', { name: 'Unlock', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Unlock account' }).click();
  await page.getByText('Unlocked shop.').waitFor();
  await waitForStatus(key, 201);
});

test('when two operators change one account, the second change is refused because the account has changed', async () => {
  await createAccountWithKey('shared');
  const firstOperator = await browsers.openSignedIn(service, '/accounts/shared');
  const secondOperator = await browsers.openSignedIn(service, '/accounts/shared');
  secondOperator.allowFaults(/status of 409/);
  for (const [index, { page }] of [firstOperator, secondOperator].entries()) {
    await page.getByRole('button', { name: 'Lock', exact: true }).click();
    await page
      .getByRole('dialog')
      .getByRole('textbox', { name: 'Reason' })
      .fill(`reason of operator ${index + 1}`);
  }
  await firstOperator.page.getByRole('dialog').getByRole('button', { name: 'Lock account' }).click();
  await firstOperator.page.getByText('Locked shared.').waitFor();
  await secondOperator.page.getByRole('dialog').getByRole('button', { name: 'Lock account' }).click();
  await secondOperator.page
    .getByRole('dialog')
    .getByRole('alert')
    .getByText(/changed/)
    .waitFor();
  const shownAccount = await browsers.callApi<{ reason: string }>(service, 'GET', '/accounts/shared');
  expect(shownAccount.reason).toBe('reason of operator 1');
});

test('an import states the added and the invalid rows, and a check of the file adds nothing', async () => {
  await createAccountWithKey('lists');
  const { page } = await browsers.openSignedIn(service, '/suppressions?list=lists');
  const dialog = page.getByRole('dialog');
  const openFile = async (text: string) => {
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    const file = { name: 'list.csv', mimeType: 'text/csv', buffer: Buffer.from(text) };
    await page.locator('input[type=file]').setInputFiles(file);
  };
  await openFile('address,code,error,created_at\nada@example.com,550,unknown,\nbob@example.com,452,full,\n');
  await page.getByLabel('Check the file only, and add no address').check();
  await dialog.getByRole('button', { name: 'Check', exact: true }).click();
  await page.getByText('1 bounce, nothing was added').waitFor();
  await dialog.getByText('Close', { exact: true }).click();
  await page.getByText(/^The suppression list of .* is empty$/).waitFor();

  const rows = Array.from({ length: 3_000 }, (_, index) => `address${index}@example.com,bounce`);
  await openFile(`address,reason\n${rows.join('\n')}\nnot an address,bounce\n`);
  await dialog.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByText('3,000 added').waitFor();
  await page.getByText('Invalid rows').first().waitFor();
  await dialog.getByText('Close', { exact: true }).click();
  await page.getByLabel('Search', { exact: true }).fill('address2999@');
  await page.getByRole('button', { name: 'address2999@example.com', exact: true }).click();
  await page.getByRole('heading', { name: 'address2999@example.com is suppressed' }).waitFor();
});

const DOMAIN = 'shop.example.org';

test('the domain page shows the missing record, the alignment and the records found in DNS, and saves the records as a zone file', async () => {
  const dns = await startDns();
  onTestFinished(() => dns.close());
  const domainService = await rig.serve(rig.createFolder(), { POSTRIDER_DNS: `127.0.0.1:${dns.port}` });
  const { records } = await browsers.callApi<DomainDetails>(domainService, 'POST', '/accounts/default/domains', {
    domain: DOMAIN,
  });
  await submitAccepted(domainService.publicUrl, domainService.key, { from: `hello@${DOMAIN}` });
  await expect
    .poll(async () => {
      const path = `/deliverability?by=provider&range=7d&sendingDomain=${DOMAIN}`;
      return (await browsers.callApi<Deliverability>(domainService, 'GET', path)).total.delivered;
    })
    .toBe(1);
  const { page } = await browsers.openSignedIn(domainService, `/domains/${DOMAIN}`);
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
});

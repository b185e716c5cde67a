/** Tests changes of accounts, keys and suppression lists on the pages, and their effect on clients. */
import { beforeAll, expect, test } from 'vitest';
import { createBrowserRig } from '../rig/browser.ts';
import { findSeriousFaults } from '../rig/page-checks.ts';
import { submit } from '../rig/service.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
let service: RunningService;
beforeAll(async () => {
  service = await rig.serve(rig.createFolder(), {
    POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.host.example',
    POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0',
  });
});

/** Creates an account and returns an active key of the account. */
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
  expect(await findSeriousFaults(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Lock account' }).click();
  await page.getByText('Locked shop.').waitFor();
  await waitForStatus(key, 401);
  for (const shownReason of [page, otherSession.page])
    await shownReason.getByText('the invoice of October is open').waitFor();

  await page.getByRole('button', { name: 'Unlock', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Unlock account' }).click();
  await page.getByText('Unlocked shop.').waitFor();
  await waitForStatus(key, 201);
  await page.getByRole('link', { name: 'Audit log' }).click();
  await page.getByText('account.unlock').waitFor();
  await page.getByText('the invoice of October is open').first().waitFor();
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

test('a rotated key is shown once, and the old and the new key are valid during the grace period', async () => {
  const oldKey = await createAccountWithKey('rotating');
  const { page } = await browsers.openSignedIn(service, '/accounts/rotating?tab=keys');
  await page.getByRole('button', { name: /^Rotate web/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Create new key' }).click();
  const newKeyDialog = page.getByRole('dialog', { name: /^New key/ });
  const key = (await newKeyDialog.locator('pre').innerText()).trim();
  expect(key).toMatch(/^pr_[A-Za-z0-9_-]{43}$/);
  expect(key).not.toBe(oldKey);
  expect(await findSeriousFaults(page)).toEqual([]);
  await waitForStatus(key, 201);
  await waitForStatus(oldKey, 201);
  await page.keyboard.press('Escape');
  await newKeyDialog.getByRole('button', { name: 'I have stored it' }).click();
  await newKeyDialog.waitFor({ state: 'hidden' });
  await page.reload();
  await expect.poll(() => page.getByRole('button', { name: /^Rotate web/ }).count()).toBe(2);
  expect(await page.content()).not.toContain(key);
});

test('an import shows its progress, and an import of a file that is not CSV shows an error and adds nothing', async () => {
  await createAccountWithKey('lists');
  const { page, allowFaults } = await browsers.openSignedIn(service, '/suppressions?list=lists');
  const chooseFile = async (name: string, text: string | Buffer) => {
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.locator('input[type=file]').setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(text) });
    await page.getByRole('dialog').getByRole('button', { name: 'Import', exact: true }).click();
  };
  allowFaults(/status of 4\d\d .*\/import/);
  await chooseFile(
    'picture.csv',
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0xff, 0xfe, 0x00, 0x80]),
  );
  await page.getByRole('dialog').getByRole('alert').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByText(/^The suppression list of .* is empty$/).waitFor();

  await page.getByRole('button', { name: 'Import', exact: true }).click();
  const exportText = 'address,code,error,created_at\nada@example.com,550,unknown,\nbob@example.com,452,full,\n';
  const exportFile = { name: 'bounces.csv', mimeType: 'text/csv', buffer: Buffer.from(exportText) };
  await page.locator('input[type=file]').setInputFiles(exportFile);
  await page.getByLabel('Check the file only, and add no address').check();
  await page.getByRole('dialog').getByRole('button', { name: 'Check', exact: true }).click();
  await page.getByText('1 bounce, nothing was added').waitFor();
  await page.getByText('(bounces of Mailgun)').waitFor();
  await page.getByText('Skipped because they suppress no recipient: 1 soft-bounce').waitFor();
  await page.getByRole('dialog').getByText('Close', { exact: true }).click();
  await page.getByText(/^The suppression list of .* is empty$/).waitFor();

  const rows = Array.from({ length: 30_000 }, (_, index) => `address${index}@example.com,bounce`);
  const progress = page.getByRole('progressbar').first().waitFor();
  await chooseFile('list.csv', `address,reason\n${rows.join('\n')}\nnot an address,bounce\n`);
  await progress;
  await page.getByText('30,000 added').waitFor();
  await page.getByText('Invalid rows').first().waitFor();
  expect(await findSeriousFaults(page)).toEqual([]);
  await page.getByRole('dialog').getByText('Close', { exact: true }).click();
  await page.getByLabel('Search', { exact: true }).fill('address29999@');
  await page.getByRole('button', { name: 'address29999@example.com', exact: true }).click();
  await page.getByRole('heading', { name: 'address29999@example.com is suppressed' }).waitFor();
});

test('a return path is set and removed on the domain page, which shows the records of the return path and the reason for a refusal', async () => {
  await browsers.callApi(service, 'POST', '/accounts/default/domains', { domain: 'shop.example' });
  const { page, allowFaults } = await browsers.openSignedIn(service, '/domains/shop.example');
  allowFaults(/status of 400/);
  await page.getByRole('button', { name: 'Return path', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Return path of shop.example' });
  await dialog.getByRole('textbox', { name: 'Return path' }).fill('bounces.example.net');
  await dialog.getByRole('button', { name: 'Set return path' }).click();
  await dialog.getByRole('alert').getByText('bounces.example.net is outside of shop.example').waitFor();
  await dialog.getByRole('textbox', { name: 'Return path' }).fill('bounces.shop.example');
  await dialog.getByRole('button', { name: 'Set return path' }).click();
  await page.getByText('The return path of shop.example is bounces.shop.example.').waitFor();
  await page.getByText('10 bounces.host.example', { exact: true }).waitFor();
  await page.getByText('Messages use bounces.host.example until').waitFor();
  expect(await browsers.callApi(service, 'GET', '/domains/shop.example')).toMatchObject({
    returnPath: { name: 'bounces.shop.example', state: 'unverified' },
  });
  await page.getByRole('button', { name: 'Return path', exact: true }).click();
  await dialog.getByRole('textbox', { name: 'Return path' }).fill('');
  await dialog.getByRole('button', { name: 'Remove return path' }).click();
  await page.getByText('shop.example has no return path of its own.').waitFor();
  expect(await browsers.callApi(service, 'GET', '/domains/shop.example')).toMatchObject({ returnPath: null });
});

/** Accounts, keys and suppression lists as operators change them on the pages, and what clients notice of it. */
import { beforeAll, expect, test } from 'vitest';
import { browserRig } from '../rig/browser.ts';
import { graveFaults } from '../rig/page-checks.ts';
import { submit } from '../rig/service.ts';
import { type StandingService, scenario } from '../scenarios/standing.ts';

const rig = scenario();
const browsers = browserRig();
let service: StandingService;
beforeAll(async () => {
  service = await rig.serve(rig.folder());
});

/** An account with a key that works. */
async function account(name: string): Promise<string> {
  await browsers.ask(service, 'POST', '/accounts', { name });
  const { key } = await browsers.ask<{ key: string }>(service, 'POST', `/accounts/${name}/keys`, { name: 'web' });
  await answers(key, 201);
  return key;
}

/** Waits until a submission with the key is answered so; every node knows of a change within a second. */
async function answers(key: string, status: number): Promise<void> {
  await expect.poll(async () => (await submit(service.publicUrl, key)).status).toBe(status);
}

test('an account is locked with a reason and unlocked; its clients and other operators notice at once', async () => {
  const key = await account('shop');
  const other = await browsers.operator(service, '/accounts/shop');
  const { page } = await browsers.operator(service, '/accounts');
  await page.getByRole('link', { name: 'shop' }).click();
  await page.getByRole('button', { name: 'Lock', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Lock shop?' });
  expect(await dialog.getByRole('button', { name: 'Lock account' }).isDisabled()).toBe(true);
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('the invoice of October is open');
  expect(await graveFaults(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Lock account' }).click();
  await page.getByText('Locked shop.').waitFor();
  await answers(key, 401);
  for (const seen of [page, other.page]) await seen.getByText('the invoice of October is open').waitFor();

  await page.getByRole('button', { name: 'Unlock', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Unlock account' }).click();
  await page.getByText('Unlocked shop.').waitFor();
  await answers(key, 201);
  await page.getByRole('link', { name: 'Audit log' }).click();
  await page.getByText('account.unlock').waitFor();
  await page.getByText('the invoice of October is open').first().waitFor();
});

test('of two operators who change one account the second is told that it is otherwise by now, and nothing is done', async () => {
  await account('wanted');
  const first = await browsers.operator(service, '/accounts/wanted');
  const second = await browsers.operator(service, '/accounts/wanted');
  second.tolerate(/status of 409/);
  for (const [at, { page }] of [first, second].entries()) {
    await page.getByRole('button', { name: 'Lock', exact: true }).click();
    await page
      .getByRole('dialog')
      .getByRole('textbox', { name: 'Reason' })
      .fill(`reason of operator ${at + 1}`);
  }
  await first.page.getByRole('dialog').getByRole('button', { name: 'Lock account' }).click();
  await first.page.getByText('Locked wanted.').waitFor();
  await second.page.getByRole('dialog').getByRole('button', { name: 'Lock account' }).click();
  await second.page
    .getByRole('dialog')
    .getByRole('alert')
    .getByText(/changed/)
    .waitFor();
  const shown = await browsers.ask<{ reason: string }>(service, 'GET', '/accounts/wanted');
  expect(shown.reason).toBe('reason of operator 1');
});

test('a rotated key is shown once and works, and so does the old one for its grace time', async () => {
  const old = await account('rotating');
  const { page } = await browsers.operator(service, '/accounts/rotating?tab=keys');
  await page.getByRole('button', { name: /^Rotate web/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Make the new key' }).click();
  const made = page.getByRole('dialog', { name: /^The new key/ });
  const key = (await made.locator('pre').innerText()).trim();
  expect(key).toMatch(/^pr_[A-Za-z0-9_-]{43}$/);
  expect(key).not.toBe(old);
  expect(await graveFaults(page)).toEqual([]);
  await answers(key, 201);
  await answers(old, 201);
  await page.keyboard.press('Escape');
  await made.getByRole('button', { name: 'I have stored it' }).click();
  await made.waitFor({ state: 'hidden' });
  await page.reload();
  await expect.poll(() => page.getByRole('button', { name: /^Rotate web/ }).count()).toBe(2);
  expect(await page.content()).not.toContain(key);
});

test('a list is imported with its progress told; a file that is no CSV adds nothing and says why', async () => {
  await account('lists');
  const { page, tolerate } = await browsers.operator(service, '/suppressions?list=lists');
  const choose = async (name: string, text: string | Buffer) => {
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.locator('input[type=file]').setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(text) });
    await page.getByRole('dialog').getByRole('button', { name: 'Import', exact: true }).click();
  };
  tolerate(/status of 4\d\d .*\/import/);
  await choose('picture.csv', Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0xff, 0xfe, 0x00, 0x80]));
  await page.getByRole('dialog').getByRole('alert').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByText(/^The list of .* is empty$/).waitFor();

  const rows = Array.from({ length: 30_000 }, (_, n) => `address${n}@example.com,bounce`);
  const progress = page.getByRole('progressbar').first().waitFor();
  await choose('list.csv', `address,reason\n${rows.join('\n')}\nnot an address,bounce\n`);
  await progress;
  await page.getByText('30,000 added').waitFor();
  await page.getByText('Rows that were skipped').first().waitFor();
  expect(await graveFaults(page)).toEqual([]);
  await page.getByRole('dialog').getByText('Close', { exact: true }).click();
  await page.getByLabel('Search', { exact: true }).fill('address29999@');
  await page.getByRole('button', { name: 'address29999@example.com', exact: true }).click();
  await page.getByRole('heading', { name: 'Why address29999@example.com is suppressed' }).waitFor();
});

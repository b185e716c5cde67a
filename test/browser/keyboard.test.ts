import { expect, test } from 'vitest';
import { createBrowserRig } from '../rig/browser.ts';
import { createKeyboardUser } from '../rig/keyboard.ts';
import { submit, submitAccepted } from '../rig/service.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
const service = await rig.serve(rig.createFolder());
async function openOverview() {
  const user = await browsers.openSignedIn(service, '/');
  const readClipboard = () => user.page.evaluate<string>('navigator.clipboard.readText()');
  return { ...user, readClipboard, keyboard: createKeyboardUser(user.page) };
}

test('an operator retries a deferred message', async () => {
  const id = await submitAccepted(service.publicUrl, service.key, { to: 'defer@simulator.postrider.test' });
  const countAttempts = async () =>
    (await browsers.callApi<{ events: readonly { type: string }[] }>(service, 'GET', `/messages/${id}`)).events.filter(
      ({ type }) => type === 'deferred',
    ).length;
  await expect.poll(countAttempts).toBe(1);
  const { page, keyboard } = await openOverview();
  await keyboard.tabTo('link', 'Messages');
  await keyboard.press('Enter');
  await keyboard.tabTo('button', 'State');
  await keyboard.press('Enter');
  await keyboard.tabTo('checkbox', 'Deferred');
  await keyboard.press('Space', 'Escape');
  await keyboard.tabTo('button', 'State: deferred');
  await page.getByText('All 1 shown').waitFor();
  await keyboard.press('j', 'Enter');
  await keyboard.tabTo('button', 'Retry now');
  await keyboard.press('Enter');
  await page.getByText('The message is due now').waitFor();
  await expect.poll(countAttempts).toBe(2);
});

test('an operator creates an account with a key, and the copied key is valid', async () => {
  const { page, keyboard, readClipboard } = await openOverview();
  await keyboard.tabTo('link', 'Accounts');
  await keyboard.press('Enter');
  await keyboard.tabTo('button', 'Create account');
  await keyboard.press('Enter');
  await keyboard.tabTo('textbox', 'Name');
  await keyboard.type('typed');
  await keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'typed' }).waitFor();
  await keyboard.tabTo('button', 'Create key');
  await keyboard.press('Enter');
  await keyboard.tabTo('textbox', 'Name');
  await keyboard.type('web');
  await keyboard.press('Enter');
  await page.getByRole('dialog', { name: /^New key/ }).waitFor();
  // Escape must not close the dialog, because the key is shown only once.
  await keyboard.press('Escape');
  await keyboard.tabTo('button', 'Copy the key');
  await keyboard.press('Enter');
  await expect.poll(readClipboard).toMatch(/^pr_[A-Za-z0-9_-]{43}$/);
  const key = await readClipboard();
  await keyboard.tabTo('button', 'I have stored it');
  await keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  expect(await page.content()).not.toContain(key);
  await expect.poll(async () => (await submit(service.publicUrl, key)).status).toBe(201);
});

test('an operator removes an address from a suppression list', async () => {
  const address = 'ada@example.com';
  await browsers.callApi(service, 'POST', '/accounts/default/suppressions', { address });
  await browsers.callApi(service, 'POST', '/accounts/default/suppressions', { address: 'other@example.net' });
  const { page, keyboard } = await openOverview();
  await keyboard.tabTo('link', 'Suppressions');
  await keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Suppressions' }).waitFor();
  await keyboard.tabTo('searchbox', 'Search');
  await keyboard.type(address);
  await page.getByRole('button', { name: /^Remove other/ }).waitFor({ state: 'hidden' });
  await keyboard.tabTo('button', /^Remove ada@example\.com/);
  await keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Remove the address?' }).waitFor();
  // Escape changes nothing and returns the focus to the button.
  await keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await page
    .getByRole('button', { name: /^Remove ada/ })
    .and(page.locator(':focus'))
    .waitFor();
  await keyboard.press('Enter');
  await keyboard.tabTo('button', 'Remove address');
  await keyboard.press('Enter');
  await page.getByText(`Removed ${address} from the suppression list`).waitFor();
  const { suppressions } = await browsers.callApi<{ suppressions: readonly { address: string }[] }>(
    service,
    'GET',
    '/accounts/default/suppressions',
  );
  expect(suppressions.map((entry) => entry.address)).toEqual(['other@example.net']);
});

import { expect, test } from 'vitest';
import { createBrowserRig, waitForState } from '../rig/browser.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
const service = await rig.serve(rig.createFolder());

test('a token that is created with the keyboard is shown once, is valid, and is refused after its revocation', async () => {
  const { page } = await browsers.openSignedIn(service, '/tokens');
  await page.getByText('No tokens').waitFor();
  await page.getByRole('button', { name: 'Create token' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Create a token' }).waitFor();
  await expect.poll(() => page.evaluate('document.activeElement?.tagName')).toBe('INPUT');
  await page.keyboard.type('deploy');
  await page.keyboard.press('Enter');
  const tokenDialog = page.getByRole('dialog', { name: 'New token' });
  const token = (await tokenDialog.locator('pre').innerText()).trim();
  await tokenDialog.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByRole('cell', { name: /^deploy/ }).waitFor();
  expect(await page.content()).not.toContain(token);
  const fetchStatus = async () =>
    (await fetch(`${service.operatorUrl}/api/v1/accounts`, { headers: { Authorization: `Bearer ${token}` } })).status;
  expect(await fetchStatus()).toBe(200);

  await page.getByRole('button', { name: 'Revoke deploy' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke token' }).click();
  await page.getByText(/^Revoked deploy /).waitFor();
  expect(await fetchStatus()).toBe(401);
  await page.getByRole('switch', { name: 'Also show expired and revoked tokens (1)' }).press('Space');
  await page.getByText('revoked', { exact: true }).waitFor();
});

test('the reference shows the fields, the example programs and the errors of the public interface, each error with its remedy', async () => {
  const { page } = await browsers.openSignedIn(service, '/api-reference');
  const fields = page.getByRole('table', { name: 'Fields and headers of the request' });
  for (const name of ['Authorization', 'Content-Type', 'Idempotency-Key', 'to', 'from', 'subject', 'message'])
    await fields.getByText(name, { exact: true }).waitFor();
  await page.getByText(`${service.publicUrl}/api/v1/send-mail`, { exact: true }).waitFor();
  await page.getByRole('tab', { name: 'Python' }).click();
  await page.getByText('def send_mail(fields, idempotency_key):').waitFor();
  await page.getByRole('tab', { name: 'TypeScript' }).click();
  await page.getByText("from 'postrider-client';").waitFor();
  const error = page.getByRole('table', { name: 'Errors' }).getByRole('row').filter({ hasText: 'volume-exhausted' });
  await error.getByText('The volume of the account is used up.').waitFor();
  await error.getByText('Ask the operator to set a new volume for the account.').waitFor();
});

test('the console sends a message through the public listener, and shows the response to a refused request with its remedy', async () => {
  const { page } = await browsers.openSignedIn(service, '/api-reference');
  const field = (name: string) => page.getByRole('textbox', { name, exact: true });
  await field('to').fill('ada@example.com');
  await field('message').fill('one\ntwo');
  await field('subject').fill('');
  await page.getByRole('button', { name: 'Send request' }).click();
  await page.getByText('{"result":"error","message":"Missing required fields: subject"}').waitFor();
  await page.getByText('Send every named field with a value that is not empty.').first().waitFor();
  await field('subject').fill('From the console');
  await page.getByRole('button', { name: 'Send request' }).click();
  await page.getByRole('link', { name: 'Show the message' }).click();
  await page.getByRole('heading', { level: 1, name: 'From the console' }).waitFor();
  const id = page.url().split('/').at(-1) ?? '';
  await waitForState(browsers, service, id, 'delivered');
  expect(await browsers.callApi(service, 'GET', `/messages/${id}`)).toMatchObject({ message: 'one\ntwo' });
});

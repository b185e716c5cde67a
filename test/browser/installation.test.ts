/** Tests the pages of the installation: health, providers, tokens, settings, and the API reference with its console. */
import { beforeAll, expect, test } from 'vitest';
import { createBrowserRig, replaceResponses, waitForState } from '../rig/browser.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

const SECRET = 'hook:the-secret-of-the-hook';

const rig = createScenario();
const browsers = createBrowserRig();
let service: RunningService;

beforeAll(async () => {
  service = await rig.serve(rig.createFolder(), {
    POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
    POSTRIDER_FEEDBACK_URL: 'https://feedback.example.com',
    POSTRIDER_EVENTS_POSTMARK: SECRET,
  });
});

test('the Health page shows each finding of doctor with its remedy, and runs the checks again on request', async () => {
  const { page } = await browsers.openSignedIn(service, '/health');
  const region = page.getByRole('region', { name: /warning/ });
  await region.getByText('events postmark').waitFor();
  await region.getByText(/register https:\/\/feedback.example.com\/events\/postmark at Postmark/).waitFor();
  await page
    .getByRole('region', { name: /passed/ })
    .getByText('database')
    .waitFor();
  let runCount = 0;
  const restore = await replaceResponses(page, '**/api/v1/doctor', async (route) => {
    runCount += 1;
    await route.continue();
  });
  const button = page.getByRole('button', { name: 'Run checks again' });
  await button.focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => runCount).toBe(1);
  await page.getByText(/^Checked/).waitFor();
  restore();
});

test('the Providers page shows the URL to register, refused requests and no secret', async () => {
  const { page, visit } = await browsers.openSignedIn(service, '/providers');
  await page.getByRole('region', { name: 'Relay' }).getByText('capture', { exact: true }).waitFor();
  const postmark = page.getByRole('region', { name: 'Postmark' });
  await postmark.getByText('https://feedback.example.com/events/postmark', { exact: true }).waitFor();
  await postmark.getByText('none yet').waitFor();
  const refusedResponse = await fetch(
    `${new URL(service.feedback.http?.split(', ')[0] ?? '').origin}/events/postmark`,
    {
      method: 'POST',
      headers: { Authorization: `Basic ${Buffer.from('hook:wrong').toString('base64')}` },
      body: '{}',
    },
  );
  expect(refusedResponse.status).toBe(401);
  await visit('/providers');
  await postmark.getByText(/1 request, the last/).waitFor();
  expect(await page.content()).not.toContain(SECRET);
});

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

test('the Settings page shows the effective values with their sources, without secrets, and filters them', async () => {
  const { page } = await browsers.openSignedIn(service, '/settings');
  const row = page.getByRole('row', { name: /^POSTRIDER_FEEDBACK_URL/ });
  await row.getByText('https://feedback.example.com').last().waitFor();
  await row.getByText('environment', { exact: true }).waitFor();
  expect(await page.content()).not.toContain('the-secret-of-the-hook');
  await page.getByRole('searchbox', { name: 'Filter by name, value or meaning' }).fill('postmark');
  await expect.poll(() => page.getByRole('row').count()).toBeLessThan(6);
  await page.getByRole('searchbox', { name: 'Filter by name, value or meaning' }).fill('');
  await page.getByRole('switch', { name: 'Only changed settings' }).press('Space');
  await expect.poll(() => page.getByText('default', { exact: true }).count()).toBe(0);
  await page.getByText('POSTRIDER_EVENTS_POSTMARK', { exact: true }).waitFor();
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

test('the operations of the operator API can be searched by words and opened with the keyboard, and webhooks show their payload', async () => {
  const { page, visit } = await browsers.openSignedIn(service, '/api-reference?tab=operator');
  await page.getByText(/^[0-9]+ operations$/).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('get listSuppressions');
  await page.getByText(/^1 of [0-9]+ operations$/).waitFor();
  await page.keyboard.press('Enter');
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  const input = page.getByRole('table', { name: 'Input of listSuppressions' });
  await input.getByText('reason', { exact: true }).waitFor();
  await page
    .getByRole('table', { name: 'Result of listSuppressions, application/json' })
    .getByText('suppressions[].address', { exact: true })
    .waitFor();
  await page.getByText('The named object does not exist.').waitFor();
  await visit('/api-reference?tab=webhooks');
  await page.getByText(/^[0-9]+ webhooks$/).waitFor();
  await page.getByRole('button', { name: /message\.bounced/ }).click();
  const request = page.getByRole('table', { name: 'Request of message.bounced' });
  for (const name of ['webhook-signature', 'data.to']) await request.getByText(name, { exact: true }).waitFor();
});

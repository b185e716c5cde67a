/** Tests the pages of the installation: health, providers, feedback, tokens, settings. */
import { createHash } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { createBrowserRig, replaceResponses } from '../rig/browser.ts';
import {
  emulateDarkPhone,
  emulateLightDesktop,
  findHorizontalOverflow,
  findSeriousFaults,
} from '../rig/page-checks.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

const HOSTILE_TEXT = '<img src=x onerror=alert(1)><script>alert(2)</script>\u001b[31m\u202Egnp.exe';
const SECRET = 'hook:the-secret-of-the-hook';

const rig = createScenario();
const browsers = createBrowserRig();
let folder = '';
let service: RunningService;

beforeAll(async () => {
  folder = rig.createFolder();
  service = await rig.serve(folder, {
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
  expect(await findSeriousFaults(page)).toEqual([]);
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
  // The result remains while the operator visits other pages.
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
  await page.getByRole('link', { name: 'Health' }).click();
  await page.getByText(/^Checked/).waitFor();
});

test('the Providers page shows the URL to register, refused requests and no secret', async () => {
  const { page } = await browsers.openSignedIn(service, '/providers');
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
  await page.reload();
  await postmark.getByText(/1 request, the last/).waitFor();
  expect(await findSeriousFaults(page)).toEqual([]);
  expect(await page.content()).not.toContain(SECRET);
});

test('a report that was not understood is listed, and its hostile text is shown literally and without effect', async () => {
  const store = await rig.openStore(folder);
  const id = await submitAccepted(service.publicUrl, service.key, {});
  const recordResults = await store.recordFeedback([
    {
      messageRef: { id },
      events: [{ kind: 'unknown', reason: `there is no report in it ${HOSTILE_TEXT}` }],
      source: 'smtp',
      digest: createHash('sha256').update('a report').digest('hex'),
      at: Date.now(),
      summary: `from <>: ${HOSTILE_TEXT}`,
      raw: Buffer.from(`Subject: Undelivered\r\n\r\n${HOSTILE_TEXT}\u0000`),
      isFinal: true,
    },
  ]);
  expect(recordResults).toMatchObject([{ kind: 'stored' }]);
  const { page } = await browsers.openSignedIn(service, '/feedback');
  await page.getByRole('link', { name: `message ${id}` }).waitFor();
  expect(await findSeriousFaults(page)).toEqual([]);
  await page.getByRole('link', { name: /^from <>/ }).click();
  const text = await page.getByRole('region', { name: 'Text' }).locator('pre').innerText();
  expect(text).toContain('Subject: Undelivered\n\n<img src=x onerror=alert(1)><script>alert(2)</script>');
  for (const character of ['\u0000', '\u001b', '\u202e']) expect(await page.content()).not.toContain(character);
  expect(await page.locator('main script, main img').count()).toBe(0);
  for (const emulateDevice of [emulateLightDesktop, emulateDarkPhone]) {
    await emulateDevice(page);
    expect(await findSeriousFaults(page)).toEqual([]);
    expect(await findHorizontalOverflow(page)).toEqual([]);
  }
});

test('a token that is created with the keyboard is shown once, is valid, and is refused after its revocation', async () => {
  const { page, allowFaults } = await browsers.openSignedIn(service, '/tokens');
  allowFaults(/status of 409/);
  await page.getByText('No tokens').waitFor();
  await page.getByRole('button', { name: 'Create token' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Create a token' }).waitFor();
  await expect.poll(() => page.evaluate('document.activeElement?.tagName')).toBe('INPUT');
  await page.keyboard.type('deploy');
  expect(await findSeriousFaults(page)).toEqual([]);
  await page.keyboard.press('Enter');
  const tokenDialog = page.getByRole('dialog', { name: 'New token' });
  const token = (await tokenDialog.locator('pre').innerText()).trim();
  await tokenDialog.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByRole('cell', { name: /^deploy/ }).waitFor();
  expect(await page.content()).not.toContain(token);
  const fetchStatus = async () =>
    (await fetch(`${service.operatorUrl}/api/v1/tokens`, { headers: { Authorization: `Bearer ${token}` } })).status;
  expect(await fetchStatus()).toBe(200);

  await page.getByRole('button', { name: 'Create token' }).click();
  const dialog = page.getByRole('dialog', { name: 'Create a token' });
  await dialog.getByRole('textbox', { name: 'Name' }).fill('deploy');
  await dialog.getByRole('button', { name: 'Create token' }).click();
  await dialog.getByText(/already exists/).waitFor();
  await expect.poll(() => dialog.getByRole('textbox', { name: 'Name' }).getAttribute('aria-invalid')).toBe('true');
  await dialog.getByRole('button', { name: 'Cancel' }).click();

  await page.getByRole('button', { name: 'Revoke deploy' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke token' }).click();
  await page.getByText(/^Revoked deploy /).waitFor();
  expect(await fetchStatus()).toBe(401);
  await page.getByRole('switch', { name: 'Also show expired and revoked tokens (1)' }).press('Space');
  await page.getByText('revoked', { exact: true }).waitFor();
  expect(await findSeriousFaults(page)).toEqual([]);
});

test('the Settings page shows the effective values with their sources, without secrets, and filters them', async () => {
  const { page } = await browsers.openSignedIn(service, '/settings');
  const row = page.getByRole('row', { name: /^POSTRIDER_FEEDBACK_URL/ });
  await row.getByText('https://feedback.example.com').last().waitFor();
  await row.getByText('environment', { exact: true }).waitFor();
  expect(await page.content()).not.toContain('the-secret-of-the-hook');
  expect(await findSeriousFaults(page)).toEqual([]);
  await page.getByRole('searchbox', { name: 'Filter by name, value or meaning' }).fill('postmark');
  await expect.poll(() => page.getByRole('row').count()).toBeLessThan(6);
  await page.getByRole('searchbox', { name: 'Filter by name, value or meaning' }).fill('');
  await page.getByRole('switch', { name: 'Only changed settings' }).press('Space');
  await expect.poll(() => page.getByText('default', { exact: true }).count()).toBe(0);
  await page.getByText('POSTRIDER_EVENTS_POSTMARK', { exact: true }).waitFor();
});

/** Tests the API reference page and its console, which sends a test message. */
import { beforeAll, expect, test } from 'vitest';
import { createBrowserRig, waitForState } from '../rig/browser.ts';
import {
  emulateDarkPhone,
  emulateLightDesktop,
  findHorizontalOverflow,
  findSeriousFaults,
} from '../rig/page-checks.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
let service: RunningService;
beforeAll(async () => {
  service = await rig.serve(rig.createFolder());
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
  for (const emulateDevice of [emulateLightDesktop, emulateDarkPhone]) {
    await emulateDevice(page);
    expect(await findSeriousFaults(page)).toEqual([]);
    expect(await findHorizontalOverflow(page)).toEqual([]);
  }
  await emulateLightDesktop(page);
  await field('subject').fill('From the console');
  await page.getByRole('button', { name: 'Send request' }).click();
  await page.getByRole('link', { name: 'Show the message' }).click();
  await page.getByRole('heading', { level: 1, name: 'From the console' }).waitFor();
  const id = page.url().split('/').at(-1) ?? '';
  await waitForState(browsers, service, id, 'delivered');
  expect(await browsers.callApi(service, 'GET', `/messages/${id}`)).toMatchObject({ message: 'one\ntwo' });
});

test('the operations of the operator API can be searched by words and opened with the keyboard', async () => {
  const { page } = await browsers.openSignedIn(service, '/api-reference?tab=operator');
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
  for (const emulateDevice of [emulateLightDesktop, emulateDarkPhone]) {
    await emulateDevice(page);
    expect(await findSeriousFaults(page)).toEqual([]);
    expect(await findHorizontalOverflow(page)).toEqual([]);
  }
});

test('the reference shows the payload of each webhook', async () => {
  const { page } = await browsers.openSignedIn(service, '/api-reference?tab=webhooks');
  await page.getByText(/^[0-9]+ webhooks$/).waitFor();
  await page.getByRole('button', { name: /message\.bounced/ }).click();
  const request = page.getByRole('table', { name: 'Request of message.bounced' });
  for (const name of ['webhook-signature', 'data.to']) await request.getByText(name, { exact: true }).waitFor();
  expect(await findSeriousFaults(page)).toEqual([]);
});

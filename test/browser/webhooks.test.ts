import { Webhook } from 'standardwebhooks';
import { afterAll, expect, test } from 'vitest';
import { createBrowserRig } from '../rig/browser.ts';
import { createKeyboardUser } from '../rig/keyboard.ts';
import { submitAccepted } from '../rig/service.ts';
import { startWebhookReceiver } from '../rig/webhook-receiver.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
const receiver = await startWebhookReceiver();
const service = await rig.serve(rig.createFolder(), { POSTRIDER_WEBHOOK_TARGETS: 'any' });
afterAll(() => receiver.close());

interface Endpoint {
  readonly id: string;
  readonly secret: string;
}
interface Delivery {
  readonly id: string;
  readonly status: string;
  readonly attempts: readonly object[];
}

function createEndpoint(path: string, members: object = {}): Promise<Endpoint> {
  return browsers.callApi<Endpoint>(service, 'POST', '/webhooks', { url: `${receiver.url}${path}`, ...members });
}

const listDeliveries = (id: string) =>
  browsers.callApi<readonly Delivery[]>(service, 'GET', `/webhooks/${id}/deliveries`);
const findReceivedWebhooks = (path: string) => receiver.receivedWebhooks.filter((webhook) => webhook.path === path);

test('an endpoint is created with the keyboard alone, its secret is shown once, and one of its deliveries is replayed', async () => {
  const { page } = await browsers.openSignedIn(service, '/webhooks');
  const { tabTo } = createKeyboardUser(page);
  await page.getByText('No endpoints').waitFor();
  await tabTo('button', 'Create endpoint');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Create an endpoint' }).waitFor();
  await expect.poll(() => page.evaluate('document.activeElement?.tagName')).toBe('INPUT');
  await page.keyboard.type(`${receiver.url}/keyboard`);
  await tabTo('checkbox', /^Progress of messages/);
  await page.keyboard.press('Space');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: /^Signing secret of wh_/ });
  const secret = (await dialog.locator('pre').innerText()).trim();
  expect(secret).toMatch(/^whsec_/);
  await page.keyboard.press('Escape');
  await tabTo('button', 'I have stored it');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: `${receiver.url}/keyboard` }).waitFor();
  expect(await page.content()).not.toContain(secret);
  await page.getByText('No deliveries').waitFor();

  const id = page.url().split('/').at(-1) ?? '';
  expect(await browsers.callApi(service, 'GET', `/webhooks/${id}`)).toMatchObject({
    account: null,
    events: expect.arrayContaining(['message.accepted', 'message.deferred']),
  });
  await submitAccepted(service.publicUrl, service.key, { to: 'ada@example.com' });
  // The page shows the first deliveries without a reload, and announces later deliveries.
  const deliveredEvent = page.getByRole('cell').getByText('message.delivered');
  const newDeliveriesButton = page.getByRole('button', { name: /^Show \d+ new deliver(y|ies)$/ });
  await deliveredEvent.or(newDeliveriesButton).first().waitFor();
  if (!(await deliveredEvent.isVisible())) await newDeliveriesButton.click();
  await deliveredEvent.waitFor();
  await expect.poll(() => page.getByText('delivered', { exact: true }).count()).toBeGreaterThanOrEqual(2);
  const [newest] = await listDeliveries(id);
  const countBefore = findReceivedWebhooks('/keyboard').length;
  await tabTo('button', new RegExp(`^Replay ${newest?.id}`));
  await page.keyboard.press('Enter');
  await page.getByText('The delivery is due now. Its id and its body are unchanged.').waitFor();
  await expect.poll(() => findReceivedWebhooks('/keyboard').length).toBe(countBefore + 1);
  const receivedWebhooks = findReceivedWebhooks('/keyboard').filter(
    ({ headers }) => headers['webhook-id'] === newest?.id,
  );
  expect(new Set(receivedWebhooks.map(({ body }) => body)).size).toBe(1);
  for (const { body, headers } of receivedWebhooks) new Webhook(secret).verify(body, headers);
  await tabTo('button', new RegExp(`^Attempts of ${newest?.id}`));
  await page.keyboard.press('Enter');
  await page.getByText(`webhook-id ${newest?.id}`).waitFor();
  await expect.poll(() => page.getByRole('listitem').filter({ hasText: 'duration' }).count()).toBe(2);
});

test('an error of the service is shown at the field that causes it, and this field receives the focus', async () => {
  const { page, allowFaults } = await browsers.openSignedIn(service, '/webhooks');
  allowFaults(/status of 409/);
  await page.getByRole('button', { name: 'Create endpoint' }).click();
  const dialog = page.getByRole('dialog', { name: 'Create an endpoint' });
  const url = dialog.getByRole('textbox', { name: 'URL' });
  await url.fill('https://user:password@app.example.com/');
  await dialog.getByRole('button', { name: 'Create endpoint' }).click();
  await expect.poll(() => url.getAttribute('aria-invalid')).toBe('true');
  await dialog.getByText(/contains a user name or a password/).waitFor();
  expect(await dialog.getByText('password@').count()).toBe(0);
  await expect.poll(() => page.evaluate("document.activeElement?.getAttribute('aria-invalid')")).toBe('true');
});

test('a replay states the number of deliveries and sends exactly these deliveries, whose rows stay in the filtered list', async () => {
  const { id } = await createEndpoint('/replayed', { events: 'message.bounced' });
  // Without `Retry-After`, the service might retry the deliveries after 5 s, before the test replays them.
  const refusal = { status: 503, headers: { 'retry-after': '3600' } };
  receiver.chooseBehavior = ({ path }) => (path === '/replayed' ? refusal : { status: 204 });
  for (let count = 0; count < 3; count += 1)
    await submitAccepted(service.publicUrl, service.key, { to: `bounce+${count}@simulator.postrider.test` });
  await expect
    .poll(async () => (await listDeliveries(id)).filter(({ attempts }) => attempts.length > 0).length)
    .toBe(3);
  const { page } = await browsers.openSignedIn(service, `/webhooks/${id}`);
  await page.getByText('No success since the first failure').waitFor();
  await page.getByRole('radiogroup', { name: 'Status of the deliveries' }).getByText('Failed').click();
  await page.getByText('No failed deliveries').waitFor();
  await page.getByRole('radiogroup', { name: 'Status of the deliveries' }).getByText('Pending').click();
  await expect.poll(() => page.getByRole('cell').getByText('message.bounced').count()).toBe(3);
  receiver.chooseBehavior = () => ({ status: 204 });
  await page.getByRole('button', { name: 'Replay…' }).click();
  const dialog = page.getByRole('dialog', { name: `Replay deliveries of ${id}` });
  await dialog.getByText('3 deliveries are sent again').waitFor();
  await dialog.getByRole('button', { name: 'Replay 3 deliveries' }).click();
  await page.getByText('3 deliveries are due now.').waitFor();
  await expect.poll(async () => (await listDeliveries(id)).every(({ status }) => status === 'delivered')).toBe(true);
  // The rows stay in place, although no delivery is pending, until the operator removes them.
  await expect.poll(() => page.getByRole('cell').getByText('changed', { exact: true }).count()).toBe(3);
  expect(await page.getByRole('cell').getByText('message.bounced').count()).toBe(3);
  await page.getByRole('button', { name: 'Remove 3 changed deliveries' }).click();
  await page.getByText('No pending deliveries').waitFor();
  await page.getByText('No success since the first failure').waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Replay…' }).click();
  await dialog.getByText('No delivery is selected.').waitFor();
  expect(await dialog.getByRole('button', { name: 'Replay 0 deliveries' }).isDisabled()).toBe(true);
});

test('an operator enables, edits and deletes an endpoint that the response 410 disabled, and rotates its secret', async () => {
  const { id, secret } = await createEndpoint('/gone', { events: 'message.bounced' });
  receiver.chooseBehavior = ({ path }) => ({ status: path === '/gone' ? 410 : 204 });
  const { page, allowFaults } = await browsers.openSignedIn(service, `/webhooks/${id}`);
  // After the deletion, a live update may cause a request for the deleted endpoint before the browser shows the next
  // page.
  allowFaults(/status of 404/);
  await submitAccepted(service.publicUrl, service.key, { to: 'bounce@simulator.postrider.test' });
  await page.getByText(/^The endpoint responded with 410/).waitFor();
  expect(await page.getByRole('button', { name: 'Send test' }).isDisabled()).toBe(true);
  receiver.chooseBehavior = () => ({ status: 204 });
  await page.getByRole('button', { name: 'Enable', exact: true }).click();
  await page.getByText(/^The endpoint responded with 410/).waitFor({ state: 'hidden' });
  await expect.poll(async () => (await listDeliveries(id))[0]?.status).toBe('delivered');

  await page.getByRole('button', { name: 'Rotate secret' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Create new secret' }).click();
  const secretDialog = page.getByRole('dialog', { name: `Signing secret of ${id}` });
  const newSecret = (await secretDialog.locator('pre').innerText()).trim();
  expect(newSecret).toMatch(/^whsec_/);
  expect(newSecret).not.toBe(secret);
  await secretDialog.getByText('For 24 hours, requests are also signed with the previous secret.').waitFor();
  await secretDialog.getByRole('button', { name: 'I have stored it' }).click();

  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  const editDialog = page.getByRole('dialog', { name: `Edit ${id}` });
  await editDialog.getByRole('textbox', { name: 'Name' }).fill('the shop');
  await editDialog.getByRole('button', { name: 'All', exact: true }).click();
  await editDialog.getByRole('button', { name: 'Save changes' }).click();
  await page.getByRole('heading', { level: 1, name: 'the shop' }).waitFor();
  await page.getByText('All events').waitFor();

  await page.getByRole('button', { name: 'Disable', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Disable endpoint' }).click();
  await page.getByText(/^An operator disabled the endpoint/).waitFor();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete endpoint' }).click();
  await page.getByText(`Deleted ${id}.`).waitFor();
  await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor();
  await expect.poll(() => page.getByRole('link', { name: `${receiver.url}/gone` }).count()).toBe(0);
});

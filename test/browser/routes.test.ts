import { expect, test } from 'vitest';
import type { RouteDetails } from '../../src/operations/routes.ts';
import type { RoutingPolicies } from '../../src/operations/routing.ts';
import { createBrowserRig } from '../rig/browser.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
const service = await rig.serve(rig.createFolder(), {
  POSTRIDER_ROUTE_BACKUP: 'smtp://127.0.0.1:9',
  POSTRIDER_SENDERS: 'any',
});

test('a route is paused with a reason, tested while it is paused, and resumed', async () => {
  const { page } = await browsers.openSignedIn(service, '/routes');
  await page.getByRole('button', { name: 'Pause default' }).click();
  await page.getByRole('textbox', { name: 'Reason' }).fill('the provider is down');
  await page.getByRole('button', { name: 'Pause route' }).click();
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'default', exact: true }) });
  await row.getByText(/^Paused .+: the provider is down$/).waitFor();

  await page.getByRole('button', { name: 'Test default' }).click();
  await page.getByRole('textbox', { name: 'From' }).fill('shop@example.org');
  await page.getByRole('textbox', { name: 'To' }).fill('ada@example.com');
  await page.getByRole('button', { name: 'Send test' }).click();
  await page.getByText('The next hop accepted the message').waitFor();
  await page.keyboard.press('Escape');

  await page.getByRole('button', { name: 'Resume default' }).click();
  await row.getByText('Usable').waitFor();
  expect(await browsers.callApi<RouteDetails>(service, 'GET', '/routes/default')).toMatchObject({ pause: null });
});

test('a policy is previewed, set and cleared, and a wrong list is refused at its field', async () => {
  const { page, allowFaults } = await browsers.openSignedIn(service, '/routes');
  const readPolicies = async () => (await browsers.callApi<RoutingPolicies>(service, 'GET', '/routing')).policies;
  await page.getByRole('button', { name: 'Set policy' }).click();
  const dialog = page.getByRole('dialog');
  const list = dialog.getByRole('textbox', { name: 'Routes' });
  allowFaults(/status of 400 .*\/routing/);
  await list.fill('default,main');
  await dialog.getByRole('button', { name: 'Set policy' }).click();
  await dialog.getByText(/the route "main" is not configured; the routes are default, backup/).waitFor();
  await list.fill('default:3,backup:1');
  await dialog.getByRole('button', { name: 'Preview with the last hour' }).click();
  await dialog.getByText('No message of the last hour').waitFor();
  expect(await readPolicies()).toEqual([]);
  await dialog.getByRole('button', { name: 'Set policy' }).click();
  await page.getByRole('cell', { name: /^default 75 % and backup 25 %/ }).waitFor();
  expect(await readPolicies()).toMatchObject([{ account: null, domain: null, list: 'default:3,backup:1' }]);

  await page.getByRole('button', { name: 'Clear the policy of All messages' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Clear policy' }).click();
  await page.getByRole('cell', { name: /^default, then backup/ }).waitFor();
  expect(await readPolicies()).toEqual([]);
});

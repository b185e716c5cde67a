import { expect, test } from 'vitest';
import { createBrowserRig, replaceResponses } from '../rig/browser.ts';
import { findHorizontalOverflow, findSeriousFaults } from '../rig/page-checks.ts';
import { createScenario } from '../scenarios/running-service.ts';

const PASSWORD = 'correct horse battery';
const UNAUTHORIZED_LINE = /status of 401 .*\/api\/v1\//;

const rig = createScenario();
const browsers = createBrowserRig();
const passwordService = await rig.serve(rig.createFolder(), { POSTRIDER_OPERATOR_PASSWORD: PASSWORD });

test('the printed link can be used for one sign-in, tabs share the session, and a sign-out in one tab ends it in all tabs', async () => {
  const service = await rig.serve(rig.createFolder());
  const link = service.signIn ?? '';
  const { page, context, allowFaults } = await browsers.openSignedOut(service);
  await page.goto(link);
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  expect(new URL(page.url()).search).toBe('');

  const visitor = await browsers.openSignedOut(service, { width: 360 });
  visitor.allowFaults(UNAUTHORIZED_LINE, /status of 403 .*\/api\/v1\/sign-in/);
  await visitor.page.goto(link);
  await visitor.page.getByText('This sign-in link is invalid or has already been used.').waitFor();
  await visitor.page.getByRole('textbox', { name: 'Operator password' }).waitFor();
  expect(await findSeriousFaults(visitor.page)).toEqual([]);
  expect(await findHorizontalOverflow(visitor.page)).toEqual([]);

  allowFaults(UNAUTHORIZED_LINE, /^window: /);
  const tab = await context.newPage();
  // In a browser with a session, the link opens the overview although it has been used.
  await tab.goto(link);
  await tab.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  await tab.getByRole('button', { name: 'Sign out' }).click();
  await tab.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();
  await tab.getByRole('textbox', { name: 'Operator password' }).waitFor();
  await page.reload();
  await page.getByRole('textbox', { name: 'Operator password' }).waitFor();
});

test('the sign-in page states that the session has ended, and the next sign-in returns to the page that was open', async () => {
  const { page, context, visit, allowFaults } = await browsers.openSignedOut(passwordService);
  allowFaults(UNAUTHORIZED_LINE);
  await visit('/messages?state=queued&to=rita%40example.com');
  const password = page.getByRole('textbox', { name: 'Operator password' });
  const signIn = page.getByRole('button', { name: 'Sign in' });
  await password.fill('a guess');
  await signIn.click();
  await page.getByRole('alert').getByText('The password is wrong').waitFor();
  await password.fill(PASSWORD);
  await signIn.click();
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
  await page.getByText('No message matches').waitFor();

  const filters = page.getByRole('search', { name: 'Messages', exact: true });
  await filters.getByRole('button', { name: /^State:/ }).click();
  await page.getByRole('checkbox', { name: 'Bounced', exact: true }).click();
  await page.waitForURL(/bounced/);
  // The page sends the next request without an action of the operator. The service refuses the request, because it has
  // no session cookie.
  await context.clearCookies();
  await page.getByText('Your session has ended.').waitFor();
  await password.fill(PASSWORD);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
    state: 'queued,bounced',
    to: 'rita@example.com',
  });

  // The session also ends while the page is hidden, as behind another browser tab.
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  const setVisibility = (state: 'hidden' | 'visible') =>
    page.evaluate(
      `Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '${state}' });
       document.dispatchEvent(new Event('visibilitychange'));`,
    );
  await setVisibility('hidden');
  await context.clearCookies();
  await setVisibility('visible');
  await page.getByText('Your session has ended.').waitFor();
});

test('without a password the sign-out asks for confirmation, and a failed sign-out shows an error', async () => {
  const service = await rig.serve(rig.createFolder());
  const { page, allowFaults } = await browsers.openSignedIn(service, '/messages', { width: 360, isOwn: true });
  await page.getByRole('button', { name: 'Navigation' }).click();
  expect(await findHorizontalOverflow(page)).toEqual([]);
  const signOut = page.getByRole('button', { name: 'Sign out' });
  const dialog = page.getByRole('dialog');
  await signOut.click();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();

  allowFaults(UNAUTHORIZED_LINE, /ERR_FAILED/);
  const restore = await replaceResponses(page, '**/api/v1/sign-out', (route) => route.abort());
  await signOut.click();
  await dialog.getByRole('button', { name: 'Sign out' }).click();
  await dialog.getByText('The service does not answer').waitFor();
  restore();
  await dialog.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('textbox', { name: 'Operator password' }).waitFor();
});

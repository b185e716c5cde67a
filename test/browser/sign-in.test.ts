/**
 * Tests the sign-in. Without a session, the dashboard shows only the sign-in page. With a session, it shows every page
 * until the session ends.
 */
import { beforeAll, expect, test } from 'vitest';
import { createBrowserRig, findSignInLink, replaceResponses } from '../rig/browser.ts';
import { findHorizontalOverflow, findSeriousFaults } from '../rig/page-checks.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

const PASSWORD = 'correct horse battery';
/** The line that the browser logs for a refused request, which these tests expect. */
const UNAUTHORIZED_LINE = /status of 401 .*\/api\/v1\//;

const rig = createScenario();
const browsers = createBrowserRig();
let passwordlessService: RunningService;
let passwordService: RunningService;
beforeAll(async () => {
  [passwordlessService, passwordService] = await Promise.all([
    rig.serve(rig.createFolder()),
    rig.serve(rig.createFolder(), { POSTRIDER_OPERATOR_PASSWORD: PASSWORD }),
  ]);
});

test('the printed link can be used for one sign-in, and every page of a signed-out browser states where to find the link', async () => {
  const { page } = await browsers.openSignedOut(passwordlessService);
  await page.goto(findSignInLink(passwordlessService));
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  const visitor = await browsers.openSignedOut(passwordlessService, { width: 360 });
  visitor.allowFaults(UNAUTHORIZED_LINE, /status of 403 .*\/api\/v1\/sign-in/);
  await visitor.visit('/messages?state=queued');
  await visitor.page.getByText('If it is not set, open the link that the service printed').waitFor();
  expect(await findSeriousFaults(visitor.page)).toEqual([]);
  expect(await findHorizontalOverflow(visitor.page)).toEqual([]);
  await visitor.page.goto(findSignInLink(passwordlessService));
  await visitor.page.getByText('This sign-in link is invalid or has already been used.').waitFor();
  await visitor.page.getByRole('textbox', { name: 'Operator password' }).waitFor();
  expect(await findSeriousFaults(visitor.page)).toEqual([]);
  expect(await findHorizontalOverflow(visitor.page)).toEqual([]);
  // In a browser with a session, the link opens the overview although it has been used.
  await page.goto(findSignInLink(passwordlessService));
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
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
  await page.getByText('No message matches').waitFor();
});

test('without a password the sign-out asks for confirmation and states how to sign in again', async () => {
  // The sign-in link of the shared service has already been used, so this test starts a separate service.
  const { page, allowFaults } = await browsers.openSignedIn(await rig.serve(rig.createFolder()), '/messages');
  const signOut = page.getByRole('button', { name: 'Sign out' });
  const dialog = page.getByRole('dialog');
  await signOut.click();
  await dialog.getByText('it prints a new link when it starts').waitFor();
  await dialog.getByText('postrider token create').waitFor();
  expect(await findSeriousFaults(page)).toEqual([]);
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

test('with a password the sign-out asks for no confirmation, and a failed sign-out shows an error', async () => {
  const { page, allowFaults } = await browsers.openSignedOut(passwordService);
  allowFaults(UNAUTHORIZED_LINE, /ERR_FAILED/);
  await page.goto('/messages');
  await page.getByRole('textbox', { name: 'Operator password' }).fill(PASSWORD);
  await page.keyboard.press('Enter');
  const restore = await replaceResponses(page, '**/api/v1/sign-out', (route) => route.abort());
  await page.getByRole('button', { name: 'Sign out' }).click();
  const notification = page.getByRole('alert').filter({ hasText: 'The service does not answer' });
  await notification.getByRole('button', { name: 'Close' }).click();
  await notification.waitFor({ state: 'hidden' });
  restore();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('textbox', { name: 'Operator password' }).waitFor();
});

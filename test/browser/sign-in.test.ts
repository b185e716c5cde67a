/** Who is not signed in sees the way in and nothing else; who is, the pages, until the session ends. */
import { beforeAll, expect, test } from 'vitest';
import { browserRig, signInLink, standIn } from '../rig/browser.ts';
import { graveFaults, sidewaysScroll } from '../rig/page-checks.ts';
import { type StandingService, scenario } from '../scenarios/standing.ts';

const PASSWORD = 'correct horse battery';
/** The browser tells of every answer that is a refusal; these are the ones meant. */
const UNKNOWN_HERE = /status of 401 .*\/api\/v1\//;

const rig = scenario();
const browsers = browserRig();
let open: StandingService;
let guarded: StandingService;
beforeAll(async () => {
  [open, guarded] = await Promise.all([
    rig.serve(rig.folder()),
    rig.serve(rig.folder(), { POSTRIDER_OPERATOR_PASSWORD: PASSWORD }),
  ]);
});

test('the printed link signs in, once; a stranger is told where to find it, at whatever page', async () => {
  const { page } = await browsers.stranger(open);
  await page.goto(signInLink(open));
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  const stranger = await browsers.stranger(open, { width: 360 });
  stranger.tolerate(UNKNOWN_HERE, /status of 403 .*\/api\/v1\/sign-in/);
  await stranger.visit('/messages?state=queued');
  await stranger.page.getByText('Where none is set, open the link that the service printed').waitFor();
  expect(await graveFaults(stranger.page)).toEqual([]);
  expect(await sidewaysScroll(stranger.page)).toEqual([]);
  await stranger.page.goto(signInLink(open));
  await stranger.page.getByText('This link has been used').waitFor();
  await stranger.page.getByRole('textbox', { name: 'Operator password' }).waitFor();
  expect(await graveFaults(stranger.page)).toEqual([]);
  expect(await sidewaysScroll(stranger.page)).toEqual([]);
  // Whom it has let in it leads to the pages once more.
  await page.goto(signInLink(open));
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
});

test('a session that has ended leads to the sign-in with a clear word, and back to the same page', async () => {
  const { page, context, visit, tolerate } = await browsers.stranger(guarded);
  tolerate(UNKNOWN_HERE);
  await visit('/messages?state=queued&to=rita%40example.com');
  const password = page.getByRole('textbox', { name: 'Operator password' });
  const signIn = page.getByRole('button', { name: 'Sign in' });
  await password.fill('a guess');
  await signIn.click();
  await page.getByRole('alert').getByText('The password is wrong').waitFor();
  await password.fill(PASSWORD);
  await signIn.click();
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
  await page.getByText('Nothing matches').waitFor();

  await context.clearCookies();
  await page.getByRole('combobox', { name: 'State' }).selectOption('bounced');
  await page.getByText('Your session has ended.').waitFor();
  await password.fill(PASSWORD);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
  expect(new URL(page.url()).search).toBe('?state=bounced&to=rita%40example.com');
  await page.getByText('Nothing matches').waitFor();
});

test('where no password is set, signing out asks first and says what the way in will be', async () => {
  // The link of the other one is used up.
  const { page, tolerate } = await browsers.operator(await rig.serve(rig.folder()), '/messages');
  const signOut = page.getByRole('button', { name: 'Sign out' });
  const dialog = page.getByRole('dialog');
  await signOut.click();
  await dialog.getByText('the service prints at its next start').waitFor();
  await dialog.getByText('postrider token create').waitFor();
  expect(await graveFaults(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Keep as it is' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();

  tolerate(UNKNOWN_HERE, /ERR_FAILED/);
  const restore = await standIn(page, '**/api/v1/sign-out', (route) => route.abort());
  await signOut.click();
  await dialog.getByRole('button', { name: 'Sign out' }).click();
  await dialog.getByText('The service cannot be reached').waitFor();
  restore();
  await dialog.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('textbox', { name: 'Operator password' }).waitFor();
});

test('with a password signing out asks nothing, and says where it fails', async () => {
  const { page, tolerate } = await browsers.stranger(guarded);
  tolerate(UNKNOWN_HERE, /ERR_FAILED/);
  await page.goto('/messages');
  await page.getByRole('textbox', { name: 'Operator password' }).fill(PASSWORD);
  await page.keyboard.press('Enter');
  const restore = await standIn(page, '**/api/v1/sign-out', (route) => route.abort());
  await page.getByRole('button', { name: 'Sign out' }).click();
  const notice = page.getByRole('alert').filter({ hasText: 'The service cannot be reached' });
  await notice.getByRole('button', { name: 'Close' }).click();
  await notice.waitFor({ state: 'hidden' });
  restore();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('textbox', { name: 'Operator password' }).waitFor();
});

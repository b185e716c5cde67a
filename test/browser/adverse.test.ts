/**
 * Tests the dashboard in adverse conditions: a service that stops answering, a session that ends while a page is open,
 * and a filter that matches millions of messages. The page states the problem, and no change is partly done.
 */
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { createBrowserRig, replaceResponses } from '../rig/browser.ts';
import { createScenario, type ServiceProcess } from '../scenarios/running-service.ts';

const PASSWORD = 'the password of the operators';

const rig = createScenario();
const browsers = createBrowserRig();
let service: ServiceProcess;
beforeAll(async () => {
  service = await rig.serveProcess(rig.createFolder());
});

/**
 * Opens an account page, so that its script is loaded, and then the list of accounts. The test advances the clock of
 * the page.
 */
async function openAccounts(account: string) {
  await browsers.callApi(service, 'POST', '/accounts', { name: account });
  const user = await browsers.openSignedIn(service, '/messages/no/page');
  await user.page.clock.install();
  await user.visit('/accounts');
  await user.page.getByRole('link', { name: 'default', exact: true }).click();
  await findHeading(user.page, 'default').waitFor();
  await user.page.goBack();
  await user.page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  return user;
}

const findHeading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });

test('a page states that the service has not answered within the time limit, and loads when the service answers again', async () => {
  const { page, allowFaults } = await openAccounts('silent');
  allowFaults(/ERR_ABORTED|Failed to load/);
  service.child.kill('SIGSTOP');
  try {
    await page.getByRole('link', { name: 'silent', exact: true }).click();
    await page.getByRole('status', { name: 'Loading' }).waitFor();
    await page.clock.fastForward(31_000);
    const alert = page.getByRole('alert').filter({ hasText: 'The service has not answered within 30 s' });
    await alert.getByRole('button', { name: 'Try again' }).waitFor();
    // The stream of the live updates sends no heartbeat.
    await page.clock.fastForward(45_000);
    await page.getByRole('status').getByText('Disconnected').waitFor();
  } finally {
    service.child.kill('SIGCONT');
  }
  const retryButton = page.getByRole('button', { name: 'Try again' });
  if ((await retryButton.count()) > 0) await retryButton.first().click();
  await findHeading(page, 'silent').waitFor();
  await page.clock.fastForward(10_000);
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
});

test('if the service does not answer a change, the page states that the change may still be made, and the change is made completely or not at all', async () => {
  const { page, allowFaults } = await openAccounts('unsure');
  allowFaults(/ERR_ABORTED|Failed to load/);
  await page.getByRole('link', { name: 'unsure', exact: true }).click();
  await page.getByRole('button', { name: 'Lock', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('the invoice is open');
  service.child.kill('SIGSTOP');
  try {
    await dialog.getByRole('button', { name: 'Lock account' }).click();
    await page.clock.fastForward(61_000);
    await dialog
      .getByRole('alert')
      .getByText(/The service may still make this change/)
      .waitFor();
  } finally {
    service.child.kill('SIGCONT');
  }
  await page.reload();
  await findHeading(page, 'unsure').waitFor();
  // The service may change the account between the two requests of this test, but it writes the account and the audit
  // log entry in one transaction.
  await expect
    .poll(async () => {
      const { reason } = await browsers.callApi<{ reason: string | null }>(service, 'GET', '/accounts/unsure');
      const entries = await browsers.callApi<readonly { action: string }[]>(service, 'GET', '/audit?target=unsure');
      return (reason !== null) === entries.some(({ action }) => action === 'account.lock');
    })
    .toBe(true);
});

test('if the session ends while a page is hidden, the page asks for the password when it is shown again, and keeps its filter', async () => {
  const passwordService = await rig.serveProcess(rig.createFolder(), { POSTRIDER_OPERATOR_PASSWORD: PASSWORD });
  const { page, context, allowFaults } = await browsers.openSignedOut(passwordService);
  allowFaults(/status of 401 .*\/api\/v1\//);
  const password = page.getByRole('textbox', { name: 'Operator password' });
  await page.goto('/messages?state=bounced');
  await password.fill(PASSWORD);
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  await setVisibility(page, 'hidden');
  await context.clearCookies();
  await setVisibility(page, 'visible');
  await page.getByText('Your session has ended.').waitFor();
  await password.fill(PASSWORD);
  await page.keyboard.press('Enter');
  await findHeading(page, 'Messages').waitFor();
  expect(new URL(page.url()).search).toBe('?state=bounced');
});

test('before a change of millions of messages the dialog states that the count is a minimum, and Stop ends the run after the current batch', async () => {
  const { page } = await browsers.openSignedIn(service, '/messages?state=queued');
  await replaceResponses(page, /\/messages\/count\?/, (route) =>
    route.fulfill({ json: { count: 10_000, isComplete: false } }),
  );
  let batchCount = 0;
  let answerBatch = () => undefined as unknown;
  await replaceResponses(page, /\/messages\/change$/, async (route) => {
    batchCount += 1;
    // The second batch is answered only after the operator has stopped the run.
    if (batchCount === 2) await new Promise<void>((resolve) => (answerBatch = resolve));
    await route.fulfill({ json: { done: 500, refused: 0, reasons: [], next: `batch-${batchCount}` } });
  });
  await page.getByRole('button', { name: 'Change all…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Change all messages that match the filter' });
  await dialog.getByText('The filter matches at least 10,000 messages.').waitFor();
  await dialog.getByRole('radio', { name: /^Cancel/ }).check();
  await dialog.getByRole('button', { name: 'Cancel at least 10,000 messages' }).click();
  await dialog.getByText('Running: 500 done').waitFor();
  await dialog.getByRole('button', { name: 'Stop' }).click();
  await expect.poll(() => batchCount).toBe(2);
  answerBatch();
  await dialog.getByText('Stopped; completed changes are not undone: 1,000 done.').waitFor();
  expect(batchCount).toBe(2);
});

/** Makes the page report that it is hidden, as behind another browser tab, or that it is visible. */
async function setVisibility(page: Page, state: 'hidden' | 'visible'): Promise<void> {
  await page.evaluate(
    `Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '${state}' });
     document.dispatchEvent(new Event('visibilitychange'));`,
  );
}

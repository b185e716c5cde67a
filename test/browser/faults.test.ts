import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { createBrowserRig, replaceResponses } from '../rig/browser.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario } from '../scenarios/running-service.ts';

/** Console lines that React and the browser write for the errors that these tests cause. */
const EXPECTED_ERRORS = /^error: (TypeError|Error|%o|Failed to load resource|Failed to fetch|The above error)/;
const ACCOUNTS_SCRIPT_PATTERN = /\/assets\/accounts-[^/]*\.js$/;

const rig = createScenario();
const browsers = createBrowserRig();
const service = await rig.serve(rig.createFolder());
const openPage = (page: Page, name: string) =>
  page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
const findHeading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });

async function openMessages() {
  const user = await browsers.openSignedIn(service, '/messages', { isOwn: true });
  user.allowFaults(EXPECTED_ERRORS);
  let loadCount = 0;
  user.page.on('load', () => loadCount++);
  return { ...user, countLoads: () => loadCount };
}

test('if the service stops answering, a page and a change state this, and the change is made completely or not at all', async () => {
  const stoppedService = await rig.serveProcess(rig.createFolder());
  await browsers.callApi(stoppedService, 'POST', '/accounts', { name: 'silent' });
  const { page, allowFaults } = await browsers.openSignedIn(stoppedService, '/messages/no/page', { isOwn: true });
  allowFaults(/ERR_ABORTED|Failed to load/);
  await page.clock.install();
  await page.goto('/accounts');
  await page.getByRole('link', { name: 'silent', exact: true }).click();
  await page.getByRole('button', { name: 'Lock', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('the invoice is open');
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  stoppedService.child.kill('SIGSTOP');
  try {
    await dialog.getByRole('button', { name: 'Lock account' }).click();
    await page.clock.fastForward(61_000);
    await dialog
      .getByRole('alert')
      .getByText(/The service may still make this change/)
      .waitFor();
    // The stream of the live updates sends no heartbeat.
    await page.clock.fastForward(45_000);
    await page.getByRole('status').getByText('Disconnected').waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await page.goBack();
    await page.getByRole('link', { name: 'default', exact: true }).click();
    await page.getByRole('status', { name: 'Loading' }).waitFor();
    await page.clock.fastForward(31_000);
    const alert = page.getByRole('alert').filter({ hasText: 'The service has not answered within 30 s' });
    await alert.getByRole('button', { name: 'Try again' }).waitFor();
  } finally {
    stoppedService.child.kill('SIGCONT');
  }
  // When the live updates are connected again, the page is loaded.
  await page.clock.fastForward(10_000);
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  await findHeading(page, 'default').waitFor();
  // The service may change the account between the two requests of this test, but it writes the account and the audit
  // log entry in one transaction.
  await expect
    .poll(async () => {
      const { reason } = await browsers.callApi<{ reason: string | null }>(stoppedService, 'GET', '/accounts/silent');
      const entries = await browsers.callApi<readonly { action: string }[]>(
        stoppedService,
        'GET',
        '/audit?target=silent',
      );
      return (reason !== null) === entries.some(({ action }) => action === 'account.lock');
    })
    .toBe(true);
});

test('a missing file of the dashboard after an upgrade causes one reload, then an error in place of the page', async () => {
  const { page, countLoads } = await openMessages();
  const restore = await replaceResponses(page, ACCOUNTS_SCRIPT_PATTERN, (route) =>
    route.fulfill({ status: 404, body: '{}' }),
  );
  await openPage(page, 'Accounts');
  await page.getByText('This page belongs to an older version of the service. Reload the page.').waitFor();
  expect(countLoads()).toBe(1);
  await openPage(page, 'Domains');
  await findHeading(page, 'Domains').waitFor();
  await openPage(page, 'Accounts');
  await findHeading(page, 'This page cannot be shown').waitFor();
  expect(countLoads()).toBe(1);
  restore();
  await page.getByRole('button', { name: 'Try again' }).click();
  await findHeading(page, 'Accounts').waitFor();
});

test('a missing file of the dashboard causes no reload while the service does not answer', async () => {
  const { page, countLoads } = await openMessages();
  await page.route(/.*/, (route) => route.abort());
  await openPage(page, 'Accounts');
  await page.getByText('the service does not answer. Check that it is running.').waitFor();
  expect(countLoads()).toBe(0);
});

test('an error message replaces a page that fails to render, and an error in the frame replaces the dashboard', async () => {
  const { page } = await openMessages();
  const restorePage = await replaceResponses(page, '**/api/v1/accounts*', (route) =>
    route.fulfill({ json: { accounts: [null] } }),
  );
  await page.goto('/accounts');
  await findHeading(page, 'This page cannot be shown').waitFor();
  await openPage(page, 'Audit log');
  await findHeading(page, 'Audit log').waitFor();
  await page.goBack();
  await findHeading(page, 'This page cannot be shown').waitFor();
  restorePage();
  await page.getByRole('button', { name: 'Try again' }).click();
  await findHeading(page, 'Accounts').waitFor();

  const restoreFrame = await replaceResponses(page, '**/api/v1/session', (route) => route.fulfill({ body: 'null' }));
  await page.reload();
  await findHeading(page, 'The dashboard cannot be shown').waitFor();
  restoreFrame();
  await page.getByRole('button', { name: 'Reload' }).click();
  await findHeading(page, 'Accounts').waitFor();
});

test('an unknown path is answered with 404 and "Page not found" inside the frame, also with an invalid language tag', async () => {
  await submitAccepted(service.publicUrl, service.key, { subject: 'A value for the charts' });
  const { page, allowFaults } = await browsers.openSignedIn(service, '/', { locale: 'en-US@posix' });
  // If the browser reported a valid language tag, the charts of the overview would check nothing.
  const language = await page.evaluate<string>('Reflect.get(Navigator.prototype, "language", navigator)');
  expect(language).toBe('en-US@posix');
  allowFaults(/status of 404/);
  const answer = await page.goto('/nonsense');
  expect(answer?.status()).toBe(404);
  await findHeading(page, 'Page not found').waitFor();
  await openPage(page, 'Overview');
  await findHeading(page, 'Overview').waitFor();
  await page.getByRole('img').first().waitFor();
});

test('if the connection is lost during a download, the page reports the failure and saves no file', async () => {
  await browsers.callApi(service, 'POST', '/accounts/default/suppressions', { address: 'ada@example.com' });
  const { page } = await browsers.openSignedIn(service, '/suppressions?list=default', { isOwn: true });
  // The body of the response fails after its first part, as after a lost connection.
  await page.evaluate(`
    const send = window.fetch;
    window.fetch = async (...request) => {
      const response = await send(...request);
      if (!response.url.endsWith('/export')) return response;
      const parts = [new TextEncoder().encode('address,reason')];
      const body = new ReadableStream({
        pull(controller) {
          const part = parts.pop();
          if (part === undefined) controller.error(new TypeError('network error'));
          else controller.enqueue(part);
        },
      });
      return new Response(body, { headers: response.headers });
    };`);
  const downloads: string[] = [];
  page.on('download', (file) => downloads.push(file.suggestedFilename()));
  await page.getByRole('button', { name: /^Export the suppression list/ }).click();
  await page.getByText('The download ended before the file was complete.').waitFor();
  expect(downloads).toEqual([]);
});

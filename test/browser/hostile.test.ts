import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBrowserRig, replaceResponses, waitForState } from '../rig/browser.ts';
import {
  createHostileHtml,
  createHostileTexts,
  type RecordingServer,
  startRecordingServer,
} from '../rig/hostile-content.ts';
import { waitUntilSettled } from '../rig/page-checks.ts';
import { submitAccepted } from '../rig/service.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../rig/webhook-receiver.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

/** The console lines of the browser about content that it blocked. The pages must cause no other line. */
const BLOCKED_CONTENT_LINE =
  /^(error|warning): .*(violates the following Content Security Policy|Blocked script execution|Blocked form submission|Unsafe attempt to initiate navigation|sandbox)/;
/** A text of a remote server, with control characters and a character that reverses the text after it. */
const REMOTE_TEXT = '<img src=x onerror=alert(1)><script>alert(2)</script>\u0000\u001b[31m\u202Egnp.exe';

const rig = createScenario();
const browsers = createBrowserRig();
let service: RunningService;
let otherServer: RecordingServer;
let receiver: WebhookReceiver;
let texts: readonly string[];
let htmlMessageId = '';
const ids: string[] = [];

beforeAll(async () => {
  otherServer = await startRecordingServer();
  receiver = await startWebhookReceiver();
  const folder = rig.createFolder();
  service = await rig.serve(folder, { POSTRIDER_WEBHOOK_TARGETS: 'any' });
  texts = createHostileTexts(otherServer.url);
  for (const subject of texts) {
    ids.push(
      await submitAccepted(service.publicUrl, service.key, {
        to: `"<img src=x onerror=alert(1)>"@example.com`,
        from: '"onerror=alert(2)"@example.org',
        subject,
        message: `${subject}\n<script>alert(3)</script> javascript:alert(4) ${otherServer.url}/text`,
      }),
    );
  }
  htmlMessageId = await submitAccepted(service.publicUrl, service.key, {
    subject: 'A hostile message',
    message: createHostileHtml(otherServer.url),
  });
  await waitForState(browsers, service, htmlMessageId, 'delivered');
  for (const [index, reason] of texts.entries()) {
    const name = `account-${index}`;
    await browsers.callApi(service, 'POST', '/accounts', { name });
    // The service refuses names and reasons with invisible characters.
    if (reason.includes('\u202E')) continue;
    await browsers.callApi(service, 'POST', `/accounts/${name}/keys`, { name: reason.slice(0, 60) });
    await browsers.callApi(service, 'POST', `/accounts/${name}/lock`, { reason });
  }
  const address = `"<img/src=x/onerror=alert(5)>"@example.com`;
  await browsers.callApi(service, 'POST', '/accounts/default/suppressions', { address });
  const store = await rig.openStore(folder);
  await store.recordFeedback([
    {
      messageRef: { id: htmlMessageId },
      events: [{ kind: 'unknown', reason: `there is no report in it ${REMOTE_TEXT.replaceAll('\u0000', '')}` }],
      source: 'smtp',
      digest: createHash('sha256').update('a report').digest('hex'),
      at: Date.now(),
      summary: `from <>: ${REMOTE_TEXT.replaceAll('\u0000', '')}`,
      raw: Buffer.from(`Subject: Undelivered\r\n\r\n${REMOTE_TEXT}`),
      isFinal: true,
    },
  ]);
});
afterAll(() => Promise.all([otherServer.close(), receiver.close()]));

test('hostile subjects, addresses, names and reasons have no effect on any page', async () => {
  const { page, visit, allowFaults } = await browsers.openSignedIn(service, '/');
  allowFaults(/status of 40[04] /);
  for (const path of [
    '/',
    '/messages',
    `/messages?q=${encodeURIComponent('"><script>alert(6)</script>')}`,
    '/messages/%3Cscript%3Ealert(7)%3C%2Fscript%3E',
    `/inbox/${ids[1]}`,
    `/inbox/${ids[1]}?view=headers`,
    `/inbox/${ids[1]}?view=source`,
    '/accounts',
    '/accounts/account-1',
    '/accounts/account-1?tab=keys',
    '/suppressions?list=default&search=%22%3Cimg',
    '/feedback',
    '/audit',
  ]) {
    await visit(path);
    await waitUntilSettled(page);
    expect(new URL(page.url()).origin, path).toBe(service.operatorUrl);
    // No hostile text became an HTML element.
    const injectedElements = page.locator('main script, main img, main meta, main base, main svg[onload]');
    expect(await injectedElements.count(), path).toBe(0);
    expect(await page.locator('a[href^="javascript:" i], a[href^="data:" i]').count(), path).toBe(0);
    expect(otherServer.listRequests(), path).toEqual([]);
  }
});

test('the message page shows hostile text literally and without effect', async () => {
  const { page, visit, allowFaults } = await browsers.openSignedIn(service, '/messages');
  for (const [index, subject] of texts.entries()) {
    await visit(`/messages/${ids[index]}`);
    const heading = page.getByRole('heading', { level: 1 });
    await expect.poll(() => heading.textContent()).toBe(subject);
    const body = page.getByRole('region', { name: 'Content' }).locator('pre');
    expect(await body.textContent()).toContain('<script>alert(3)</script>');
  }
  allowFaults(BLOCKED_CONTENT_LINE);
  await visit(`/messages/${htmlMessageId}`);
  const frame = page.frameLocator('iframe');
  await frame.getByText('A hostile message').waitFor();
  // The link is opened with the keyboard, because Playwright does not scroll inside a sandboxed frame.
  await frame.getByRole('link', { name: 'a link in its place', exact: true }).press('Enter');
  await page.getByText('Source', { exact: true }).click();
  expect(await page.getByRole('region', { name: 'Content' }).locator('pre').textContent()).toContain('<script');
  expect(new URL(page.url()).pathname).toBe(`/messages/${htmlMessageId}`);
  expect(otherServer.listRequests()).toEqual([]);
});

const LARGE_WINDOW = { width: 1_600, height: 1_200 };
const LINKS = [
  'a script link',
  'a broken script link',
  'a data link',
  'a link out',
  'a link to a window',
  'a link in its place',
];

test('clicks on links and forms in hostile HTML of the inbox load nothing and do not navigate, and the frame does not cover the page', async () => {
  const path = `/inbox/${htmlMessageId}`;
  const { page, visit, allowFaults } = await browsers.openSignedIn(service, path);
  allowFaults(BLOCKED_CONTENT_LINE);
  // The hostile page has a fixed position and does not scroll, so only links in the visible part of the frame can be
  // clicked.
  await page.setViewportSize(LARGE_WINDOW);
  const frame = page.frameLocator('iframe');
  for (const [index, name] of [...LINKS, 'a form'].entries()) {
    // A click may leave an empty page in the frame.
    if (index > 0) await visit(path);
    await frame.getByText('A hostile message').waitFor();
    await page.locator('iframe').scrollIntoViewIfNeeded();
    await frame.getByRole(name === 'a form' ? 'button' : 'link', { name, exact: true }).click();
    // Any effect of the click would be visible before live updates announce a later message.
    await submitAccepted(service.publicUrl, service.key, { subject: `After the click on ${name}` });
    await page.getByRole('button', { name: /^Show \d+ new message/ }).waitFor();
    expect(page.url(), name).toBe(service.operatorUrl + path);
    expect(otherServer.listRequests(), name).toEqual([]);
  }
  // The frame does not cover the page, so the links of the page can be clicked.
  await page.getByRole('link', { name: 'History' }).click();
  await page.getByRole('heading', { level: 1, name: 'A hostile message' }).waitFor();
});

test('the texts of a report and of a webhook response are shown literally without control characters, and the text of a reply literally', async () => {
  receiver.chooseBehavior = () => ({ status: 500, body: REMOTE_TEXT });
  const { id } = await browsers.callApi<{ id: string }>(service, 'POST', '/webhooks', {
    url: `${receiver.url}/hostile?name=%3Cscript%3Ealert(3)%3C/script%3E`,
    name: '<img src=x onerror=alert(4)>',
  });
  const { page, visit } = await browsers.openSignedIn(service, `/webhooks/${id}`);
  const expectLiteralText = async (text: string) => {
    expect(text).toContain('<img src=x onerror=alert(1)>');
    for (const character of ['\u0000', '\u001b', '\u202e']) expect(text).not.toContain(character);
    expect(await page.locator('main script, main img').count()).toBe(0);
  };
  await page.getByRole('button', { name: 'Send test' }).click();
  const dialog = page.getByRole('dialog', { name: 'Test' });
  await dialog.getByText('The test failed. The service does not send it again.').waitFor();
  await expectLiteralText(await dialog.locator('pre').innerText());

  await visit('/feedback');
  await page.getByRole('link', { name: /^from <>/ }).click();
  await expectLiteralText(await page.getByRole('region', { name: 'Text' }).locator('pre').innerText());

  await submitAccepted(service.publicUrl, service.key, {
    to: 'bounce@simulator.postrider.test',
    subject: 'Refused by the next hop',
  });
  await replaceResponses(page, /\/api\/v1\/messages\?/, async (route) => {
    const answer = await route.fetch();
    const body = await answer.json();
    for (const message of body.messages) message.reason = { ...message.reason, text: `550 ${REMOTE_TEXT}` };
    await route.fulfill({ response: answer, json: body });
  });
  await visit('/messages?q=refused');
  const row = page.getByRole('row').filter({ hasText: 'Refused by the next hop' });
  await row.getByText('<img src=x onerror=alert(1)>').waitFor();
  expect(await page.locator('main script, main img').count()).toBe(0);
});

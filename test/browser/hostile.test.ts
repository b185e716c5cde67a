/**
 * Checks that hostile content has no effect: no page runs the scripts of the content, loads its resources or follows
 * its links, and the content changes no page.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createBrowserRig } from '../rig/browser.ts';
import {
  createHostileHtml,
  createHostileTexts,
  type RecordingServer,
  startRecordingServer,
} from '../rig/hostile-content.ts';
import { waitUntilSettled } from '../rig/page-checks.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

/** The console lines of the browser about content that it blocked. The pages must cause no other line. */
const BLOCKED_CONTENT_LINE =
  /^(error|warning): .*(violates the following Content Security Policy|Blocked script execution|Blocked form submission|Unsafe attempt to initiate navigation|sandbox)/;

const rig = createScenario();
const browsers = createBrowserRig();
let service: RunningService;
let otherServer: RecordingServer;
let texts: readonly string[];
let htmlMessageId = '';
const ids: string[] = [];

beforeAll(async () => {
  otherServer = await startRecordingServer();
  service = await rig.serve(rig.createFolder());
  texts = createHostileTexts(otherServer.url);
  for (const subject of texts) {
    ids.push(
      await submitAccepted(service.publicUrl, service.key, {
        to: `"<img src=x onerror=alert(1)>"@example.com`,
        from: `"<script>alert(2)</script>"@example.org`,
        subject,
        message: `${subject}\n<script>alert(3)</script> javascript:alert(4) ${otherServer.url}/text`,
      }),
    );
  }
  htmlMessageId = await submitAccepted(service.publicUrl, service.key, {
    subject: 'A hostile message',
    message: createHostileHtml(otherServer.url),
  });
  await vi.waitFor(
    async () => {
      expect(await browsers.callApi(service, 'GET', `/messages/${htmlMessageId}`)).toMatchObject({
        state: 'delivered',
      });
    },
    { timeout: 120_000 },
  );
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
});
afterAll(() => otherServer.close());

test('hostile subjects, addresses, names and reasons have no effect on any page', async () => {
  const { page, visit, allowFaults } = await browsers.openSignedIn(service, '/');
  allowFaults(/status of 40[04] /);
  for (const path of [
    '/',
    '/messages',
    `/messages?q=${encodeURIComponent('"><script>alert(6)</script>')}`,
    '/messages/%3Cscript%3Ealert(7)%3C%2Fscript%3E',
    '/inbox',
    `/inbox/${ids[1]}`,
    `/inbox/${ids[1]}?view=headers`,
    `/inbox/${ids[1]}?view=source`,
    '/accounts',
    '/accounts/account-1',
    '/accounts/account-1?tab=keys',
    '/suppressions?list=default',
    '/suppressions?list=default&search=%22%3Cimg',
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
  const { page, allowFaults } = await browsers.openSignedIn(service, '/messages');
  for (const [index, subject] of texts.entries()) {
    await page.goto(`/messages/${ids[index]}`);
    const heading = page.getByRole('heading', { level: 1 });
    await expect.poll(() => heading.textContent()).toBe(subject);
    const body = page.getByRole('region', { name: 'Content' }).locator('pre');
    expect(await body.textContent()).toContain('<script>alert(3)</script>');
  }
  allowFaults(BLOCKED_CONTENT_LINE);
  await page.goto(`/messages/${htmlMessageId}`);
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
const CLICKS = [
  ...[
    'a script link',
    'a broken script link',
    'a data link',
    'a link out',
    'a link to a window',
    'a link in its place',
  ].map((name) => ({ role: 'link', name }) as const),
  { role: 'button', name: 'a form' } as const,
];

test.each(CLICKS)(
  'a click on the $role "$name" in hostile HTML of the inbox loads nothing and does not navigate',
  async ({ role, name }) => {
    const path = `/inbox/${htmlMessageId}`;
    const { page, allowFaults } = await browsers.openSignedIn(service, path);
    allowFaults(BLOCKED_CONTENT_LINE);
    const frame = page.frameLocator('iframe');
    await frame.getByText('A hostile message').waitFor();
    // The hostile page has a fixed position and does not scroll, so only links in the visible part of the frame can be
    // clicked.
    await page.setViewportSize(LARGE_WINDOW);
    await page.locator('iframe').scrollIntoViewIfNeeded();
    await frame.getByRole(role, { name, exact: true }).click();
    // Any effect of the click would be visible before live updates announce a later message.
    const subject = `After the click on ${name}`;
    await submitAccepted(service.publicUrl, service.key, { subject });
    await page.getByRole('button', { name: /^Show \d+ new message/ }).waitFor();
    expect(page.url()).toBe(service.operatorUrl + path);
    expect(otherServer.listRequests()).toEqual([]);
  },
);

test('hostile HTML in the inbox runs no script and does not cover the page, and its source is plain text outside the frame', async () => {
  const path = `/inbox/${htmlMessageId}`;
  const { page, visit, allowFaults } = await browsers.openSignedIn(service, path);
  allowFaults(BLOCKED_CONTENT_LINE);
  const frame = page.frameLocator('iframe');
  // The frame does not cover the page, so the links of the page can be clicked.
  await page.getByRole('link', { name: 'History' }).click();
  await page.getByRole('heading', { level: 1, name: 'A hostile message' }).waitFor();
  // Outside the frame the source is served as plain text, because links would not be disabled there.
  await visit(path);
  await frame.getByText('A hostile message').waitFor();
  const source = (await page.locator('iframe').getAttribute('src')) ?? '';
  const sourceResponse = await page.goto(source);
  expect(sourceResponse?.headers()).toMatchObject({
    'content-type': 'text/plain; charset=utf-8',
    'content-security-policy': expect.stringContaining('sandbox'),
  });
  await page.getByText('<p>A hostile message</p>').waitFor();
  expect(page.url()).toBe(service.operatorUrl + source);
  expect(otherServer.listRequests()).toEqual([]);
});

/** What strangers write does nothing: no page runs it, loads it, follows it, or is changed by it. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { browserRig } from '../rig/browser.ts';
import { type Elsewhere, hostileHtml, hostileWords, listenElsewhere } from '../rig/hostile.ts';
import { settled } from '../rig/page-checks.ts';
import { accepted } from '../rig/service.ts';
import { type StandingService, scenario } from '../scenarios/standing.ts';

/** That something was refused is what the browser tells, and all that may come of it. */
const REFUSED =
  /^(error|warning): .*(violates the following Content Security Policy|Blocked script execution|Blocked form submission|Unsafe attempt to initiate navigation|sandbox)/;

const rig = scenario();
const browsers = browserRig();
let service: StandingService;
let elsewhere: Elsewhere;
let words: readonly string[];
let letter = '';
const ids: string[] = [];

beforeAll(async () => {
  elsewhere = await listenElsewhere();
  service = await rig.serve(rig.folder());
  words = hostileWords(elsewhere.url);
  for (const subject of words) {
    ids.push(
      await accepted(service.publicUrl, service.key, {
        to: `"<img src=x onerror=alert(1)>"@example.com`,
        from: `"<script>alert(2)</script>"@example.org`,
        subject,
        message: `${subject}\n<script>alert(3)</script> javascript:alert(4) ${elsewhere.url}/text`,
      }),
    );
  }
  letter = await accepted(service.publicUrl, service.key, {
    subject: 'A hostile letter',
    message: hostileHtml(elsewhere.url),
  });
  await vi.waitFor(
    async () => {
      expect(await browsers.ask(service, 'GET', `/messages/${letter}`)).toMatchObject({ state: 'delivered' });
    },
    { timeout: 60_000 },
  );
  for (const [at, reason] of words.entries()) {
    const name = `account-${at}`;
    await browsers.ask(service, 'POST', '/accounts', { name });
    // Names and reasons that cannot be seen are refused.
    if (reason.includes('\u202E')) continue;
    await browsers.ask(service, 'POST', `/accounts/${name}/keys`, { name: reason.slice(0, 60) });
    await browsers.ask(service, 'POST', `/accounts/${name}/lock`, { reason });
  }
  const address = `"<img/src=x/onerror=alert(5)>"@example.com`;
  await browsers.ask(service, 'POST', '/accounts/default/suppressions', { address });
});
afterAll(() => elsewhere.close());

test('hostile subjects, addresses, names and reasons do nothing, on any page', async () => {
  const { page, visit, tolerate } = await browsers.operator(service, '/');
  tolerate(/status of 40[04] /);
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
    await settled(page);
    expect(new URL(page.url()).origin, path).toBe(service.operatorUrl);
    // Nothing of it has become an element.
    const made = page.locator('main script, main img, main meta, main base, main svg[onload]');
    expect(await made.count(), path).toBe(0);
    expect(await page.locator('a[href^="javascript:" i], a[href^="data:" i]').count(), path).toBe(0);
    expect(elsewhere.asked(), path).toEqual([]);
  }
});

test('each message is shown to the letter, and does nothing on its page', async () => {
  const { page } = await browsers.operator(service, '/messages');
  for (const [at, subject] of words.entries()) {
    await page.goto(`/messages/${ids[at]}`);
    const heading = page.getByRole('heading', { level: 1 });
    await expect.poll(() => heading.textContent()).toBe(subject);
    const body = page.getByRole('region', { name: 'Body' }).locator('pre');
    expect(await body.textContent()).toContain('<script>alert(3)</script>');
  }
  await page.goto(`/messages/${letter}`);
  await page.getByText('HTML, as source').waitFor();
  expect(elsewhere.asked()).toEqual([]);
});

const LINKS = [
  'a script link',
  'a broken script link',
  'a data link',
  'a link out',
  'a link to a window',
  'a link in its place',
];

test('a hostile HTML mail in the inbox runs nothing, loads nothing, and leads nowhere, whatever is clicked in it', async () => {
  const { page, visit, tolerate } = await browsers.operator(service, `/inbox/${letter}`);
  tolerate(REFUSED);
  const frame = page.frameLocator('iframe');
  for (const name of LINKS) {
    // Each click on the letter as it came: what a click brings about must not save it from the next one.
    await visit(`/inbox/${letter}`);
    await frame.getByText('A hostile letter').waitFor();
    await frame.getByRole('link', { name, exact: true }).click();
    await later(page, `After ${name}`);
  }
  await visit(`/inbox/${letter}`);
  await frame.getByRole('button', { name: 'a form' }).click();
  await later(page, 'After a form');
  // The frame has not covered the page: its links work.
  await visit(`/inbox/${letter}`);
  await page.getByRole('link', { name: 'History of this message' }).click();
  await page.getByRole('heading', { level: 1, name: 'A hostile letter' }).waitFor();
  // Opened by itself it is no HTML, for there a link could lead away.
  await visit(`/inbox/${letter}`);
  await frame.getByText('A hostile letter').waitFor();
  const source = (await page.locator('iframe').getAttribute('src')) ?? '';
  const alone = await page.goto(source);
  expect(alone?.headers()).toMatchObject({
    'content-type': 'text/plain; charset=utf-8',
    'content-security-policy': expect.stringContaining('sandbox'),
  });
  await page.getByText('<p>A hostile letter</p>').waitFor();
  expect(page.url()).toBe(service.operatorUrl + source);
  expect(elsewhere.asked()).toEqual([]);
});

/** Whatever was under way in the page had its time: a mail sent now is delivered, and the same page tells of it by itself. */
async function later(page: Page, subject: string): Promise<void> {
  await accepted(service.publicUrl, service.key, { subject });
  await page.getByRole('link', { name: subject }).waitFor();
  expect(elsewhere.asked(), subject).toEqual([]);
}

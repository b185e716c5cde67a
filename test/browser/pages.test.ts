import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { ROOT } from '../house/source.ts';
import { type BrowserUser, createBrowserRig, listAttributes } from '../rig/browser.ts';
import { LONG_ADDRESS, startFilledService } from '../rig/filled-service.ts';
import {
  emulateDarkPhone,
  emulateLightDesktop,
  findGapsInForms,
  findHorizontalOverflow,
  findSeriousFaults,
} from '../rig/page-checks.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
let service: RunningService;
let id = '';

beforeAll(async () => {
  ({ service, id } = await startFilledService(rig, browsers));
});

const PAGE_PATHS = Array.from(
  readFileSync(join(ROOT, 'dashboard/src/pages/index.ts'), 'utf8').matchAll(/\bpath: '([^']+)'/g),
  ([, path = '']) => path,
);

const VISITED_PATHS: Readonly<Record<string, () => readonly string[]>> = {
  '/messages': () => ['/messages?since=2026-01-01T00:00Z&until=2126-01-01T00:00Z', '/messages?state=queued'],
  '/messages/:id': () => [`/messages/${id}`],
  '/inbox/:id?': () => [
    '/inbox?tab=rules',
    ...['', '?view=checks', '?view=headers'].map((view) => `/inbox/${id}${view}`),
  ],
  '/accounts/:name': () => ['/accounts/acme', '/accounts/acme?tab=keys', '/accounts/acme?tab=domains'],
  '/suppressions': () => [`/suppressions?list=default&address=${encodeURIComponent(LONG_ADDRESS)}`],
  '/webhooks/:id': () => ['/webhooks/wh_1', '/webhooks/wh_2?status=failed'],
  '/api-reference': () => ['/api-reference', '/api-reference?tab=operator', '/api-reference?tab=webhooks'],
  '*': () => ['/messages/no/page'],
};

/** The colors differ between light and dark mode, and the elements of lists between a desktop and a phone. */
const PHONE_RULES = ['color-contrast', 'link-name', 'button-name', 'label', 'aria-input-field-name'];

test.each(PAGE_PATHS)(
  'the page %s is accessible on a desktop in light mode and on a phone in dark mode',
  async (pagePath) => {
    const user = await browsers.openSignedIn(service, '/messages/no/page');
    for (const path of VISITED_PATHS[pagePath]?.() ?? [await findPath(user, pagePath)]) {
      await emulateLightDesktop(user.page);
      await user.visit(path);
      // The frame around the pages is the same on each page.
      const within = path === '/' ? 'html' : 'main';
      await checkPage(user, path, within);
    }
  },
);

async function checkPage({ page }: BrowserUser, path: string, within: string): Promise<void> {
  expect(await findSeriousFaults(page, { within }), path).toEqual([]);
  expect(await page.getByRole('heading', { level: 1 }).count(), path).toBe(1);
  await emulateDarkPhone(page);
  expect(await findSeriousFaults(page, { within, rules: PHONE_RULES }), `${path} on a phone`).toEqual([]);
  expect(await findHorizontalOverflow(page), path).toEqual([]);
}

const DIALOGS: Readonly<Record<string, readonly string[]>> = {
  '/accounts': ['Create account'],
  '/accounts/acme': ['Edit limits', 'Unlock'],
  '/accounts/default': ['Lock'],
  '/accounts/acme?tab=keys': ['Create key'],
  '/domains': ['Add domain'],
  '/domains/mail.example.org': ['Rotate keys', 'Return path', 'Remove'],
  '/suppressions?list=default': ['Add address', 'Import'],
  '/holds': ['Add hold'],
  '/tokens': ['Create token'],
  '/inbox?tab=rules': ['Add rule'],
  '/messages?state=queued': ['Change all…', 'Send test'],
  '/webhooks': ['Create endpoint'],
  '/webhooks/wh_1': ['Edit', 'Rotate secret', 'Replay…', 'Disable', 'Delete'],
};

test.each(Object.entries(DIALOGS))('the dialogs on %s are accessible and fit on a phone', async (path, buttons) => {
  const { page } = await browsers.openSignedIn(service, path);
  for (const name of buttons) {
    await emulateLightDesktop(page);
    await page.getByRole('button', { name, exact: true }).click();
    await page.getByRole('dialog').waitFor();
    await emulateDarkPhone(page);
    expect(await findSeriousFaults(page, { within: '[role=dialog]' }), name).toEqual([]);
    expect(await findHorizontalOverflow(page), name).toEqual([]);
    expect(await findGapsInForms(page), name).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }
});

test('every page of the menu is in the list of pages', async () => {
  const { page } = await browsers.openSignedIn(service, '/');
  const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
  const paths = (await listAttributes(links, 'href')).map((path) => path ?? '');
  const listedPaths = new Set([...PAGE_PATHS.map((path) => path.replace(/\/:\w+\?$/, ''))]);
  expect(paths.filter((path) => !listedPaths.has(path))).toEqual([]);
  expect(paths.length).toBeGreaterThan(10);
});

async function findPath({ page, visit }: BrowserUser, pagePath: string): Promise<string> {
  const parentPath = pagePath.replace(/\/:\w+\??$/, '');
  if (parentPath === pagePath) return pagePath;
  await visit(parentPath);
  const path = await page.locator(`main a[href^="${parentPath}/"]`).first().getAttribute('href');
  if (path === null) throw new Error(`${parentPath} has no link to a page ${pagePath}`);
  return path;
}

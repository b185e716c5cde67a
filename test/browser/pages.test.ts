/**
 * Checks every page with data: axe finds no serious violation in light and dark mode, and none scrolls horizontally on
 * a phone. The pages are those of dashboard/src/pages/index.ts.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { ROOT } from '../house/source.ts';
import { createBrowserRig, listAttributes } from '../rig/browser.ts';
import { LONG_ADDRESS, startFilledService } from '../rig/filled-service.ts';
import {
  emulateDarkPhone,
  emulateLightDesktop,
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

/**
 * The paths of the pages, such as `/accounts/:name`, in the order of dashboard/src/pages/index.ts. `*` is the page for
 * an unknown path.
 */
const PAGE_PATHS = Array.from(
  readFileSync(join(ROOT, 'dashboard/src/pages/index.ts'), 'utf8').matchAll(/\bpath: '([^']+)'/g),
  ([, path = '']) => path,
);

/** The reference page of the operator API, which has no scripts and is not part of the dashboard. */
const REFERENCE_PATH = '/reference';

/** The paths that a test visits for a page, if they differ from the path of the page. */
const VISITED_PATHS: Readonly<Record<string, () => readonly string[]>> = {
  '/messages': () => ['/messages', '/messages?since=2026-01-01T00:00Z&until=2126-01-01T00:00Z&state=queued'],
  '/messages/:id': () => [`/messages/${id}`],
  '/inbox/:id?': () => [
    '/inbox',
    '/inbox?tab=rules',
    ...['', '?view=text', '?view=checks', '?view=headers', '?view=source'].map((view) => `/inbox/${id}${view}`),
  ],
  '/accounts/:name': () => ['/accounts/acme', '/accounts/acme?tab=keys', '/accounts/acme?tab=domains'],
  '/suppressions': () => [
    '/suppressions?list=default',
    `/suppressions?list=default&address=${encodeURIComponent(LONG_ADDRESS)}`,
  ],
  '/webhooks/:id': () => ['/webhooks/wh_1', '/webhooks/wh_2?status=failed'],
  '/api-reference': () => ['/api-reference', '/api-reference?tab=operator', '/api-reference?tab=webhooks'],
  '*': () => ['/messages/no/page'],
};

test.each([...PAGE_PATHS, REFERENCE_PATH])(
  'the page %s is accessible on a desktop in light mode and on a phone in dark mode',
  async (pagePath) => {
    const { page, visit } = await browsers.openSignedIn(service, '/messages/no/page', { reducedMotion: true });
    for (const path of VISITED_PATHS[pagePath]?.() ?? [await findPath(page, pagePath)]) {
      await emulateLightDesktop(page);
      await visit(path);
      expect(await findSeriousFaults(page), path).toEqual([]);
      expect(await page.getByRole('heading', { level: 1 }).count(), path).toBe(1);
      await emulateDarkPhone(page);
      expect(await findSeriousFaults(page), `${path} on a phone in dark mode`).toEqual([]);
      expect(await findHorizontalOverflow(page), path).toEqual([]);
    }
  },
);

test('every page of the menu is in the list of pages', async () => {
  const { page } = await browsers.openSignedIn(service, '/');
  const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
  const paths = (await listAttributes(links, 'href')).map((path) => path ?? '');
  const listedPaths = new Set([...PAGE_PATHS.map((path) => path.replace(/\/:\w+\?$/, '')), REFERENCE_PATH]);
  expect(paths.filter((path) => !listedPaths.has(path))).toEqual([]);
  expect(paths.length).toBeGreaterThan(10);
});

/**
 * Returns a path that shows the page: for `/accounts/:name`, the target of the first link to an account on `/accounts`.
 */
async function findPath(page: Page, pagePath: string): Promise<string> {
  const parentPath = pagePath.replace(/\/:\w+\??$/, '');
  if (parentPath === pagePath) return pagePath;
  await page.goto(parentPath);
  const path = await page.locator(`main a[href^="${parentPath}/"]`).first().getAttribute('href');
  if (path === null) throw new Error(`${parentPath} has no link to a page ${pagePath}`);
  return path;
}

/** Code that runs in the page is a string, because it uses the globals of a browser. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

/** The minified source of axe, which has half the size of the default source of the package. */
const AXE_PATH = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** Frames with captured messages are excluded: the sender determines their content, and they run no script. */
const buildAxeScript = ({ within = 'html', rules }: AxeScope) => {
  const options = { resultTypes: ['violations'], iframes: false, ...(rules === undefined ? {} : { runOnly: rules }) };
  return `axe.run({ include: ['${within}'], exclude: ['iframe'] }, ${JSON.stringify(options)}).then(({ violations }) =>
  violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, help, nodes }) =>
      nodes.map(({ html, failureSummary }) => id + ': ' + help + '\\n  ' + html.slice(0, 300) + '\\n  ' + failureSummary),
    ),
)`;
};

const FIND_OVERFLOW = `(() => {
  const { clientWidth, scrollWidth } = document.documentElement;
  if (scrollWidth <= clientWidth) return [];
  const wideElements = [...document.querySelectorAll('body *')].filter(
    (element) => element.getBoundingClientRect().right > clientWidth + 0.5,
  );
  const elements = wideElements.slice(0, 10).map(({ outerHTML }) => outerHTML.slice(0, 160));
  return [(scrollWidth - clientWidth) + ' px too wide', ...elements];
})()`;

const FIND_GAPS = `[...document.querySelectorAll('form .mantine-InputWrapper-root')]
  .filter((field) => field.getBoundingClientRect().bottom > field.lastElementChild.getBoundingClientRect().bottom + 8)
  .map((field) => field.textContent)`;

const IS_SETTLED = `document.querySelector('[aria-label="Loading"]') === null &&
  document.getAnimations().every(({ playState, effect }) =>
    playState !== 'running' || effect.getComputedTiming().iterations === Infinity)`;

export async function waitUntilSettled(page: Page): Promise<void> {
  // `waitForFunction` would evaluate the script in a way that the content security policy of the page forbids.
  await expect.poll(() => page.evaluate(IS_SETTLED)).toBe(true);
}

/** Sets the viewport to the size of a phone, and the color scheme of the page to dark. */
export async function emulateDarkPhone(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.setViewportSize({ width: 360, height: 780 });
}

export async function emulateLightDesktop(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** What axe checks. The default is every rule on the whole page. */
export interface AxeScope {
  readonly within?: string;
  readonly rules?: readonly string[];
}

export async function findSeriousFaults(page: Page, scope: AxeScope = {}): Promise<readonly string[]> {
  await waitUntilSettled(page);
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(readFileSync(AXE_PATH, 'utf8'));
  return page.evaluate<readonly string[]>(buildAxeScript(scope));
}

export async function findGapsInForms(page: Page): Promise<readonly string[]> {
  await waitUntilSettled(page);
  return page.evaluate<readonly string[]>(FIND_GAPS);
}

export async function findHorizontalOverflow(page: Page): Promise<readonly string[]> {
  await waitUntilSettled(page);
  return page.evaluate<readonly string[]>(FIND_OVERFLOW);
}

/**
 * What every page must be, whoever made it: free of grave faults that axe finds, and no wider than the screen. What runs in the
 * page is text here, because the names of the page are not those of Node.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

/** Half the size of what the package itself gives as its source. */
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** A frame of captured mail runs no script, and what it shows is its sender's. */
const LOOK_WITH_AXE = `axe.run({ exclude: ['iframe'] }, { resultTypes: ['violations'], iframes: false }).then(({ violations }) =>
  violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, help, nodes }) =>
      nodes.map(({ html, failureSummary }) => id + ': ' + help + '\\n  ' + html.slice(0, 300) + '\\n  ' + failureSummary),
    ),
)`;

const LOOK_AT_WIDTH = `(() => {
  const { clientWidth, scrollWidth } = document.documentElement;
  if (scrollWidth <= clientWidth) return [];
  const wide = [...document.querySelectorAll('body *')].filter(
    (element) => element.getBoundingClientRect().right > clientWidth + 0.5,
  );
  return [(scrollWidth - clientWidth) + ' px too wide', ...wide.slice(0, 10).map(({ outerHTML }) => outerHTML.slice(0, 160))];
})()`;

/** Fields of a form that are higher than what is in them. */
const LOOK_FOR_HOLES = `[...document.querySelectorAll('form .mantine-InputWrapper-root')]
  .filter((field) => field.getBoundingClientRect().bottom > field.lastElementChild.getBoundingClientRect().bottom + 8)
  .map((field) => field.textContent)`;

/** Nothing moves any more, and no place holder is shown: colours between two states are nobody's. */
const IS_SETTLED = `document.querySelector('[aria-label="Loading"]') === null &&
  document.getAnimations().every(({ playState, effect }) =>
    playState !== 'running' || effect.getComputedTiming().iterations === Infinity)`;

/** Resolves when the page has come to rest. */
export async function waitUntilSettled(page: Page): Promise<void> {
  // Not by waitForFunction, which evaluates text inside the page, and that its policy forbids.
  await expect.poll(() => page.evaluate(IS_SETTLED)).toBe(true);
}

/** The same page on a phone in the dark. */
export async function emulateDarkPhone(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.setViewportSize({ width: 360, height: 780 });
}

export async function emulateLightDesktop(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** One text for each serious or critical fault: the rule, and where it is broken. */
export async function seriousFaults(page: Page): Promise<readonly string[]> {
  await waitUntilSettled(page);
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(readFileSync(AXE, 'utf8'));
  return page.evaluate<readonly string[]>(LOOK_WITH_AXE);
}

/** Empty, or the fields of forms with nothing below them for no reason. */
export async function gapsInForms(page: Page): Promise<readonly string[]> {
  await waitUntilSettled(page);
  return page.evaluate<readonly string[]>(LOOK_FOR_HOLES);
}

/** Empty, or by how many pixels the page is wider than its window, and what overflows. */
export async function horizontalOverflow(page: Page): Promise<readonly string[]> {
  await waitUntilSettled(page);
  return page.evaluate<readonly string[]>(LOOK_AT_WIDTH);
}

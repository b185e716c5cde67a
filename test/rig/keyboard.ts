import type { Page } from 'playwright-core';
import { expect } from 'vitest';

type FocusableRole = 'button' | 'checkbox' | 'combobox' | 'link' | 'searchbox' | 'tab' | 'textbox';

export interface KeyboardUser {
  press(...keys: readonly string[]): Promise<void>;
  type(text: string): Promise<void>;
  /** Presses Tab until the element has the focus. Fails if the element looks the same with and without it. */
  tabTo(role: FocusableRole, name: string | RegExp): Promise<void>;
}

/** The maximum number of Tab presses to reach an element. Every page needs fewer presses. */
const MAX_TAB_PRESSES = 120;

const IS_FOCUS_VISIBLE = `(() => {
  const element = document.activeElement;
  const copy = element.cloneNode(true);
  copy.removeAttribute('id');
  element.after(copy);
  const readStyle = (target) => {
    const { outlineStyle, outlineWidth, borderTopColor, boxShadow, backgroundColor } = getComputedStyle(target);
    return [outlineStyle, outlineWidth, borderTopColor, boxShadow, backgroundColor].join(' ');
  };
  const isVisible = readStyle(element) !== readStyle(copy);
  copy.remove();
  return isVisible;
})()`;

export function createKeyboardUser(page: Page): KeyboardUser {
  return {
    async press(...keys) {
      for (const key of keys) await page.keyboard.press(key);
    },
    type: (text) => page.keyboard.type(text),
    async tabTo(role, name) {
      const target = page.getByRole(role, { name, exact: true });
      // Tab is pressed only after the element exists.
      await target.first().waitFor();
      const focusedTarget = target.and(page.locator(':focus'));
      for (let tabCount = 0; (await focusedTarget.count()) === 0; tabCount += 1) {
        if (tabCount === MAX_TAB_PRESSES) throw new Error(`${role} ${name} cannot be reached with Tab`);
        await page.keyboard.press('Tab');
      }
      await expect
        .poll(() => page.evaluate(IS_FOCUS_VISIBLE), { message: `the focus of ${role} ${name} is visible` })
        .toBe(true);
    },
  };
}

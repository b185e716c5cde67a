/**
 * Checks every dialog: axe finds no serious violation in light and dark mode, and none scrolls horizontally on a phone.
 */
import { beforeAll, expect, test } from 'vitest';
import { createBrowserRig } from '../rig/browser.ts';
import { startFilledService } from '../rig/filled-service.ts';
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

beforeAll(async () => {
  service = (await startFilledService(rig, browsers)).service;
});

/** The buttons that open a dialog, by the path of their page. */
const DIALOGS: Readonly<Record<string, readonly string[]>> = {
  '/accounts': ['Create account'],
  '/accounts/acme': ['Edit limits', 'Unlock'],
  '/accounts/default': ['Lock'],
  '/accounts/acme?tab=keys': ['Create key'],
  '/domains': ['Add domain'],
  '/domains/mail.example.org': ['Rotate keys', 'Return path', 'Remove'],
  '/suppressions?list=default': ['Add address', 'Import'],
  '/tokens': ['Create token'],
  '/inbox?tab=rules': ['Add rule'],
  '/webhooks': ['Create endpoint'],
  '/webhooks/wh_1': ['Edit', 'Rotate secret', 'Replay…', 'Disable', 'Delete'],
};

test.each(Object.entries(DIALOGS))(
  'the dialogs on %s are accessible on a desktop in light mode and on a phone in dark mode',
  async (path, buttons) => {
    const { page } = await browsers.openSignedIn(service, path, { reducedMotion: true });
    for (const name of buttons) {
      await emulateLightDesktop(page);
      await page.getByRole('button', { name, exact: true }).click();
      await page.getByRole('dialog').waitFor();
      expect(await findSeriousFaults(page), name).toEqual([]);
      expect(await findHorizontalOverflow(page), name).toEqual([]);
      await emulateDarkPhone(page);
      expect(await findSeriousFaults(page), `${name} on a phone in dark mode`).toEqual([]);
      expect(await findHorizontalOverflow(page), `${name} on a phone`).toEqual([]);
      expect(await findGapsInForms(page), name).toEqual([]);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
  },
);

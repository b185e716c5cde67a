import { expect, it } from 'vitest';
import type { SettingSpec } from '../../../src/config/table.ts';
import { SETTINGS_TABLE } from '../../../src/config/table.ts';
import { generateConfigurationPage, readConfigurationPage } from '../../rig/configuration-page.ts';

const SETTING_SPECS: readonly SettingSpec<unknown>[] = Object.values(SETTINGS_TABLE);

it('docs/configuration.md equals what `npm run docs` generates from the table of settings', () => {
  const page = readConfigurationPage();
  expect(page).toBe(generateConfigurationPage(page));
});

it('every setting accepts its example', () => {
  const parseResults = SETTING_SPECS.filter(({ type }) => type !== 'path of a PEM file').map(
    ({ name, example, parse }) => ({ name, ok: parse(example).ok }),
  );
  expect(parseResults.filter(({ ok }) => !ok)).toEqual([]);
});

it('a secret is never printed', () => {
  for (const { secrecy, formatMaskedValue, example } of SETTING_SPECS) {
    if (secrecy === 'whole') expect(formatMaskedValue(example)).not.toContain(example);
    if (secrecy === 'password') expect(formatMaskedValue(example)).not.toContain('password@');
  }
});

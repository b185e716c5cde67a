import { readFileSync } from 'node:fs';
import type { SettingSpec } from '../../src/config/table.ts';
import { ROUTE_SPEC, SETTINGS_TABLE } from '../../src/config/table.ts';

export const CONFIGURATION_PAGE = new URL('../../docs/configuration.md', import.meta.url);
const BEGIN_MARKER = '<!-- Generated from src/config/table.ts by `npm run docs`; do not edit by hand. -->\n';
const END_MARKER = '<!-- End of the generated part. -->\n';

export function readConfigurationPage(): string {
  return readFileSync(CONFIGURATION_PAGE, 'utf8');
}

/** Returns `page` with the text between its markers replaced by the current settings. @throws Error if a marker is missing */
export function generateConfigurationPage(page: string): string {
  const [beginIndex, endIndex] = [page.indexOf(BEGIN_MARKER), page.indexOf(END_MARKER)];
  if (beginIndex < 0 || endIndex < beginIndex)
    throw new Error('docs/configuration.md lacks the markers of its generated part');
  return `${page.slice(0, beginIndex)}${BEGIN_MARKER}\n${formatSettings()}\n${page.slice(endIndex)}`;
}

function formatSettings(): string {
  const specs: readonly SettingSpec<unknown>[] = Object.values(SETTINGS_TABLE);
  return specs
    .flatMap((spec) => (spec === SETTINGS_TABLE.transport ? [spec, ROUTE_SPEC] : [spec]))
    .map(formatSection)
    .join('\n');
}

const SECRECY_TEXTS: { readonly [secrecy in SettingSpec<unknown>['secrecy']]: string } = {
  no: '',
  password: ' Secret: the password in the URL.',
  urls: ' Secret: the paths and queries of the URLs.',
  whole: ' Secret.',
};

function formatDefault(spec: SettingSpec<unknown>): string {
  return spec.default === null ? 'none' : `\`${spec.default}\``;
}

function formatSection(spec: SettingSpec<unknown>): string {
  return [
    `### ${spec.name}\n`,
    `${spec.meaning}\n`,
    `Default: ${formatDefault(spec)}. Type: ${spec.type}${spec.range === null ? '' : `, ${spec.range}`}.${SECRECY_TEXTS[spec.secrecy]}\n`,
    `    ${spec.name}=${spec.example}\n`,
  ].join('\n');
}

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SETTINGS_TABLE } from '../../../src/config/table.ts';
import { listFiles, ROOT } from '../../house/source.ts';

const readPage = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const PAGE_PATHS = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md'),
  ...listFiles('docs', '.md'),
];

function findLinks(page: string): readonly string[] {
  const prose = readPage(page)
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map((match) => match[1] ?? '')
    .filter((address) => !/^[a-z]+:/.test(address));
}

test('docs/README.md links to every page of docs, and docs/decisions/README.md links to every decision', () => {
  for (const folder of ['docs', 'docs/decisions']) {
    const listedFiles = findLinks(`${folder}/README.md`).map((address) => address.split('#')[0]);
    const pages = readdirSync(join(ROOT, folder)).filter((name) => name.endsWith('.md') && name !== 'README.md');
    expect([folder, pages.filter((name) => !listedFiles.includes(name))]).toEqual([folder, []]);
  }
});

test('every page begins with a title and a paragraph with its purpose', () => {
  expect(listFiles('docs', '.md').filter((page) => !/^# \S.*\n\n[^#|\n]/.test(readPage(page)))).toEqual([]);
});

test('every setting on a page exists', () => {
  const settings = Object.values(SETTINGS_TABLE).map(({ name }) => String(name));
  // Kubernetes sets POSTRIDER_SERVICE_HOST and POSTRIDER_PORT for a Service named `postrider`; docs/configuration.md
  // states that they are ignored.
  const knownNames = new Set([...settings, 'POSTRIDER_API_KEY', 'POSTRIDER_SERVICE_HOST', 'POSTRIDER_PORT']);
  const unknownNames = PAGE_PATHS.flatMap((page) =>
    [...readPage(page).matchAll(/\bPOSTRIDER_[A-Z]+(?:_[A-Z]+)*\b/g)]
      .map(([name]) => name)
      .filter((name) => !knownNames.has(name.replace(/_FILE$/, '')))
      .map((name) => `${page}: there is no setting ${name}`),
  );
  expect(unknownNames).toEqual([]);
});

test('every metric on a page exists', () => {
  const code = readPage('src/observability/metrics.ts');
  const unknownNames = PAGE_PATHS.flatMap((page) =>
    [...readPage(page).matchAll(/(?<!#)\bpostrider_[a-z]+(?:_[a-z]+)*\b/g)]
      .map(([name]) => name)
      .filter(
        (name) => !code.includes(`'${name.replace(/_(?:bucket|sum|count)$/, '')}'`) && !code.includes(`'${name}'`),
      )
      .map((name) => `${page}: there is no metric ${name}`),
  );
  expect(unknownNames).toEqual([]);
});

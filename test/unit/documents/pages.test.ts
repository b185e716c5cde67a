import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { SETTINGS_TABLE } from '../../../src/config/table.ts';
import { listFiles, ROOT } from '../../house/source.ts';

const readPage = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const PAGE_PATHS = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md'),
  ...listFiles('docs', '.md'),
];

function removeCode(page: string): string {
  return readPage(page)
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/^(?: {4,}|\t).*$/gm, '');
}

const findLinks = (page: string): readonly string[] =>
  [...removeCode(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link));

/** Returns the anchors of the headings, as GitHub creates them. */
function findAnchors(page: string): readonly string[] {
  return [...removeCode(page).matchAll(/^#{1,6} (.+)$/gm)].map(([, text = '']) =>
    text
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function findLinkFault(page: string, link: string): string | null {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : join(dirname(page), path);
  if (!existsSync(join(ROOT, target))) return `${page}: there is no ${target}`;
  if (anchor === undefined || !target.endsWith('.md')) return null;
  return findAnchors(target).includes(anchor) ? null : `${page}: ${target} has no heading #${anchor}`;
}

test('every link of the documentation has an existing file and heading as target', () => {
  const links = [...PAGE_PATHS, 'CHANGELOG.md'].flatMap((page) => findLinks(page).map((link) => ({ page, link })));
  expect(links.length).toBeGreaterThan(50);
  expect(links.flatMap(({ page, link }) => findLinkFault(page, link) ?? [])).toEqual([]);
});

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
      .filter((name) => !name.startsWith('POSTRIDER_ROUTE_') && !knownNames.has(name.replace(/_FILE$/, '')))
      .map((name) => `${page}: there is no setting ${name}`),
  );
  expect(unknownNames).toEqual([]);
});

test('every metric on a page exists', () => {
  const code = readPage('src/observability/metrics.ts');
  const unknownNames = PAGE_PATHS.flatMap((page) =>
    [...readPage(page).matchAll(/(?<!#)\bpostrider_[a-z]+(?:_[a-z]+)*\b/g)]
      .map(([name]) => name)
      .filter((name) => !code.includes(name.replaceAll(/^postrider_|_(?:bucket|sum|count)$/g, '')))
      .map((name) => `${page}: there is no metric ${name}`),
  );
  expect(unknownNames).toEqual([]);
});

const QUOTING_HEADERS = ['message', 'finding', 'what you see'];

function findQuotations(page: string): readonly string[] {
  const foundQuotations: string[] = [];
  let isQuotingTable = false;
  for (const line of page.split('\n')) {
    if (!line.startsWith('|')) {
      isQuotingTable = false;
      continue;
    }
    const firstCell = line.split(' | ')[0]?.slice(2) ?? '';
    if (QUOTING_HEADERS.includes(firstCell)) isQuotingTable = true;
    else if (isQuotingTable)
      foundQuotations.push(...[...firstCell.matchAll(/`([^`]+)`/g)].map(([, text]) => text ?? ''));
  }
  return foundQuotations;
}

test('every text that docs/troubleshooting.md quotes is in the source, except for the variable parts of the text', () => {
  const code = listFiles('src', '.ts').map(readPage).join('\n');
  const quotedTexts = findQuotations(readPage('docs/troubleshooting.md'));
  const pieces = quotedTexts.flatMap((text) => text.split('…').map((piece) => piece.trim()));
  expect(quotedTexts.length).toBeGreaterThan(20);
  expect(pieces.filter((piece) => !code.includes(piece.replace(/^postrider_/, '')))).toEqual([]);
});

test('LICENSE is the complete standard text of the license in package.json', () => {
  expect(JSON.parse(readPage('package.json'))).toMatchObject({ license: 'Apache-2.0' });
  // The digest of LICENSE-2.0.txt as published by the Apache Software Foundation.
  expect(createHash('sha256').update(readPage('LICENSE')).digest('hex')).toBe(
    'cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30',
  );
});

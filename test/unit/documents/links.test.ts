import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

function listPages(): readonly string[] {
  const docsPages = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) =>
    join('docs', name),
  );
  return [...readdirSync(ROOT), ...docsPages].filter((name) => name.endsWith('.md'));
}

function removeCode(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/^(?: {4,}|\t).*$/gm, '');
}

function findAnchors(page: string): ReadonlySet<string> {
  const headings = [...removeCode(page).matchAll(/^#{1,6} (.+)$/gm)].map(([, text]) => text ?? '');
  return new Set(
    headings.map((text) =>
      text
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

function findLinkFault(page: string, link: string): string | null {
  if (/^[a-z]+:/.test(link)) return null;
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : join(dirname(page), path);
  if (!existsSync(join(ROOT, target))) return `${page}: there is no ${target}`;
  if (anchor === undefined || !target.endsWith('.md')) return null;
  return findAnchors(target).has(anchor) ? null : `${page}: ${target} has no heading #${anchor}`;
}

it('every link of the documentation has an existing file and heading as target', () => {
  const links = listPages().flatMap((page) =>
    [...removeCode(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => ({ page, link: link ?? '' })),
  );
  expect(links.length).toBeGreaterThan(50);
  expect(links.flatMap(({ page, link }) => findLinkFault(page, link) ?? [])).toEqual([]);
});

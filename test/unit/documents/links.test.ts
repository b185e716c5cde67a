/** Links between the pages of the documentation: the file and the heading that a link names exist. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

function pages(): readonly string[] {
  const docs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) => join('docs', name));
  return [...readdirSync(ROOT), ...docs].filter((name) => name.endsWith('.md'));
}

/** The page without its code: what stands there is no link and no heading. */
function withoutCode(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/^(?: {4,}|\t).*$/gm, '');
}

/** The anchors of the headings, as GitHub makes them. */
function anchors(page: string): ReadonlySet<string> {
  const headings = [...withoutCode(page).matchAll(/^#{1,6} (.+)$/gm)].map(([, text]) => text ?? '');
  return new Set(
    headings.map((text) =>
      text
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** What is wrong with a link of a page, or null. */
function linkFault(page: string, link: string): string | null {
  if (/^[a-z]+:/.test(link)) return null;
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : join(dirname(page), path);
  if (!existsSync(join(ROOT, target))) return `${page}: there is no ${target}`;
  if (anchor === undefined || !target.endsWith('.md')) return null;
  return anchors(target).has(anchor) ? null : `${page}: ${target} has no heading #${anchor}`;
}

it('every link of the documentation leads to a file and a heading that exist', () => {
  const links = pages().flatMap((page) =>
    [...withoutCode(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => ({ page, link: link ?? '' })),
  );
  expect(links.length).toBeGreaterThan(50);
  expect(links.flatMap(({ page, link }) => linkFault(page, link) ?? [])).toEqual([]);
});

/** docs/troubleshooting.md quotes the output of the service and the commands. Each quotation must be in the source. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = new URL('../../../', import.meta.url);
/** The headers of the tables whose first column quotes printed text. */
const QUOTING_HEADERS = ['message', 'finding', 'what you see'];

function source(): string {
  const folder = fileURLToPath(new URL('src/', ROOT));
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  return files.map((name) => readFileSync(`${folder}${name}`, 'utf8')).join('\n');
}

/** The code spans in the first column of these tables. */
function quotations(page: string): readonly string[] {
  const found: string[] = [];
  let quotes = false;
  for (const line of page.split('\n')) {
    if (!line.startsWith('|')) {
      quotes = false;
      continue;
    }
    const first = line.split(' | ')[0]?.slice(2) ?? '';
    if (QUOTING_HEADERS.includes(first)) quotes = true;
    else if (quotes) found.push(...[...first.matchAll(/`([^`]+)`/g)].map(([, text]) => text ?? ''));
  }
  return found;
}

it('every text that docs/troubleshooting.md quotes is in the source, except for its variable part', () => {
  const code = source();
  const quoted = quotations(readFileSync(new URL('docs/troubleshooting.md', ROOT), 'utf8'));
  const pieces = quoted.flatMap((text) => text.split('…').map((piece) => piece.trim()));
  expect(quoted.length).toBeGreaterThan(20);
  expect(pieces.filter((piece) => !code.includes(piece))).toEqual([]);
});

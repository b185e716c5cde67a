import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = new URL('../../../', import.meta.url);
const QUOTING_HEADERS = ['message', 'finding', 'what you see'];

function readSource(): string {
  const folder = fileURLToPath(new URL('src/', ROOT));
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  return files.map((name) => readFileSync(`${folder}${name}`, 'utf8')).join('\n');
}

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

it('every text that docs/troubleshooting.md quotes is in the source, except for the variable parts of the text', () => {
  const code = readSource();
  const quotedTexts = findQuotations(readFileSync(new URL('docs/troubleshooting.md', ROOT), 'utf8'));
  const pieces = quotedTexts.flatMap((text) => text.split('…').map((piece) => piece.trim()));
  expect(quotedTexts.length).toBeGreaterThan(20);
  expect(pieces.filter((piece) => !code.includes(piece))).toEqual([]);
});

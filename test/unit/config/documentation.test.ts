import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { TABLE } from '../../../src/config/table.ts';

const PAGE = readFileSync(new URL('../../../docs/operating.md', import.meta.url), 'utf8');

it('the settings table of docs/operating.md is the table of the code', () => {
  const rows = PAGE.split('\n').filter((line) => line.startsWith('| `POSTRIDER_'));
  const expected = Object.values(TABLE).map((spec) => {
    const fallback = spec.default === null ? 'none' : `\`${spec.default}\``;
    return `| \`${spec.name}\` | ${fallback} | ${spec.meaning} |`;
  });
  expect(rows).toEqual(expected);
});

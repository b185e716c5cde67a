import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatCsvCell, unescapeCsvText } from '../../../src/printing/text.ts';

test('a cell that a spreadsheet evaluates begins with an apostrophe, which a reader removes', () => {
  const texts = ['=1+1', '+49', '-1', '@SUM(A1)', '\tx', "'=1", 'plain', "o'neil", ''];
  const cells = ["'=1+1", "'+49", "'-1", "'@SUM(A1)", "'\tx", "''=1", 'plain', "o'neil", ''];
  expect(texts.map(formatCsvCell)).toEqual(cells);
  expect(cells.map(unescapeCsvText)).toEqual(texts);
  expect(formatCsvCell('\r=,"')).toBe('"\'\r=,"""');
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...`'=+-@\t\ra`) }), (text) => {
      const cell = formatCsvCell(text);
      const content = cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
      expect(/^[=+\-@\t\r]/.test(content)).toBe(false);
      expect(unescapeCsvText(content)).toBe(text);
    }),
  );
});

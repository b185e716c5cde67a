import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatCsvCell, toSentence, unescapeCsvText } from '../../../src/printing/text.ts';

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

test('a full stop is added only if the text ends without punctuation', () => {
  const texts = ['550 No such user', '550 No such user.', 'is the mail server running there?', 'Stop!'];
  expect(texts.map(toSentence)).toEqual([
    '550 No such user.',
    '550 No such user.',
    'is the mail server running there?',
    'Stop!',
  ]);
});

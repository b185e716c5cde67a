import { describe, expect, it } from 'vitest';
import { formatTable } from '../../../src/cli/terminal.ts';
import { formatSpan, shortenText } from '../../../src/printing/text.ts';

describe('output', () => {
  it('columns are aligned and no line ends with spaces', () => {
    expect(
      formatTable(
        ['ID', 'STATE'],
        [
          ['1', { text: 'queued', style: 'warning' }],
          ['long-id', ''],
        ],
      ),
    ).toBe('ID       STATE\n1        queued\nlong-id\n');
  });

  describe('a table that is wider than the terminal', () => {
    const headings = ['ID', 'TO', 'STATE', 'SUBJECT'];
    const subject = 'A long subject 👍👍👍 of 32 characters';
    const rows = [
      ['0199aaaa', 'ada@example.com', { text: 'queued', style: 'warning' } as const, subject],
      ['0199aaab', 'bo@b.example', 'sent', 'Short'],
    ];
    const formatWithWidth = (width: number) =>
      formatTable(headings, rows, { truncatedHeadings: ['TO', 'SUBJECT'], width });

    it('truncates only columns of free text, beginning with the widest', () => {
      expect(formatWithWidth(50)).toBe(
        [
          'ID        TO               STATE   SUBJECT',
          '0199aaaa  ada@example.com  queued  A long subject…',
          '0199aaab  bo@b.example     sent    Short',
          '',
        ].join('\n'),
      );
      expect(formatWithWidth(42).split('\n')[1]).toBe('0199aaaa  ada@exampl…  queued  A long sub…');
    });

    it('omits columns of free text if truncation is not sufficient, and names the omitted columns', () => {
      const [heading, , , note] = formatWithWidth(35).split('\n');
      expect(heading).toBe('ID        TO               STATE');
      expect(note).toMatch(/^SUBJECT: not shown/);
      expect(formatWithWidth(16).split('\n')[1]).toBe('0199aaaa  queued');
    });

    it('shows only its first columns in a very narrow terminal, and names the omitted columns in table order', () => {
      const [heading, row, , note] = formatTable(headings, rows, {
        truncatedHeadings: ['TO', 'SUBJECT'],
        width: 15,
      }).split('\n');
      expect([heading, row]).toEqual(['ID', '0199aaaa']);
      expect(note).toBe('TO, STATE, SUB…');
      const countTable = formatTable(['FROM', 'ACCEPTED', 'EXPIRED'], [['2026-11-22', '10', '0']], { width: 25 });
      expect(countTable).toMatch(/^FROM {8}ACCEPTED\n2026-11-22 {2}10\nEXPIRED: not shown/);
    });

    it('fits into every width that is at least the width of its first column', () => {
      for (let width = 8; width < 90; width += 1) {
        const widths = formatWithWidth(width)
          .split('\n')
          .map((line) => [...line].length);
        expect(Math.max(...widths)).toBeLessThanOrEqual(width);
      }
    });
  });

  it('line breaks in cells are replaced', () => {
    expect(formatTable(['A'], [['x\ny']])).toBe('A\nx\uFFFDy\n');
  });

  it('truncated text ends with … and never splits a character', () => {
    expect(shortenText('👍👍👍', 2)).toBe('👍…');
    expect(shortenText('abc', 3)).toBe('abc');
  });

  it.each([
    [0, '0 s'],
    [65_000, '1 min 5 s'],
    [3_600_000, '1 h'],
    [90_061_000, '1 d 1 h'],
  ])('%d ms is formatted as %s', (ms, text) => expect(formatSpan(ms)).toBe(text));
});

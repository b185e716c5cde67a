import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { formatTable } from '../../../src/cli/terminal.ts';
import type { Setup } from '../../../src/operations/installation.ts';
import { formatSpan, shortenText } from '../../../src/printing/text.ts';
import { createCapturedSource } from '../../rig/captured-message.ts';
import { createMessageIdAt } from '../../rig/messages.ts';
import { createCommandRig } from './command-rig.ts';

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

test('`setup` prints each step with its state, and the command of each open step', async () => {
  const rig = await createCommandRig();
  const { stdout, code } = await rig.run('setup');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^STEP +STATE +DETAIL\n/);
  expect(stdout).toMatch(/^Send a test message +open /m);
  expect(stdout).toMatch(/^Add a sending domain +not needed /m);
  expect(stdout).toMatch(/^Send events to your application +optional /m);
  const { steps, openCount } = await rig.runJson<Setup>('setup');
  const commands = steps.flatMap(({ state, command }) => (state === 'open' && command !== null ? [command] : []));
  expect(commands).toHaveLength(openCount);
  for (const command of commands) expect(stdout).toContain(`\n  ${command}\n`);
});

test('the text output of `audit` lists the changed members of each entry', async () => {
  const rig = await createCommandRig();
  await rig.run('account', 'set', 'acme', '--volume', '10', '--volume-expires', '2030-12-31');
  await rig.run('account', 'lock', 'acme', '--reason', 'unpaid');
  await rig.run('suppression', 'add', 'acme', 'a@example.com');
  await rig.run('suppression', 'remove', 'acme', 'a@example.com');
  await rig.run('account', 'set', 'acme', '--volume', 'unlimited');
  const { stdout } = await rig.run('audit');
  const changeTexts = stdout
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.slice(line.lastIndexOf('  ') + 2));
  expect(changeTexts.reverse()).toEqual([
    'limits: volume: none → 10; limits: volume expires: none → 2030-12-31 00:00:00Z',
    'locked: none → unpaid',
    'added: 1; addresses: a@example.com',
    'address: a@example.com → none',
    'limits: volume: 10 → none; limits: volume expires: 2030-12-31 00:00:00Z → none',
  ]);
});

test('`inbox` lists and shows captured messages with the findings of their checks, without control characters', async () => {
  const rig = await createCommandRig();
  const ID = createMessageIdAt(Date.UTC(2030, 0, 1));
  expect(await rig.run('inbox', 'list')).toMatchObject({ code: 0, stdout: 'The inbox is empty.\n' });
  const folder = join(rig.folder, 'inbox/new');
  mkdirSync(folder, { recursive: true });
  const html = '<html lang="en"><title>x</title><p>Hi</p><a href="http://example.com/\u001b[31m">Pay</a>';
  writeFileSync(join(folder, `${ID}.eml`), createCapturedSource(html));
  const listResult = await rig.run('inbox', 'list', '--search', 'ADA');
  expect(listResult.stdout).toContain(ID);
  const { stdout } = await rig.run('inbox', 'show', ID);
  expect(stdout).toContain('link-http: Unencrypted link.');
  expect(stdout).toContain('html line 1: <a href="http://example.com/');
  expect(stdout).toContain('ada@example.com');
  expect(stdout).not.toContain('\u001b[31m');
  expect(await rig.runJson('inbox', 'show', ID)).toMatchObject({ id: ID, checks: [{ code: 'link-http', count: 1 }] });
  expect(await rig.run('inbox', 'show', createMessageIdAt(1))).toMatchObject({ code: 1 });
});

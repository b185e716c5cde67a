import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type ImportParts, importFile } from '../../../src/cli/suppression-import.ts';
import type { Suppression } from '../../../src/model/suppression.ts';
import { temporaryFolder } from '../../rig/folder.ts';

interface Heard {
  readonly parts: ImportParts;
  readonly batches: (readonly Suppression[])[];
  readonly lines: string[];
}

/** An import of `text` in batches of 10; the clock goes on by `tickMs` at every look. */
function importOf(text: string, change: Partial<ImportParts> = {}, tty = false, tickMs = 0): Heard {
  const file = join(temporaryFolder(), 'list.csv');
  writeFileSync(file, text);
  const batches: (readonly Suppression[])[] = [];
  const lines: string[] = [];
  let now = Date.UTC(2030, 0, 1);
  const parts: ImportParts = {
    file,
    reason: 'manual',
    batchSize: 10,
    add: async (entries) => {
      batches.push(entries);
      return entries.length;
    },
    terminal: { isTTY: tty, columns: 200, write: (said) => lines.push(said) },
    now: () => {
      now += tickMs;
      return now;
    },
    ...change,
  };
  return { parts, batches, lines };
}

const rows = (count: number) => Array.from({ length: count }, (_, at) => `user${at}@example.com\n`).join('');

test('rows go to the store in batches, and are counted', async () => {
  const { parts, batches, lines } = importOf(rows(25));
  expect(await importFile(parts)).toEqual({ read: 25, added: 25, known: 0, skipped: 0 });
  expect(batches.map((batch) => batch.length)).toEqual([10, 10, 5]);
  expect(lines).toEqual([]);
});

test('what was on the list before is counted as known', async () => {
  const { parts } = importOf(rows(25), { add: async (entries) => entries.length - 4 });
  expect(await importFile(parts)).toEqual({ read: 25, added: 13, known: 12, skipped: 0 });
});

test('bad rows are told by their line, at most a hundred of them, and skipped', async () => {
  const { parts, lines } = importOf(`${rows(1)}${'bad\n'.repeat(150)}${rows(1)}`);
  expect(await importFile(parts)).toEqual({ read: 152, added: 2, known: 0, skipped: 150 });
  expect(lines).toHaveLength(101);
  expect(lines[0]).toBe('line 2: "bad" is not an email address; skipped\n');
  expect(lines[100]).toBe('and 50 more bad rows, skipped\n');
});

test('a file that is no list of addresses is one line, and nothing is added', async () => {
  const { parts, batches, lines } = importOf('{\n"a": 1\n}\n'.repeat(1000));
  await expect(importFile(parts)).rejects.toThrow(
    /holds nothing to import: none of its first 1,000 rows could be taken/,
  );
  expect([batches, lines]).toEqual([[], []]);
});

test('a store that fails halfway ends the import, which says how many rows were added', async () => {
  let calls = 0;
  const add = async (entries: readonly Suppression[]) => {
    calls += 1;
    if (calls === 3) throw new Error('the disk is full');
    return entries.length;
  };
  const { parts } = importOf(rows(45), { add });
  await expect(importFile(parts)).rejects.toThrow(/the disk is full \(20 addresses were added before; import it again/);
  expect(calls).toBe(3);
});

test.each([
  ['a quote that never closes', '"open\n', /from line 14 on: a quote opens there/],
  ['binary data', '\0\0\n', /line 14 holds binary data/],
])('a file that ends in %s adds nothing at all', async (_, end, fault) => {
  const { parts, batches, lines } = importOf(`bad\n${rows(12)}${end}`);
  await expect(importFile(parts)).rejects.toThrow(fault);
  await expect(importFile(parts)).rejects.not.toThrow(/added before/);
  expect([batches, lines]).toEqual([[], []]);
});

test('a terminal shows rows, rate and the time left, and is wiped in the end', async () => {
  const { parts, lines } = importOf(rows(40), {}, true, 150);
  await importFile(parts);
  expect(lines.join('')).toMatch(/\[[#.]{20}\] +\d+ % {2}\d+ rows {2}\d+\/s {2}\d+ s left/);
  expect(lines.at(-1)).toBe('\r\u001b[K');
});

test('no progress in a pipe', async () => {
  const { parts, lines } = importOf(rows(40), {}, false, 150);
  await importFile(parts);
  expect(lines).toEqual([]);
});

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { importFile } from '../../../src/cli/suppression.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createOperationRig } from '../operations/operation-rig.ts';

interface ImportOutput {
  readonly result: Promise<unknown>;
  readonly lines: readonly string[];
}

async function runImport(text: string, { tty = false, tickMs = 0 } = {}): Promise<ImportOutput> {
  const file = join(createTemporaryFolder(), 'list.csv');
  writeFileSync(file, text);
  const { context } = await createOperationRig();
  const lines: string[] = [];
  let now = context.clock.now();
  const clock = {
    ...context.machineClock,
    now: () => {
      now += tickMs;
      return now;
    },
  };
  const terminal = { isTTY: tty, columns: 200, write: (output: string) => lines.push(output) };
  const cli = {
    clock,
    warn: () => undefined,
    withOperationContext: <T>(work: (commandContext: typeof context) => Promise<T>) => work({ ...context, clock }),
  };
  return { result: importFile(cli, { account: 'acme' }, file, terminal), lines };
}

const createRows = (count: number) =>
  Array.from({ length: count }, (_, index) => `user${index}@example.com\n`).join('');

test('invalid rows are skipped, and the line numbers of at most 100 invalid rows are printed', async () => {
  const { result, lines } = await runImport(`${createRows(1)}${'bad\n'.repeat(150)}${createRows(2)}`);
  expect(await result).toMatchObject({ read: 153, added: 2, known: 1, skippedCount: 150 });
  expect(lines).toHaveLength(101);
  expect(lines[0]).toBe('line 2: "bad" is not an email address; skipped\n');
  expect(lines[100]).toBe('and 50 more invalid rows, skipped\n');
});

test('during an import, a terminal shows a line with the rows, the rate and the remaining time; the line is erased at the end', async () => {
  const { result, lines } = await runImport(createRows(40), { tty: true, tickMs: 150 });
  await result;
  expect(lines.join('')).toMatch(/\[[#.]{20}\] +\d+ % {2}\d+ rows {2}\d+\/s {2}\d+ s left/);
  expect(lines.at(-1)).toBe('\r\u001b[K');
});

import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { importFile } from '../../../src/cli/suppression.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createOperationRig } from '../operations/operation-rig.ts';
import { createCommandRig, launchProgram } from './command-rig.ts';

describe('suppression lists', () => {
  it('`suppression show` prints every list that contains the address, and whether accounts can send to the address', async () => {
    const rig = await createCommandRig();
    await rig.runJson('suppression', 'add', 'acme', 'ada@example.com', '--reason', 'bounce');
    await rig.runJson('suppression', 'add', '*', 'ada@example.com');
    expect(await rig.runJson('suppression', 'show', 'Ada@example.com')).toMatchObject({
      address: 'ada@example.com',
      suppressed: true,
      lists: [
        { list: '*', reason: 'manual', source: null, at: '2030-01-01T00:00:00.000Z' },
        { list: 'acme', reason: 'bounce', source: null, at: '2030-01-01T00:00:00.000Z' },
      ],
    });
    const { stdout } = await rig.run('suppression', 'show', 'ada@example.com');
    expect(stdout).toMatch(/list of +the whole service \(\*\): no account can send to the address/);
    expect(stdout).toMatch(/list of +account acme\nreason +bounce/);
    expect((await rig.run('suppression', 'show', 'bob@example.com')).stdout).toMatch(/is on no suppression list/);
    expect(await rig.run('suppression', 'show', 'bob')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"bob"'),
    });
  });

  it('a list longer than a page is listed and exported completely and in order, and the export can be imported', async () => {
    const rig = await createCommandRig();
    await rig.run('account', 'create', 'other');
    const file = join(rig.folder, 'in.csv');
    const addresses = Array.from({ length: 5_001 }, (_, index) => `user${String(index).padStart(6, '0')}@example.com`);
    writeFileSync(file, addresses.join('\n'));
    const summary = { read: 5_001, added: 5_001, known: 0, skipped: 0 };
    expect(await rig.runJson('suppression', 'import', 'acme', file, '--reason', 'bounce')).toMatchObject(summary);
    expect(await rig.runJson('suppression', 'import', 'acme', file)).toMatchObject({
      ...summary,
      added: 0,
      known: 5_001,
    });
    const listedEntries = await rig.runJson<{ address: string; reason: string }[]>('suppression', 'list', 'acme');
    expect(listedEntries.map(({ address }) => address)).toEqual(addresses);
    expect((await rig.run('suppression', 'list', 'acme')).stdout.trim().split('\n')).toHaveLength(5_002);
    const exportPath = join(rig.folder, 'out.csv');
    expect((await rig.run('suppression', 'export', 'acme', exportPath)).code).toBe(0);
    expect(statSync(exportPath).mode & 0o777).toBe(0o600);
    expect((await rig.run('suppression', 'export', 'acme')).stdout).toBe(readFileSync(exportPath, 'utf8'));
    const secondExportPath = join(rig.folder, 'again.csv');
    expect(await rig.runJson('suppression', 'export', 'acme', secondExportPath)).toEqual({
      file: secondExportPath,
      addresses: 5_001,
    });
    expect((await rig.run('suppression', 'export', 'acme', exportPath)).stderr).toMatch(/out\.csv already exists/);
    expect(await rig.runJson('suppression', 'export', 'acme')).toEqual(listedEntries);
    expect(await rig.runJson('suppression', 'import', 'other', exportPath)).toMatchObject(summary);
    expect(await rig.runJson('suppression', 'list', 'other')).toEqual(listedEntries);
  });
});

describe('a one-line error is printed by', () => {
  it.each([
    [['add', 'acme', 'ada'], 2, /^ADDRESS: "ada" is neither an address/],
    [['import', 'acme', '/no/such.csv'], 1, /^there is no file "\/no\/such.csv"/],
    [['import', 'acme', '/'], 1, /^"\/" is a folder/],
  ])('the command suppression %j', async (args, code, output) => {
    const rig = await createCommandRig();
    const { stdout, ...failedResult } = await rig.run('suppression', ...args);
    expect(failedResult).toEqual({ code, stderr: expect.stringMatching(output) });
    expect(failedResult.stderr).not.toContain('\n');
    expect(stdout).toBe('');
  });
});

it('an import of a file of a provider prints its format and the number of excluded rows, and a dry run adds nothing', async () => {
  const rig = await createCommandRig();
  const file = join(rig.folder, 'bounces.csv');
  const rows = ['address,code,error,created_at', 'ada@example.com,550,unknown,', 'bob@example.com,452,full,'];
  writeFileSync(file, rows.join('\n'));
  expect((await rig.run('suppression', 'import', 'acme', file, '--dry-run')).stdout).toBe(
    'read 2 rows (bounces of Mailgun) for account acme: 1 bounce, 1 skipped; nothing was added (--dry-run)\nskipped because they suppress no recipient: 1 soft bounce\n',
  );
  expect(await rig.runJson('suppression', 'list', 'acme')).toEqual([]);
  expect((await rig.run('suppression', 'import', 'acme', file)).stdout).toBe(
    'read 2 rows (bounces of Mailgun) for account acme: 1 added, 0 already listed, 1 skipped\nskipped because they suppress no recipient: 1 soft bounce\n',
  );
});

it('standard input is imported, and without a terminal, only skipped rows and errors are written to standard error', async () => {
  const rig = await createCommandRig();
  const text = 'email,reason\nada@example.com,bounce\nbob\n';
  const output = await launchProgram(rig.folder, ['suppression', 'import', 'acme', '-', '--json'], text);
  expect(output).toEqual({
    code: 0,
    stdout:
      '{"read":2,"added":1,"known":0,"skipped":1,"format":null,"excluded":[],"reasons":[{"reason":"bounce","count":1}],"dryRun":false}\n',
    stderr: 'line 3: "bob" is not an email address; skipped\n',
  });
  const binaryOutput = await launchProgram(rig.folder, ['suppression', 'import', 'acme', '-'], Buffer.alloc(100));
  expect(binaryOutput).toEqual({
    code: 1,
    stdout: '',
    stderr: 'postrider: standard input is not CSV: line 1 contains binary data; give a text file in UTF-8\n',
  });
});

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

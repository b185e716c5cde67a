/** Tests suppression lists of a running service. An entry that a command adds applies to the next request. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { runCommand, runJsonCommand, submitAccepted } from '../rig/service.ts';
import { createScenario, type RunningService } from './running-service.ts';

const rig = createScenario();
let folder = '';
let service: RunningService;
beforeAll(async () => {
  folder = rig.createFolder();
  service = await rig.serve(folder);
});

const runJson = <T>(...args: string[]) => runJsonCommand<T>(folder, args);
const submitMessage = (to: string) => submitAccepted(service.publicUrl, service.key, { to });
const readState = async (id: string) => (await runJson<{ state: string }>('message', 'show', id)).state;

test('messages to an address on the list, in any spelling, are suppressed until the address is removed from the list', async () => {
  await runJson('suppression', 'add', 'default', 'Gone@Example.COM', '--reason', 'bounce');
  expect(await readState(await submitMessage('gONE@example.com'))).toBe('suppressed');
  expect(await runJson('suppression', 'list', 'default')).toEqual([
    { address: 'gone@example.com', reason: 'bounce', source: null, at: expect.stringMatching(/^\d{4}-.*Z$/) },
  ]);
  await runJson('suppression', 'remove', 'default', 'gone@example.com');
  const id = await submitMessage('gone@example.com');
  await expect.poll(() => readState(id)).toBe('delivered');
});

test('the suppression list `*` applies to the messages of every account', async () => {
  await runJson('suppression', 'add', '*', 'nobody@example.com');
  expect(await readState(await submitMessage('nobody@example.com'))).toBe('suppressed');
});

test('the running service suppresses the addresses of an import, and accepts messages during the import', async () => {
  const file = join(folder, 'list.csv');
  const addresses = Array.from({ length: 50_000 }, (_, at) => `user${at}@import.example`);
  writeFileSync(
    file,
    `EmailAddress,Reason\n${addresses.map((address) => `${address},BOUNCE\n`).join('')}no address,BOUNCE\n`,
  );
  const importRun = runCommand(folder, ['suppression', 'import', 'default', file, '--json']);
  let isImportDone = false;
  void importRun.then(() => {
    isImportDone = true;
  });
  let sentCount = 0;
  while (!isImportDone) {
    await submitMessage(`meanwhile${sentCount}@example.com`);
    sentCount += 1;
  }
  const { code, stdout, stderr } = await importRun;
  expect({ code, stderr }).toEqual({ code: 0, stderr: 'line 50002: "no address" is not an email address; skipped\n' });
  expect(JSON.parse(stdout)).toMatchObject({ read: 50_001, added: 50_000, known: 0, skipped: 1 });
  expect(sentCount).toBeGreaterThan(0);
  expect(await readState(await submitMessage('user49999@import.example'))).toBe('suppressed');
  const exportOutput = await runCommand(folder, ['suppression', 'export', 'default']);
  expect(exportOutput.stdout.trim().split('\n')).toHaveLength(50_001);
});

test('an import of a file that cannot be read completely adds no entry to the list', async () => {
  const file = join(folder, 'broken.csv');
  const validRows = Array.from({ length: 20_000 }, (_, index) => `user${index}@broken.example\n`).join('');
  await runJson('suppression', 'add', 'default', 'before@broken.example');
  for (const invalidEnd of ['"never closed\n', 'binary\0data\n']) {
    writeFileSync(file, validRows + invalidEnd);
    const { code, stderr } = await runCommand(folder, ['suppression', 'import', 'default', file]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/line 20001.*\n$/);
    expect(stderr).not.toContain('added before');
  }
  const exportOutput = await runCommand(folder, ['suppression', 'export', 'default']);
  const storedRows = exportOutput.stdout.split('\n').filter((row) => row.includes('@broken.example'));
  expect(storedRows).toHaveLength(1);
  writeFileSync(file, validRows);
  expect(await runJson('suppression', 'import', 'default', file)).toMatchObject({ added: 20_000 });
});

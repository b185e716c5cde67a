import { expect, test } from 'vitest';
import { runCommand, runJsonCommand } from '../rig/service.ts';
import { createScenario } from './running-service.ts';

interface DomainAnswer {
  readonly records: readonly { readonly purpose: string; readonly name: string; readonly value: string }[];
}

const rig = createScenario();
const SETTINGS = { POSTRIDER_SECRET: 'ab'.repeat(32) };

test('the rotation of the keys of a domain without Ed25519 adds one record and can be cancelled', async () => {
  const folder = rig.createFolder();
  await runJsonCommand(folder, ['account', 'create', 'default'], SETTINGS);
  const runPostrider = (...args: string[]) => runCommand(folder, ['domain', ...args], SETTINGS);
  const listDkimRecords = async (...args: string[]) =>
    (await runJsonCommand<DomainAnswer>(folder, ['domain', ...args], SETTINGS)).records.filter(
      ({ purpose }) => purpose === 'dkim',
    );
  const records = await listDkimRecords('add', 'default', 'alone.example', '--no-ed25519');
  expect(records.map(({ value }) => value.includes('k=rsa'))).toEqual([true]);
  const rotatedRecords = await listDkimRecords('rotate', 'alone.example');
  expect(rotatedRecords).toHaveLength(2);
  const secondRotation = await runPostrider('rotate', 'alone.example');
  expect([secondRotation.code, secondRotation.stderr]).toEqual([
    1,
    expect.stringContaining('domain rotate alone.example --cancel'),
  ]);
  const { stdout } = await runPostrider('rotate', 'alone.example', '--cancel');
  expect(stdout).toContain(rotatedRecords[1]?.name ?? '-');
  const remainingRecords = await listDkimRecords('records', 'alone.example');
  expect(remainingRecords.map(({ name }) => name)).toEqual(records.map(({ name }) => name));
  expect((await runPostrider('rotate', 'alone.example', '--cancel')).code).toBe(1);
});

test('commands and the service refuse a secret that is missing or does not decrypt the stored keys', async () => {
  const folder = rig.createFolder();
  await runJsonCommand(folder, ['account', 'create', 'default'], SETTINGS);
  await runJsonCommand(folder, ['domain', 'add', 'default', 'sealed.example'], SETTINGS);
  const wrongSecret = { POSTRIDER_SECRET: 'cd'.repeat(32) };
  const cases: readonly [args: string[], settings: Record<string, string>, error: RegExp][] = [
    [['add', 'default', 'late.example'], wrongSecret, /POSTRIDER_SECRET is not the secret/],
    [['rotate', 'sealed.example'], wrongSecret, /POSTRIDER_SECRET is not the secret/],
    [['add', 'default', 'late.example'], {}, /the secret file \S+ is missing/],
  ];
  for (const [args, settings, error] of cases) {
    const { code, stdout, stderr } = await runCommand(folder, ['domain', ...args], settings);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(/^postrider: [^\n]+\n$/)]);
    expect(stderr).toMatch(error);
  }
  await expect(rig.serve(folder, wrongSecret)).rejects.toThrow(/POSTRIDER_SECRET is not the secret/);
  await (await rig.serve(folder, SETTINGS)).stop();
});

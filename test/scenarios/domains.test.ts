/** Tests the `domain` commands with invalid input and invalid DNS responses, as processes while the service runs. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FakeDns, startDns } from '../rig/dns.ts';
import { runCommand, runJsonCommand } from '../rig/service.ts';
import { createScenario } from './running-service.ts';

interface DomainAnswer {
  readonly status: string;
  readonly records: readonly { purpose: string; type: string; name: string; value: string; found: string }[];
}

const rig = createScenario();
let folder = '';
let dns: FakeDns;
let settings: Record<string, string> = {};
beforeAll(async () => {
  dns = await startDns();
  settings = { POSTRIDER_DNS: `127.0.0.1:${dns.port}`, POSTRIDER_SECRET: 'ab'.repeat(32) };
  folder = rig.createFolder();
  await rig.serve(folder, settings);
});
afterAll(() => dns.close());

const runPostrider = (...args: string[]) => runCommand(folder, args, settings);
const addDomain = (name: string) => runJsonCommand<DomainAnswer>(folder, ['domain', 'add', 'default', name], settings);
async function verifyDomain(name: string): Promise<{ code: number; stderr: string; answer: DomainAnswer }> {
  const { code, stdout, stderr } = await runPostrider('domain', 'verify', name, '--json');
  return { code, stderr, answer: JSON.parse(stdout) as DomainAnswer };
}
const listFoundValues = ({ records }: DomainAnswer, purpose: string) =>
  records.filter((record) => record.purpose === purpose).map(({ found }) => found);

test.each([
  ['a public suffix', 'github.io', /public suffix/],
  ['a name of 300 characters', `${'a.'.repeat(148)}test`, /300 characters/],
  ['a name with a label of 64 characters', `${'a'.repeat(64)}.example`, /label of 64 characters/],
  ['two words', 'exam ple.org', /is not a domain name/],
  ['an empty name', '', /missing/],
])('a domain name is refused with a one-line error: %s', async (_name, input, expectedError) => {
  const { code, stdout, stderr } = await runPostrider('domain', 'add', 'default', input);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/^postrider: [^\n]+\n$/);
  expect(stderr).toMatch(expectedError);
});

test('a domain that was added with a Unicode name and a trailing dot cannot be added again with its ASCII name', async () => {
  await addDomain('Bücher.Example.');
  const secondAddResult = await runPostrider('domain', 'add', 'default', 'XN--BCHER-KVA.example');
  expect([secondAddResult.code, secondAddResult.stderr]).toEqual([
    1,
    expect.stringMatching(/xn--bcher-kva.example has already been added/),
  ]);
  const listedDomains = await runJsonCommand<{ domain: string }[]>(folder, ['domain', 'list'], settings);
  expect(listedDomains.filter(({ domain }) => domain === 'xn--bcher-kva.example')).toHaveLength(1);
});

test('`domain verify` reports records that are split into several strings as found, several SPF records at one name as wrong, and records whose lookup failed as unknown', async () => {
  const addedDomain = await addDomain('example.org');
  for (const { type, name, value } of addedDomain.records) {
    if (type === 'TXT') dns.zone[name] = { TXT: [[value.slice(0, 20), value.slice(20, 200), value.slice(200)]] };
  }
  const successfulVerification = await verifyDomain('example.org');
  expect([successfulVerification.code, successfulVerification.answer.status]).toEqual([0, 'authenticated']);

  const spfRecord = addedDomain.records.find(({ purpose }) => purpose === 'spf');
  dns.zone[spfRecord?.name ?? ''] = { TXT: [spfRecord?.value ?? '', 'v=spf1 -all'] };
  expect(listFoundValues((await verifyDomain('example.org')).answer, 'spf')).toEqual(['wrong']);

  for (const fault of ['SERVFAIL', 'REFUSED', 'garbage'] as const) {
    for (const { name } of addedDomain.records) dns.zone[name] = { fault };
    const { code, answer } = await verifyDomain('example.org');
    expect([fault, code, answer.status, new Set(answer.records.map(({ found }) => found))]).toEqual([
      fault,
      0,
      'authenticated',
      new Set(['unknown']),
    ]);
  }

  for (const { name } of addedDomain.records) delete dns.zone[name];
  const failedVerification = await verifyDomain('example.org');
  expect([failedVerification.code, failedVerification.answer.status]).toEqual([1, 'failing']);
  expect(failedVerification.stderr).toMatch(
    /^postrider: example.org is not authenticated \(failing\): 4 missing of 4 records; [^\n]+\n$/,
  );
});

test('with a DNS host that accepts no Ed25519 records, the RSA key authenticates the domain, and a rotation can be cancelled', async () => {
  const listDkimRecords = ({ records }: DomainAnswer) => records.filter(({ purpose }) => purpose === 'dkim');
  const domainWithBothKeys = await addDomain('both.example');
  const rsaRecord = listDkimRecords(domainWithBothKeys).find(({ value }) => value.includes('k=rsa'));
  dns.zone[rsaRecord?.name ?? ''] = {
    TXT: [[rsaRecord?.value.slice(0, 200) ?? '', rsaRecord?.value.slice(200) ?? '']],
  };
  const verification = await verifyDomain('both.example');
  expect([verification.code, verification.answer.status, listFoundValues(verification.answer, 'dkim')]).toEqual([
    0,
    'authenticated',
    ['found', 'missing'],
  ]);

  const domainWithRsaKey = await runJsonCommand<DomainAnswer>(
    folder,
    ['domain', 'add', 'default', 'alone.example', '--no-ed25519'],
    settings,
  );
  expect(listDkimRecords(domainWithRsaKey).map(({ value }) => value.includes('k=rsa'))).toEqual([true]);
  const rotatedDomain = await runJsonCommand<DomainAnswer>(folder, ['domain', 'rotate', 'alone.example'], settings);
  expect(listDkimRecords(rotatedDomain)).toHaveLength(2);
  const rotateResult = await runPostrider('domain', 'rotate', 'alone.example');
  expect([rotateResult.code, rotateResult.stderr]).toEqual([
    1,
    expect.stringContaining('domain rotate alone.example --cancel'),
  ]);
  const cancelResult = await runPostrider('domain', 'rotate', 'alone.example', '--cancel');
  expect(cancelResult.stdout).toContain(listDkimRecords(rotatedDomain)[1]?.name ?? '-');
  const remainingRecords = await runJsonCommand<DomainAnswer>(folder, ['domain', 'records', 'alone.example'], settings);
  expect(listDkimRecords(remainingRecords).map(({ name }) => name)).toEqual(
    listDkimRecords(domainWithRsaKey).map(({ name }) => name),
  );
  expect((await runPostrider('domain', 'rotate', 'alone.example', '--cancel')).stderr).toMatch(
    /there is nothing to cancel/,
  );
});

test.each([
  ['add', ['default', 'late.example'], { POSTRIDER_SECRET: 'cd'.repeat(32) }, /POSTRIDER_SECRET is not the secret/],
  ['rotate', ['sealed.example'], { POSTRIDER_SECRET: 'cd'.repeat(32) }, /POSTRIDER_SECRET is not the secret/],
  ['add', ['default', 'late.example'], {}, /the secret file \S+ is missing/],
])(
  'domain %s %j is refused if the secret is missing or does not decrypt the keys: %j',
  async (command, args, secret, expectedError) => {
    if (!(await runPostrider('domain', 'list')).stdout.includes('sealed.example')) await addDomain('sealed.example');
    const { POSTRIDER_SECRET: _secret, ...otherSettings } = settings;
    const { code, stdout, stderr } = await runCommand(folder, ['domain', command, ...args], {
      ...otherSettings,
      ...secret,
    });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^postrider: [^\n]+\n$/);
    expect(stderr).toMatch(expectedError);
  },
);

test('a service does not start with a secret that does not decrypt the stored keys', async () => {
  const otherFolder = rig.createFolder();
  const service = await rig.serve(otherFolder, settings);
  await runJsonCommand(otherFolder, ['domain', 'add', 'default', 'sealed.example'], settings);
  await service.stop();
  await expect(rig.serve(otherFolder, { ...settings, POSTRIDER_SECRET: 'cd'.repeat(32) })).rejects.toThrow(
    /POSTRIDER_SECRET is not the secret/,
  );
  await (await rig.serve(otherFolder, settings)).stop();
});

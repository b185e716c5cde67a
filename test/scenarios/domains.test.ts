/** Bad input and bad DNS at the commands for sending domains, as real processes beside a running service. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FakeDns, startDns } from '../rig/dns.ts';
import { askCommand, runCommand } from '../rig/service.ts';
import { scenario } from './standing.ts';

interface DomainAnswer {
  readonly status: string;
  readonly records: readonly { purpose: string; type: string; name: string; value: string; found: string }[];
}

const rig = scenario();
let folder = '';
let dns: FakeDns;
let settings: Record<string, string> = {};
beforeAll(async () => {
  dns = await startDns();
  settings = { POSTRIDER_DNS: `127.0.0.1:${dns.port}`, POSTRIDER_SECRET: 'ab'.repeat(32) };
  folder = rig.folder();
  await rig.serve(folder, settings);
});
afterAll(() => dns.close());

const run = (...args: string[]) => runCommand(folder, args, settings);
const add = (name: string) => askCommand<DomainAnswer>(folder, ['domain', 'add', 'default', name], settings);
async function verify(name: string): Promise<{ code: number; stderr: string; answer: DomainAnswer }> {
  const { code, stdout, stderr } = await run('domain', 'verify', name, '--json');
  return { code, stderr, answer: JSON.parse(stdout) as DomainAnswer };
}
const foundOf = ({ records }: DomainAnswer, purpose: string) =>
  records.filter((record) => record.purpose === purpose).map(({ found }) => found);

test.each([
  ['a public suffix', 'github.io', /public suffix/],
  ['300 characters', `${'a.'.repeat(148)}test`, /300 characters/],
  ['a label too long', `${'a'.repeat(64)}.example`, /label of 64 characters/],
  ['white space', 'exam ple.org', /is not a domain name/],
  ['nothing', '', /missing/],
])('a domain of %s is refused with one line', async (_name, typed, said) => {
  const { code, stdout, stderr } = await run('domain', 'add', 'default', typed);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/^postrider: [^\n]+\n$/);
  expect(stderr).toMatch(said);
});

test('a trailing dot, upper case and a name in Unicode are one domain, which is added once', async () => {
  await add('Bücher.Example.');
  const again = await run('domain', 'add', 'default', 'XN--BCHER-KVA.example');
  expect([again.code, again.stderr]).toEqual([
    1,
    expect.stringMatching(/xn--bcher-kva.example has been added already/),
  ]);
  const listed = await askCommand<{ domain: string }[]>(folder, ['domain', 'list'], settings);
  expect(listed.filter(({ domain }) => domain === 'xn--bcher-kva.example')).toHaveLength(1);
});

test('records in split strings are found, several SPF records are wrong, and failing lookups are nothing at all', async () => {
  const added = await add('example.org');
  for (const { type, name, value } of added.records) {
    if (type === 'TXT') dns.zone[name] = { TXT: [[value.slice(0, 20), value.slice(20, 200), value.slice(200)]] };
  }
  const authenticated = await verify('example.org');
  expect([authenticated.code, authenticated.answer.status]).toEqual([0, 'authenticated']);

  const spf = added.records.find(({ purpose }) => purpose === 'spf');
  dns.zone[spf?.name ?? ''] = { TXT: [spf?.value ?? '', 'v=spf1 -all'] };
  expect(foundOf((await verify('example.org')).answer, 'spf')).toEqual(['wrong']);

  for (const fault of ['SERVFAIL', 'REFUSED', 'garbage'] as const) {
    for (const { name } of added.records) dns.zone[name] = { fault };
    const { code, answer } = await verify('example.org');
    expect([fault, code, answer.status, new Set(answer.records.map(({ found }) => found))]).toEqual([
      fault,
      0,
      'authenticated',
      new Set(['unknown']),
    ]);
  }

  for (const { name } of added.records) delete dns.zone[name];
  const lost = await verify('example.org');
  expect([lost.code, lost.answer.status]).toEqual([1, 'failing']);
  expect(lost.stderr).toMatch(
    /^postrider: example.org is not authenticated \(failing\): 4 missing of 4 records; [^\n]+\n$/,
  );
});

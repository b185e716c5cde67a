import { createPrivateKey, createPublicKey } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FakeDns, startDns } from '../rig/dns.ts';
import { runCommand, runJsonCommand } from '../rig/service.ts';
import { CREDENTIALS, type SesFake, startSesFake } from '../rig/ses-fake.ts';
import { createScenario, type RunningService } from './running-service.ts';

interface DomainAnswer {
  readonly status: string;
  readonly records: readonly { purpose: string; type: string; name: string; value: string; found: string }[];
}

const rig = createScenario();
let folder = '';
let dns: FakeDns;
let ses: SesFake;
let settings: Record<string, string> = {};
let service: RunningService;
beforeAll(async () => {
  [dns, ses] = await Promise.all([startDns(), startSesFake()]);
  settings = {
    ...CREDENTIALS,
    // Without POSTRIDER_SECRET, commands on a shared database print a warning.
    POSTRIDER_SECRET: 'cd'.repeat(32),
    POSTRIDER_DNS: `127.0.0.1:${dns.port}`,
    POSTRIDER_TRANSPORT: `ses://eu-west-1?endpoint=${ses.endpoint}`,
  };
  folder = rig.createFolder();
  service = await rig.serve(folder, settings);
});
afterAll(async () => {
  await service.stop();
  await Promise.all([dns.close(), ses.close()]);
});

const runPostrider = (...args: string[]) => runCommand(folder, args, settings);
const runJson = <T>(...args: string[]) => runJsonCommand<T>(folder, args, settings);
const publishRecords = ({ records }: DomainAnswer) => {
  for (const { type, name, value } of records) if (type === 'TXT') dns.zone[name] = { TXT: [value] };
};
async function verifyDomain(name: string): Promise<{ code: number; stderr: string; answer: DomainAnswer }> {
  const { code, stdout, stderr } = await runPostrider('domain', 'verify', name, '--json');
  return { code, stderr, answer: JSON.parse(stdout) as DomainAnswer };
}
const listProviderRecords = ({ records }: DomainAnswer) => records.filter(({ purpose }) => purpose === 'provider');

test('an identity has the RSA key of Postrider, `domain verify` also reads its state at SES, and replaces the key after a rotation', async () => {
  const addedDomain = await runJson<DomainAnswer>('domain', 'add', 'default', 'own.example');
  const identity = ses.identities.get('own.example');
  const rsaRecord = addedDomain.records.find(({ purpose, value }) => purpose === 'dkim' && value.includes('k=rsa'));
  expect(rsaRecord?.name).toBe(`${identity?.selector}._domainkey.own.example`);
  const der = Buffer.from(identity?.privateKey ?? '', 'base64');
  const publicKey = createPublicKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }));
  expect(rsaRecord?.value).toContain(publicKey.export({ format: 'der', type: 'spki' }).toString('base64'));
  expect(listProviderRecords(addedDomain)).toEqual([
    { purpose: 'provider', type: 'SES', name: 'own.example', value: 'verified', found: 'wrong' },
  ]);
  expect(addedDomain.records.find(({ purpose }) => purpose === 'spf')?.value).toContain('include:amazonses.com');
  publishRecords(addedDomain);
  const earlyResult = await verifyDomain('own.example');
  expect([earlyResult.code, earlyResult.answer.status]).toEqual([1, 'authenticated']);
  expect(earlyResult.stderr).toMatch(/own\.example: Amazon SES has not verified this domain yet/);
  Object.assign(identity ?? {}, { isVerified: true, dkim: 'SUCCESS' });
  const { code, stderr, answer } = await verifyDomain('own.example');
  expect([code, stderr, listProviderRecords(answer)[0]?.found]).toEqual([0, '', 'found']);

  publishRecords(await runJson<DomainAnswer>('domain', 'rotate', 'own.example'));
  await verifyDomain('own.example');
  const newSelector = ses.identities.get('own.example')?.selector;
  expect(newSelector).not.toBe(identity?.selector);
  expect(dns.zone[`${newSelector}._domainkey.own.example`]).toBeDefined();
});

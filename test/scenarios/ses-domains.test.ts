/**
 * Tests sending domains at Amazon SES: identities with a key of Postrider or of SES, checked by `domain verify`, and the
 * configuration sets of messages.
 */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FakeDns, startDns } from '../rig/dns.ts';
import { runCommand, runJsonCommand, submit } from '../rig/service.ts';
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
const addDomain = (name: string, ...flags: string[]) =>
  runJson<DomainAnswer>('domain', 'add', 'default', name, ...flags);
const publishRecords = ({ records }: DomainAnswer) => {
  for (const { type, name, value } of records) {
    if (type === 'TXT') dns.zone[name] = { TXT: [value] };
    if (type === 'CNAME') dns.zone[name] = { CNAME: value };
  }
};
async function verifyDomain(name: string): Promise<{ code: number; stderr: string; answer: DomainAnswer }> {
  const { code, stdout, stderr } = await runPostrider('domain', 'verify', name, '--json');
  return { code, stderr, answer: JSON.parse(stdout) as DomainAnswer };
}
const listProviderRecords = ({ records }: DomainAnswer) => records.filter(({ purpose }) => purpose === 'provider');

test('an identity has the RSA key of Postrider, `domain verify` also reads its state at SES, and replaces the key after a rotation', async () => {
  const addedDomain = await addDomain('own.example');
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

test('with `--easy-dkim`, the DKIM records of SES are printed and verified, and so are those of a MAIL FROM domain', async () => {
  const addedDomain = await addDomain('easy.example', '--easy-dkim');
  const cnameRecords = listProviderRecords(addedDomain).filter(({ type }) => type === 'CNAME');
  expect(cnameRecords.map(({ name, value }) => [name, value])).toEqual(
    ['tokenone', 'tokentwo', 'tokenthree'].map((token) => [
      `${token}._domainkey.easy.example`,
      `${token}.dkim.amazonses.com`,
    ]),
  );
  publishRecords(addedDomain);
  delete dns.zone['tokentwo._domainkey.easy.example'];
  const mailFrom = { domain: 'bounce.easy.example', status: 'FAILED', behavior: 'USE_DEFAULT_VALUE' };
  Object.assign(ses.identities.get('easy.example') ?? {}, { isVerified: true, mailFrom });
  const listResults = async () =>
    listProviderRecords((await verifyDomain('easy.example')).answer)
      .map(({ type, found }) => `${type} ${found}`)
      .sort();
  const fixedResults = ['CNAME found', 'CNAME found', 'CNAME missing', 'SES found'];
  expect(await listResults()).toEqual([...fixedResults, 'MX missing', 'SES wrong'].sort());
  expect((await runPostrider('domain', 'records', 'easy.example')).stdout).toContain(
    'bounce.easy.example. IN MX 10 feedback-smtp.eu-west-1.amazonses.com.\n',
  );
  dns.zone['bounce.easy.example'] = {
    MX: [[10, 'feedback-smtp.eu-west-1.amazonses.com']],
    TXT: ['v=spf1 include:amazonses.com ~all'],
  };
  Object.assign(ses.identities.get('easy.example') ?? {}, { mailFrom: { ...mailFrom, status: 'SUCCESS' } });
  expect(await listResults()).toEqual([...fixedResults, 'MX found', 'SES found'].sort());
});

test('an SES identity that signs with an unknown key is neither changed nor removed, and `domain add` prints a warning about it', async () => {
  const identity = { isVerified: true, dkim: 'SUCCESS', origin: 'EXTERNAL', tokens: ['corporate'] } as const;
  ses.identities.set('theirs.example', { ...identity, selector: 'corporate', privateKey: 'theirs' });
  const { stdout, stderr } = await runPostrider('domain', 'add', 'default', 'theirs.example', '--easy-dkim', '--json');
  expect(stderr).toMatch(
    /^postrider: warning: Amazon SES already has an identity theirs\.example .+; the identity is unchanged\n$/,
  );
  publishRecords(JSON.parse(stdout) as DomainAnswer);
  expect((await verifyDomain('theirs.example')).code).toBe(0);
  expect((await runPostrider('domain', 'remove', 'theirs.example')).stdout).toContain(
    'Amazon SES still has the identity theirs.example',
  );
  expect(ses.identities.get('theirs.example')).toMatchObject({ selector: 'corporate', privateKey: 'theirs' });
});

test('`account set --ses-configuration-set` applies to the messages of a running service', async () => {
  publishRecords(await addDomain('sets.example'));
  expect((await verifyDomain('sets.example')).answer.status).toBe('authenticated');
  /** Sends a message and returns its configuration set at SES. The service reads changes within one second. */
  const sendAndReadConfigurationSet = async () => {
    const count = ses.receivedMessages.length;
    const { status } = await submit(service.publicUrl, service.key, { from: 'shop@sets.example' });
    if (status !== 201) return status;
    await expect.poll(() => ses.receivedMessages.length).toBeGreaterThan(count);
    return ses.receivedMessages[count]?.configurationSet;
  };
  await expect.poll(sendAndReadConfigurationSet).toBeNull();
  const set = (value: string) => runPostrider('account', 'set', 'default', '--ses-configuration-set', value);
  expect((await set('news')).stdout).toContain('news');
  await expect.poll(sendAndReadConfigurationSet).toBe('news');
  expect((await set('none')).code).toBe(0);
  await expect.poll(sendAndReadConfigurationSet).toBeNull();
});

/**
 * Tests sending domains at Amazon SES: identities with a key of Postrider or of SES, checked by `domain verify`. If SES
 * does not respond, an identity is not treated as missing.
 */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FakeDns, startDns } from '../rig/dns.ts';
import { runCommand, runJsonCommand, submit, submitAccepted } from '../rig/service.ts';
import { CREDENTIALS, createErrorAnswer, type SesFake, startSesFake } from '../rig/ses-fake.ts';
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
afterAll(() => Promise.all([dns.close(), ses.close()]));

const runPostrider = (...args: string[]) => runCommand(folder, args, settings);
const addDomain = (name: string, ...flags: string[]) =>
  runJsonCommand<DomainAnswer>(folder, ['domain', 'add', 'default', name, ...flags], settings);
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

test('`domain add` creates the identity with the RSA key of Postrider, and `domain verify` also reads its state at SES', async () => {
  const addedDomain = await addDomain('own.example');
  const identity = ses.identities.get('own.example');
  const rsaRecord = addedDomain.records.find(({ purpose, value }) => purpose === 'dkim' && value.includes('k=rsa'));
  expect(rsaRecord?.name).toBe(`${identity?.selector}._domainkey.own.example`);
  const der = Buffer.from(identity?.privateKey ?? '', 'base64');
  const publishedKey = createPublicKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })).export({
    format: 'der',
    type: 'spki',
  });
  expect(rsaRecord?.value).toContain(publishedKey.toString('base64'));
  expect(listProviderRecords(addedDomain)).toEqual([
    { purpose: 'provider', type: 'SES', name: 'own.example', value: 'verified', found: 'wrong' },
  ]);
  expect(addedDomain.records.find(({ purpose }) => purpose === 'spf')?.value).toContain('include:amazonses.com');
  publishRecords(addedDomain);
  const earlyVerifyResult = await verifyDomain('own.example');
  expect([earlyVerifyResult.code, earlyVerifyResult.answer.status]).toEqual([1, 'authenticated']);
  expect(earlyVerifyResult.stderr).toMatch(/own\.example: Amazon SES has not verified this domain yet/);
  if (identity !== undefined) Object.assign(identity, { isVerified: true, dkim: 'SUCCESS' });
  const verifyResult = await verifyDomain('own.example');
  expect([verifyResult.code, verifyResult.stderr, listProviderRecords(verifyResult.answer)[0]?.found]).toEqual([
    0,
    '',
    'found',
  ]);
});

test('with `--easy-dkim`, the DKIM records of SES are also printed and verified', async () => {
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
  Object.assign(ses.identities.get('easy.example') ?? {}, { isVerified: true });
  const { answer } = await verifyDomain('easy.example');
  expect(listProviderRecords(answer).map(({ found }) => found)).toEqual(['found', 'missing', 'found', 'found']);
  const shownDomain = await runJsonCommand<DomainAnswer>(folder, ['domain', 'records', 'easy.example'], settings);
  expect(listProviderRecords(shownDomain)).toHaveLength(4);
});

test('`domain verify` creates the SES identity that `domain add` could not create, because SES did not answer', async () => {
  const identities = ses.identities;
  const unreachableSesSettings = { ...settings, POSTRIDER_TRANSPORT: 'ses://eu-west-1?endpoint=http://127.0.0.1:1' };
  const { code, stdout, stderr } = await runCommand(
    folder,
    ['domain', 'add', 'default', 'late.example', '--json'],
    unreachableSesSettings,
  );
  expect(code).toBe(0);
  expect(stderr).toMatch(
    /^postrider: warning: Amazon SES could not be reached \(connect ECONNREFUSED 127\.0\.0\.1:1\), so the status is unknown; check the credentials and the network\n$/,
  );
  const addedDomain = JSON.parse(stdout) as DomainAnswer;
  expect(listProviderRecords(addedDomain).map(({ found }) => found)).toEqual(['unknown']);
  publishRecords(addedDomain);
  expect(identities.has('late.example')).toBe(false);
  await verifyDomain('late.example');
  expect(identities.get('late.example')?.origin).toBe('EXTERNAL');
});

test('after a key rotation, `domain verify` passes the new signing key to SES', async () => {
  const addResult = await addDomain('turn.example');
  publishRecords(addResult);
  const selectorBefore = ses.identities.get('turn.example')?.selector;
  await verifyDomain('turn.example');
  publishRecords(await runJsonCommand<DomainAnswer>(folder, ['domain', 'rotate', 'turn.example'], settings));
  await verifyDomain('turn.example');
  const selectorAfter = ses.identities.get('turn.example')?.selector;
  expect(selectorAfter).not.toBe(selectorBefore);
  expect(dns.zone[`${selectorAfter}._domainkey.turn.example`]).toBeDefined();
});

test('a MAIL FROM domain at SES is verified, and its records are shown', async () => {
  const addedDomain = await addDomain('from.example');
  const identity = ses.identities.get('from.example');
  const mailFrom = { domain: 'bounce.from.example', status: 'FAILED', behavior: 'USE_DEFAULT_VALUE' };
  Object.assign(identity ?? {}, { isVerified: true, dkim: 'SUCCESS', mailFrom });
  publishRecords(addedDomain);
  const listMailFromResults = ({ records }: DomainAnswer) =>
    records
      .filter(({ name, value }) => `${name} ${value}`.includes('bounce.from'))
      .map((record) => [record.type, record.found]);
  const earlyVerifyResult = await verifyDomain('from.example');
  // The missing records of the MAIL FROM domain do not change the exit code.
  expect(earlyVerifyResult.code).toBe(0);
  expect(listMailFromResults(earlyVerifyResult.answer)).toEqual([
    ['MX', 'missing'],
    ['TXT', 'missing'],
    ['SES', 'wrong'],
  ]);
  const { stdout } = await runPostrider('domain', 'records', 'from.example');
  expect(stdout).toContain('bounce.from.example. IN MX 10 feedback-smtp.eu-west-1.amazonses.com.\n');
  dns.zone['bounce.from.example'] = {
    MX: [[10, 'feedback-smtp.eu-west-1.amazonses.com']],
    TXT: ['v=spf1 include:amazonses.com ~all'],
  };
  Object.assign(identity ?? {}, { mailFrom: { ...mailFrom, status: 'SUCCESS' } });
  expect(listMailFromResults((await verifyDomain('from.example')).answer).map(([, found]) => found)).toEqual([
    'found',
    'found',
    'found',
  ]);
});

test('an SES identity that signs with an unknown key is not changed, and `domain add` prints a warning about it', async () => {
  ses.identities.set('theirs.example', {
    isVerified: true,
    dkim: 'SUCCESS',
    origin: 'EXTERNAL',
    tokens: ['corporate'],
    selector: 'corporate',
    privateKey: 'theirs',
  });
  const { stdout, stderr } = await runPostrider('domain', 'add', 'default', 'theirs.example', '--easy-dkim', '--json');
  expect(stderr).toMatch(
    /^postrider: warning: Amazon SES already has an identity theirs\.example .+; the identity is unchanged\n$/,
  );
  publishRecords(JSON.parse(stdout) as DomainAnswer);
  expect((await verifyDomain('theirs.example')).code).toBe(0);
  expect(ses.identities.get('theirs.example')).toMatchObject({ selector: 'corporate', privateKey: 'theirs' });
});

test('`domain remove` does not remove an SES identity that existed before `domain add`', async () => {
  ses.identities.set('old.example', {
    isVerified: true,
    dkim: 'SUCCESS',
    origin: 'AWS_SES',
    tokens: ['a', 'b', 'c'],
    selector: null,
    privateKey: null,
  });
  const addResult = await addDomain('old.example');
  expect(listProviderRecords(addResult)).toHaveLength(4);
  expect(ses.identities.get('old.example')?.origin).toBe('AWS_SES');
  const { stdout } = await runPostrider('domain', 'remove', 'old.example');
  expect(stdout).toContain('Amazon SES still has the identity old.example');
  expect(ses.identities.has('old.example')).toBe(true);
});

test('--easy-dkim without ses: is refused', async () => {
  const { code, stderr } = await runCommand(rig.createFolder(), [
    'domain',
    'add',
    'default',
    'a.example',
    '--easy-dkim',
  ]);
  expect([code, stderr]).toEqual([
    2,
    'postrider: --easy-dkim: requires POSTRIDER_TRANSPORT=ses://…; another transport is set\n',
  ]);
});

test('doctor reports the SES sandbox as a warning, and a paused or inaccessible SES account as a failure', async () => {
  const fetchFinding = async () => {
    const { stdout } = await runPostrider('doctor', '--json');
    return (JSON.parse(stdout) as { check: string; result: string }[]).find(({ check }) => check === 'transport')
      ?.result;
  };
  ses.account = { status: 200, body: { SendingEnabled: true, ProductionAccessEnabled: false, SendQuota: {} } };
  expect(await fetchFinding()).toBe('warning');
  ses.account = { status: 200, body: { SendingEnabled: false, ProductionAccessEnabled: true } };
  expect(await fetchFinding()).toBe('failure');
  ses.account = createErrorAnswer(403, 'AccessDeniedException', 'no');
  expect(await fetchFinding()).toBe('failure');
  ses.account = 'accept';
  expect(await fetchFinding()).toBe('ok');
});

test('`account set --ses-configuration-set` applies to the messages of a running service within one second', async () => {
  publishRecords(await addDomain('sets.example'));
  expect((await verifyDomain('sets.example')).answer.status).toBe('authenticated');
  // The service reads the new status of the domain within one second.
  const countBefore = ses.receivedMessages.length;
  await expect
    .poll(async () => (await submit(service.publicUrl, service.key, { from: 'shop@sets.example' })).status)
    .toBe(201);
  await expect.poll(() => ses.receivedMessages.length).toBeGreaterThan(countBefore);
  /** Sends a message and returns its configuration set at SES. */
  const sendAndReadConfigurationSet = async () => {
    const count = ses.receivedMessages.length;
    await submitAccepted(service.publicUrl, service.key, { from: 'shop@sets.example' });
    await expect.poll(() => ses.receivedMessages.length).toBeGreaterThan(count);
    return ses.receivedMessages[count]?.configurationSet;
  };
  expect(await sendAndReadConfigurationSet()).toBeNull();
  const set = (value: string) => runPostrider('account', 'set', 'default', '--ses-configuration-set', value);
  expect((await set('news')).stdout).toContain('news');
  await expect.poll(sendAndReadConfigurationSet, { timeout: 120_000 }).toBe('news');
  expect((await set('none')).code).toBe(0);
  await expect.poll(sendAndReadConfigurationSet, { timeout: 120_000 }).toBeNull();
  expect((await set('a b')).code).toBe(2);
});

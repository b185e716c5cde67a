import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, test } from 'vitest';
import { formatPublicKey } from '../../../src/domains/keys.ts';
import { getSigningKeys } from '../../../src/model/domain.ts';
import { type FakeDns, startDns, type Zone } from '../../rig/dns.ts';
import { type CommandRig, createCommandRig } from './command-rig.ts';

const RSA = generateKeyPairSync('rsa', { modulusLength: 1024 });
const toPem = (key: KeyObject) => String(key.export({ format: 'pem', type: 'pkcs8' }));

function writeKey({ folder }: CommandRig, key: KeyObject, mode = 0o600): string {
  const file = join(folder, 'dkim.pem');
  writeFileSync(file, toPem(key), { mode });
  return file;
}

async function createRigWithDns(): Promise<{ rig: CommandRig; dns: FakeDns }> {
  const dns = await startDns();
  onTestFinished(() => dns.close());
  return { rig: await createCommandRig({ POSTRIDER_DNS: `127.0.0.1:${dns.port}` }), dns };
}

async function withPublishedKey(key: KeyObject, algorithm: string) {
  const { rig, dns } = await createRigWithDns();
  dns.zone['s1._domainkey.example.org'] = { TXT: [`v=DKIM1; k=${algorithm}; p=${formatPublicKey(key)}`] };
  return rig;
}

it('an imported RSA key whose record is published authenticates the domain without a change of DNS', async () => {
  const rig = await withPublishedKey(RSA.publicKey, 'rsa');
  const file = writeKey(rig, RSA.privateKey);
  const addResult = await rig.run('domain', 'add', 'acme', 'example.org', '--dkim-key', file, '--selector', 'S1');
  expect(addResult).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/the RSA key has 1024 bits, and 2048 are/),
  });
  const [toPublish = '', published = ''] = addResult.stdout.split('Keep this record, which is already published:');
  expect(toPublish).not.toContain('s1._domainkey.example.org.');
  expect(published).toContain('s1._domainkey.example.org. IN TXT "v=DKIM1; k=rsa; p=');
  expect(addResult.stdout + addResult.stderr).not.toContain('PRIVATE KEY');
  const verifyResult = await rig.run('domain', 'verify', 'example.org', '--json');
  expect(verifyResult.code).toBe(0);
  expect(JSON.parse(verifyResult.stdout)).toMatchObject({
    status: 'authenticated',
    records: expect.arrayContaining([
      expect.objectContaining({ name: 's1._domainkey.example.org', found: 'found' }),
    ]) as unknown,
  });
  const domain = await rig.store.findDomain('example.org');
  // The new Ed25519 key is active, but signs no message before its record is published.
  expect(domain?.keys.map(({ algorithm, state }) => [algorithm, state])).toEqual([
    ['rsa', 'active'],
    ['ed25519', 'active'],
  ]);
  expect(domain === null ? [] : getSigningKeys(domain).map(({ selector }) => selector)).toEqual(['s1']);
});

test('each fault of the key file or the selector is reported with a one-line error, and no domain is added', async () => {
  const rig = await createCommandRig();
  const file = writeKey(rig, RSA.privateKey);
  const write = (name: string, content: string) => {
    const path = join(rig.folder, name);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  };
  mkdirSync(join(rig.folder, 'folder'));
  const faults: readonly (readonly [readonly string[], RegExp])[] = [
    [['--dkim-key', join(rig.folder, 'none'), '--selector', 's1'], /^--dkim-key: there is no file /],
    [['--dkim-key', join(rig.folder, 'folder'), '--selector', 's1'], /^--dkim-key: .* is not a regular file/],
    [['--dkim-key', write('empty', ''), '--selector', 's1'], /^--dkim-key: .* is empty/],
    [['--dkim-key', write('large', 'x'.repeat(16_385)), '--selector', 's1'], /^--dkim-key: .* more than 16384 bytes/],
    [['--dkim-key', write('public', toPublicPem()), '--selector', 's1'], /^--dkim-key: this is a public key/],
    [['--dkim-key', file], /^--dkim-key requires --selector; give both or neither/],
    [['--selector', 's1'], /^--selector requires --dkim-key; give both or neither/],
    [['--dkim-key', file, '--selector', 's_1'], /^--selector: a selector consists of labels/],
  ];
  for (const [flags, message] of faults) {
    expect(await rig.run('domain', 'add', 'acme', 'example.org', ...flags)).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(message),
    });
  }
  expect(await rig.runJson('domain', 'list')).toEqual([]);
});

function toPublicPem(): string {
  return String(RSA.publicKey.export({ format: 'pem', type: 'spki' }));
}

test('a key file that other users can read causes a warning with the remedy', async () => {
  const rig = await createCommandRig();
  const file = writeKey(rig, RSA.privateKey, 0o644);
  const addResult = await rig.run('domain', 'add', 'acme', 'example.org', '--dkim-key', file, '--selector', 's1');
  expect(addResult).toMatchObject({ code: 0, stderr: expect.stringMatching(/\(mode 0644\); run: chmod 600 /) });
});

interface DomainAnswer {
  readonly domain: string;
  readonly status: string;
  readonly records: readonly { purpose: string; type: string; name: string; value: string; found: string }[];
}

function publishRecords(zone: Zone, { records }: DomainAnswer): void {
  for (const { type, name, value } of records) {
    const [priority, host] = value.split(' ');
    zone[name] =
      type === 'MX' ? { ...zone[name], MX: [[Number(priority), host ?? '']] } : { ...zone[name], TXT: [value] };
  }
}

describe('a domain', () => {
  it('with a wrong record is printed with the observed and the expected value of the record', async () => {
    const { rig, dns } = await createRigWithDns();
    const addedDomain = await rig.runJson<DomainAnswer>('domain', 'add', 'acme', 'example.org');
    publishRecords(dns.zone, addedDomain);
    const rsaRecord = addedDomain.records[0];
    dns.zone[rsaRecord?.name ?? ''] = { TXT: ['v=DKIM1; k=rsa; p=MIIBIjANBgkq'] };
    const output = await rig.run('domain', 'verify', 'example.org');
    expect(output.code).toBe(1);
    expect(output.stdout).toContain('wrong   dkim');
    expect(output.stdout).toContain('observed: v=DKIM1; k=rsa; p=MIIBIjANBgkq\n');
    expect(output.stdout).toContain(`expected: ${rsaRecord?.name}. IN TXT "v=DKIM1; k=rsa; p=MII`);
  });

  it('is printed as zone file lines with strings of at most 255 characters, and never with a private key', async () => {
    const { rig } = await createRigWithDns();
    const { stdout } = await rig.run('domain', 'add', 'acme', 'example.org');
    for (const [, text = ''] of stdout.matchAll(/"([^"]*)"/g)) expect(text.length).toBeLessThanOrEqual(255);
    const domain = await rig.store.findDomain('example.org');
    const allOutput = [
      stdout,
      (await rig.run('domain', 'records', 'example.org')).stdout,
      (await rig.run('domain', 'list', '--json')).stdout,
      (await rig.run('domain', 'rotate', 'example.org')).stdout,
    ].join('');
    for (const { sealed } of domain?.keys ?? []) expect(allOutput).not.toContain(sealed);
    expect(allOutput).not.toContain('PRIVATE KEY');
  });
});

import { describe, expect, it, onTestFinished } from 'vitest';
import { type FakeDns, startDns, type Zone } from '../../rig/dns.ts';
import { type CommandRig, createCommandRig } from './command-rig.ts';

interface DomainAnswer {
  readonly domain: string;
  readonly status: string;
  readonly records: readonly { purpose: string; type: string; name: string; value: string; found: string }[];
}

async function createRigWithDns(): Promise<{ rig: CommandRig; dns: FakeDns }> {
  const dns = await startDns();
  onTestFinished(() => dns.close());
  const rig = await createCommandRig({ POSTRIDER_DNS: `127.0.0.1:${dns.port}` });
  return { rig, dns };
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

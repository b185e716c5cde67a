import { describe, expect, it, onTestFinished } from 'vitest';
import { type FakeDns, startDns, type Zone } from '../../rig/dns.ts';
import { type CommandRig, createCommandRig } from './command-rig.ts';

interface DomainAnswer {
  readonly domain: string;
  readonly status: string;
  readonly records: readonly { purpose: string; type: string; name: string; value: string; found: string }[];
}

/** Creates a command rig with a DNS server that the test controls. */
async function createRigWithDns(settings: Record<string, string> = {}): Promise<{ rig: CommandRig; dns: FakeDns }> {
  const dns = await startDns();
  onTestFinished(() => dns.close());
  const rig = await createCommandRig({ POSTRIDER_DNS: `127.0.0.1:${dns.port}`, ...settings });
  return { rig, dns };
}

/** Publishes all records of a domain in the zone. */
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

describe('domain commands', () => {
  it.each([
    [['add', 'acme', 'co.uk'], 2, /^"co.uk" is a public suffix/],
    [['add', 'acme', `${'a'.repeat(60)}.`.repeat(5)], 2, /a domain name has at most 253/],
    [['add', 'acme', 'localhost'], 2, /^"localhost" is a single label/],
    [['add', 'acme', 'ada@example.org'], 2, /is an address/],
    [['add', 'unknown', 'example.org'], 1, /^there is no account "unknown"/],
    [['records', 'example.org'], 1, /^there is no domain example.org/],
    [['verify', 'example.org'], 1, /^there is no domain example.org/],
    [['rotate', 'example.org'], 1, /^there is no domain example.org/],
    [['remove', 'example.org'], 1, /^there is no domain example.org/],
    [['set', 'example.org', '--subdomains', 'yes'], 1, /^there is no domain example.org/],
    [['set', 'example.org', '--subdomains', 'on'], 2, /^--subdomains: "on" is not yes or no$/],
    [['set', 'example.org'], 2, /--subdomains/],
  ])('domain %j fails with a one-line error and adds no domain', async (args, code, output) => {
    const rig = await createCommandRig();
    const failedResult = await rig.run('domain', ...args);
    expect(failedResult).toEqual({ code, stdout: '', stderr: expect.stringMatching(output) });
    expect(failedResult.stderr).not.toContain('\n');
    expect(await rig.store.listDomains()).toEqual([]);
  });

  it('the commands print the records and the state of a return path, and an invalid return path is refused with a one-line error', async () => {
    const { rig, dns } = await createRigWithDns({
      POSTRIDER_TRANSPORT: 'smtp://mail.host.example',
      POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.host.example',
      POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0',
    });
    const addedDomain = await rig.runJson<DomainAnswer>('domain', 'add', 'acme', 'example.org');
    const { stdout } = await rig.run('domain', 'set', 'example.org', '--return-path', 'bounces.example.org');
    const pendingText =
      'messages use bounces.host.example until the MX and SPF records of the return path bounces.example.org are found';
    expect(stdout).toBe(
      [
        `the return path of example.org is bounces.example.org; ${pendingText}\n\nRecords to publish:\n`,
        'bounces.example.org. IN TXT "v=spf1 a:mail.host.example ?all"',
        'bounces.example.org. IN MX 10 bounces.host.example.\n',
        'After publishing them, run `postrider domain verify example.org`\n',
      ].join('\n'),
    );
    expect((await rig.run('domain', 'records', 'example.org')).stdout).toContain(`\n${pendingText}\n`);
    expect((await rig.run('domain', 'list')).stdout).toContain('bounces.example.org (unverified)');
    publishRecords(dns.zone, addedDomain);
    publishRecords(dns.zone, await rig.runJson<DomainAnswer>('domain', 'records', 'example.org'));
    dns.zone['bounces.host.example'] = { ...dns.zone['bounces.host.example'], A: ['192.0.2.25'] };
    expect((await rig.run('domain', 'verify', 'example.org')).stdout).toContain(
      'messages use the return path bounces.example.org\n',
    );
    for (const name of ['example.org', 'bounces.example.net', 'bounces']) {
      const refusedResult = await rig.run('domain', 'set', 'example.org', '--return-path', name);
      expect([refusedResult.code, refusedResult.stdout]).toEqual([2, '']);
      expect(refusedResult.stderr).toMatch(/^--return-path: [^\n]+$/);
    }
    expect((await rig.run('domain', 'set', 'example.org', '--no-return-path')).stdout).toContain('for 45 days');
    expect((await rig.run('domain', 'list')).stdout).not.toContain('RETURN PATH');
  });
});

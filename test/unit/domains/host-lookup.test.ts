import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHostLookup } from '../../../src/domains/dns.ts';
import { type FakeDns, startDns } from '../../rig/dns.ts';

let dns: FakeDns;
beforeAll(async () => {
  dns = await startDns({
    'app.test': { A: ['192.0.2.1'], AAAA: ['2001:db8::1'] },
    'broken.test': { fault: 'SERVFAIL' },
  });
});
afterAll(() => dns.close());

describe('the lookup of a host', () => {
  it('returns the IPv4 and IPv6 addresses from the configured DNS server', async () => {
    const lookUp = createHostLookup(dns, false);
    expect(await lookUp('app.test')).toEqual({ kind: 'found', values: ['192.0.2.1', '2001:db8::1'] });
    expect(await lookUp('app.test.')).toEqual({ kind: 'found', values: ['192.0.2.1', '2001:db8::1'] });
    expect(await lookUp('missing.test')).toEqual({ kind: 'none' });
    expect(await lookUp('broken.test')).toMatchObject({ kind: 'failed' });
  });

  it('of localhost uses the operating system, whose hosts file contains localhost', async () => {
    const result = await createHostLookup(dns, false)('localhost');
    expect(result.kind === 'found' ? result.values : []).toContain('127.0.0.1');
    expect(dns.queries.filter((query) => query.includes('localhost'))).toEqual([]);
  });
});

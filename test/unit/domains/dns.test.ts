import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createResolver, type Resolver } from '../../../src/domains/dns.ts';
import { type FakeDns, startDns } from '../../rig/dns.ts';

const LONG_TEXT = 'x'.repeat(3000);
let dns: FakeDns;
let resolver: Resolver;

beforeAll(async () => {
  dns = await startDns({
    'one.test': { TXT: ['hello'], A: ['192.0.2.1'], AAAA: ['2001:db8::5'], MX: [[10, 'Mx.Other.test']] },
    'split.test': { TXT: [['v=DKIM1; p=', 'MIIB', 'abc']] },
    'several.test': { TXT: ['first', 'second'] },
    'long.test': { TXT: [LONG_TEXT] },
    'cut.test': { TXT: ['over tcp'], fault: 'truncate' },
    'only4.test': { A: ['192.0.2.9'] },
    'alias.test': { CNAME: 'one.test' },
    'dangling.test': { CNAME: 'nowhere.test' },
    'nullmx.test': { MX: [[0, '']] },
    'silent.test': { fault: 'timeout' },
    'broken.test': { fault: 'SERVFAIL' },
    'refused.test': { fault: 'REFUSED' },
    'garbage.test': { fault: 'garbage' },
    '1.2.0.192.in-addr.arpa': { PTR: ['Mail.Example.test'] },
    '1.0.0.127.in-addr.arpa': { PTR: ['loop.example.test'] },
    [`5.${'0.'.repeat(23)}8.b.d.0.1.0.0.2.ip6.arpa`]: { PTR: ['six.example.test'] },
    [`1.0.2.0.0.0.0.c.f.f.f.f.${'0.'.repeat(20)}ip6.arpa`]: { PTR: ['mapped.example.test'] },
  });
  resolver = createResolver(dns, { timeoutMs: 100, maxAttempts: 2 });
});
afterAll(() => dns.close());

describe('a lookup', () => {
  it('fails without a DNS server, and the reason names the setting to correct', async () => {
    const closedDns = await startDns({});
    await closedDns.close();
    const unreachableResolver = createResolver(closedDns, { timeoutMs: 100, maxAttempts: 1 });
    expect(await unreachableResolver.lookUpTxt('one.test')).toEqual({
      kind: 'failed',
      reason: 'no DNS server answers; set POSTRIDER_DNS to one that answers',
    });
  });

  it('returns one text for each record, with the strings of the record concatenated', async () => {
    expect(await resolver.lookUpTxt('one.test')).toEqual({ kind: 'found', values: ['hello'] });
    expect(await resolver.lookUpTxt('split.test')).toEqual({ kind: 'found', values: ['v=DKIM1; p=MIIBabc'] });
    expect(await resolver.lookUpTxt('several.test')).toEqual({ kind: 'found', values: ['first', 'second'] });
  });

  it('is repeated over TCP if the UDP answer is truncated', async () => {
    expect(await resolver.lookUpTxt('cut.test')).toEqual({ kind: 'found', values: ['over tcp'] });
    expect(await resolver.lookUpTxt('long.test')).toEqual({ kind: 'found', values: [LONG_TEXT] });
    expect(dns.queries).toContain('tcp TXT cut.test');
  });

  it('follows aliases', async () => {
    expect(await resolver.lookUpTxt('alias.test')).toEqual({ kind: 'found', values: ['hello'] });
    expect(await resolver.lookUpCname('alias.test')).toEqual({ kind: 'found', values: ['one.test'] });
    expect(await resolver.lookUpTxt('dangling.test')).toEqual({ kind: 'none' });
  });

  it('has the result none if the name does not exist or has no record of the requested type', async () => {
    for (const name of ['absent.test', 'only4.test']) {
      expect(await resolver.lookUpTxt(name)).toEqual({ kind: 'none' });
      expect(await resolver.lookUpMx(name)).toEqual({ kind: 'none' });
      expect(await resolver.lookUpCname(name)).toEqual({ kind: 'none' });
    }
    expect(await resolver.lookUpAddresses('absent.test')).toEqual({ kind: 'none' });
  });

  it.each([
    ['silent.test', 'timeout'],
    ['broken.test', 'SERVFAIL'],
    ['refused.test', 'refused'],
    ['garbage.test', 'malformed DNS answer'],
    [`${'a'.repeat(64)}.test`, 'not a valid DNS name'],
  ])('of %s fails with the reason: %s', async (name, reason) => {
    for (const lookup of [
      resolver.lookUpTxt(name),
      resolver.lookUpMx(name),
      resolver.lookUpCname(name),
      resolver.lookUpAddresses(name),
    ]) {
      expect(await lookup).toEqual({ kind: 'failed', reason });
    }
  });
});

describe('POSTRIDER_DNS', () => {
  it('accepts an IP address, and refuses a host name with an error that contains the remedy', () => {
    for (const host of ['127.0.0.1', '::1', '[::1]', 'localhost']) createResolver({ host, port: 53 });
    expect(() => createResolver({ host: 'dns.example.com', port: 53 })).toThrow(
      'POSTRIDER_DNS: "dns.example.com" is not an IP address; set the address of the resolver, such as 127.0.0.1:53',
    );
    expect(createResolver(null)).toBeDefined();
  });
});

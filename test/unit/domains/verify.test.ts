import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { createResolver, type Lookup, type Resolver } from '../../../src/domains/dns.ts';
import { checkDkim, checkDmarc, checkSpf } from '../../../src/domains/records.ts';
import { checkRecords } from '../../../src/domains/verify.ts';
import type { DnsRecord } from '../../../src/model/domain.ts';
import { type FakeDns, startDns, type Zone } from '../../rig/dns.ts';

const PUBLIC_KEY = 'MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAsO/x+y==';
const DKIM_VALUE = `v=DKIM1; k=rsa; p=${PUBLIC_KEY}`;
const DKIM: DnsRecord = { purpose: 'dkim', type: 'TXT', name: 's1._domainkey.example.test', value: DKIM_VALUE };
const SPF: DnsRecord = { purpose: 'spf', type: 'TXT', name: 'example.test', value: 'v=spf1 ?all' };
const DMARC: DnsRecord = { purpose: 'dmarc', type: 'TXT', name: '_dmarc.example.test', value: 'v=DMARC1; p=none' };
const MX: DnsRecord = { purpose: 'provider', type: 'MX', name: 'bounces.example.test', value: '10 mx.example.test' };
const RETURN_PATH: DnsRecord = { ...MX, purpose: 'return-path', value: '10 bounces.example.test' };
const CNAME: DnsRecord = {
  purpose: 'dkim',
  type: 'CNAME',
  name: 't._domainkey.example.test',
  value: 't.dkim.ses.test',
};

let dns: FakeDns;
let resolver: Resolver;
beforeAll(async () => {
  dns = await startDns();
  resolver = createResolver(dns, { timeoutMs: 100, maxAttempts: 1 });
});
afterAll(() => dns.close());

function clearZone() {
  for (const name of Object.keys(dns.zone)) delete dns.zone[name];
}

async function checkRecord(record: DnsRecord, zone: Zone) {
  clearZone();
  Object.assign(dns.zone, zone);
  const [checkResult] = await checkRecords([record], resolver);
  return checkResult;
}

describe('a DKIM record', () => {
  it.each([
    ['in the suggested notation', DKIM_VALUE],
    ['without v= and k=', `p=${PUBLIC_KEY}`],
    [
      'with the tags in a different order, and with additional tags',
      `v=DKIM1;p=${PUBLIC_KEY} ; n=a note; t=s; h=sha1:sha256; s=email; k=rsa;`,
    ],
    ['with white space between all parts', ` v = DKIM1 ;\tk=rsa; p= ${PUBLIC_KEY.slice(0, 9)} ${PUBLIC_KEY.slice(9)} `],
    ['without the padding', `v=DKIM1; p=${PUBLIC_KEY.replaceAll('=', '')}`],
  ])('is found %s', (_, text) => {
    expect(checkDkim(DKIM_VALUE, [text])).toEqual({ found: 'found', detail: 'found' });
  });

  it.each([
    ['revoked', 'v=DKIM1; p=', 'revoked'],
    ['cut off', `v=DKIM1; k=rsa; p=${PUBLIC_KEY.slice(0, 30)}`, `cut off after 30 of ${PUBLIC_KEY.length}`],
    ['of another key', `v=DKIM1; p=${PUBLIC_KEY.replace('sO', 'Os')}`, 'another key'],
    ['of another type', `v=DKIM1; k=ed25519; p=${PUBLIC_KEY}`, 'k=ed25519, expected k=rsa'],
    ['without a key', 'v=DKIM1; k=rsa', 'no key'],
    ['of another version', `v=DKIM2; p=${PUBLIC_KEY}`, 'the first tag is not v=DKIM1'],
    ['whose version tag is not the first tag', `p=${PUBLIC_KEY}; v=DKIM1`, 'the first tag is not v=DKIM1'],
    ['in quotes', `"v=DKIM1; p=${PUBLIC_KEY}"`, 'without quotation marks'],
    ['with a tag twice', `v=DKIM1; p=${PUBLIC_KEY}; p=${PUBLIC_KEY}`, 'has a tag twice'],
    ['that is not a tag list', 'hello', 'not a valid tag list'],
    ['for SHA-1 only', `v=DKIM1; h=sha1; p=${PUBLIC_KEY}`, 'h='],
    ['for another service', `v=DKIM1; s=other; p=${PUBLIC_KEY}`, 's='],
  ])('%s is wrong, with the reason', (_, text, detail) => {
    const result = checkDkim(DKIM_VALUE, [text]);
    expect(result.found).toBe('wrong');
    expect(result.detail).toContain(detail);
  });
});

describe('an SPF record', () => {
  it.each([
    'v=spf1 -all',
    'V=SPF1 Include:_spf.example.net ~ALL',
    'v=spf1',
    'v=spf1 ip4:192.0.2.0/24 ip4:192.0.2.1 ip6:2001:db8::/32 ?all',
    'v=spf1 +a mx:example.net/24//64 a:%{d}.example.net ptr exists:%{i}._spf.example.net redirect=example.net',
    'v=spf1 unknown-modifier=x exp=why.example.net -all',
  ])('is found: %s', (record) => {
    expect(checkSpf('v=spf1 ?all', ['unrelated', record, 'v=spf10 all'])).toEqual({ found: 'found', detail: 'found' });
  });

  it.each([
    ['v=spf1 include:', 'names no domain'],
    ['v=spf1 include -all', 'names no domain'],
    ['v=spf1 ip4:2001:db8::1 -all', 'is not an IPv4 network'],
    ['v=spf1 ip4:192.0.2.1/33 -all', 'is not an IPv4 network'],
    ['v=spf1 ip4:192.0.2.1/ -all', 'is not an IPv4 network'],
    ['v=spf1 ip6:192.0.2.1 -all', 'is not an IPv6 network'],
    ['v=spf1 ipv4:192.0.2.1 -all', 'is not an SPF term'],
    ['v=spf1 all:x', 'does not accept a value'],
    ['v=spf1 redirect=a.test redirect=b.test', 'appears twice'],
    ['v=spf1 redirect=', 'names no domain'],
    [`v=spf1 ${'include:a.test '.repeat(11)}-all`, '11 terms need a DNS lookup'],
  ])('that is invalid is wrong: %s', (record, detail) => {
    const result = checkSpf('v=spf1 ?all', [record]);
    expect(result).toMatchObject({ found: 'wrong' });
    expect(result.detail).toContain(detail);
  });
});

describe('a DMARC record', () => {
  it.each(['v=DMARC1; p=none', 'v=DMARC1;p=REJECT;rua=mailto:a@b.test;', ' v = DMARC1 ; p = quarantine ; pct=50'])(
    'is found: %s',
    (record) => {
      expect(checkDmarc(['other', record])).toEqual({ found: 'found', detail: 'found' });
    },
  );

  it.each([
    [['v=DMARC1'], 'no policy'],
    [['v=DMARC1; p=maybe'], 'not one of none, quarantine, reject'],
    [['v=DMARC1; p=none; p=none'], 'has a tag twice'],
    [['v=DMARC1; p=none', 'v=DMARC1; p=reject'], '2 DMARC records'],
    [['p=none; v=DMARC1'], 'begins with v=DMARC1'],
    [['v=DMARC10; p=none'], 'begins with v=DMARC1'],
  ])('%j is wrong', (records, detail) => {
    const result = checkDmarc(records);
    expect(result.found).toBe('wrong');
    expect(result.detail).toContain(detail);
  });
});

const SUBDOMAIN: DnsRecord = { ...DMARC, name: '_dmarc.mail.shop.example.test' };
const REJECT = { TXT: ['v=DMARC1; p=reject'] };
const ROUTED = { [RETURN_PATH.name]: { MX: [[20, 'mail.other.test']] } } as const;

test.each<[string, DnsRecord, Zone, object]>([
  [
    'DKIM record, split into strings and behind an alias,',
    DKIM,
    {
      [DKIM.name]: { CNAME: 'k.other.test' },
      'k.other.test': { TXT: [[DKIM_VALUE.slice(0, 20), DKIM_VALUE.slice(20)]] },
    },
    { ...DKIM, found: 'found', seen: [DKIM_VALUE], detail: 'found' },
  ],
  ['DKIM record without a name', DKIM, {}, { found: 'missing', seen: [] }],
  ['DKIM record without a text', DKIM, { [DKIM.name]: { A: ['192.0.2.1'] } }, { found: 'missing' }],
  ...(['timeout', 'SERVFAIL', 'REFUSED'] as const).map((fault): [string, DnsRecord, Zone, object] => [
    `DKIM record after ${fault}`,
    DKIM,
    { [DKIM.name]: { fault } },
    { found: 'unknown', detail: expect.stringMatching(/^the lookup failed \(.+\), so the status is unknown$/) },
  ]),
  [
    'name with two SPF records',
    SPF,
    { [SPF.name]: { TXT: ['v=spf1 -all', 'v=spf1 mx -all', 'other'] } },
    {
      ...{ found: 'wrong', seen: ['v=spf1 -all', 'v=spf1 mx -all'] },
      detail: '2 SPF records, which is an error; combine them into one',
    },
  ],
  ['name with other texts than SPF', SPF, { [SPF.name]: { TXT: ['site=x'] } }, { found: 'missing', seen: [] }],
  ['SPF record after SERVFAIL', SPF, { [SPF.name]: { fault: 'SERVFAIL' } }, { found: 'unknown' }],
  [
    'DMARC record of the organizational domain',
    SUBDOMAIN,
    { [DMARC.name]: REJECT },
    { found: 'found', seen: ['v=DMARC1; p=reject'], detail: 'at _dmarc.example.test: found' },
  ],
  [
    'invalid DMARC record of the organizational domain',
    SUBDOMAIN,
    { [DMARC.name]: { TXT: ['v=DMARC1'] } },
    { found: 'wrong' },
  ],
  [
    'DMARC record of a subdomain and its organizational domain',
    SUBDOMAIN,
    { [DMARC.name]: REJECT, [SUBDOMAIN.name]: { TXT: ['v=DMARC1; p=none'] } },
    { found: 'found', seen: ['v=DMARC1; p=none'] },
  ],
  ['DMARC record of neither domain', SUBDOMAIN, {}, { found: 'missing' }],
  ['DMARC record of a domain', DMARC, {}, { found: 'missing' }],
  ['DMARC record after a timeout above', SUBDOMAIN, { [DMARC.name]: { fault: 'timeout' } }, { found: 'unknown' }],
  ['DMARC record after a refusal', SUBDOMAIN, { [SUBDOMAIN.name]: { fault: 'REFUSED' } }, { found: 'unknown' }],
  [
    'MX record with any priority, in any letter case,',
    MX,
    {
      [MX.name]: {
        MX: [
          [5, 'a.other.test'],
          [7, 'MX.Example.test'],
        ],
      },
    },
    { found: 'found', seen: expect.arrayContaining(['7 mx.example.test']) },
  ],
  [
    'MX record of another host',
    MX,
    { [MX.name]: { MX: [[10, 'other.test']] } },
    {
      found: 'wrong',
      detail: 'the value is 10 other.test, expected 10 mx.example.test; publish the expected value',
    },
  ],
  ['null MX', MX, { [MX.name]: { MX: [[0, '']] } }, { found: 'wrong', detail: expect.stringContaining('null MX') }],
  ['name without MX', MX, { [MX.name]: { A: ['192.0.2.1'] } }, { found: 'missing' }],
  ['MX record after SERVFAIL', MX, { [MX.name]: { fault: 'SERVFAIL' } }, { found: 'unknown' }],
  ['CNAME record in any letter case', CNAME, { [CNAME.name]: { CNAME: 'T.dkim.SES.test' } }, { found: 'found' }],
  ['CNAME record of another host', CNAME, { [CNAME.name]: { CNAME: 'other.test' } }, { found: 'wrong' }],
  ['name without CNAME', CNAME, {}, { found: 'missing' }],
  [
    'return path whose hosts have addresses',
    RETURN_PATH,
    { ...ROUTED, 'mail.other.test': { A: ['192.0.2.1'] } },
    { found: 'found', detail: 'messages are routed to mail.other.test' },
  ],
  ['return path whose host has no address', RETURN_PATH, ROUTED, { found: 'wrong' }],
  ['return path with a null MX', RETURN_PATH, { [RETURN_PATH.name]: { MX: [[0, '']] } }, { found: 'wrong' }],
  ['return path without MX', RETURN_PATH, { [RETURN_PATH.name]: { A: ['192.0.2.1'] } }, { found: 'missing' }],
  ['return path after SERVFAIL', RETURN_PATH, { [RETURN_PATH.name]: { fault: 'SERVFAIL' } }, { found: 'unknown' }],
  [
    'return path whose host is unknown',
    RETURN_PATH,
    { ...ROUTED, 'mail.other.test': { fault: 'SERVFAIL' } },
    { found: 'unknown' },
  ],
])('the check of a %s has its result', async (_name, record, zone, expected) => {
  expect(await checkRecord(record, zone)).toMatchObject(expected);
});

describe('MX records', () => {
  it('of the return path of a sending domain are found only if every host that they name points to the feedback listener', async () => {
    const ownRecord: DnsRecord = { ...RETURN_PATH, name: 'bounces.tenant.test', value: '10 bounces.host.test' };
    const listener: Zone = { 'bounces.host.test': { MX: [[10, 'mx.host.test']], A: ['192.0.2.25'] } };
    const hosts: Zone = {
      ...listener,
      'mx.host.test': { A: ['192.0.2.26'] },
      'same.test': { A: ['192.0.2.26'] },
      'foreign.test': { A: ['192.0.2.99'] },
    };
    const checkMxHosts = async (names: readonly string[], zone: Zone = hosts) =>
      (
        await checkRecord(ownRecord, {
          ...zone,
          [ownRecord.name]: { MX: names.map((name, index) => [index, name] as const) },
        })
      )?.found;
    expect(await checkMxHosts(['bounces.host.test'])).toBe('found');
    // mx.host.test is the mail exchanger of the listener, and same.test has the address of mx.host.test.
    expect(await checkMxHosts(['mx.host.test', 'same.test'])).toBe('found');
    expect(await checkMxHosts(['foreign.test'])).toBe('wrong');
    expect(await checkMxHosts(['bounces.host.test', 'foreign.test'])).toBe('wrong');
    expect(await checkMxHosts([''])).toBe('wrong');
    expect(await checkMxHosts(['bounces.host.test'], {})).toBe('wrong');
    expect(await checkMxHosts(['same.test'], { ...hosts, 'bounces.host.test': { fault: 'SERVFAIL' } })).toBe('unknown');
    expect(await checkMxHosts(['same.test'], { ...hosts, 'same.test': { fault: 'SERVFAIL' } })).toBe('unknown');
    expect(await checkRecord(ownRecord, hosts)).toMatchObject({ found: 'missing' });
  });
});

describe('a check of many records', () => {
  const rejectLookup = (): Promise<Lookup<never>> => Promise.reject(new Error('unexpected lookup'));

  it('keeps their order, and the number of concurrent lookups is limited', async () => {
    let openLookupCount = 0;
    let maxOpenLookupCount = 0;
    const countingResolver: Resolver = {
      async lookUpTxt() {
        openLookupCount += 1;
        maxOpenLookupCount = Math.max(maxOpenLookupCount, openLookupCount);
        await new Promise(setImmediate);
        openLookupCount -= 1;
        return { kind: 'none' };
      },
      lookUpMx: rejectLookup,
      lookUpCname: rejectLookup,
      lookUpAddresses: rejectLookup,
      lookUpHostNames: rejectLookup,
    };
    const records = Array.from({ length: 50 }, (_, index) => ({ ...DKIM, name: `s${index}._domainkey.example.test` }));
    const checks = await checkRecords(records, countingResolver, 4);
    expect(checks.map((record) => record.name)).toEqual(records.map((record) => record.name));
    expect(maxOpenLookupCount).toBe(4);
    expect(await checkRecords([], countingResolver)).toEqual([]);
  });
});

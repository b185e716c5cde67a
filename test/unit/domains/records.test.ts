import { describe, expect, it } from 'vitest';
import { createRecords, findSpfFault } from '../../../src/domains/records.ts';
import { getHostFacts, getProviderFacts } from '../../../src/domains/setup.ts';
import { PROVIDERS } from '../../../src/providers/providers.ts';
import { createDkimKey, createSendingDomain } from './sending-domain.ts';

const setup = { returnPath: null, replacedBy: null, returnPathHost: null, spf: 'v=spf1 ?all', reportsTo: null };

describe('the records of a domain', () => {
  it('are one DKIM record for each key, an SPF record and a DMARC record', () => {
    const domain = createSendingDomain({
      keys: [
        createDkimKey({ state: 'retiring' }),
        createDkimKey({ selector: 'newe', algorithm: 'ed25519', publicKey: 'AAAA' }),
      ],
    });
    expect(createRecords(domain, setup)).toEqual([
      {
        purpose: 'dkim',
        type: 'TXT',
        name: 'pr20261121aaaaa._domainkey.example.org',
        value: 'v=DKIM1; k=rsa; p=MIIB',
      },
      { purpose: 'dkim', type: 'TXT', name: 'newe._domainkey.example.org', value: 'v=DKIM1; k=ed25519; p=AAAA' },
      { purpose: 'spf', type: 'TXT', name: 'example.org', value: 'v=spf1 ?all' },
      { purpose: 'dmarc', type: 'TXT', name: '_dmarc.example.org', value: 'v=DMARC1; p=none' },
    ]);
  });

  it('contain SPF and MX records at the return path if it is set, and the records of a provider', () => {
    const providerRecords = [
      { purpose: 'dkim', type: 'CNAME', name: 't1._domainkey.example.org', value: 't1.dkim.amazonses.com' },
    ] as const;
    const returnPathSetup = { ...setup, returnPath: 'bounces.example.org', reportsTo: 'dmarc+a;b@example.org' };
    const records = createRecords(createSendingDomain({ keys: [] }), returnPathSetup, providerRecords);
    expect(records.map(({ purpose, type, name, value }) => `${purpose} ${type} ${name} ${value}`)).toEqual([
      'dkim CNAME t1._domainkey.example.org t1.dkim.amazonses.com',
      'spf TXT bounces.example.org v=spf1 ?all',
      'dmarc TXT _dmarc.example.org v=DMARC1; p=none; rua=mailto:dmarc%2Ba%3Bb@example.org',
      'return-path MX bounces.example.org 10 bounces.example.org',
    ]);
    const recordsWithHost = createRecords(createSendingDomain(), {
      ...returnPathSetup,
      returnPathHost: 'mx.example.org',
    });
    expect(recordsWithHost.at(-1)?.value).toBe('10 mx.example.org');
  });

  it('of a domain with its own return path contain SPF and MX records at this return path, and the MX record names the feedback listener', () => {
    const domain = createSendingDomain({ keys: [], returnPath: { name: 'bounces.example.org', isVerified: false } });
    const listRecords = (changes: { readonly returnPath: string | null }) =>
      createRecords(domain, { ...setup, ...changes }).map(({ purpose, type, name, value }) => [
        purpose,
        type,
        name,
        value,
      ]);
    expect(listRecords({ returnPath: 'bounces.host.example' })).toEqual([
      ['spf', 'TXT', 'bounces.example.org', 'v=spf1 ?all'],
      ['dmarc', 'TXT', '_dmarc.example.org', 'v=DMARC1; p=none'],
      ['return-path', 'MX', 'bounces.example.org', '10 bounces.host.example'],
    ]);
    // Without a listener, or with a provider that replaces the envelope sender, no message uses the return path.
    expect(listRecords({ returnPath: null })).toEqual([
      ['spf', 'TXT', 'example.org', 'v=spf1 ?all'],
      ['dmarc', 'TXT', '_dmarc.example.org', 'v=DMARC1; p=none'],
    ]);
  });
});

describe('the facts about a relay', () => {
  it.each([
    [null, 'v=spf1 ?all', []],
    ['127.0.0.1', 'v=spf1 ?all', []],
    ['::1', 'v=spf1 ?all', []],
    ['relay', 'v=spf1 ?all', []],
    ['SMTP.example.net', 'v=spf1 a:smtp.example.net ?all', []],
  ])('of %s contain the SPF record %s', (host, spf, rewrites) => {
    const facts = getHostFacts(host);
    expect([facts.spf, [...facts.rewrittenFields]]).toEqual([spf, rewrites]);
    expect(findSpfFault(facts.spf ?? '')).toBeNull();
  });

  it('of every provider contain a valid SPF record or none', () => {
    for (const { name } of PROVIDERS) {
      const { spf } = getProviderFacts(name);
      if (spf !== null) expect(findSpfFault(spf)).toBeNull();
    }
  });
});

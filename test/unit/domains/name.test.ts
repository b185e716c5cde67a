import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDomainName } from '../../../src/domains/name.ts';
import { getOrganizationalDomain } from '../../../src/model/address.ts';
import { selectCaseCount } from '../../rig/sample.ts';

describe('a domain name', () => {
  it.each([
    ['example.com', 'example.com'],
    ['Example.COM.', 'example.com'],
    ['mail.shop.example.co.uk', 'mail.shop.example.co.uk'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['BÜCHER.example.', 'xn--bcher-kva.example'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['例え.テスト', 'xn--r8jz45g.xn--zckzah'],
    ['ann.github.io', 'ann.github.io'],
    ['example.test', 'example.test'],
    ['3com.com', '3com.com'],
  ])('%s is normalized to %s', (text, name) => {
    expect(parseDomainName(text)).toEqual({ ok: true, name, warning: null });
  });

  it.each([
    ['', 'is missing'],
    ['.', 'is missing'],
    ['com', 'is a single label'],
    ['localhost.', 'is a single label'],
    ['co.uk', 'is a public suffix'],
    ['xn--55qx5d.cn', 'is a public suffix'],
    ['公司.cn', 'is a public suffix'],
    ['github.io', 'is a public suffix: a provider'],
    ['a..com', 'has an empty label'],
    ['.example.com', 'has an empty label'],
    ['example.com..', 'has an empty label'],
    ['https://example.com', 'is a URL'],
    ['example.com/path', 'is a URL or a path'],
    ['ann@example.com', 'is an address'],
    ['example.com:25', 'has a port'],
    ['*.example.com', 'is a pattern'],
    ['192.0.2.1', 'is an IP address'],
    ['[192.0.2.1]', 'is an IP address'],
    ['2001:db8::1', 'is an IP address'],
    ['[2001:db8::1]', 'is an IP address'],
    ['_dmarc.example.com', 'has an underscore'],
    ['ex ample.com', 'is not a domain name'],
    ['-a.example.com', 'is not a domain name'],
    ['example.123', 'is not a domain name'],
    ['xn--a.example', 'is not a domain name'],
    ['a\u202eb.example.com', 'is not a domain name'],
    ['a\nb.example.com', 'is not a domain name'],
    [`${'a'.repeat(64)}.example.com`, 'has a label of 64 characters'],
    [`${'a.'.repeat(112)}com`, 'because the names of its DKIM records are longer'],
    [`${'a.'.repeat(148)}.com`, 'has 300 characters'],
  ])('the name %j is refused with the error: %s', (text, fault) => {
    const parseResult = parseDomainName(text);
    expect(parseResult.ok ? parseResult.name : parseResult.fault).toContain(fault);
    if (!parseResult.ok) expect(parseResult.fault).toMatch(/^[^\p{C}]{20,250}$/u);
  });

  it('is refused or normalized, and a normalized name is unchanged when it is parsed again', () => {
    fc.assert(
      fc.property(fc.oneof(fc.domain(), fc.string({ maxLength: 300 }), fc.string({ unit: 'binary' })), (text) => {
        const parseResult = parseDomainName(text);
        if (!parseResult.ok) {
          expect(parseResult.fault).not.toMatch(/\p{Cc}/u);
          return;
        }
        expect(parseResult.name).toMatch(/^(?=.{3,253}$)([a-z0-9-]{1,63}\.)+[a-z0-9-]{1,63}$/);
        expect(parseDomainName(parseResult.name)).toMatchObject({ ok: true, name: parseResult.name });
        expect(parseDomainName(`${parseResult.name}.`)).toMatchObject({ ok: true, name: parseResult.name });
      }),
      { numRuns: selectCaseCount(100, 500) },
    );
  });

  it.each([
    ['pаypal.example', 'Latin and Cyrillic'],
    ['αpple.example', 'Greek and Latin'],
    ['shop.ехample.com', 'Cyrillic and Latin'],
  ])('%s gives a warning about %s letters in one label', (text, scripts) => {
    expect(parseDomainName(text)).toMatchObject({ ok: true, warning: expect.stringContaining(scripts) });
  });

  it.each(['пример.example', '東京tower.example', 'ひらカナ漢字.example', '서울city.example', 'müller-99.example'])(
    '%s uses an allowed combination of scripts and gives no warning',
    (text) => {
      expect(parseDomainName(text)).toMatchObject({ ok: true, warning: null });
    },
  );
});

describe('the organizational domain', () => {
  it.each([
    ['a.b.example.co.uk', 'example.co.uk'],
    ['example.com', 'example.com'],
    ['x.ann.github.io', 'ann.github.io'],
    ['com', 'com'],
  ])('of %s is %s', (name, organization) => {
    expect(getOrganizationalDomain(name)).toBe(organization);
  });
});

import { describe, expect, it } from 'vitest';
import { createKeyPair } from '../../../src/domains/keys.ts';
import { formatDkimRecord } from '../../../src/domains/records.ts';
import { formatZone, formatZoneFile } from '../../../src/domains/zone-file.ts';

/** Returns the octets of each quoted string of a line (RFC 1035 section 5.1). */
function parseStrings(line: string): readonly Buffer[] {
  return [...line.matchAll(/"((?:[^"\\]|\\\d{3}|\\\D)*)"/g)].map(([, content = '']) =>
    Buffer.from(
      [...content.matchAll(/\\(\d{3})|\\(.)|(.)/g)].map(([, decimal, escaped, plain]) =>
        decimal === undefined ? (escaped ?? plain ?? '').charCodeAt(0) : Number(decimal),
      ),
    ),
  );
}

describe('a zone file', () => {
  it('splits a long key into strings of at most 255 octets, and the concatenated strings are the value', async () => {
    const value = formatDkimRecord(await createKeyPair('rsa'));
    const line = formatZone([{ type: 'TXT', name: 's._domainkey.example.org', value }]);
    expect(line).toMatch(/^s\._domainkey\.example\.org\. IN TXT "[^"]{255}" "[^"]{1,255}"\n$/);
    expect(Buffer.concat([...parseStrings(line)]).toString()).toBe(value);
  });

  it('ends names with a dot and escapes quotes and backslashes in strings', () => {
    expect(
      formatZone([
        { type: 'MX', name: 'b.example.org', value: '10 mx.example.org' },
        { type: 'CNAME', name: 'a.example.org', value: 'b.example.net' },
        { type: 'TXT', name: 'example.org', value: 'a"b\\c' },
      ]),
    ).toBe(
      'b.example.org. IN MX 10 mx.example.org.\na.example.org. IN CNAME b.example.net.\nexample.org. IN TXT "a\\"b\\\\c"\n',
    );
  });

  it('has a TTL, and a comment of one line before each record, and no line for the identity at Amazon SES', () => {
    const file = formatZoneFile('example.org', [
      { type: 'TXT', name: 'example.org', value: 'v=spf1 ?all', about: 'SPF:\nevil.example.org. IN A 192.0.2.1' },
      { type: 'SES', name: 'example.org', value: 'verified', about: 'the identity' },
    ]);
    expect(file).toBe(
      [
        '; DNS records of example.org for Postrider',
        '$TTL 3600',
        '',
        '; SPF: evil.example.org. IN A 192.0.2.1',
        'example.org. IN TXT "v=spf1 ?all"',
        '',
      ].join('\n'),
    );
  });
});

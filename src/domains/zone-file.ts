/** Formats a zone file (RFC 1035 section 5), without a module of Node, because the dashboard uses it. Pure. */
import type { DnsRecord } from '../model/domain.ts';
import { joinLines } from '../printing/escape.ts';

type ZoneRecord = Pick<DnsRecord, 'type' | 'name' | 'value'>;

/** Of one string of a TXT record (RFC 1035 section 3.3). */
const MAX_STRING_OCTETS = 255;
/** A corrected record is effective after this time at the latest. */
const TTL_S = 3_600;

/** The identity at Amazon SES is not a DNS record. */
export function formatZone(records: readonly ZoneRecord[]): string {
  return records
    .filter(({ type }) => type !== 'SES')
    .map((record) => `${record.name}. IN ${record.type} ${formatZoneValue(record)}\n`)
    .join('');
}

export function formatZoneFile(domain: string, records: readonly (ZoneRecord & { readonly about: string })[]): string {
  const publishedRecords = records.filter(({ type }) => type !== 'SES');
  // A line break in a comment would begin a record.
  const entries = publishedRecords.map((record) => `; ${joinLines(record.about)}\n${formatZone([record])}`);
  return [`; DNS records of ${joinLines(domain)} for Postrider`, `$TTL ${TTL_S}`, '', ...entries].join('\n');
}

function formatZoneValue({ type, value }: ZoneRecord): string {
  switch (type) {
    case 'TXT':
      return formatZoneStrings(value);
    case 'CNAME':
    case 'MX':
      return `${value}.`;
    case 'SES':
      return value;
  }
}

/** RFC 1035 section 5.1. A verifier concatenates the strings. */
function formatZoneStrings(value: string): string {
  const octets = new TextEncoder().encode(value);
  const strings: string[] = [];
  for (let offset = 0; offset === 0 || offset < octets.length; offset += MAX_STRING_OCTETS) {
    const textPart = octets.subarray(offset, offset + MAX_STRING_OCTETS);
    strings.push(`"${[...textPart].map(formatOctet).join('')}"`);
  }
  return strings.join(' ');
}

function formatOctet(octet: number): string {
  if (octet < 0x20 || octet > 0x7e) return `\\${String(octet).padStart(3, '0')}`;
  const character = String.fromCharCode(octet);
  return character === '"' || character === '\\' ? `\\${character}` : character;
}

/**
 * Formats DNS records as a zone file (RFC 1035 section 5), which BIND reads and most DNS hosts can import. The
 * functions are pure and use no module of Node, because they also run in the dashboard.
 */
import type { DnsRecord } from '../model/domain.ts';

type ZoneRecord = Pick<DnsRecord, 'type' | 'name' | 'value'>;

/** RFC 1035 section 3.3: the maximum length of one string of a TXT record in octets. */
const MAX_STRING_OCTETS = 255;
/** The TTL of the records in seconds. A corrected record is effective after this time at the latest. */
const TTL_S = 3_600;

/**
 * Returns the lines of a zone file, one line for each record. The identity at Amazon SES is not a DNS record and has no
 * line.
 */
export function formatZone(records: readonly ZoneRecord[]): string {
  return records
    .filter(({ type }) => type !== 'SES')
    .map((record) => `${record.name}. IN ${record.type} ${formatZoneValue(record)}\n`)
    .join('');
}

/** Returns a zone file with a TTL, and with a comment that names the purpose of each record. Every name is absolute. */
export function formatZoneFile(domain: string, records: readonly (ZoneRecord & { readonly about: string })[]): string {
  const publishedRecords = records.filter(({ type }) => type !== 'SES');
  const entries = publishedRecords.map((record) => `; ${toOneLine(record.about)}\n${formatZone([record])}`);
  return [`; DNS records of ${toOneLine(domain)} for Postrider`, `$TTL ${TTL_S}`, '', ...entries].join('\n');
}

/** A line break in a comment would begin a record. */
function toOneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
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

/** RFC 1035 section 5.1 defines quoted strings. A verifier concatenates the strings without a separator. */
function formatZoneStrings(value: string): string {
  const octets = new TextEncoder().encode(value);
  const strings: string[] = [];
  for (let offset = 0; offset === 0 || offset < octets.length; offset += MAX_STRING_OCTETS) {
    const textPart = octets.subarray(offset, offset + MAX_STRING_OCTETS);
    strings.push(`"${[...textPart].map(formatOctet).join('')}"`);
  }
  return strings.join(' ');
}

/** Escapes an octet that is special in a quoted string, and writes every octet outside printable ASCII as `\DDD`. */
function formatOctet(octet: number): string {
  if (octet < 0x20 || octet > 0x7e) return `\\${String(octet).padStart(3, '0')}`;
  const character = String.fromCharCode(octet);
  return character === '"' || character === '\\' ? `\\${character}` : character;
}

/**
 * Checks the DNS records of a domain. Never rejects: a record whose lookup fails is `unknown`, never `missing`. The
 * number of concurrent lookups is limited, and DNS answers are truncated before they are stored.
 */

import type { DnsRecord, RecordCheck } from '../model/domain.ts';
import { compareDkim, type RecordFinding } from './dkim-record.ts';
import { checkDmarc } from './dmarc-record.ts';
import type { Lookup, MailExchange, Resolver } from './dns.ts';
import { organisationalDomain } from './name.ts';
import { checkSpf, isSpfRecord } from './spf-record.ts';

const CONCURRENCY = 8;
/** The maximum number of characters that are stored of a record. An RSA-4096 key has 750 characters. */
const MAX_SEEN_CHARACTERS = 1_000;
/** The maximum number of records that are stored of an answer. */
const MAX_SEEN_RECORDS = 20;

type Finding = RecordFinding & { readonly seen: readonly string[] };

/** Checks the records. Returns one check for each record, in the same order. */
export async function checkRecords(
  records: readonly DnsRecord[],
  resolver: Resolver,
  concurrency = CONCURRENCY,
): Promise<readonly RecordCheck[]> {
  const checks: RecordCheck[] = [];
  let next = 0;
  const checkNext = async () => {
    for (let at = next++; at < records.length; at = next++) {
      const record = records[at] as DnsRecord;
      checks[at] = { ...record, ...(await checkRecord(record, resolver)) };
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, records.length) }, checkNext));
  return checks;
}

function checkRecord(record: DnsRecord, resolver: Resolver): Promise<Finding> {
  switch (record.type) {
    case 'CNAME':
      return checkCname(record, resolver);
    case 'MX':
      return checkMx(record, resolver);
    case 'SES':
      return Promise.resolve(unknown('the provider reports this status, not DNS'));
    case 'TXT':
      return record.purpose === 'dmarc' ? checkPolicy(record, resolver) : checkTxt(record, resolver);
  }
}

async function checkTxt(record: DnsRecord, resolver: Resolver): Promise<Finding> {
  const lookup = await resolver.txt(record.name);
  if (lookup.kind === 'failed') return unknown(lookup.reason);
  const texts = lookup.kind === 'found' ? lookup.values : [];
  if (record.purpose === 'spf') return { ...checkSpf(record.value, texts), seen: limitSeen(texts.filter(isSpfRecord)) };
  const result = compareDkim(record.value, texts);
  if (result.found !== 'missing') return { ...result, seen: limitSeen(texts) };
  return { ...(await checkDoubledName(record, '._domainkey.', resolver)), seen: [] };
}

/**
 * Many DNS hosts append the domain to the entered name. A missing record is therefore also looked up under the doubled name. If
 * that lookup fails, only the hint is missing.
 */
async function checkDoubledName(record: DnsRecord, marker: string, resolver: Resolver): Promise<RecordFinding> {
  const domain = record.name.slice(record.name.indexOf(marker) + marker.length);
  const doubledName = `${record.name}.${domain}`;
  const lookup = await resolver.txt(doubledName);
  if (lookup.kind === 'found' && compareDkim(record.value, lookup.values).found === 'found') {
    const label = record.name.slice(0, -domain.length - 1);
    return {
      found: 'missing',
      detail: `the record is at ${doubledName}; enter only the name ${label} at your DNS host`,
    };
  }
  return compareDkim(record.value, []);
}

/** RFC 7489 section 6.6.3: if the domain has no record, the record of its organisational domain applies. */
async function checkPolicy(record: DnsRecord, resolver: Resolver): Promise<Finding> {
  const domain = record.name.slice('_dmarc.'.length);
  const parent = organisationalDomain(domain);
  const ownLookup = await resolver.txt(record.name);
  if (ownLookup.kind === 'failed') return unknown(ownLookup.reason);
  const ownTexts = ownLookup.kind === 'found' ? ownLookup.values : [];
  const result = checkDmarc(ownTexts);
  if (result.found === 'found' || parent === domain) return { ...result, seen: limitSeen(ownTexts) };
  const parentLookup = await resolver.txt(`_dmarc.${parent}`);
  if (parentLookup.kind === 'failed') return unknown(parentLookup.reason);
  const parentTexts = parentLookup.kind === 'found' ? parentLookup.values : [];
  const inherited = checkDmarc(parentTexts);
  if (result.found === 'missing' && inherited.found !== 'missing') {
    return { found: inherited.found, detail: `at _dmarc.${parent}: ${inherited.detail}`, seen: limitSeen(parentTexts) };
  }
  return { ...result, seen: limitSeen(ownTexts) };
}

async function checkCname(record: DnsRecord, resolver: Resolver): Promise<Finding> {
  const lookup = await resolver.cname(record.name);
  return compareNames(lookup, record, (name) => name, [record.value.toLowerCase()]);
}

async function checkMx(record: DnsRecord, resolver: Resolver): Promise<Finding> {
  const lookup = await resolver.mx(record.name);
  if (record.purpose === 'return-path') return checkReturnPath(lookup, record, resolver);
  const host = record.value.slice(record.value.indexOf(' ') + 1).toLowerCase();
  return compareNames(lookup, record, mxText, [host]);
}

/** The maximum number of return-path hosts that are looked up, the same as in `doctor`. */
const MAX_EXCHANGES = 10;

/**
 * The operator chooses the host that receives the bounces, so the expected host is not known here. The record is found if each
 * host of the record has an address, as `doctor` requires.
 */
async function checkReturnPath(
  lookup: Lookup<MailExchange>,
  record: DnsRecord,
  resolver: Pick<Resolver, 'addresses'>,
): Promise<Finding> {
  if (lookup.kind !== 'found') return compareNames(lookup, record, mxText, []);
  const seen = limitSeen(lookup.values.map(mxText));
  if (lookup.values.some(({ exchange }) => exchange === ''))
    return {
      found: 'wrong',
      detail: 'it is a null MX, which accepts no messages (RFC 7505); publish the host that receives the bounces',
      seen,
    };
  const exchanges = lookup.values.slice(0, MAX_EXCHANGES).map(({ exchange }) => exchange);
  const answers = await Promise.all(exchanges.map((exchange) => resolver.addresses(exchange)));
  const withoutAddress = exchanges.filter((_, index) => answers[index]?.kind === 'none');
  if (withoutAddress.length > 0) {
    const detail = `it names ${withoutAddress.join(', ')}, which has no address; publish an A or AAAA record for it`;
    return { found: 'wrong', detail, seen };
  }
  const failed = answers.find((answer) => answer.kind === 'failed');
  if (failed !== undefined) return { ...unknown(failed.reason), seen };
  return { found: 'found', detail: `messages are routed to ${exchanges.join(', ')}`, seen };
}

function mxText({ priority, exchange }: MailExchange): string {
  // RFC 7505: an MX of `.` means that the domain accepts no messages.
  return exchange === '' ? `${priority} . (null MX)` : `${priority} ${exchange}`;
}

/** Returns `found` if one of the answers names an expected host. The operator chooses the priority. */
function compareNames<T>(
  lookup: Lookup<T>,
  record: DnsRecord,
  toText: (value: T) => string,
  expected: readonly string[],
): Finding {
  switch (lookup.kind) {
    case 'failed':
      return unknown(lookup.reason);
    case 'none':
      return { found: 'missing', detail: `no ${record.type} record; publish ${record.value}`, seen: [] };
    case 'found': {
      const seen = limitSeen(lookup.values.map(toText));
      const isFound = seen.some((value) => expected.includes(value.slice(value.lastIndexOf(' ') + 1)));
      if (isFound) return { found: 'found', detail: 'found', seen };
      return { found: 'wrong', detail: `its value is ${seen.join(', ')}, expected ${record.value}`, seen };
    }
  }
}

function unknown(reason: string): Finding {
  return { found: 'unknown', detail: `the lookup failed (${reason}), so the status is unknown`, seen: [] };
}

/** Returns the values as they are stored and shown: without control characters, and with limited length. */
function limitSeen(values: readonly string[]): readonly string[] {
  return values.slice(0, MAX_SEEN_RECORDS).map((value) => {
    const short = value.length > MAX_SEEN_CHARACTERS ? `${value.slice(0, MAX_SEEN_CHARACTERS - 1)}…` : value;
    return short.replaceAll(/\p{Cc}|\p{Cf}/gu, '\uFFFD');
  });
}

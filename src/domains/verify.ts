/** Checks DNS records. Never rejects: a record whose lookup fails is `unknown`, never `missing`. */

import { getOrganizationalDomain } from '../model/address.ts';
import type { DnsRecord, RecordCheck } from '../model/domain.ts';
import type { Lookup, MailExchange, Resolver } from './dns.ts';
import { checkDkim, checkDmarc, checkSpf, isSpfRecord, type RecordFinding } from './records.ts';

const CONCURRENCY = 8;
/** The record of an RSA-4096 key has about 750 characters. */
const MAX_OBSERVED_CHARACTERS = 1_000;
const MAX_OBSERVED_RECORDS = 20;

type Finding = RecordFinding & { readonly seen: readonly string[] };

/** In the order of `records`. */
export async function checkRecords(
  records: readonly DnsRecord[],
  resolver: Resolver,
  concurrency = CONCURRENCY,
): Promise<readonly RecordCheck[]> {
  const checks: RecordCheck[] = [];
  let nextIndex = 0;
  const checkNextRecord = async () => {
    for (let index = nextIndex++; index < records.length; index = nextIndex++) {
      const record = records[index] as DnsRecord;
      checks[index] = { ...record, ...(await checkRecord(record, resolver)) };
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, records.length) }, checkNextRecord));
  return checks;
}

function checkRecord(record: DnsRecord, resolver: Resolver): Promise<Finding> {
  switch (record.type) {
    case 'CNAME':
      return checkCname(record, resolver);
    case 'MX':
      return checkMx(record, resolver);
    case 'SES':
      return Promise.resolve(createFailedLookupFinding('this status is reported by the provider, not by DNS'));
    case 'TXT':
      return record.purpose === 'dmarc' ? checkPolicy(record, resolver) : checkTxt(record, resolver);
  }
}

async function checkTxt(record: DnsRecord, resolver: Resolver): Promise<Finding> {
  const lookup = await resolver.lookUpTxt(record.name);
  if (lookup.kind === 'failed') return createFailedLookupFinding(lookup.reason);
  const txtRecords = lookup.kind === 'found' ? lookup.values : [];
  if (record.purpose === 'spf')
    return { ...checkSpf(record.value, txtRecords), seen: limitObservedValues(txtRecords.filter(isSpfRecord)) };
  const finding = checkDkim(record.value, txtRecords);
  if (finding.found !== 'missing') return { ...finding, seen: limitObservedValues(txtRecords) };
  return { ...(await checkDoubledName(record, '._domainkey.', resolver)), seen: [] };
}

/** Hints at a record at the doubled name, because many DNS hosts append the domain to the entered name. */
async function checkDoubledName(record: DnsRecord, marker: string, resolver: Resolver): Promise<RecordFinding> {
  const domain = record.name.slice(record.name.indexOf(marker) + marker.length);
  const doubledName = `${record.name}.${domain}`;
  const lookup = await resolver.lookUpTxt(doubledName);
  if (lookup.kind === 'found' && checkDkim(record.value, lookup.values).found === 'found') {
    const relativeName = record.name.slice(0, -domain.length - 1);
    return {
      found: 'missing',
      detail: `the record is at ${doubledName}; enter only the name ${relativeName} at your DNS host`,
    };
  }
  return checkDkim(record.value, []);
}

/** RFC 7489 section 6.6.3: if the domain has no record, the record of its organizational domain applies. */
async function checkPolicy(record: DnsRecord, resolver: Resolver): Promise<Finding> {
  const domain = record.name.slice('_dmarc.'.length);
  const parent = getOrganizationalDomain(domain);
  const ownLookup = await resolver.lookUpTxt(record.name);
  if (ownLookup.kind === 'failed') return createFailedLookupFinding(ownLookup.reason);
  const ownRecords = ownLookup.kind === 'found' ? ownLookup.values : [];
  const result = checkDmarc(ownRecords);
  if (result.found === 'found' || parent === domain) return { ...result, seen: limitObservedValues(ownRecords) };
  const parentLookup = await resolver.lookUpTxt(`_dmarc.${parent}`);
  if (parentLookup.kind === 'failed') return createFailedLookupFinding(parentLookup.reason);
  const parentRecords = parentLookup.kind === 'found' ? parentLookup.values : [];
  const inheritedFinding = checkDmarc(parentRecords);
  if (result.found === 'missing' && inheritedFinding.found !== 'missing') {
    return {
      found: inheritedFinding.found,
      detail: `at _dmarc.${parent}: ${inheritedFinding.detail}`,
      seen: limitObservedValues(parentRecords),
    };
  }
  return { ...result, seen: limitObservedValues(ownRecords) };
}

async function checkCname(record: DnsRecord, resolver: Resolver): Promise<Finding> {
  const lookup = await resolver.lookUpCname(record.name);
  return compareNames(lookup, record, (name) => name, [record.value.toLowerCase()]);
}

async function checkMx(record: DnsRecord, resolver: Resolver): Promise<Finding> {
  const lookup = await resolver.lookUpMx(record.name);
  if (record.purpose === 'return-path') return compareReturnPath(lookup, record, resolver);
  return compareNames(lookup, record, formatMx, [getMxHost(record)]);
}

/** `doctor` has the same maximum. */
const MAX_EXCHANGES = 10;

/**
 * Each host must have an address. The operator chooses the host of POSTRIDER_RETURN_PATH_DOMAIN; the return path of a
 * sending domain must lead to the feedback listener.
 */
async function compareReturnPath(
  lookup: Lookup<MailExchange>,
  record: DnsRecord,
  resolver: Pick<Resolver, 'lookUpMx' | 'lookUpAddresses'>,
): Promise<Finding> {
  if (lookup.kind !== 'found') return compareNames(lookup, record, formatMx, []);
  const seen = limitObservedValues(lookup.values.map(formatMx));
  if (lookup.values.some(({ exchange }) => exchange === ''))
    return {
      found: 'wrong',
      detail:
        'the record is a null MX, and the domain accepts no messages (RFC 7505); publish the host that receives the bounces',
      seen,
    };
  const exchanges = lookup.values.slice(0, MAX_EXCHANGES).map(({ exchange }) => exchange);
  const addressLookups = await Promise.all(exchanges.map((exchange) => resolver.lookUpAddresses(exchange)));
  const exchangesWithoutAddress = exchanges.filter((_, index) => addressLookups[index]?.kind === 'none');
  if (exchangesWithoutAddress.length > 0) {
    const detail = `the record names ${exchangesWithoutAddress.join(', ')}, which has no address; publish an A or AAAA record for this host`;
    return { found: 'wrong', detail, seen };
  }
  const failedLookup = addressLookups.find((lookupResult) => lookupResult.kind === 'failed');
  if (failedLookup !== undefined) return { ...createFailedLookupFinding(failedLookup.reason), seen };
  const listenerHost = getMxHost(record);
  if (listenerHost !== record.name) {
    const foreignHost = await findForeignHost(exchanges, listenerHost, resolver);
    if (foreignHost.kind === 'failed') return { ...createFailedLookupFinding(foreignHost.reason), seen };
    if (foreignHost.kind === 'foreign')
      return {
        found: 'wrong',
        detail: `messages are routed to ${foreignHost.host}, which is not the feedback listener; publish only ${record.value}`,
        seen,
      };
  }
  return { found: 'found', detail: `messages are routed to ${exchanges.join(', ')}`, seen };
}

function getMxHost({ value }: DnsRecord): string {
  return value.slice(value.indexOf(' ') + 1).toLowerCase();
}

type ForeignHost =
  | { readonly kind: 'none' }
  | { readonly kind: 'foreign'; readonly host: string }
  | { readonly kind: 'failed'; readonly reason: string };

/** The first host that is not `listenerHost`, one of its MX hosts, or at an address of one of these. */
async function findForeignHost(
  hosts: readonly string[],
  listenerHost: string,
  resolver: Pick<Resolver, 'lookUpMx' | 'lookUpAddresses'>,
): Promise<ForeignHost> {
  if (hosts.every((host) => host === listenerHost)) return { kind: 'none' };
  const lookup = await resolver.lookUpMx(listenerHost);
  if (lookup.kind === 'failed') return lookup;
  const exchanges = lookup.kind === 'found' ? lookup.values.slice(0, MAX_EXCHANGES) : [];
  const listenerHosts = [listenerHost, ...exchanges.map(({ exchange }) => exchange)];
  const otherHosts = hosts.filter((host) => !listenerHosts.includes(host));
  if (otherHosts.length === 0) return { kind: 'none' };
  const findAddresses = (names: readonly string[]) => Promise.all(names.map((name) => resolver.lookUpAddresses(name)));
  const [listenerLookups, otherLookups] = await Promise.all([
    findAddresses(listenerHosts.filter((host) => host !== '')),
    findAddresses(otherHosts),
  ]);
  const failedLookup = [...listenerLookups, ...otherLookups].find((result) => result.kind === 'failed');
  if (failedLookup !== undefined) return failedLookup;
  const listenerAddresses = listenerLookups.flatMap((result) => (result.kind === 'found' ? result.values : []));
  const foreignHost = otherHosts.find((_, index) => {
    const result = otherLookups[index];
    return result?.kind !== 'found' || !result.values.some((address) => listenerAddresses.includes(address));
  });
  return foreignHost === undefined ? { kind: 'none' } : { kind: 'foreign', host: foreignHost };
}

function formatMx({ priority, exchange }: MailExchange): string {
  // RFC 7505: an MX of `.` means that the domain accepts no messages.
  return exchange === '' ? `${priority} . (null MX)` : `${priority} ${exchange}`;
}

/** The operator chooses the priority, so it is not compared. */
function compareNames<T>(
  lookup: Lookup<T>,
  record: DnsRecord,
  toText: (value: T) => string,
  expectedHosts: readonly string[],
): Finding {
  switch (lookup.kind) {
    case 'failed':
      return createFailedLookupFinding(lookup.reason);
    case 'none':
      return { found: 'missing', detail: `no ${record.type} record; publish ${record.value}`, seen: [] };
    case 'found': {
      const seen = limitObservedValues(lookup.values.map(toText));
      const isFound = seen.some((value) => expectedHosts.includes(value.slice(value.lastIndexOf(' ') + 1)));
      if (isFound) return { found: 'found', detail: 'found', seen };
      return {
        found: 'wrong',
        detail: `the value is ${seen.join(', ')}, expected ${record.value}; publish the expected value`,
        seen,
      };
    }
  }
}

function createFailedLookupFinding(reason: string): Finding {
  return { found: 'unknown', detail: `the lookup failed (${reason}), so the status is unknown`, seen: [] };
}

/** As stored and shown: without control characters, and with limited length. */
function limitObservedValues(values: readonly string[]): readonly string[] {
  return values.slice(0, MAX_OBSERVED_RECORDS).map((value) => {
    const shortValue =
      value.length > MAX_OBSERVED_CHARACTERS ? `${value.slice(0, MAX_OBSERVED_CHARACTERS - 1)}…` : value;
    return shortValue.replaceAll(/\p{Cc}|\p{Cf}/gu, '\uFFFD');
  });
}

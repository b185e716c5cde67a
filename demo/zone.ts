/**
 * Publishes and checks the records of the simulated sending domains in the DNS server of the demo. No other DNS server
 * is used.
 */

import type { Settings } from '../src/config/settings.ts';
import type { Resolver } from '../src/domains/dns.ts';
import { createRecords } from '../src/domains/records.ts';
import { evaluateDomainChecks, getSendingSetup } from '../src/domains/setup.ts';
import { checkRecords } from '../src/domains/verify.ts';
import type { DnsRecord, SendingDomain } from '../src/model/domain.ts';
import type { Store } from '../src/store/contract.ts';
import type { Zone } from '../test/rig/dns.ts';

/** Publishes the domain’s records for which `isPublished` returns true, and removes the other records of the domain. */
export function publishRecords(
  zone: Zone,
  domain: SendingDomain,
  settings: Settings,
  isPublished: (record: DnsRecord) => boolean,
): void {
  for (const record of createRecords(domain, getSendingSetup(settings))) {
    if (record.type !== 'TXT' && record.type !== 'MX') continue;
    if (!isPublished(record)) delete zone[record.name];
    else if (record.type === 'TXT') zone[record.name] = { ...zone[record.name], TXT: [splitStrings(record.value)] };
    else {
      const [priority = '10', exchange = ''] = record.value.split(' ');
      zone[record.name] = { ...zone[record.name], MX: [[Number(priority), exchange]] };
    }
  }
}

/** Checks the records of the domain as the service does, and stores the result with the time `at`. */
export async function checkDomain(
  store: Store,
  name: string,
  settings: Settings,
  resolver: Resolver,
  at: number,
): Promise<void> {
  const domain = await store.findDomain(name);
  if (domain === null) return;
  const checks = await checkRecords(createRecords(domain, getSendingSetup(settings)), resolver);
  await store.updateDomain(evaluateDomainChecks(domain, checks, at, settings.maxAgeMs).update);
}

/** Splits the value of a TXT record into strings of at most 255 octets (RFC 1035 section 3.3). */
function splitStrings(value: string): readonly string[] {
  return value.match(/.{1,255}/g) ?? [''];
}

/** The records of the played sending domains, in a DNS server of the demo's own: nobody else's is asked. */

import type { Settings } from '../src/config/settings.ts';
import type { Resolver } from '../src/domains/dns.ts';
import { recordsFor } from '../src/domains/records.ts';
import { domainUpdateFrom, sendingSetup } from '../src/domains/setup.ts';
import { checkRecords } from '../src/domains/verify.ts';
import type { DnsRecord, SendingDomain } from '../src/model/domain.ts';
import type { Store } from '../src/store/contract.ts';
import type { Zone } from '../test/rig/dns.ts';

/** Publishes those of the domain's records that `which` says; the others are gone. */
export function publishRecords(
  zone: Zone,
  domain: SendingDomain,
  settings: Settings,
  which: (record: DnsRecord) => boolean,
): void {
  for (const record of recordsFor(domain, sendingSetup(settings))) {
    if (record.type !== 'TXT' && record.type !== 'MX') continue;
    if (!which(record)) delete zone[record.name];
    else if (record.type === 'TXT') zone[record.name] = { ...zone[record.name], TXT: [strings(record.value)] };
    else {
      const [priority = '10', exchange = ''] = record.value.split(' ');
      zone[record.name] = { ...zone[record.name], MX: [[Number(priority), exchange]] };
    }
  }
}

/** Looks the domain up as the watch over domains does, at `at`, and writes down what was seen. */
export async function checkDomain(
  store: Store,
  name: string,
  settings: Settings,
  resolver: Resolver,
  at: number,
): Promise<void> {
  const domain = await store.findDomain(name);
  if (domain === null) return;
  const checks = await checkRecords(recordsFor(domain, sendingSetup(settings)), resolver);
  await store.updateDomain(domainUpdateFrom(domain, checks, at, settings.maxAgeMs).update);
}

/** A TXT record in strings of at most 255 octets (RFC 1035 section 3.3). */
function strings(value: string): readonly string[] {
  return value.match(/.{1,255}/g) ?? [''];
}

/** The DNS records that an operator publishes for a sending domain. Pure. */

import { type DnsRecord, getDkimRecordName, type SendingDomain } from '../model/domain.ts';
import { formatDkimRecord } from './dkim-record.ts';

export interface SendingSetup {
  /** Null if POSTRIDER_RETURN_PATH_DOMAIN is not set, or if the provider replaces the envelope sender. */
  readonly returnPath: string | null;
  /** The title of the provider that replaces the envelope sender. */
  readonly replacedBy: string | null;
  /** The public name of the feedback listener; null if it is `returnPath`. */
  readonly returnPathHost: string | null;
  /** Null if the relay needs no SPF record. */
  readonly spf: string | null;
  /** For aggregate DMARC reports. */
  readonly reportsTo: string | null;
}

const RETURN_PATH_PRIORITY = 10;

/**
 * In the order of publication. The name of the SPF record is the domain of the envelope sender. Retiring keys are
 * included, because messages in transit have their signatures. A domain with a return path of its own has the records
 * of this one.
 */
export function createRecords(
  domain: Pick<SendingDomain, 'name' | 'keys' | 'returnPath'>,
  setup: SendingSetup,
  provider: readonly DnsRecord[] = [],
): readonly DnsRecord[] {
  const { spf, reportsTo } = setup;
  const returnPath = setup.returnPath === null ? null : (domain.returnPath?.name ?? setup.returnPath);
  const records: DnsRecord[] = domain.keys.map((key) => ({
    purpose: 'dkim',
    type: 'TXT',
    name: getDkimRecordName(domain.name, key.selector),
    value: formatDkimRecord(key),
  }));
  records.push(...provider);
  // SPF applies to the domain of the envelope sender (RFC 7208 section 2.4).
  if (spf !== null) records.push({ purpose: 'spf', type: 'TXT', name: returnPath ?? domain.name, value: spf });
  const reportTag = reportsTo === null ? '' : `; rua=mailto:${encodeMailtoAddress(reportsTo)}`;
  records.push({ purpose: 'dmarc', type: 'TXT', name: `_dmarc.${domain.name}`, value: `v=DMARC1; p=none${reportTag}` });
  if (returnPath !== null) {
    const value = `${RETURN_PATH_PRIORITY} ${setup.returnPathHost ?? setup.returnPath}`;
    records.push({ purpose: 'return-path', type: 'MX', name: returnPath, value });
  }
  return records;
}

/** For a mailto URI in a tag list. */
function encodeMailtoAddress(address: string): string {
  return encodeURIComponent(address).replaceAll('%40', '@');
}

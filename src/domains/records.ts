/**
 * Creates the DNS records that an operator publishes for a sending domain. The functions are pure.
 */

import { type DnsRecord, getDkimRecordName, type SendingDomain } from '../model/domain.ts';
import { formatDkimRecord } from './dkim-record.ts';

export interface SendingSetup {
  /**
   * The domain of POSTRIDER_RETURN_PATH_DOMAIN in A-labels. Null if it is not set, or if the provider replaces the
   * envelope sender.
   */
  readonly returnPath: string | null;
  /** The display name of the provider that replaces the envelope sender, or null. */
  readonly replacedBy: string | null;
  /**
   * The public name of the feedback listener, which receives messages for the return path. Null if this name is
   * `returnPath`. In this case, `returnPath` has the address records of the listener.
   */
  readonly returnPathHost: string | null;
  /** The suggested SPF record (relays.ts), or null if the relay needs no SPF record. */
  readonly spf: string | null;
  /** The address for aggregate DMARC reports, or null. */
  readonly reportsTo: string | null;
}

const RETURN_PATH_PRIORITY = 10;

/**
 * Returns all records of the domain in the order of publication: DKIM keys, the records in `provider`, SPF, DMARC,
 * return path. `provider` contains the records that a provider requires. The SPF record is included only if the relay
 * needs one. The name of the SPF record is the domain of the envelope sender. Retiring keys are included, because
 * messages in transit have signatures of these keys. A domain with a return path of its own has the records of this
 * return path instead of the records of the return path of the installation.
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
  // SPF applies to the domain of the envelope sender (RFC 7208 section 2.4). This is the return-path domain if it is
  // set, else the From domain.
  if (spf !== null) records.push({ purpose: 'spf', type: 'TXT', name: returnPath ?? domain.name, value: spf });
  const reportTag = reportsTo === null ? '' : `; rua=mailto:${encodeMailtoAddress(reportsTo)}`;
  records.push({ purpose: 'dmarc', type: 'TXT', name: `_dmarc.${domain.name}`, value: `v=DMARC1; p=none${reportTag}` });
  if (returnPath !== null) {
    const value = `${RETURN_PATH_PRIORITY} ${setup.returnPathHost ?? setup.returnPath}`;
    records.push({ purpose: 'return-path', type: 'MX', name: returnPath, value });
  }
  return records;
}

/**
 * Encodes an address for a mailto URI in a tag list. Characters that are reserved in the list or in the URI are
 * percent-encoded.
 */
function encodeMailtoAddress(address: string): string {
  return encodeURIComponent(address).replaceAll('%40', '@');
}

/**
 * Builds the details of a sending domain for commands, pages and the API: account, keys, records to publish, and
 * results of the last check.
 */
import { domainToUnicode } from 'node:url';
import { formatIsoTime } from '../config/units.ts';
import { describeAlignment } from '../domains/alignment.ts';
import type { SendingSetup } from '../domains/records.ts';
import { NEUTRAL_SPF } from '../domains/relays.ts';
import { describeReturnPath } from '../domains/return-path.ts';
import {
  type DnsRecord,
  GRACE_PERIOD_MS,
  getDkimRecordName,
  maySend,
  type RecordCheck,
  type SendingDomain,
} from '../model/domain.ts';
import { formatTimeOr } from '../printing/text.ts';
import type { DomainDetails, RemovedDomain } from './domains/schemas.ts';

/**
 * Builds the details of a domain. `found` of a record is its result in `checks`, or `unknown` if `checks` does not
 * contain the record.
 */
export function toDomainDetails(
  domain: SendingDomain,
  records: readonly DnsRecord[],
  checks: readonly RecordCheck[],
  account: string,
  setup: SendingSetup,
): DomainDetails {
  const { subdomains, returnPath, createdAt, checkedAt, authenticatedAt, failingSince, keys } = domain;
  const checkedRecords = records.map(({ purpose, type, name, value }) => {
    const check = checks.find(
      (candidate) => candidate.name === name && candidate.type === type && candidate.value === value,
    );
    return {
      purpose,
      type,
      name,
      value,
      found: check?.found ?? ('unknown' as const),
      observed: [...(check?.seen ?? [])],
      detail: check?.detail ?? null,
      key: keys.find(({ selector }) => getDkimRecordName(domain.name, selector) === name) ?? null,
    };
  });
  return {
    domain: domain.name,
    unicode: domainToUnicode(domain.name),
    account,
    status: domain.status,
    subdomains,
    returnPath: returnPath === null ? null : { name: returnPath.name, ...describeReturnPath(returnPath, setup) },
    created: formatIsoTime(createdAt),
    checked: toIsoOrNull(checkedAt),
    authenticated: toIsoOrNull(authenticatedAt),
    failingSince: toIsoOrNull(failingSince),
    graceEnds: failingSince === null ? null : formatIsoTime(failingSince + GRACE_PERIOD_MS),
    sends: maySend(domain),
    keys: keys.map(({ selector, algorithm, state, retireAt }) => ({
      selector,
      algorithm,
      state,
      retires: toIsoOrNull(retireAt),
    })),
    records: checkedRecords.map(({ key, ...record }) => ({
      ...record,
      about: describePurpose(domain, record),
      key: key?.state ?? null,
    })),
    alignment: [...describeAlignment(domain, checkedRecords, setup)],
  };
}

/**
 * Builds the result of a removal: the records that remain in DNS, and the identity that remains at the provider.
 * `hasProviderIdentity` is true if the provider may have an identity of the domain.
 */
export function toRemovedDomain(
  { name, keys }: SendingDomain,
  records: readonly DnsRecord[],
  hasProviderIdentity: boolean,
): RemovedDomain {
  const lastRetireAt = keys.reduce((latestRetireAt, key) => Math.max(latestRetireAt, key.retireAt ?? 0), 0);
  return {
    domain: name,
    status: 'removed',
    records: records.map(({ purpose, type, name, value }) => ({ purpose, type, name, value, found: 'unknown' })),
    removedRecords: keys.map(({ selector }) => getDkimRecordName(name, selector)),
    keepRecordsUntil: lastRetireAt === 0 ? null : formatIsoTime(lastRetireAt),
    remainingIdentity: hasProviderIdentity ? name : null,
  };
}

function toIsoOrNull(ms: number | null): string | null {
  return ms === null ? null : formatIsoTime(ms);
}

/** The purpose of the SPF record if the transport is not a relay, or if the name of the relay is not public. */
const SPF_WITHOUT_HOSTS =
  'SPF: the hosts that may send for this name. The record names no host until POSTRIDER_TRANSPORT is a relay with a public name';

function describePurpose(domain: SendingDomain, { purpose, type, name, value }: DnsRecord): string {
  switch (purpose) {
    case 'dkim':
      return describeDkimKey(domain, name);
    case 'spf':
      if (value === NEUTRAL_SPF) return SPF_WITHOUT_HOSTS;
      return 'SPF: the hosts that may send for this name. A name must not have more than one SPF record. If the name already has one, add these terms to that record';
    case 'dmarc':
      return 'DMARC: the policy for messages that fail authentication. An existing policy does not need to change';
    case 'return-path':
      if (name === domain.returnPath?.name)
        return 'return path of this domain: the public name of the feedback listener, which receives the bounces';
      return 'return path: the host that receives bounces. It needs an A or AAAA record. It may be any host name that points to the feedback listener';
    case 'provider':
      return describeProviderRecord(domain, type, value);
  }
}

function describeProviderRecord(domain: SendingDomain, type: DnsRecord['type'], value: string): string {
  switch (type) {
    case 'SES':
      return value === 'verified'
        ? `Amazon SES: the identity of this name; \`postrider domain verify ${domain.name}\` creates and checks it`
        : `Amazon SES: ${value}, configured at Amazon SES`;
    case 'MX':
      return 'MX of the MAIL FROM domain that is configured at Amazon SES';
    case 'CNAME':
    case 'TXT':
      return 'DKIM key of Amazon SES (Easy DKIM)';
  }
}

function describeDkimKey(domain: SendingDomain, name: string): string {
  const key = domain.keys.find(({ selector }) => getDkimRecordName(domain.name, selector) === name);
  const keyText = `DKIM ${key?.algorithm === 'ed25519' ? 'Ed25519' : 'RSA'} key`;
  switch (key?.state) {
    case undefined:
      return 'DKIM key that the provider requires';
    case 'active':
      return key.algorithm === 'rsa'
        ? `${keyText}; it signs messages`
        : `${keyText}; it also signs messages while its record is published`;
    case 'staged':
      return `${keyText}; it signs messages after its record is found`;
    case 'retiring':
      return `previous ${keyText}: keep the record until ${formatTimeOr(key.retireAt, 'the next key signs')}`;
  }
}

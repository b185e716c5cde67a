/** A sending domain as commands, pages and the API show it: whose it is, its keys, the records to publish with what was found. */
import { domainToUnicode } from 'node:url';
import { isoTime } from '../config/units.ts';
import { NEUTRAL_SPF } from '../domains/relays.ts';
import {
  type DnsRecord,
  dkimRecordName,
  GRACE_PERIOD_MS,
  maySend,
  type RecordCheck,
  type SendingDomain,
} from '../model/domain.ts';
import { formatTimeOr } from '../printing/text.ts';
import type { DomainDetails, RemovedDomain } from './domains/schemas.ts';

/** `found` of each record is what these checks found of that very record, and `unknown` where none looked at it. */
export function toDomainDetails(
  domain: SendingDomain,
  records: readonly DnsRecord[],
  checks: readonly RecordCheck[],
  account: string,
): DomainDetails {
  const { subdomains, createdAt, checkedAt, authenticatedAt, failingSince, keys } = domain;
  return {
    domain: domain.name,
    unicode: domainToUnicode(domain.name),
    account,
    status: domain.status,
    subdomains,
    created: isoTime(createdAt),
    checked: isoOrNull(checkedAt),
    authenticated: isoOrNull(authenticatedAt),
    failingSince: isoOrNull(failingSince),
    graceEnds: failingSince === null ? null : isoTime(failingSince + GRACE_PERIOD_MS),
    sends: maySend(domain),
    keys: keys.map(({ selector, algorithm, state, retireAt }) => ({
      selector,
      algorithm,
      state,
      retires: isoOrNull(retireAt),
    })),
    records: records.map((record) => {
      const { purpose, type, name, value } = record;
      const check = checks.find((one) => one.name === name && one.type === type && one.value === value);
      const key = keys.find(({ selector }) => dkimRecordName(domain.name, selector) === name);
      return {
        purpose,
        type,
        name,
        value,
        found: check?.found ?? 'unknown',
        observed: [...(check?.seen ?? [])],
        detail: check?.detail ?? null,
        about: purposeText(domain, record),
        key: key?.state ?? null,
      };
    }),
  };
}

/** What is left to do in DNS and at the provider once a domain is gone. `providerKeeps`: the provider has an identity of it. */
export function toRemovedDomain(
  { name, keys }: SendingDomain,
  records: readonly DnsRecord[],
  providerKeeps: boolean,
): RemovedDomain {
  const last = keys.reduce((latest, key) => Math.max(latest, key.retireAt ?? 0), 0);
  return {
    domain: name,
    status: 'removed',
    records: records.map(({ purpose, type, name, value }) => ({ purpose, type, name, value, found: 'unknown' })),
    removedRecords: keys.map(({ selector }) => dkimRecordName(name, selector)),
    keepRecordsUntil: last === 0 ? null : isoTime(last),
    remainingIdentity: providerKeeps ? name : null,
  };
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}

/** The transport is not a relay, or the relay's name is not public. */
const NO_SENDER_YET =
  'SPF: who may send for this name. Names nobody: the hosts are known once POSTRIDER_TRANSPORT is a relay with a public name';

function purposeText(domain: SendingDomain, { purpose, type, name, value }: DnsRecord): string {
  switch (purpose) {
    case 'dkim':
      return dkimText(domain, name);
    case 'spf':
      if (value === NEUTRAL_SPF) return NO_SENDER_YET;
      return 'SPF: who may send for this name. One SPF record for a name: add these terms to one that is there';
    case 'dmarc':
      return 'DMARC: what receivers do with mail that fails. A policy that is there already may stay';
    case 'return-path':
      return 'return path: where bounces come back to. This host needs an A or AAAA record; any other that leads to the feedback listener will do';
    case 'provider':
      return providerText(domain, type, value);
  }
}

function providerText(domain: SendingDomain, type: DnsRecord['type'], value: string): string {
  switch (type) {
    case 'SES':
      return value === 'verified'
        ? `Amazon SES: an identity of this name, which \`postrider domain verify ${domain.name}\` makes and looks at`
        : `Amazon SES: ${value}, which was set there`;
    case 'MX':
      return 'MX of the MAIL FROM domain that was set at Amazon SES';
    case 'CNAME':
    case 'TXT':
      return 'DKIM of Amazon SES itself (Easy DKIM)';
  }
}

function dkimText(domain: SendingDomain, name: string): string {
  const key = domain.keys.find(({ selector }) => dkimRecordName(domain.name, selector) === name);
  const what = `DKIM ${key?.algorithm === 'ed25519' ? 'Ed25519' : 'RSA'} key`;
  switch (key?.state) {
    case undefined:
      return 'DKIM, as the provider asks for it';
    case 'active':
      return key.algorithm === 'rsa'
        ? `${what}, which signs`
        : `${what}, which signs beside it while its record is there`;
    case 'staged':
      return `${what}, which signs from when its record is seen`;
    case 'retiring':
      return `${what} of before: leave it there until ${formatTimeOr(key.retireAt, 'the next key signs')}`;
  }
}

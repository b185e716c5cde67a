/** A sending domain as commands, pages and the API show it: whose it is, its keys, the records to publish with what was found. */
import { domainToUnicode } from 'node:url';
import { type Static, Type } from 'typebox';
import { isoTime } from '../config/units.ts';
import { NEUTRAL } from '../domains/relays.ts';
import {
  type DnsRecord,
  dkimRecordName,
  GRACE_MS,
  maySend,
  type RecordCheck,
  type SendingDomain,
} from '../model/domain.ts';
import { timeOr } from '../printing/text.ts';
import { nullable, oneOf, Time } from './schemas.ts';

const KeyState = oneOf(['staged', 'active', 'retiring']);

/** What a record is, and what the last check found of it. */
export const RECORD_MEMBERS = {
  purpose: oneOf(['dkim', 'spf', 'dmarc', 'return-path', 'provider']),
  type: oneOf(['TXT', 'CNAME', 'MX', 'SES'], {
    description: '`SES` is not a record but the state of the identity at Amazon SES.',
  }),
  name: Type.String({ description: 'Fully qualified, without the last dot.' }),
  value: Type.String(),
  found: oneOf(['found', 'missing', 'wrong', 'unknown'], {
    description: 'Of the last check that was answered; `unknown` before the first.',
  }),
};

const DETAIL_MEMBERS = {
  domain: Type.String({ description: 'In A-labels.' }),
  unicode: Type.String({ description: 'For people.' }),
  account: Type.String({ description: 'The account that may send from it.' }),
  status: oneOf(['pending', 'authenticated', 'failing']),
  subdomains: Type.Boolean({ description: 'Its subdomains may send too.' }),
  created: Time,
  checked: nullable(Time),
  authenticated: nullable(Time),
  failingSince: nullable(Time),
  graceEnds: nullable(
    Type.String({ format: 'date-time', description: 'Until when it sends although its DKIM record is gone.' }),
  ),
  sends: Type.Boolean({ description: 'Messages from it are accepted now.' }),
  keys: Type.Array(
    Type.Object({
      selector: Type.String(),
      algorithm: oneOf(['rsa', 'ed25519']),
      state: KeyState,
      retires: nullable(Time),
    }),
  ),
  records: Type.Array(
    Type.Object({
      ...RECORD_MEMBERS,
      seen: Type.Array(Type.String(), { description: 'What DNS has at that name, as far as it bears on the purpose.' }),
      detail: nullable(Type.String({ description: 'What was seen, what was expected and what to do, in one line.' })),
      about: Type.String({ description: 'What the record is for.' }),
      key: nullable(KeyState),
    }),
  ),
};

export const DomainDetails = Type.Object(DETAIL_MEMBERS);
export type DomainDetails = Static<typeof DomainDetails>;

/** After a check: what it changed, and why it does not pass. */
export const VerifiedDomain = Type.Object({
  ...DETAIL_MEMBERS,
  change: nullable(
    oneOf(['authenticated', 'lost', 'blocked', 'recovered'], {
      description: 'What this check changed; null: nothing.',
    }),
  ),
  fault: nullable(
    Type.String({ description: 'Why the domain is not authenticated, or not accepted by the provider; null: it is.' }),
  ),
});
export type VerifiedDomain = Static<typeof VerifiedDomain>;

/** After a rotation began or was cancelled. */
export const RotatedDomain = Type.Object({
  ...DETAIL_MEMBERS,
  dropped: Type.Array(Type.String(), {
    description: 'Names of the records of the keys that were dropped, which may be taken out of DNS.',
  }),
});
export type RotatedDomain = Static<typeof RotatedDomain>;

/** A domain that was removed. */
export const RemovedDomain = Type.Object({
  domain: Type.String(),
  status: oneOf(['removed']),
  records: Type.Array(Type.Object(RECORD_MEMBERS)),
  dropped: Type.Array(Type.String(), { description: 'Names of the DKIM records, which may be taken out of DNS.' }),
  keepUntil: nullable(
    Type.String({
      format: 'date-time',
      description: 'When the DKIM records may be taken out of DNS; null: 3 days after the last message.',
    }),
  ),
  providerKeeps: nullable(Type.String({ description: 'The identity that stays at Amazon SES; null where none does.' })),
});
export type RemovedDomain = Static<typeof RemovedDomain>;

/** `found` of each record is what these checks found of that very record, and `unknown` where none looked at it. */
export function detailsOf(
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
    graceEnds: failingSince === null ? null : isoTime(failingSince + GRACE_MS),
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
        seen: [...(check?.seen ?? [])],
        detail: check?.detail ?? null,
        about: purposeText(domain, record),
        key: key?.state ?? null,
      };
    }),
  };
}

/** What is left to do in DNS and at the provider once a domain is gone. `providerKeeps`: the provider has an identity of it. */
export function removedDetails(
  { name, keys }: SendingDomain,
  records: readonly DnsRecord[],
  providerKeeps: boolean,
): RemovedDomain {
  const last = keys.reduce((latest, key) => Math.max(latest, key.retireAt ?? 0), 0);
  return {
    domain: name,
    status: 'removed',
    records: records.map(({ purpose, type, name, value }) => ({ purpose, type, name, value, found: 'unknown' })),
    dropped: keys.map(({ selector }) => dkimRecordName(name, selector)),
    keepUntil: last === 0 ? null : isoTime(last),
    providerKeeps: providerKeeps ? name : null,
  };
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}

/** Of a transport that is no relay, or a relay that only this network knows by its name. */
const NO_SENDER_YET =
  'SPF: who may send for this name. Names nobody: the hosts are known once POSTRIDER_TRANSPORT is a relay with a public name';

function purposeText(domain: SendingDomain, { purpose, type, name, value }: DnsRecord): string {
  switch (purpose) {
    case 'dkim':
      return dkimText(domain, name);
    case 'spf':
      if (value === NEUTRAL) return NO_SENDER_YET;
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
      return `${what} of before: leave it there until ${timeOr(key.retireAt, 'the next key signs')}`;
  }
}

/**
 * Whether messages of a domain pass DMARC (RFC 7489 section 3.1), from the last check. The SPF record is not evaluated,
 * so `pass` does not mean that it authorizes the hosts of the relay. Pure.
 */

import { getOrganizationalDomain } from '../model/address.ts';
import type { RecordCheck, SendingDomain } from '../model/domain.ts';
import { isDmarcRecord, parseTags, type SendingSetup } from './records.ts';

/** `warning`: a pass with a limitation that `found` states. `not-needed`: DKIM is sufficient. */
export type AlignmentState = 'pass' | 'warning' | 'fail' | 'unknown' | 'not-needed';

export interface Alignment {
  readonly method: 'dkim' | 'spf' | 'dmarc';
  readonly state: AlignmentState;
  readonly found: string;
  readonly expected: string;
}

type CheckedRecord = Pick<RecordCheck, 'purpose' | 'type' | 'name' | 'found'> & {
  readonly observed: readonly string[];
  /** Null for all other records than the DKIM records of Postrider. */
  readonly key: Pick<SendingDomain['keys'][number], 'state' | 'algorithm'> | null;
};

type Domain = Pick<SendingDomain, 'name' | 'returnPath' | 'subdomains'>;
type Setup = Pick<SendingSetup, 'returnPath' | 'replacedBy' | 'spf'>;

export function describeAlignment(
  domain: Domain,
  records: readonly CheckedRecord[],
  setup: Setup,
): readonly [Alignment, Alignment, Alignment] {
  const policy = readPolicy(records);
  const dkim = describeDkim(domain, records, policy);
  const spf = describeSpf(domain, records, setup, policy, dkim);
  return [dkim, spf, describeDmarc(domain, policy, dkim, spf)];
}

interface Policy {
  readonly record: CheckedRecord | null;
  readonly tags: ReadonlyMap<string, string>;
}

function readPolicy(records: readonly CheckedRecord[]): Policy {
  const record = records.find(({ purpose }) => purpose === 'dmarc') ?? null;
  const observedRecord = record?.found === 'found' ? record.observed.find(isDmarcRecord) : undefined;
  return { record, tags: (observedRecord === undefined ? null : parseTags(observedRecord)) ?? new Map() };
}

/** Only the active RSA key signs every message. */
function describeDkim({ name, subdomains }: Domain, records: readonly CheckedRecord[], { tags }: Policy): Alignment {
  const baseAlignment = { method: 'dkim', expected: `d=${name} and the record of the active RSA key` } as const;
  const record = records.find(({ key }) => key?.algorithm === 'rsa' && key.state === 'active');
  if (record === undefined) return { ...baseAlignment, state: 'fail', found: 'no active RSA key' };
  switch (record.found) {
    case 'unknown':
      return { ...baseAlignment, state: 'unknown', found: 'no lookup of the record has succeeded' };
    case 'missing':
      return { ...baseAlignment, state: 'fail', found: 'the record is missing' };
    case 'wrong':
      return { ...baseAlignment, state: 'fail', found: 'the record has an unexpected value' };
    case 'found':
      // `d=` must equal the domain of `From` (RFC 7489 section 3.1.1).
      if (subdomains && isStrict(tags, 'adkim'))
        return { ...baseAlignment, state: 'warning', found: `d=${name}, aligned; subdomains do not align (adkim=s)` };
      return { ...baseAlignment, state: 'pass', found: `d=${name}, aligned` };
  }
}

function describeSpf(
  domain: Domain,
  records: readonly CheckedRecord[],
  setup: Setup,
  { tags }: Policy,
  dkim: Alignment,
): Alignment {
  const { name } = domain;
  const unalignedState =
    dkim.state === 'pass' || dkim.state === 'warning' ? ('not-needed' as const) : ('fail' as const);
  const mailFrom = findMailFrom(records);
  if (setup.replacedBy !== null && mailFrom === null)
    return {
      method: 'spf',
      state: unalignedState,
      found: `${setup.replacedBy} uses its own envelope sender`,
      expected: 'nothing; DMARC passes with DKIM',
    };
  const sender = mailFrom?.name ?? getEnvelopeDomain(domain, setup);
  const isAligned = isStrict(tags, 'aspf')
    ? sender === name
    : getOrganizationalDomain(sender) === getOrganizationalDomain(name);
  if (!isAligned)
    return {
      method: 'spf',
      state: unalignedState,
      found: `envelope sender ${sender}, not aligned${isStrict(tags, 'aspf') ? ' (aspf=s)' : ''}`,
      expected: isStrict(tags, 'aspf')
        ? `an envelope sender with the domain ${name}, or DKIM`
        : `a return path below ${getOrganizationalDomain(name)}, or DKIM`,
    };
  const expected = `envelope sender ${sender} and its SPF record`;
  const record = records.find((one) => one.purpose === 'spf' && one.name === sender) ?? null;
  if (mailFrom !== null || record === null)
    return {
      method: 'spf',
      state: 'unknown',
      found: `envelope sender ${sender}; its SPF record is not checked`,
      expected,
    };
  switch (record.found) {
    case 'unknown':
      return { method: 'spf', state: 'unknown', found: 'no lookup of the record has succeeded', expected };
    case 'missing':
      return { method: 'spf', state: 'fail', found: `no SPF record at ${sender}`, expected };
    case 'wrong':
      return { method: 'spf', state: 'fail', found: `no valid SPF record at ${sender}`, expected };
    case 'found':
      return { method: 'spf', state: 'pass', found: `envelope sender ${sender}, aligned`, expected };
  }
}

/** A MAIL FROM domain that is configured at the provider. */
function findMailFrom(records: readonly CheckedRecord[]): CheckedRecord | null {
  return records.find(({ purpose, type }) => purpose === 'provider' && type === 'MX') ?? null;
}

/** Of the next message: a return path is used only while it is verified. */
function getEnvelopeDomain({ name, returnPath }: Domain, { returnPath: installationPath }: Setup): string {
  if (installationPath === null) return name;
  return returnPath?.isVerified === true ? returnPath.name : installationPath;
}

function describeDmarc({ name }: Domain, { record, tags }: Policy, dkim: Alignment, spf: Alignment): Alignment {
  const baseAlignment = { method: 'dmarc', expected: `a policy at _dmarc.${name}, and DKIM or SPF aligned` } as const;
  switch (record?.found) {
    case undefined:
    case 'unknown':
      return { ...baseAlignment, state: 'unknown', found: 'no lookup of the record has succeeded' };
    case 'missing':
      return { ...baseAlignment, state: 'fail', found: 'no policy' };
    case 'wrong':
      return { ...baseAlignment, state: 'fail', found: 'no valid policy' };
    case 'found': {
      const policy = tags.get('p')?.toLowerCase();
      const policyText = policy === undefined ? 'a policy' : `p=${policy}`;
      const passingMethods = [dkim, spf].filter(({ state }) => state === 'pass' || state === 'warning');
      if (passingMethods.length === 0) {
        const isUnknown = dkim.state === 'unknown';
        return {
          ...baseAlignment,
          state: isUnknown ? 'unknown' : 'fail',
          found: isUnknown ? policyText : `${policyText}, neither DKIM nor SPF aligns`,
        };
      }
      const methods = passingMethods.map(({ method }) => method.toUpperCase()).join(' and ');
      return {
        ...baseAlignment,
        state: policy === 'none' ? 'warning' : 'pass',
        found: `${policyText}, passes with ${methods}`,
      };
    }
  }
}

function isStrict(tags: ReadonlyMap<string, string>, tag: 'adkim' | 'aspf'): boolean {
  return tags.get(tag)?.toLowerCase() === 's';
}

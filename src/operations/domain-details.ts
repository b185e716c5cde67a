import { domainToUnicode } from 'node:url';
import type { Static } from 'typebox';
import { describeAlignment } from '../domains/alignment.ts';
import { describeReturnPath, parseDomainName } from '../domains/name.ts';
import type { SendingSetup } from '../domains/records.ts';
import type { ProviderStatus } from '../domains/ses-identity.ts';
import { getSendingSetup, NEUTRAL_SPF } from '../domains/setup.ts';
import type { Account, ChangeResult } from '../model/account.ts';
import { parseHost } from '../model/address.ts';
import {
  type DnsRecord,
  GRACE_PERIOD_MS,
  getDkimRecordName,
  maySend,
  type RecordCheck,
  type SendingDomain,
} from '../model/domain.ts';
import { formatIsoTime, formatIsoTimeOrNull, formatTimeOr } from '../printing/text.ts';
import type { OperatorStore } from '../store/contract.ts';
import { createConflict, createInvalidTemplate, createNotFound, type ErrorResult, ok, type Result } from './errors.ts';
import type { OperationContext } from './operation.ts';
import { Time, Type } from './schemas.ts';

const KeyState = Type.Enum(['staged', 'active', 'retiring']);

const RECORD_MEMBERS = {
  purpose: Type.Enum(['dkim', 'spf', 'dmarc', 'return-path', 'provider']),
  type: Type.Enum(
    ['TXT', 'CNAME', 'MX', 'SES'],
    '`SES` is not a DNS record; it is the state of the identity at Amazon SES.',
  ),
  name: Type.String('Fully qualified, without a trailing dot.'),
  value: Type.String(),
  found: Type.Enum(
    ['found', 'missing', 'wrong', 'unknown'],
    'The result of the last check that DNS answered; `unknown` before the first such check.',
  ),
};

export const DomainRecord = Type.Object({
  ...RECORD_MEMBERS,
  observed: Type.Array(Type.String(), 'The values of the existing records at this name that have the same purpose.'),
  detail: Type.NullableString('The observed value, the expected value and the remedy, in one line.'),
  about: Type.String('The purpose of the record in words.'),
  key: Type.Nullable(KeyState),
});
export type DomainRecord = Static<typeof DomainRecord>;

export const DomainAlignment = Type.Object({
  method: Type.Enum(['dkim', 'spf', 'dmarc']),
  state: Type.Enum(
    ['pass', 'warning', 'fail', 'unknown', 'not-needed'],
    '`pass`: aligned; `dmarc`: a policy is published, and DKIM or SPF aligns. `warning`: as `pass`, with a consequence that `found` names. `unknown`: not checked. `not-needed`: not aligned, and DKIM is sufficient.',
  ),
  found: Type.String('The result of the last check. SPF records are not evaluated.'),
  expected: Type.String('What alignment requires.'),
});
export type DomainAlignment = Static<typeof DomainAlignment>;

const DETAIL_MEMBERS = {
  domain: Type.String('The domain name in A-labels.'),
  unicode: Type.String('The domain name in U-labels.'),
  account: Type.String('The account that may send from the domain.'),
  status: Type.Enum(['pending', 'authenticated', 'failing']),
  subdomains: Type.Boolean('Subdomains of the domain may send too.'),
  returnPath: Type.Nullable(
    Type.Object(
      {
        name: Type.String('The name in A-labels.'),
        state: Type.Enum(
          ['used', 'unverified', 'replaced', 'no-listener'],
          '`used`: messages use the return path. `unverified`: its records have not been found. `replaced`: the provider replaces the envelope sender. `no-listener`: POSTRIDER_RETURN_PATH_DOMAIN is not set. In every state but `used`, messages do not use it.',
        ),
        detail: Type.String('The state in one line.'),
      },
      'The return path of the domain; null if its messages use POSTRIDER_RETURN_PATH_DOMAIN.',
    ),
  ),
  created: Time,
  checked: Type.Nullable(Time),
  authenticated: Type.Nullable(Time),
  failingSince: Type.Nullable(Time),
  graceEnds: Type.NullableTime('The time until which messages are accepted although the DKIM record is missing.'),
  sends: Type.Boolean('True if messages from the domain are accepted now.'),
  keys: Type.Array(
    Type.Object({
      selector: Type.String(),
      algorithm: Type.Enum(['rsa', 'ed25519']),
      state: KeyState,
      retires: Type.Nullable(Time),
    }),
  ),
  records: Type.Array(DomainRecord),
  alignment: Type.Array(DomainAlignment, 'DKIM, SPF and DMARC, in this order (RFC 7489 section 3.1).'),
};

export const DomainDetails = Type.Object(DETAIL_MEMBERS);
export type DomainDetails = Static<typeof DomainDetails>;

export const VerifiedDomain = Type.Object({
  ...DETAIL_MEMBERS,
  change: Type.NullableEnum(
    ['authenticated', 'lost', 'blocked', 'recovered'],
    'The change of the status by this check; null if the status did not change.',
  ),
  returnPathChange: Type.NullableEnum(
    ['verified', 'lost'],
    'The change of the return path by this check; null if it did not change.',
  ),
  fault: Type.NullableString(
    'The reason why the domain is not authenticated or the provider does not accept it; null if the check passes.',
  ),
});
export type VerifiedDomain = Static<typeof VerifiedDomain>;

export const RotatedDomain = Type.Object({
  ...DETAIL_MEMBERS,
  removedRecords: Type.Array(Type.String(), 'Names of the records of the removed keys; they may be deleted from DNS.'),
});
export type RotatedDomain = Static<typeof RotatedDomain>;

export const RemovedDomain = Type.Object({
  domain: Type.String(),
  status: Type.Enum(['removed']),
  records: Type.Array(Type.Object(RECORD_MEMBERS)),
  removedRecords: Type.Array(Type.String(), 'Names of the DKIM records; they may be deleted from DNS.'),
  keepRecordsUntil: Type.NullableTime(
    'The time from which the DKIM records may be deleted from DNS; if null, keep them for 3 days after the last message.',
  ),
  remainingIdentity: Type.NullableString('The identity that remains at Amazon SES; null if no identity remains.'),
});
export type RemovedDomain = Static<typeof RemovedDomain>;

/** `found` of a record is its result in `checks`, or `unknown` if `checks` does not contain the record. */
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
    checked: formatIsoTimeOrNull(checkedAt),
    authenticated: formatIsoTimeOrNull(authenticatedAt),
    failingSince: formatIsoTimeOrNull(failingSince),
    graceEnds: failingSince === null ? null : formatIsoTime(failingSince + GRACE_PERIOD_MS),
    sends: maySend(domain),
    keys: keys.map(({ selector, algorithm, state, retireAt }) => ({
      selector,
      algorithm,
      state,
      retires: formatIsoTimeOrNull(retireAt),
    })),
    records: checkedRecords.map(({ key, ...record }) => ({
      ...record,
      about: describePurpose(domain, record),
      key: key?.state ?? null,
    })),
    alignment: [...describeAlignment(domain, checkedRecords, setup)],
  };
}

/** `hasProviderIdentity` is true if the provider may have an identity of the domain, which remains there. */
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

/** If the transport is not a relay, or if the name of the relay is not public. */
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

export const DomainName = Type.String({ minLength: 0, description: 'The name of the domain.' });

export async function readDomainDetails(
  { store, settings }: OperationContext,
  domain: SendingDomain,
  records: readonly DnsRecord[],
  checks: readonly RecordCheck[],
): Promise<DomainDetails> {
  const account = findAccountName(await store.listAccounts(), domain.accountId);
  return toDomainDetails(domain, records, checks, account, getSendingSetup(settings));
}

export function findAccountName(accounts: readonly Account[], accountId: number): string {
  return accounts.find(({ id }) => id === accountId)?.name ?? `number ${accountId}`;
}

export async function findDomain(store: OperatorStore, domainText: string): Promise<Result<SendingDomain>> {
  const name = parseLookupName(domainText);
  if (!name.ok) return name;
  const domain = await store.findDomain(name.value);
  return domain === null ? createDomainNotFound(name.value) : ok(domain);
}

/** Accepts the name of a domain even if the current list of public suffixes no longer permits it. */
export function parseLookupName(domainText: string): Result<string> {
  const nameResult = parseDomainName(domainText);
  if (nameResult.ok) return ok(nameResult.name);
  const name = parseHost(domainText.endsWith('.') ? domainText.slice(0, -1) : domainText, 0);
  return name === null ? createInvalidTemplate('domain', () => nameResult.fault) : ok(name);
}

function createDomainNotFound(name: string): ErrorResult {
  return createNotFound('domain', `there is no domain ${name}; \`postrider domain list\` lists domains`);
}

/** The error names the account, because an operator may list all domains with their accounts. */
export async function createExistingDomainConflict(store: OperatorStore, name: string): Promise<ErrorResult> {
  const existingDomain = await store.findDomain(name);
  const account = (await store.listAccounts()).find(({ id }) => id === existingDomain?.accountId);
  const owner = account === undefined ? '' : ` to account ${account.name}`;
  return createConflict('domain', `domain ${name} has already been added${owner}; a domain belongs to one account`);
}

/** The domain `by` uses the name as its name or as its return path. */
export function createUsedNameConflict(member: string, name: string, by: string): ErrorResult {
  return createConflict(
    member,
    name === by
      ? `${name} is a sending domain; give a name that no domain uses`
      : `${name} is the return path of domain ${by}; give a name that no domain uses`,
  );
}

export function requireFound(name: string, result: ChangeResult<SendingDomain>): Result<SendingDomain> {
  return result.kind === 'done' ? ok(result.value) : createDomainNotFound(name);
}

export function requireChanged(
  name: string,
  updateResult: ChangeResult<SendingDomain> | { readonly kind: 'stale' },
): Result<SendingDomain> {
  return updateResult.kind === 'stale'
    ? createConflict('domain', `domain ${name} was changed by another request; repeat the request`)
    : requireFound(name, updateResult);
}

/**
 * Confirms all earlier commits: a domain read before may be lost in a failover, and must not be reported as existing.
 */
export async function findConfirmedDomain(store: OperatorStore, name: string): Promise<SendingDomain | null> {
  if ((await store.findDomain(name)) === null) return null;
  await store.probe();
  return store.findDomain(name);
}

export function listProviderChecks(provider: ProviderStatus | null): readonly RecordCheck[] {
  return provider?.checks ?? [];
}

/**
 * Finds sending domains for the operations on domains, and builds the errors of these operations: a domain is missing,
 * its name is used, or another request has changed the domain.
 */
import { parseDomainName } from '../domains/name.ts';
import type { ProviderStatus } from '../domains/provider-identity.ts';
import { getSendingSetup } from '../domains/setup.ts';
import type { Account, ChangeResult } from '../model/account.ts';
import { parseHost } from '../model/address.ts';
import type { DnsRecord, RecordCheck, SendingDomain } from '../model/domain.ts';
import { Type } from '../model/schema.ts';
import type { OperatorStore } from '../store/contract.ts';
import type { OperationContext } from './context.ts';
import { toDomainDetails } from './domain-details.ts';
import type { DomainDetails } from './domains/schemas.ts';
import { createConflict, createInvalidTemplate, createNotFound, type ErrorResult, ok, type Result } from './errors.ts';

export const DomainName = Type.String({ minLength: 0, description: 'The name of the domain.' });

/** Builds the details of a domain, with the name of its account. */
export async function readDomainDetails(
  { store, settings }: OperationContext,
  domain: SendingDomain,
  records: readonly DnsRecord[],
  checks: readonly RecordCheck[],
): Promise<DomainDetails> {
  const account = findAccountName(await store.listAccounts(), domain.accountId);
  return toDomainDetails(domain, records, checks, account, getSendingSetup(settings));
}

/** Returns the name of the account, or its number if the account is missing. */
export function findAccountName(accounts: readonly Account[], accountId: number): string {
  return accounts.find(({ id }) => id === accountId)?.name ?? `number ${accountId}`;
}

/** Finds a domain by its name. Fails with `not-found`, or with `invalid` if the text is not a domain name. */
export async function findDomain(store: OperatorStore, domainText: string): Promise<Result<SendingDomain>> {
  const name = parseLookupName(domainText);
  if (!name.ok) return name;
  const domain = await store.findDomain(name.value);
  return domain === null ? createDomainNotFound(name.value) : ok(domain);
}

/**
 * Parses the name of an existing domain. The name is accepted even if the current list of public suffixes no longer
 * permits it.
 */
export function parseLookupName(domainText: string): Result<string> {
  const nameResult = parseDomainName(domainText);
  if (nameResult.ok) return ok(nameResult.name);
  const name = parseHost(domainText.endsWith('.') ? domainText.slice(0, -1) : domainText, 0);
  return name === null ? createInvalidTemplate('domain', () => nameResult.fault) : ok(name);
}

function createDomainNotFound(name: string): ErrorResult {
  return createNotFound('domain', `there is no domain ${name}; \`postrider domain list\` lists domains`);
}

/**
 * Returns the error for a domain that already exists. The error names the account, because an operator may list all
 * domains with their accounts.
 */
export async function createExistingDomainConflict(store: OperatorStore, name: string): Promise<ErrorResult> {
  const existingDomain = await store.findDomain(name);
  const account = (await store.listAccounts()).find(({ id }) => id === existingDomain?.accountId);
  const owner = account === undefined ? '' : ` to account ${account.name}`;
  return createConflict('domain', `domain ${name} has already been added${owner}; a domain belongs to one account`);
}

/** Returns the error for a name that the domain `by` uses, as its name or as its return path. */
export function createUsedNameConflict(member: string, name: string, by: string): ErrorResult {
  return createConflict(
    member,
    name === by
      ? `${name} is a sending domain; give a name that no domain uses`
      : `${name} is the return path of domain ${by}; give a name that no domain uses`,
  );
}

/** Returns the changed domain, or an error if the domain does not exist. */
export function requireFound(name: string, result: ChangeResult<SendingDomain>): Result<SendingDomain> {
  return result.kind === 'done' ? ok(result.value) : createDomainNotFound(name);
}

/** Returns the changed domain, or a conflict if another request has changed the domain since it was read. */
export function requireChanged(
  name: string,
  updateResult: ChangeResult<SendingDomain> | { readonly kind: 'stale' },
): Result<SendingDomain> {
  return updateResult.kind === 'stale'
    ? createConflict('domain', `domain ${name} was changed by another request; repeat the request`)
    : requireFound(name, updateResult);
}

/**
 * Makes a commit, which confirms all earlier commits, and then reads the domain. A domain that was read before the
 * commit may be lost in a failover, and must not be reported as existing.
 */
export async function findConfirmedDomain(store: OperatorStore, name: string): Promise<SendingDomain | null> {
  if ((await store.findDomain(name)) === null) return null;
  await store.probe();
  return store.findDomain(name);
}

/** Returns the results of the checks at the provider, or an empty list if the provider has no identities. */
export function listProviderChecks(provider: ProviderStatus | null): readonly RecordCheck[] {
  return provider?.checks ?? [];
}

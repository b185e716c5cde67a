/**
 * What the commands of `postrider domain` do. Only `verifyDomain` asks DNS. Private keys are made here and sealed at once;
 * nothing prints them. Fails with a CommandFailure of one line; what failed has changed nothing.
 */
import { randomInt } from 'node:crypto';
import { createResolver } from '../domains/dns.ts';
import { newKeys } from '../domains/keys.ts';
import { parseDomainName } from '../domains/name.ts';
import { lookAtProvider, type ProviderView, settleAtProvider } from '../domains/provider-identity.ts';
import { recordsFor } from '../domains/records.ts';
import { checkSecret, SECRET_REMEDY, sealingKey, secretWarning, sendingSetup, updateAfter } from '../domains/setup.ts';
import { checkRecords } from '../domains/verify.ts';
import type { Account, Changed } from '../model/account.ts';
import {
  beginRotation,
  cancelRotation,
  type DnsRecord,
  type RecordCheck,
  type SendingDomain,
} from '../model/domain.ts';
import { parseHost } from '../model/host.ts';
import { printable } from '../printing/escape.ts';
import type { DomainStore, Store } from '../store/contract.ts';
import { type Context, findAccount, noAccount } from './context.ts';
import {
  cancelledText,
  domainDetails,
  domainJson,
  domainTable,
  recordsText,
  removedText,
  verdictText,
} from './domain-text.ts';
import { CommandFailure } from './failure.ts';
import { styled } from './text.ts';

const ALGORITHMS = ['rsa', 'ed25519'] as const;

export interface DomainFlags {
  readonly json?: boolean;
  readonly details?: boolean;
}

export async function showRecords(context: Context, typed: string, flags: DomainFlags): Promise<void> {
  await context.withStore(async (store, settings) => {
    const domain = await find(store, typed);
    const provider = await lookAtProvider(settings, domain);
    const records = recordsFor(domain, sendingSetup(settings), provider?.records);
    const checks = [...(await store.domainChecks(domain.name)), ...checksOf(provider)];
    if (flags.json) context.json(await shapeOf(store, flags)(domain, records, checks));
    else context.out(recordsText(domain, records));
  });
}

export async function listDomains(context: Context, flags: DomainFlags): Promise<void> {
  await context.withStore(async (store, settings) => {
    const [domains, accounts] = await Promise.all([store.listDomains(), store.listAccounts()]);
    const setup = sendingSetup(settings);
    const shape = shapeOf(store, flags, accounts);
    const json = async (domain: SendingDomain) =>
      shape(domain, recordsFor(domain, setup), await store.domainChecks(domain.name));
    if (flags.json) context.json(await Promise.all(domains.map(json)));
    else if (domains.length === 0)
      context.out('there are no domains; add one with `postrider domain add ACCOUNT DOMAIN`\n');
    else context.out(domainTable(domains, accounts));
  });
}

export async function removeDomain(context: Context, typed: string, flags: DomainFlags): Promise<void> {
  await context.withStore(async (store, settings) => {
    const name = lookupName(typed);
    const domain = found(name, await store.removeDomain(name));
    const gone = recordsFor(domain, sendingSetup(settings));
    if (flags.json) context.json({ ...domainJson(domain, gone, []), status: 'removed' });
    else context.out(removedText(domain));
    if (settings.transport.kind === 'ses' && !flags.json) {
      context.out(`\nAmazon SES keeps its identity ${name}; delete it there if no one else uses it.\n`);
    }
  });
}

export async function setSubdomains(
  context: Context,
  typed: string,
  subdomains: boolean,
  flags: DomainFlags,
): Promise<void> {
  await context.withStore(async (store, settings) => {
    const name = lookupName(typed);
    const domain = found(name, await store.setSubdomains(name, subdomains));
    const records = recordsFor(domain, sendingSetup(settings));
    if (flags.json) context.json(await shapeOf(store, flags)(domain, records, await store.domainChecks(name)));
    else context.out(`subdomains of ${name} ${subdomains ? 'may send too' : 'may not send'}\n`);
  });
}

export async function addDomain(
  context: Context,
  account: string,
  typed: string,
  flags: DomainFlags & { readonly subdomains?: boolean; readonly ed25519?: boolean; readonly easyDkim?: boolean },
): Promise<void> {
  const parsed = parseDomainName(typed);
  if (!parsed.ok) throw new CommandFailure(parsed.fault, 2);
  const { name, warning } = parsed;
  if (flags.easyDkim === true && context.settings().transport.kind !== 'ses') {
    throw new CommandFailure('--easy-dkim: only for POSTRIDER_TRANSPORT=ses://…, and another transport is set', 2);
  }
  await context.withStore(async (store, settings) => {
    // Known before a key is made, so that a mistyped name costs nothing.
    await findAccount(store, account);
    if ((await provenDomain(store, name)) !== null) throw await taken(store, name);
    await checkSecret(settings, store);
    const now = context.clock.now();
    const keys = await newKeys({
      domain: name,
      algorithms: flags.ed25519 === false ? ['rsa'] : ALGORITHMS,
      state: 'active',
      taken: [],
      sealingKey: sealingKey(settings),
      now,
      random,
    });
    const wanted = { name, subdomains: flags.subdomains === true, keys };
    const domain = await added(store, name, account, await store.addDomain(account, wanted, now));
    const provider = await settleAtProvider(settings, domain, flags.easyDkim === true ? 'easy' : 'own');
    const records = recordsFor(domain, sendingSetup(settings), provider?.records);
    const secretFault = secretWarning(settings);
    for (const text of [warning, secretFault === null ? null : `${secretFault}; ${SECRET_REMEDY}`]) {
      if (text !== null) process.stderr.write(`postrider: warning: ${printable(text)}\n`);
    }
    if (provider !== null) warnOf(provider, name, flags.easyDkim === true);
    if (flags.json) context.json(await shapeOf(store, flags)(domain, records, checksOf(provider)));
    else context.out(`${styled('good', `added ${name} for account ${account}`)}\n\n${recordsText(domain, records)}`);
  });
}

export async function verifyDomain(context: Context, typed: string, flags: DomainFlags): Promise<void> {
  await context.withStore(async (store, settings) => {
    const before = await find(store, typed);
    const resolver = createResolver(settings.dns);
    const checks = await checkRecords(recordsFor(before, sendingSetup(settings)), resolver);
    // Read again: a rotation that began while DNS was asked must not be undone by what was read before it.
    const domain = await find(store, before.name);
    const { update, event } = updateAfter(domain, checks, context.clock.now(), settings.maxAgeMs);
    const nothingKnown = checks.every((check) => check.found === 'unknown');
    const after = nothingKnown ? domain : found(domain.name, await store.updateDomain(update));
    const provider = await settleAtProvider(settings, after, 'own');
    const asked = (provider?.records ?? []).filter(({ type }) => type !== 'SES');
    const all = [...checks, ...(await checkRecords(asked, resolver)), ...checksOf(provider)];
    if (flags.json) context.json(await shapeOf(store, flags)(after, all, all));
    else context.out(verdictText(after, all, event, context.clock.now()));
    if (after.status !== 'authenticated') throw new CommandFailure(notAuthenticated(after, checks));
    const verdict = provider?.verdict;
    if (verdict?.found === 'wrong' || verdict?.found === 'missing') {
      throw new CommandFailure(`${after.name}: ${verdict.detail}`);
    }
  });
}

/** How a domain is told to machines: exactly the promised members, or with `--details` all that the pages show. */
function shapeOf(store: Store, { details }: DomainFlags, known: readonly Account[] | null = null) {
  return async (domain: SendingDomain, records: readonly DnsRecord[], checks: readonly RecordCheck[]) => {
    if (details !== true) return domainJson(domain, records, checks);
    const account = (known ?? (await store.listAccounts())).find(({ id }) => id === domain.accountId);
    return domainDetails(domain, records, checks, account?.name ?? `number ${domain.accountId}`);
  };
}

function checksOf(provider: ProviderView | null): readonly RecordCheck[] {
  return provider?.checks ?? [];
}

/** The domain is added whatever the provider says; what it did not do is told. */
function warnOf({ verdict, easy }: ProviderView, name: string, wantsEasy: boolean): void {
  const warn = (text: string) => process.stderr.write(`postrider: warning: ${printable(text)}\n`);
  if (verdict.found === 'unknown') warn(verdict.detail);
  else if (wantsEasy && !easy) {
    warn(`Amazon SES has an identity ${name} already, which signs with a key that was given to it; it stays so`);
  }
}

function notAuthenticated({ name, status }: SendingDomain, checks: readonly RecordCheck[]): string {
  const count = (kind: RecordCheck['found']) => checks.filter((check) => check.found === kind).length;
  const counts = (['missing', 'wrong', 'unknown'] as const)
    .filter((kind) => count(kind) > 0)
    .map((kind) => `${count(kind)} ${kind}`);
  const faults = counts.length === 0 ? 'all records are there' : `${counts.join(', ')} of ${checks.length} records`;
  return `${name} is not authenticated (${status}): ${faults}; \`postrider domain records ${name}\` prints what to publish`;
}

export async function rotateKeys(context: Context, typed: string, flags: DomainFlags): Promise<void> {
  await context.withStore(async (store, settings) => {
    const domain = await find(store, typed);
    const now = context.clock.now();
    const taken = domain.keys.map((key) => key.selector);
    // A domain added without Ed25519 stays so.
    const algorithms = ALGORITHMS.filter((one) => domain.keys.some(({ algorithm }) => algorithm === one));
    const wanted = { domain: domain.name, algorithms, state: 'staged', taken, now, random } as const;
    // Asked before keys are made, and once more of what the store holds then.
    if (beginRotation(domain, []).kind !== 'staged') begin((await provenDomain(store, domain.name)) ?? domain, []);
    await checkSecret(settings, store);
    const fresh = await newKeys({ ...wanted, sealingKey: sealingKey(settings) });
    const latest = await find(store, domain.name);
    const checks = await store.domainChecks(domain.name);
    const rotated = await writeKeys(store, latest, checks, begin(latest, fresh));
    const records = recordsFor(rotated, sendingSetup(settings));
    if (flags.json) context.json(await shapeOf(store, flags)(rotated, records, checks));
    else context.out(`${styled('good', `staged new keys for ${domain.name}`)}\n\n${recordsText(rotated, records)}`);
  });
}

/**
 * The domain, read after a commit that proves every earlier one: what is found before it may be lost in a failover, and must
 * not be called there.
 */
async function provenDomain(store: Store, name: string): Promise<SendingDomain | null> {
  if ((await store.findDomain(name)) === null) return null;
  await store.probe();
  return store.findDomain(name);
}

/** Drops the keys that wait for their records. */
export async function cancelStaged(context: Context, typed: string, flags: DomainFlags): Promise<void> {
  await context.withStore(async (store, settings) => {
    const domain = await find(store, typed);
    const keys = cancelRotation(domain);
    if (keys === null) throw new CommandFailure(`no new keys of ${domain.name} are staged; there is nothing to cancel`);
    const checks = await store.domainChecks(domain.name);
    const after = await writeKeys(store, domain, checks, keys);
    const records = recordsFor(after, sendingSetup(settings));
    if (flags.json) context.json(await shapeOf(store, flags)(after, records, checks));
    else context.out(cancelledText(domain));
  });
}

async function writeKeys(
  store: DomainStore,
  { id, revision, name, status, checkedAt, authenticatedAt, failingSince }: SendingDomain,
  checks: readonly RecordCheck[],
  keys: SendingDomain['keys'],
): Promise<SendingDomain> {
  const update = { id, revision, status, checkedAt, authenticatedAt, failingSince, checks, keys };
  return found(name, await store.updateDomain(update));
}

function begin(domain: SendingDomain, fresh: SendingDomain['keys']): SendingDomain['keys'] {
  const rotation = beginRotation(domain, fresh);
  if (rotation.kind === 'staged') return rotation.keys;
  const waiting = rotation.selectors.join(', ');
  throw new CommandFailure(
    `new keys of ${domain.name} are staged already (${waiting}); publish their records and run \`postrider domain verify ${domain.name}\`, or drop them: \`postrider domain rotate ${domain.name} --cancel\``,
  );
}

/** Selectors are public; they only have to differ. */
function random(): number {
  return randomInt(2 ** 32) / 2 ** 32;
}

async function find(store: DomainStore, typed: string): Promise<SendingDomain> {
  const name = lookupName(typed);
  const domain = await store.findDomain(name);
  if (domain === null) throw noDomain(name);
  return domain;
}

/** The name of a domain that was added, maybe when the list of public suffixes was another. */
function lookupName(typed: string): string {
  const parsed = parseDomainName(typed);
  if (parsed.ok) return parsed.name;
  const name = parseHost(typed.endsWith('.') ? typed.slice(0, -1) : typed, 0);
  if (name === null) throw new CommandFailure(parsed.fault, 2);
  return name;
}

function noDomain(name: string): CommandFailure {
  return new CommandFailure(`there is no domain ${name}; \`postrider domain list\` shows them`);
}

/** Who may add domains may list them all with their accounts, so whose it is is told. */
async function taken(store: Store, name: string): Promise<CommandFailure> {
  const held = await store.findDomain(name);
  const account = (await store.listAccounts()).find(({ id }) => id === held?.accountId);
  const whose = account === undefined ? '' : `, for account ${account.name}`;
  return new CommandFailure(`${name} has been added already${whose}; a domain belongs to one account`);
}

async function added(
  store: Store,
  name: string,
  account: string,
  changed: Changed<SendingDomain>,
): Promise<SendingDomain> {
  switch (changed.kind) {
    case 'done':
      return changed.value;
    case 'missing':
      throw noAccount(account);
    case 'exists':
      throw await taken(store, name);
  }
}

function found(name: string, changed: Changed<SendingDomain> | { readonly kind: 'stale' }): SendingDomain {
  if (changed.kind === 'done') return changed.value;
  if (changed.kind === 'stale') throw new CommandFailure(`${name} was changed meanwhile; run the command again`);
  throw noDomain(name);
}

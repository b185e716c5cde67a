/**
 * The operations that add, list, show, change and remove sending domains, with the DNS records to publish.
 * domain-keys.ts rotates the keys, and domain-verification.ts queries DNS. No result contains a private key. An
 * operation that fails changes nothing.
 */

import { MAX_KEY_CHARACTERS } from '../domains/imported-key.ts';
import { parseDomainName } from '../domains/name.ts';
import { checkProviderIdentity, ensureProviderIdentity, type ProviderStatus } from '../domains/provider-identity.ts';
import { createRecords } from '../domains/records.ts';
import { checkSecret, getSecretWarning, getSendingSetup, SECRET_REMEDY } from '../domains/setup.ts';
import type { SendingDomain } from '../model/domain.ts';
import { Type } from '../model/schema.ts';
import type { OperationContext } from './context.ts';
import { toDomainDetails, toRemovedDomain } from './domain-details.ts';
import { createDomainKeys, parseImportedKey, warnAboutImportedKeys } from './domain-keys.ts';
import {
  createExistingDomainConflict,
  createUsedNameConflict,
  DomainName,
  findAccountName,
  findConfirmedDomain,
  findDomain,
  listProviderChecks,
  parseLookupName,
  readDomainDetails,
  requireFound,
} from './domain-lookup.ts';
import { parseNewReturnPath } from './domain-return-path.ts';
import { DomainDetails, RemovedDomain } from './domains/schemas.ts';
import { createAccountNotFound, createInvalid, createInvalidTemplate, ok } from './errors.ts';
import { defineOperation } from './operation.ts';
import { AccountName } from './schemas.ts';

/**
 * Adds a domain with new keys, or with a key that is already published and a new key of the other algorithm. The domain
 * is `pending` until `verifyDomain` finds its records.
 */
export const addDomain = defineOperation({
  name: 'domain.add',
  id: 'addDomain',
  summary: 'Add a domain with new keys and print the records to publish',
  makesChange: true,
  role: 'operator',
  readsContent: false,
  input: Type.Object({
    account: AccountName,
    domain: DomainName,
    subdomains: Type.Boolean({ default: false, description: 'Subdomains of the domain may send too.' }),
    ed25519: Type.Boolean({ default: true, description: 'Create an Ed25519 key in addition to the RSA key.' }),
    easyDkim: Type.Boolean({
      default: false,
      description: 'With `ses:`, let Amazon SES also sign with its own keys.',
    }),
    dkimKey: Type.Optional(
      Type.String({
        maxLength: MAX_KEY_CHARACTERS,
        description:
          'A private key whose record is already published, in PEM: RSA of 1024 to 4096 bits, or Ed25519. The key is stored encrypted and is never shown. Requires `selector`.',
      }),
    ),
    selector: Type.Optional(
      Type.String({ description: 'The selector of `dkimKey`: the part of the record name before `._domainkey`.' }),
    ),
  }),
  result: DomainDetails,
  errors: ['not-found', 'conflict'],
  async run({ account, domain: domainText, subdomains, ed25519, easyDkim, dkimKey, selector }, context) {
    const { store, settings, clock, warn } = context;
    const parsed = parseDomainName(domainText);
    if (!parsed.ok) return createInvalidTemplate('domain', () => parsed.fault);
    const { name, warning } = parsed;
    if (easyDkim && settings.transport.kind !== 'ses') {
      return createInvalid('easyDkim', 'requires POSTRIDER_TRANSPORT=ses://…; another transport is set');
    }
    const importedKeys = parseImportedKey(dkimKey, selector, name, ed25519);
    if (!importedKeys.ok) return importedKeys;
    // The account and the domain are checked before the keys are created: creating an RSA key takes a few hundred ms.
    const accounts = await store.listAccounts();
    if (!accounts.some((candidate) => candidate.name === account)) return createAccountNotFound(account);
    if ((await findConfirmedDomain(store, name)) !== null) return createExistingDomainConflict(store, name);
    await checkSecret(settings, store);
    const now = clock.now();
    const keys = await createDomainKeys(name, importedKeys.value, { ed25519, now }, context);
    const addResult = await store.addDomain(account, { name, subdomains, keys }, now);
    if (addResult.kind === 'missing') return createAccountNotFound(account);
    if (addResult.kind === 'exists') return createExistingDomainConflict(store, name);
    if (addResult.kind === 'used') return createUsedNameConflict('domain', name, addResult.by);
    const domain = addResult.value;
    const provider = await ensureProviderIdentity(settings, domain, easyDkim ? 'easy' : 'own');
    if (warning !== null) warn('look-alike', warning);
    warnAboutImportedKeys(importedKeys.value, context);
    const secretFault = getSecretWarning(settings);
    if (secretFault !== null) warn('own-secret', `${secretFault}; ${SECRET_REMEDY}`);
    if (provider !== null) warnAboutProvider(provider, name, easyDkim, context);
    const setup = getSendingSetup(settings);
    const records = createRecords(domain, setup, provider?.records);
    return ok(toDomainDetails(domain, records, listProviderChecks(provider), account, setup));
  },
});

/** Lists all domains with their records and the results of the last check. */
export const listDomains = defineOperation({
  name: 'domain.list',
  id: 'listDomains',
  summary: 'List the sending domains with their records',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object({}),
  result: Type.Array(DomainDetails),
  errors: [],
  async run(_input, { store, settings }) {
    const [domains, accounts] = await Promise.all([store.listDomains(), store.listAccounts()]);
    const sendingSetup = getSendingSetup(settings);
    const toDetails = async (domain: SendingDomain) =>
      toDomainDetails(
        domain,
        createRecords(domain, sendingSetup),
        await store.findDomainChecks(domain.name),
        findAccountName(accounts, domain.accountId),
        sendingSetup,
      );
    return ok(await Promise.all(domains.map(toDetails)));
  },
});

/**
 * Shows the records to publish with the results of the last check. With `ses:`, the result also contains the records
 * that the provider requires.
 */
export const showDomain = defineOperation({
  name: 'domain.show',
  id: 'showDomain',
  summary: 'Print the records to publish and the results of the last check',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object({ domain: DomainName }),
  result: DomainDetails,
  errors: ['not-found'],
  async run({ domain: domainText }, context) {
    const { store, settings } = context;
    const domainResult = await findDomain(store, domainText);
    if (!domainResult.ok) return domainResult;
    const domain = domainResult.value;
    const provider = await checkProviderIdentity(settings, domain);
    const records = createRecords(domain, getSendingSetup(settings), provider?.records);
    const checks = [...(await store.findDomainChecks(domain.name)), ...listProviderChecks(provider)];
    return ok(await readDomainDetails(context, domain, records, checks));
  },
});

/**
 * Changes whether subdomains may send, and the return path of the domain. Messages use a new return path after
 * `verifyDomain` or a background check has found its records.
 */
export const setDomain = defineOperation({
  name: 'domain.set',
  id: 'setDomain',
  summary: 'Change whether subdomains of a domain may send, and its return path; omitted members do not change',
  makesChange: true,
  role: 'operator',
  readsContent: false,
  input: Type.Object({
    domain: DomainName,
    subdomains: Type.Optional(Type.Boolean({ description: 'Subdomains of the domain may send too.' })),
    returnPath: Type.Optional(
      Type.String({
        description:
          'The domain of the envelope sender of messages from the domain, such as `bounces.example.com`, or `none` for POSTRIDER_RETURN_PATH_DOMAIN.',
      }),
    ),
  }),
  result: DomainDetails,
  errors: ['not-found', 'conflict'],
  async run({ domain: domainText, subdomains, returnPath }, context) {
    const { store, settings } = context;
    const name = parseLookupName(domainText);
    if (!name.ok) return name;
    if (subdomains === undefined && returnPath === undefined) {
      return createInvalidTemplate(
        null,
        (member) => `there is nothing to change; give ${member('subdomains')} or ${member('returnPath')}`,
      );
    }
    const newPath = returnPath === undefined ? ok(undefined) : parseNewReturnPath(name.value, returnPath, context);
    if (!newPath.ok) return newPath;
    const setResult = await store.setDomain(name.value, {
      ...(subdomains === undefined ? {} : { subdomains }),
      ...(newPath.value === undefined ? {} : { returnPath: newPath.value }),
    });
    if (setResult.kind === 'used') return createUsedNameConflict('returnPath', newPath.value ?? '', setResult.by);
    const updateResult = requireFound(name.value, setResult);
    if (!updateResult.ok) return updateResult;
    const domain = updateResult.value;
    const records = createRecords(domain, getSendingSetup(settings));
    return ok(await readDomainDetails(context, domain, records, await store.findDomainChecks(domain.name)));
  },
});

/** Removes a domain with its keys. New messages from the domain are refused. An identity at the provider remains. */
export const removeDomain = defineOperation({
  name: 'domain.remove',
  id: 'removeDomain',
  summary: 'Remove a domain and its keys; messages from it are refused',
  makesChange: true,
  role: 'operator',
  readsContent: false,
  input: Type.Object({ domain: DomainName }),
  result: RemovedDomain,
  errors: ['not-found'],
  async run({ domain: domainText }, { store, settings }) {
    const name = parseLookupName(domainText);
    if (!name.ok) return name;
    const removeResult = requireFound(name.value, await store.removeDomain(name.value));
    if (!removeResult.ok) return removeResult;
    const records = createRecords(removeResult.value, getSendingSetup(settings));
    return ok(toRemovedDomain(removeResult.value, records, settings.transport.kind === 'ses'));
  },
});

/** Adds a warning if the provider did not perform a requested action. The domain is added nevertheless. */
function warnAboutProvider(
  { identityCheck, usesEasyDkim }: ProviderStatus,
  name: string,
  easyDkim: boolean,
  { warn }: OperationContext,
): void {
  if (identityCheck.found === 'unknown') warn('provider-unknown', identityCheck.detail);
  else if (easyDkim && !usesEasyDkim) {
    warn(
      'provider-key',
      `Amazon SES already has an identity ${name} that signs with a key that Amazon SES did not create; the identity is unchanged`,
    );
  }
}

/** The operations on sending domains. No result and no error contains a private key. */

import { createResolver } from '../domains/dns.ts';
import {
  createKeys,
  type KeyPair,
  MAX_KEY_CHARACTERS,
  parsePrivateKey,
  parseSelector,
  sealImportedKey,
} from '../domains/keys.ts';
import { describeReturnPath, parseDomainName, parseReturnPath } from '../domains/name.ts';
import { createRecords } from '../domains/records.ts';
import { checkProviderIdentity, ensureProviderIdentity, type ProviderStatus } from '../domains/ses-identity.ts';
import {
  checkSecret,
  evaluateDomainChecks,
  getSecretWarning,
  getSendingSetup,
  listSesRoutes,
  loadSealingKey,
  SECRET_REMEDY,
} from '../domains/setup.ts';
import { checkRecords } from '../domains/verify.ts';
import {
  beginRotation,
  cancelRotation,
  findReturnPathChange,
  getDkimRecordName,
  type RecordCheck,
  type SendingDomain,
} from '../model/domain.ts';
import type { OperatorStore } from '../store/contract.ts';
import {
  createExistingDomainConflict,
  createUsedNameConflict,
  DomainDetails,
  DomainName,
  findAccountName,
  findConfirmedDomain,
  findDomain,
  listProviderChecks,
  parseLookupName,
  RemovedDomain,
  RotatedDomain,
  readDomainDetails,
  requireChanged,
  requireFound,
  toDomainDetails,
  toRemovedDomain,
  VerifiedDomain,
} from './domain-details.ts';
import {
  createAccountNotFound,
  createConflict,
  createInvalid,
  createInvalidTemplate,
  ok,
  type Result,
} from './errors.ts';
import { changes, defineOperation, type OperationContext, reads } from './operation.ts';
import { AccountName, Type } from './schemas.ts';

const ALGORITHMS = ['rsa', 'ed25519'] as const;

export interface ImportedKeyInput {
  readonly keyPair: KeyPair;
  readonly selector: string;
  readonly warning: string | null;
}

export function parseImportedKey(
  dkimKey: string | undefined,
  selector: string | undefined,
  domain: string,
  ed25519: boolean,
): Result<readonly ImportedKeyInput[]> {
  if (dkimKey === undefined && selector === undefined) return ok([]);
  if (dkimKey === undefined) {
    return createInvalidTemplate(
      'dkimKey',
      (getMemberName) => `${getMemberName('selector')} requires ${getMemberName('dkimKey')}; give both or neither`,
    );
  }
  if (selector === undefined) {
    return createInvalidTemplate(
      'selector',
      (getMemberName) => `${getMemberName('dkimKey')} requires ${getMemberName('selector')}; give both or neither`,
    );
  }
  const parsedSelector = parseSelector(selector, domain);
  if (!parsedSelector.ok) return createInvalid('selector', parsedSelector.fault);
  const parsedKey = parsePrivateKey(dkimKey);
  if (!parsedKey.ok) return createInvalid('dkimKey', parsedKey.fault);
  const { keyPair, warning } = parsedKey;
  if (keyPair.algorithm === 'ed25519' && !ed25519) {
    return createInvalid('ed25519', 'the imported key is an Ed25519 key; omit this option, or give an RSA key');
  }
  return ok([{ keyPair, selector: parsedSelector.selector, warning }]);
}

export async function createDomainKeys(
  domain: string,
  importedInputs: readonly ImportedKeyInput[],
  { ed25519, now }: { readonly ed25519: boolean; readonly now: number },
  context: OperationContext,
): Promise<SendingDomain['keys']> {
  const sealingKey = loadSealingKey(context.settings);
  const importedKeys = importedInputs.map(({ keyPair, selector }) =>
    sealImportedKey(keyPair, { domain, selector, sealingKey, now }),
  );
  const newKeys = await createKeys({
    domain,
    algorithms: (ed25519 ? ALGORITHMS : (['rsa'] as const)).filter((algorithm) =>
      importedKeys.every((key) => key.algorithm !== algorithm),
    ),
    state: 'active',
    usedSelectors: importedKeys.map((key) => key.selector),
    sealingKey,
    now,
    random: createRandomFraction(context),
  });
  return ALGORITHMS.flatMap((algorithm) => [...importedKeys, ...newKeys].filter((key) => key.algorithm === algorithm));
}

export function warnAboutImportedKeys(
  importedInputs: readonly ImportedKeyInput[],
  { warn }: Pick<OperationContext, 'warn'>,
): void {
  for (const { keyPair, warning } of importedInputs) {
    if (warning !== null) warn('short-key', warning);
    if (keyPair.algorithm === 'ed25519') {
      warn('rsa-record', 'an Ed25519 key alone does not authenticate a domain; publish the record of the new RSA key');
    }
  }
}

export const rotateDomain = defineOperation({
  name: 'domain.rotate',
  id: 'rotateDomain',
  summary: 'Stage new keys, which sign after their records are found',
  ...changes('operator'),
  input: Type.Object({
    domain: DomainName,
    cancel: Type.Flag('Remove the staged keys instead.'),
  }),
  result: RotatedDomain,
  errors: ['not-found', 'conflict'],
  async run({ domain: domainText, cancel }, context) {
    const { store, settings } = context;
    const domainResult = await findDomain(store, domainText);
    if (!domainResult.ok) return domainResult;
    const rotationResult = cancel
      ? await removeStagedKeys(domainResult.value, context)
      : await stageKeys(domainResult.value, context);
    if (!rotationResult.ok) return rotationResult;
    const { domain, checks } = rotationResult.value;
    const records = createRecords(domain, getSendingSetup(settings));
    const remainingSelectors = domain.keys.map(({ selector }) => selector);
    const removedKeys = domainResult.value.keys.filter(
      ({ selector }) => cancel && !remainingSelectors.includes(selector),
    );
    return ok({
      ...(await readDomainDetails(context, domain, records, checks)),
      removedRecords: removedKeys.map(({ selector }) => getDkimRecordName(domain.name, selector)),
    });
  },
});

interface RotationResult {
  readonly domain: SendingDomain;
  readonly checks: readonly RecordCheck[];
}

async function stageKeys(domain: SendingDomain, context: OperationContext): Promise<Result<RotationResult>> {
  const { store, settings, clock } = context;
  if (beginRotation(domain, []).kind !== 'staged') {
    const rotationCheck = addStagedKeys((await findConfirmedDomain(store, domain.name)) ?? domain, []);
    if (!rotationCheck.ok) return rotationCheck;
  }
  await checkSecret(settings, store);
  const stagedKeys = await createKeys({
    domain: domain.name,
    algorithms: ALGORITHMS.filter((candidate) => domain.keys.some(({ algorithm }) => algorithm === candidate)),
    state: 'staged',
    usedSelectors: domain.keys.map((key) => key.selector),
    sealingKey: loadSealingKey(settings),
    now: clock.now(),
    random: createRandomFraction(context),
  });
  const latestResult = await findDomain(store, domain.name);
  if (!latestResult.ok) return latestResult;
  const keys = addStagedKeys(latestResult.value, stagedKeys);
  return keys.ok ? writeKeys(store, latestResult.value, keys.value) : keys;
}

async function removeStagedKeys(domain: SendingDomain, { store }: OperationContext): Promise<Result<RotationResult>> {
  const keys = cancelRotation(domain);
  if (keys !== null) return writeKeys(store, domain, keys);
  return createConflict(null, `domain ${domain.name} has no staged keys; there is nothing to cancel`);
}

async function writeKeys(
  store: OperatorStore,
  { id, revision, name, status, checkedAt, authenticatedAt, failingSince }: SendingDomain,
  keys: SendingDomain['keys'],
): Promise<Result<RotationResult>> {
  const checks = await store.findDomainChecks(name);
  const domainUpdate = { id, revision, status, checkedAt, authenticatedAt, failingSince, checks, keys };
  const updateResult = requireChanged(name, await store.updateDomain(domainUpdate));
  return updateResult.ok ? ok({ domain: updateResult.value, checks }) : updateResult;
}

function addStagedKeys(domain: SendingDomain, stagedKeys: SendingDomain['keys']): Result<SendingDomain['keys']> {
  const rotation = beginRotation(domain, stagedKeys);
  if (rotation.kind === 'staged') return ok(rotation.keys);
  const stagedSelectors = rotation.selectors.join(', ');
  return createConflict(
    null,
    `domain ${domain.name} already has staged keys (${stagedSelectors}); publish their records and run \`postrider domain verify ${domain.name}\`, or remove them with \`postrider domain rotate ${domain.name} --cancel\``,
  );
}

/** Selectors are public, so the numbers in [0, 1) only need to make them unique. */
function createRandomFraction({ random }: OperationContext): () => number {
  return () => random(4).readUInt32BE() / 2 ** 32;
}

export const addDomain = defineOperation({
  name: 'domain.add',
  id: 'addDomain',
  summary: 'Add a domain with new keys and print the records to publish',
  ...changes('operator'),
  input: Type.Object({
    account: AccountName,
    domain: DomainName,
    subdomains: Type.Flag('Subdomains of the domain may send too.'),
    ed25519: Type.Boolean({ default: true, description: 'Create an Ed25519 key in addition to the RSA key.' }),
    easyDkim: Type.Flag('With `ses:`, let Amazon SES also sign with its own keys.'),
    dkimKey: Type.Optional(
      Type.String({
        maxLength: MAX_KEY_CHARACTERS,
        description:
          'A private key whose record is already published, in PEM: RSA of 1024 to 4096 bits, or Ed25519. The key is stored encrypted and is never shown. Requires `selector`.',
      }),
    ),
    selector: Type.OptionalString('The selector of `dkimKey`: the part of the record name before `._domainkey`.'),
  }),
  result: DomainDetails,
  errors: ['not-found', 'conflict'],
  async run({ account, domain: domainText, subdomains, ed25519, easyDkim, dkimKey, selector }, context) {
    const { store, settings, clock, warn } = context;
    const parsed = parseDomainName(domainText);
    if (!parsed.ok) return createInvalidTemplate('domain', () => parsed.fault);
    const { name, warning } = parsed;
    if (easyDkim && listSesRoutes(settings.routes).length === 0) {
      return createInvalid('easyDkim', 'requires a route ses://…, such as POSTRIDER_TRANSPORT=ses://eu-west-1');
    }
    const importedKeys = parseImportedKey(dkimKey, selector, name, ed25519);
    if (!importedKeys.ok) return importedKeys;
    // Checked before the keys are created, because creating an RSA key takes a few hundred ms.
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

export const listDomains = defineOperation({
  name: 'domain.list',
  id: 'listDomains',
  summary: 'List the sending domains with their records',
  ...reads('viewer'),
  input: Type.Object({}),
  result: Type.Array(DomainDetails),
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

export const showDomain = defineOperation({
  name: 'domain.show',
  id: 'showDomain',
  summary: 'Print the records to publish and the results of the last check',
  ...reads('viewer'),
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

/** Messages use a new return path after `verifyDomain` or a background check has found its records. */
export const setDomain = defineOperation({
  name: 'domain.set',
  id: 'setDomain',
  summary: 'Change whether subdomains of a domain may send, and its return path; omitted members do not change',
  ...changes('operator'),
  input: Type.Object({
    domain: DomainName,
    subdomains: Type.Optional(Type.Boolean('Subdomains of the domain may send too.')),
    returnPath: Type.OptionalString(
      'The domain of the envelope sender of messages from the domain, such as `bounces.example.com`, or `none` for POSTRIDER_RETURN_PATH_DOMAIN.',
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

export const removeDomain = defineOperation({
  name: 'domain.remove',
  id: 'removeDomain',
  summary: 'Remove a domain and its keys; messages from it are refused',
  ...changes('operator'),
  input: Type.Object({ domain: DomainName }),
  result: RemovedDomain,
  errors: ['not-found'],
  async run({ domain: domainText }, { store, settings }) {
    const name = parseLookupName(domainText);
    if (!name.ok) return name;
    const removeResult = requireFound(name.value, await store.removeDomain(name.value));
    if (!removeResult.ok) return removeResult;
    const records = createRecords(removeResult.value, getSendingSetup(settings));
    return ok(toRemovedDomain(removeResult.value, records, listSesRoutes(settings.routes).length > 0));
  },
});

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

const NO_RETURN_PATH = 'none';

/** Returns the return path, or null for `none`. Fails if no listener could receive the bounces. */
export function parseNewReturnPath(
  domain: string,
  text: string,
  { settings, warn }: OperationContext,
): Result<string | null> {
  if (text === NO_RETURN_PATH) return ok(null);
  const parsed = parseReturnPath(domain, text);
  if (!parsed.ok) return createInvalid('returnPath', parsed.fault);
  const { name } = parsed;
  const setup = getSendingSetup(settings);
  if (setup.replacedBy !== null) {
    warn('return-path-replaced', describeReturnPath({ name, isVerified: false }, setup).detail);
    return ok(name);
  }
  const remedy = 'set POSTRIDER_RETURN_PATH_DOMAIN and POSTRIDER_FEEDBACK_LISTEN first (docs/feedback.md)';
  if (settings.returnPathDomain === null)
    return createConflict(
      'returnPath',
      `the feedback listener has no public name, so bounces to ${name} would be lost; ${remedy}`,
    );
  if (settings.feedbackListen !== null) return ok(name);
  // The embedded store has one node, so no other node can have the listener.
  if (settings.database.kind === 'sqlite')
    return createConflict(
      'returnPath',
      `POSTRIDER_FEEDBACK_LISTEN is not set, so bounces to ${name} would be lost; ${remedy}`,
    );
  warn(
    'feedback-listener',
    `POSTRIDER_FEEDBACK_LISTEN is not set on this node; bounces to ${name} are lost unless another node sets it`,
  );
  return ok(name);
}

/** The status is updated only if DNS answered. A staged key becomes active if its record is found. */
export const verifyDomain = defineOperation({
  name: 'domain.verify',
  id: 'verifyDomain',
  summary: 'Query the records of a domain in DNS and update its status',
  ...changes('operator'),
  input: Type.Object({ domain: DomainName }),
  result: VerifiedDomain,
  errors: ['not-found', 'conflict'],
  async run({ domain: domainText }, context) {
    const { store, settings, clock } = context;
    const initialResult = await findDomain(store, domainText);
    if (!initialResult.ok) return initialResult;
    const resolver = createResolver(settings.dns);
    const checks = await checkRecords(createRecords(initialResult.value, getSendingSetup(settings)), resolver);
    // The domain is read again, because a rotation may have begun during the DNS queries.
    const latestResult = await findDomain(store, initialResult.value.name);
    if (!latestResult.ok) return latestResult;
    const { update, event } = evaluateDomainChecks(latestResult.value, checks, clock.now(), settings.maxAgeMs);
    const isAnswered = checks.some((check) => check.found !== 'unknown');
    const updateResult = isAnswered
      ? requireChanged(latestResult.value.name, await store.updateDomain(update))
      : latestResult;
    if (!updateResult.ok) return updateResult;
    const domain = updateResult.value;
    const provider = await ensureProviderIdentity(settings, domain, 'own');
    const providerRecords = (provider?.records ?? []).filter(({ type }) => type !== 'SES');
    const allChecks = [...checks, ...(await checkRecords(providerRecords, resolver)), ...listProviderChecks(provider)];
    return ok({
      ...(await readDomainDetails(context, domain, allChecks, allChecks)),
      change: event,
      returnPathChange: findReturnPathChange(latestResult.value, domain, checks),
      fault: findVerificationFault(domain, checks, provider),
    });
  },
});

/** Faults of the records take precedence over faults at the provider. */
function findVerificationFault(
  domain: SendingDomain,
  checks: readonly RecordCheck[],
  provider: ProviderStatus | null,
): string | null {
  if (domain.status !== 'authenticated') return describeMissingAuthentication(domain, checks);
  const identityCheck = provider?.identityCheck;
  const isRefused = identityCheck?.found === 'wrong' || identityCheck?.found === 'missing';
  return isRefused ? `${domain.name}: ${identityCheck.detail}` : null;
}

function describeMissingAuthentication({ name, status }: SendingDomain, checks: readonly RecordCheck[]): string {
  const countRecords = (kind: RecordCheck['found']) => checks.filter((check) => check.found === kind).length;
  const counts = (['missing', 'wrong', 'unknown'] as const)
    .filter((kind) => countRecords(kind) > 0)
    .map((kind) => `${countRecords(kind)} ${kind}`);
  const faults = counts.length === 0 ? 'all records were found' : `${counts.join(', ')} of ${checks.length} records`;
  return `${name} is not authenticated (${status}): ${faults}; \`postrider domain records ${name}\` prints what to publish`;
}

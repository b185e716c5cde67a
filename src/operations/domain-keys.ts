/**
 * Creates and rotates the DKIM keys of sending domains. Private keys are encrypted before they are stored. No result
 * contains a private key.
 */
import { parsePrivateKey, parseSelector } from '../domains/imported-key.ts';
import { createKeys, type KeyPair, sealImportedKey } from '../domains/keys.ts';
import { createRecords } from '../domains/records.ts';
import { checkSecret, getSendingSetup, loadSealingKey } from '../domains/setup.ts';
import {
  beginRotation,
  cancelRotation,
  getDkimRecordName,
  type RecordCheck,
  type SendingDomain,
} from '../model/domain.ts';
import { Type } from '../model/schema.ts';
import type { OperatorStore } from '../store/contract.ts';
import type { OperationContext } from './context.ts';
import { DomainName, findConfirmedDomain, findDomain, readDomainDetails, requireChanged } from './domain-lookup.ts';
import { RotatedDomain } from './domains/schemas.ts';
import { createConflict, createInvalid, createInvalidTemplate, ok, type Result } from './errors.ts';
import { defineOperation } from './operation.ts';

const ALGORITHMS = ['rsa', 'ed25519'] as const;

export interface ImportedKeyInput {
  readonly keyPair: KeyPair;
  readonly selector: string;
  /** A warning about the key, or null. */
  readonly warning: string | null;
}

/**
 * Returns a list with the imported key, or an empty list if the input contains no key. No error contains a part of the
 * key.
 */
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

/**
 * Creates the keys of a new domain, one of each algorithm. An imported key replaces the new key of its algorithm. The
 * private keys are encrypted.
 */
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

/** Adds the warnings about imported keys. */
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

/** Stages new keys, which sign after their records are found. With `cancel`, removes the staged keys. */
export const rotateDomain = defineOperation({
  name: 'domain.rotate',
  id: 'rotateDomain',
  summary: 'Stage new keys, which sign after their records are found',
  makesChange: true,
  role: 'operator',
  readsContent: false,
  input: Type.Object({
    domain: DomainName,
    cancel: Type.Boolean({ default: false, description: 'Remove the staged keys instead.' }),
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
  // Fails if the domain already has staged keys. The domain is checked before the new keys are created, and its latest
  // version is checked again afterwards.
  if (beginRotation(domain, []).kind !== 'staged') {
    const rotationCheck = addStagedKeys((await findConfirmedDomain(store, domain.name)) ?? domain, []);
    if (!rotationCheck.ok) return rotationCheck;
  }
  await checkSecret(settings, store);
  const stagedKeys = await createKeys({
    domain: domain.name,
    // A domain without an Ed25519 key receives no new Ed25519 key.
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

/** Adds the staged keys to the keys of the domain. Fails with a conflict if the domain already has staged keys. */
function addStagedKeys(domain: SendingDomain, stagedKeys: SendingDomain['keys']): Result<SendingDomain['keys']> {
  const rotation = beginRotation(domain, stagedKeys);
  if (rotation.kind === 'staged') return ok(rotation.keys);
  const stagedSelectors = rotation.selectors.join(', ');
  return createConflict(
    null,
    `domain ${domain.name} already has staged keys (${stagedSelectors}); publish their records and run \`postrider domain verify ${domain.name}\`, or remove them with \`postrider domain rotate ${domain.name} --cancel\``,
  );
}

/**
 * Returns a generator of random numbers in [0, 1) for selectors. Selectors are public, so they only need to be unique.
 */
function createRandomFraction({ random }: OperationContext): () => number {
  return () => random(4).readUInt32BE() / 2 ** 32;
}

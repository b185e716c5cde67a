/** Sets up sending domains from the settings, and evaluates DNS checks. */
import { createHmac } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { isIP } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import type { Clock } from '../clock.ts';
import type { Settings, TransportSetting } from '../config/settings.ts';
import { createFolder } from '../folder.ts';
import {
  advanceRotation,
  type CheckEvaluation,
  type DomainUpdate,
  evaluateChecks,
  getSigningKeys,
  type RecordCheck,
  removeRetiredKeys,
  type SendingDomain,
} from '../model/domain.ts';
import type { FeedbackSource } from '../model/feedback.ts';
import { requiresAuthenticatedSender } from '../model/submission.ts';
import type { Provider, ProviderName } from '../providers/provider.ts';
import { findProvider } from '../providers/providers.ts';
import type { DomainStore } from '../store/contract.ts';
import { createResolver } from './dns.ts';
import { unsealKey } from './keys.ts';
import { createRecords, type SendingSetup } from './records.ts';
import { deriveKey, loadOrCreateSecret, parseSecretSetting, SecretError } from './secret.ts';
import { createSigner, type PrepareParts } from './signing.ts';
import { checkRecords } from './verify.ts';

/** The records must suit every route that sends. */
export function getSendingSetup({
  returnPathDomain,
  routes,
}: Pick<Settings, 'returnPathDomain' | 'routes'>): SendingSetup {
  const sending = routes.map(({ transport }) => transport).filter(({ kind }) => kind !== 'capture');
  const titles = sending.flatMap((transport) => {
    const provider = findTransportProvider(transport);
    return provider?.relay?.keepsEnvelopeSender === false ? provider.title : [];
  });
  const replacesAlways = titles.length > 0 && titles.length === sending.length;
  const replacedBy = replacesAlways ? [...new Set(titles)].join(' and ') : null;
  const records = sending.flatMap((transport) => getTransportFacts(transport).spf ?? []);
  return {
    // Its records have no effect if no message contains the return path.
    returnPath: replacedBy === null ? returnPathDomain : null,
    replacedBy,
    returnPathHost: null,
    spf: sending.length === 0 ? NEUTRAL_SPF : mergeSpf(records),
    reportsTo: null,
  };
}

/** The weakest `all` of the records ends the merged one. Null without records. */
function mergeSpf(records: readonly string[]): string | null {
  const [first] = records;
  if (first === undefined || records.every((record) => record === first)) return first ?? null;
  const terms = new Set(records.flatMap((record) => record.split(' ').slice(1)));
  const all = terms.has('?all') ? '?all' : '~all';
  return ['v=spf1', ...[...terms].filter((term) => !term.endsWith('all')), all].join(' ');
}

export type SesTransport = Extract<TransportSetting, { readonly kind: 'ses' }>;

/** One for each region. */
export function listSesRoutes(routes: Settings['routes']): readonly SesTransport[] {
  const found = new Map<string, SesTransport>();
  for (const { transport } of routes)
    if (transport.kind === 'ses' && !found.has(transport.region)) found.set(transport.region, transport);
  return [...found.values()];
}

export function hasProviderRoute(routes: Settings['routes'], name: ProviderName): boolean {
  return routes.some(({ transport }) => findTransportProvider(transport)?.name === name);
}

/** Null if the provider is not known. */
export function findTransportProvider(transport: Settings['transport']): Provider | null {
  switch (transport.kind) {
    case 'capture':
      return null;
    case 'ses':
      return findProvider('ses');
    case 'smtp':
      return findProvider(transport.provider);
  }
}

/**
 * Routes with another known provider than that of the events. Undefined if no route has it: the events are then about
 * messages from before the change of a route.
 */
export function listOtherRoutes(routes: Settings['routes'], source: FeedbackSource): readonly string[] | undefined {
  const provider = source === 'sns' || source === 'sqs' ? 'ses' : source;
  const providers = routes.map(({ name, transport }) => ({ name, provider: findTransportProvider(transport)?.name }));
  if (!providers.some((route) => route.provider === provider)) return undefined;
  return providers.flatMap((route) =>
    route.provider === undefined || route.provider === provider ? [] : [route.name],
  );
}

function getTransportFacts(transport: Settings['transport']): RelayFacts {
  switch (transport.kind) {
    case 'capture':
      return getHostFacts(null);
    case 'ses':
      // The API replaces the same header fields as the SMTP interface.
      return getProviderFacts('ses');
    case 'smtp':
      return transport.provider === null ? getHostFacts(transport.host) : getProviderFacts(transport.provider);
  }
}

/** A missing secret is created. @throws SecretError */
export function loadSealingKey(settings: Pick<Settings, 'secret' | 'database'>): Buffer {
  return deriveKey(loadInstallationSecret(settings), 'dkim');
}

export function loadWebhookKey(settings: Pick<Settings, 'secret' | 'database'>): Buffer {
  return deriveKey(loadInstallationSecret(settings), 'webhook');
}

/** Derived from the secret and the password, so a new password ends every session. @throws SecretError */
export function loadOperatorKey(settings: Pick<Settings, 'secret' | 'database' | 'operatorPassword'>): Buffer {
  const key = deriveKey(loadInstallationSecret(settings), 'operator');
  return createHmac('sha256', key)
    .update(settings.operatorPassword ?? '')
    .digest();
}

function loadInstallationSecret({ secret, database }: Pick<Settings, 'secret' | 'database'>): Buffer {
  if (secret !== null) return parseSecretSetting(secret);
  // The folder of the embedded database exists. Beside a database server, that of the secret file may not.
  if (database.kind === 'postgres') createDataFolder(getDataFolder(database));
  return loadOrCreateSecret(getSecretPath({ database }));
}

function createDataFolder(folder: string): void {
  try {
    createFolder(folder);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new SecretError(`the folder ${folder} of the secret file cannot be created (${code}); set POSTRIDER_SECRET`);
  }
}

/** Beside the embedded database (the link of a symbolic link first), or in `data`. */
export function getSecretPath({ database }: Pick<Settings, 'database'>): string {
  const defaultPath = join(getDataFolder(database), 'secret');
  if (database.kind === 'postgres' || existsSync(defaultPath)) return defaultPath;
  try {
    const realPath = realpathSync(database.path);
    return realPath === resolve(database.path) ? defaultPath : join(dirname(realPath), 'secret');
  } catch {
    // The database does not exist yet.
    return defaultPath;
  }
}

export const SECRET_REMEDY = 'set POSTRIDER_SECRET to the content of this file on every node that uses the database';

/** Several nodes can share the database, and this node uses its own secret file. */
export function getSecretWarning({ secret, database }: Pick<Settings, 'secret' | 'database'>): string | null {
  if (secret !== null || database.kind === 'sqlite') return null;
  return `POSTRIDER_SECRET is not set, so this node uses its own file ${getSecretPath({ database })}`;
}

/** The folder for the files of this node. */
export function getDataFolder(database: Settings['database']): string {
  return database.kind === 'sqlite' ? dirname(database.path) : 'data';
}

/**
 * The secret must unseal a stored key, so that a lost secret is never replaced without an error. To be called before a
 * message is signed or a key is sealed. @throws SecretError
 */
export async function checkSecret(
  settings: Pick<Settings, 'secret' | 'database'>,
  store: Pick<DomainStore, 'listDomains'>,
): Promise<void> {
  const sealedKeys = (await store.listDomains()).flatMap(({ name, keys }) => keys.map((key) => ({ name, ...key })));
  if (sealedKeys.length === 0) return;
  const path = getSecretPath(settings);
  const otherRemedy = 'or remove each domain with `postrider domain remove DOMAIN` and add it again';
  if (settings.secret === null && !existsSync(path)) {
    throw new SecretError(
      `the secret file ${path} is missing, and the stored DKIM keys cannot be decrypted without it; restore it from a backup, or set POSTRIDER_SECRET to its content, ${otherRemedy}`,
    );
  }
  const key = loadSealingKey(settings);
  const canOpenKey = sealedKeys.some(({ name, selector, sealed: sealedText }) => {
    try {
      unsealKey(key, name, selector, sealedText).fill(0);
      return true;
    } catch {
      return false;
    }
  });
  if (canOpenKey) return;
  const secretName = settings.secret === null ? `the secret file ${path}` : 'POSTRIDER_SECRET';
  throw new SecretError(
    `${secretName} is not the secret that the stored DKIM keys were encrypted with; restore the secret file from a backup, or set POSTRIDER_SECRET to the previous secret, ${otherRemedy}`,
  );
}

export interface DomainCheckResult {
  readonly update: DomainUpdate;
  readonly event: CheckEvaluation['event'];
}

/** Activates first the keys whose records are published. */
export function evaluateDomainChecks(
  domain: SendingDomain,
  checks: readonly RecordCheck[],
  now: number,
  maxAgeMs: number,
): DomainCheckResult {
  const keys = removeRetiredKeys(advanceRotation(domain, checks, now, maxAgeMs), now);
  const { status, checkedAt, authenticatedAt, failingSince, event } = evaluateChecks({ ...domain, keys }, checks, now);
  const { id, revision } = domain;
  return { update: { id, revision, status, checkedAt, authenticatedAt, failingSince, checks, keys }, event };
}

/** Null if POSTRIDER_RETURN_PATH_DOMAIN is not set. @throws SecretError */
export function loadReturnPathKey(settings: Settings): PrepareParts['returnPath'] {
  const { returnPathDomain: domain } = settings;
  return domain === null ? null : { domain, key: deriveKey(loadInstallationSecret(settings), 'return-path') };
}

export function createSigningParts(
  settings: Settings,
): Pick<PrepareParts, 'signer' | 'acceptsOneSignature' | 'mustSign' | 'returnPath' | 'metadata'> {
  const key = loadSealingKey(settings);
  return {
    ...createComposition(settings, () => key),
    mustSign: requiresAuthenticatedSender(settings),
    returnPath: loadReturnPathKey(settings),
  };
}

/**
 * For a message that is displayed and not sent: it has no return path, and the secret is loaded only to sign. The
 * caller must call `checkSecret` first.
 */
export function createSourceParts(
  settings: Settings,
): Pick<PrepareParts, 'signer' | 'acceptsOneSignature' | 'mustSign' | 'returnPath' | 'metadata'> {
  return { ...createComposition(settings, () => loadSealingKey(settings)), mustSign: false, returnPath: null };
}

/** In lower case, after the transmission. */
export function listReplacedFields(transport: TransportSetting): readonly string[] {
  return [...getTransportFacts(transport).rewrittenFields];
}

/** Such as `signed with RSA (s1) and Ed25519 (e1)`. */
export function describeSignatures({ routes }: Pick<Settings, 'routes'>, domain: SendingDomain): string {
  const keys = getSigningKeys(domain);
  const limiting = routes.filter(({ transport }) => getTransportFacts(transport).acceptsOneSignature);
  const isLimited = keys.length > 1 && limiting.length === routes.length;
  const names = (isLimited ? keys.slice(0, 1) : keys).map(
    ({ algorithm, selector }) => `${algorithm === 'rsa' ? 'RSA' : 'Ed25519'} (${selector})`,
  );
  if (names.length === 0) return 'not signed';
  const text = `signed with ${names.join(' and ')}`;
  if (isLimited) return `${text} alone, because the relay accepts one signature`;
  if (keys.length < 2 || limiting.length === 0) return text;
  return `${text}; by the route ${limiting.map(({ name }) => name).join(', ')} with the first alone`;
}

function createComposition(
  { transport }: Pick<Settings, 'transport'>,
  getSealingKey: () => Buffer,
): Pick<PrepareParts, 'signer' | 'acceptsOneSignature' | 'metadata'> {
  const { rewrittenFields, acceptsOneSignature } = getTransportFacts(transport);
  return {
    signer: createSigner({
      openKey: (...keyReference) => unsealKey(getSealingKey(), ...keyReference),
      unsignedHeaders: rewrittenFields,
    }),
    acceptsOneSignature,
    metadata: createMetadata(transport),
  };
}

/** The fields by which a relay identifies a message. The API of Amazon SES has a parameter instead. */
function createMetadata(transport: Settings['transport']): PrepareParts['metadata'] {
  if (transport.kind !== 'smtp') return () => [];
  const { provider, relayParameters } = transport;
  const relay = findProvider(provider)?.relay ?? null;
  if (relay === null) return () => [];
  if (!relay.parameters.includes('configuration-set')) return (messageId) => relay.metadata(messageId, relayParameters);
  // The configuration set of the account precedes that of the transport.
  return (messageId, set) =>
    relay.metadata(messageId, set === null ? relayParameters : { ...relayParameters, 'configuration-set': set });
}

/** Null if no lookup was answered. */
export function createDomainCheck(
  settings: Settings,
  clock: Clock,
): (domain: SendingDomain) => Promise<DomainCheckResult | null> {
  const resolver = createResolver(settings.dns);
  const setup = getSendingSetup(settings);
  return async (domain) => {
    const checks = await checkRecords(createRecords(domain, setup), resolver);
    if (checks.every(({ found }) => found === 'unknown')) return null;
    return evaluateDomainChecks(domain, checks, clock.now(), settings.maxAgeMs);
  };
}

// The SPF record for a relay, and the header fields that it replaces, which must not be signed.

export interface RelayFacts {
  /** Null if the sending domain needs no record. */
  readonly spf: string | null;
  /** In lower case. */
  readonly rewrittenFields: ReadonlySet<string>;
  /** The relay refuses a message with more than one DKIM-Signature field. */
  readonly acceptsOneSignature: boolean;
}

/** Authorizes no host, and DMARC passes with DKIM alone. */
export const NEUTRAL_SPF = 'v=spf1 ?all';

/** Without an SPF record in the profile, the envelope sender is in a domain of the provider. */
export function getProviderFacts(name: ProviderName): RelayFacts {
  const relay = findProvider(name)?.relay ?? null;
  return {
    spf: relay === null ? NEUTRAL_SPF : relay.spf,
    rewrittenFields: new Set(relay?.rewrittenFields),
    acceptsOneSignature: relay?.acceptsOneSignature === true,
  };
}

/** Without a known provider: the addresses of the relay, as for an own mail server. Null: no relay. */
export function getHostFacts(host: string | null): RelayFacts {
  const hostName = (host ?? '').toLowerCase();
  const isPublicName = isIP(hostName) === 0 && hostName.includes('.') && !hostName.includes(':');
  return {
    spf: isPublicName ? `v=spf1 a:${hostName} ?all` : NEUTRAL_SPF,
    rewrittenFields: new Set(),
    acceptsOneSignature: false,
  };
}

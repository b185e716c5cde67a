/** The setup of sending domains from the settings, and the evaluation of DNS checks. All commands use it. */

import { createHmac } from 'node:crypto';
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { CheckEvaluation, RecordCheck, SendingDomain } from '../model/domain.ts';
import { advanceRotation, type DomainUpdate, evaluateChecks, removeRetiredKeys } from '../model/domain.ts';
import { requiresAuthenticatedSender } from '../model/submission.ts';
import type { DomainStore } from '../store/contract.ts';
import { createResolver } from './dns.ts';
import { unsealKey } from './keys.ts';
import { recordsFor, type SendingSetup } from './records.ts';
import { type RelayFacts, relayFacts } from './relays.ts';
import { deriveKey, loadOrCreateSecret, parseSecretSetting, SecretError } from './secret.ts';
import { createSigner, type PrepareParts } from './signing.ts';
import { checkRecords } from './verify.ts';

/** What the records to publish depend on. */
export function sendingSetup({ returnPathDomain, transport }: Settings): SendingSetup {
  const { spf } = transportFacts(transport);
  // Amazon SES puts an envelope sender of its own in place of any other.
  return { returnPath: transport.kind === 'ses' ? null : returnPathDomain, returnPathHost: null, spf, reportsTo: null };
}

function transportFacts(transport: Settings['transport']): RelayFacts {
  switch (transport.kind) {
    case 'capture':
      return relayFacts(null);
    case 'ses':
      // Whatever the endpoint: the service is the same behind it, and it rewrites the same fields.
      return relayFacts(`email-smtp.${transport.region}.amazonaws.com`);
    case 'smtp':
      return relayFacts(transport.host);
  }
}

/** The key that seals private DKIM keys. Makes the secret where there is none. @throws SecretError */
export function sealingKey(settings: Pick<Settings, 'secret' | 'database'>): Buffer {
  return deriveKey(installationSecret(settings), 'dkim');
}

/**
 * The key that signs operators' sessions: of the secret and the password, so that a new password ends every session. Makes the
 * secret where there is none. @throws SecretError
 */
export function operatorKey(settings: Pick<Settings, 'secret' | 'database' | 'operatorPassword'>): Buffer {
  const key = deriveKey(installationSecret(settings), 'operator');
  return createHmac('sha256', key)
    .update(settings.operatorPassword ?? '')
    .digest();
}

function installationSecret({ secret, database }: Pick<Settings, 'secret' | 'database'>): Buffer {
  if (secret !== null) return parseSecretSetting(secret);
  // Beside the embedded database its folder is there; with a database server nothing else has made it.
  if (database.kind === 'postgres') mkdirSync(dataFolder(database), { recursive: true, mode: 0o700 });
  return loadOrCreateSecret(secretPath({ database }));
}

/**
 * Where the secret lies when no setting gives it: beside the database. Where the path is a symbolic link, it is beside the
 * file itself, so that every path to the database finds the same secret; one beside the link goes before it.
 */
export function secretPath({ database }: Pick<Settings, 'database'>): string {
  const defaultPath = join(dataFolder(database), 'secret');
  if (database.kind === 'postgres' || existsSync(defaultPath)) return defaultPath;
  try {
    const realPath = realpathSync(database.path);
    return realPath === resolve(database.path) ? defaultPath : join(dirname(realPath), 'secret');
  } catch {
    // There is no database yet.
    return defaultPath;
  }
}

/** What to do about what `secretWarning` says. */
export const SECRET_REMEDY = 'set it to what is in the file on every node of the database';

/** What to say where nodes share a database and each would take a secret of its own, else null. */
export function secretWarning({ secret, database }: Pick<Settings, 'secret' | 'database'>): string | null {
  if (secret !== null || database.kind === 'sqlite') return null;
  return `POSTRIDER_SECRET is not set, so that this node goes by the file ${secretPath({ database })} of its own`;
}

/** Where this node keeps files: beside the embedded database, else `data` in the working folder. */
export function dataFolder(database: Settings['database']): string {
  return database.kind === 'sqlite' ? dirname(database.path) : 'data';
}

/**
 * Checks that the secret opens a stored DKIM key, so that a lost secret is never replaced unnoticed. Await it before signing or
 * sealing. A store without keys accepts any secret. @throws SecretError with the remedy
 */
export async function checkSecret(
  settings: Pick<Settings, 'secret' | 'database'>,
  store: Pick<DomainStore, 'listDomains'>,
): Promise<void> {
  const sealed = (await store.listDomains()).flatMap(({ name, keys }) => keys.map((key) => ({ name, ...key })));
  if (sealed.length === 0) return;
  const path = secretPath(settings);
  const otherRemedy = 'or `postrider domain remove DOMAIN` for each domain and add them again';
  if (settings.secret === null && !existsSync(path)) {
    throw new SecretError(
      `the secret file ${path} is gone, and the stored DKIM keys open only with it; restore it from a backup, or set POSTRIDER_SECRET to what it held, ${otherRemedy}`,
    );
  }
  const key = sealingKey(settings);
  const canOpenKey = sealed.some(({ name, selector, sealed: text }) => {
    try {
      unsealKey(key, name, selector, text).fill(0);
      return true;
    } catch {
      return false;
    }
  });
  if (canOpenKey) return;
  const secretName = settings.secret === null ? `the secret file ${path}` : 'POSTRIDER_SECRET';
  throw new SecretError(
    `${secretName} is not the secret that the stored DKIM keys were sealed with; restore the secret file from a backup, or set POSTRIDER_SECRET to the one of before, ${otherRemedy}`,
  );
}

/** The result of a domain check: the update to store, and the event to publish. */
export interface DomainCheckResult {
  readonly update: DomainUpdate;
  readonly event: CheckEvaluation['event'];
}

/** The update that the checks of a domain's records lead to. Keys whose records are seen take over first. */
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

/** Domain and key of return paths, or null where none are made. Makes the secret where there is none. @throws SecretError */
export function returnPathKey(settings: Settings): PrepareParts['returnPath'] {
  const { returnPathDomain: domain } = settings;
  return domain === null ? null : { domain, key: deriveKey(installationSecret(settings), 'return-path') };
}

/** What signing needs: the signer over the sealed keys, and the return path with its key. Makes the secret where there is none. @throws SecretError */
export function signingParts(settings: Settings): Pick<PrepareParts, 'signer' | 'mustSign' | 'returnPath'> {
  const key = sealingKey(settings);
  const { transport } = settings;
  const { rewrittenFields } = transportFacts(transport);
  return {
    signer: createSigner({
      openKey: (...keyReference) => unsealKey(key, ...keyReference),
      unsignedHeaders: rewrittenFields,
    }),
    mustSign: requiresAuthenticatedSender(settings),
    returnPath: returnPathKey(settings),
  };
}

/** The check of one domain for the watcher: looks its records up and says what follows; null where nothing was answered. */
export function createDomainCheck(
  settings: Settings,
  clock: Clock,
): (domain: SendingDomain) => Promise<DomainCheckResult | null> {
  const resolver = createResolver(settings.dns);
  const setup = sendingSetup(settings);
  return async (domain) => {
    const checks = await checkRecords(recordsFor(domain, setup), resolver);
    if (checks.every(({ found }) => found === 'unknown')) return null;
    return evaluateDomainChecks(domain, checks, clock.now(), settings.maxAgeMs);
  };
}

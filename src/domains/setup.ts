/** What the settings say about sending domains, and what a look at DNS writes down; for every command that needs it. */
import { dirname, join } from 'node:path';
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { DomainUpdate } from '../store/trust.ts';
import { createResolver } from './dns.ts';
import type { AfterCheck, RecordCheck, SendingDomain } from './domain.ts';
import { advanceRotation, afterCheck, withoutRetired } from './domain.ts';
import { openKey } from './keys.ts';
import type { OutgoingParts } from './outgoing.ts';
import { recordsFor, type SendingSetup } from './records.ts';
import { relayFacts } from './relays.ts';
import { deriveKey, loadOrMakeSecret, secretFromSetting } from './secret.ts';
import { createSigner } from './signer.ts';
import { checkRecords } from './verify.ts';

/** What the records to publish depend on. */
export function sendingSetup({ returnPathDomain, transport }: Settings): SendingSetup {
  const { spf } = relayFacts(transport.kind === 'smtp' ? transport.host : null);
  return { returnPath: returnPathDomain, returnPathHost: null, spf, reportsTo: null };
}

/** The key that seals private DKIM keys. Makes the secret where there is none. @throws SecretError */
export function sealingKey(settings: Pick<Settings, 'secret' | 'database'>): Buffer {
  return deriveKey(installationSecret(settings), 'dkim');
}

function installationSecret({ secret, database }: Pick<Settings, 'secret' | 'database'>): Buffer {
  return secret === null ? loadOrMakeSecret(secretPath({ database })) : secretFromSetting(secret);
}

/** Where the secret lies when no setting gives it. */
export function secretPath({ database }: Pick<Settings, 'database'>): string {
  return join(dirname(database.path), 'secret');
}

/** What a check leads to: what to write down, and the news in it. */
export interface Checked {
  readonly update: DomainUpdate;
  readonly event: AfterCheck['event'];
}

/** The update that the checks of a domain's records lead to. Keys whose records are seen take over first. */
export function updateAfter(
  domain: SendingDomain,
  checks: readonly RecordCheck[],
  now: number,
  maxAgeMs: number,
): Checked {
  const keys = withoutRetired(advanceRotation(domain, checks, now, maxAgeMs), now);
  const { status, checkedAt, authenticatedAt, failingSince, event } = afterCheck({ ...domain, keys }, checks, now);
  const basedOn = domain.keys.map(({ selector }) => selector);
  return { update: { id: domain.id, basedOn, status, checkedAt, authenticatedAt, failingSince, checks, keys }, event };
}

/** What signing needs: the signer over the sealed keys, and the return path with its key. Makes the secret where there is none. @throws SecretError */
export function signing(settings: Settings): Pick<OutgoingParts, 'signer' | 'mustSign' | 'returnPath'> {
  const whole = installationSecret(settings);
  const sealing = deriveKey(whole, 'dkim');
  const { returnPathDomain: domain, transport, senders } = settings;
  const { rewrites } = relayFacts(transport.kind === 'smtp' ? transport.host : null);
  return {
    signer: createSigner({ openKey: (...named) => openKey(sealing, ...named), except: rewrites }),
    mustSign: senders === 'authenticated' && transport.kind !== 'capture',
    returnPath: domain === null ? null : { domain, key: deriveKey(whole, 'return-path') },
  };
}

/** The check of one domain for the watcher: looks its records up and says what follows. */
export function domainCheck(settings: Settings, clock: Clock): (domain: SendingDomain) => Promise<Checked> {
  const resolver = createResolver(settings.dns);
  const setup = sendingSetup(settings);
  return async (domain) => {
    const checks = await checkRecords(recordsFor(domain, setup), resolver);
    return updateAfter(domain, checks, clock.now(), settings.maxAgeMs);
  };
}

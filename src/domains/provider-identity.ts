/**
 * Reads, creates and updates the identity of a sending domain at the provider of the transport. Only the transport
 * `ses:` has identities. If the provider cannot be reached, the checks are `unknown`, and no error is thrown.
 */
import type { Settings } from '../config/settings.ts';
import type { DnsRecord, RecordCheck, SendingDomain } from '../model/domain.ts';
import type { DomainStore } from '../store/contract.ts';
import { unsealKey } from './keys.ts';
import { createIdentityChecks, createIdentityRecords } from './ses-checks.ts';
import { formatSesError } from './ses-error.ts';
import {
  ensureIdentity,
  type IdentityKeySource,
  openSesIdentities,
  type SesIdentities,
  type SesIdentity,
  type SesKey,
  updateIdentityKey,
} from './ses-identity.ts';
import { loadSealingKey } from './setup.ts';

type ProviderSettings = Pick<Settings, 'transport' | 'secret' | 'database'>;

export interface ProviderStatus {
  /** The DNS records that the provider requires, and the status records of the identity, which are not published. */
  readonly records: readonly DnsRecord[];
  /** The checks of the status records. */
  readonly checks: readonly RecordCheck[];
  /** The check of the identity, which determines whether the provider accepts messages from the domain. */
  readonly identityCheck: RecordCheck;
  /** True if the provider signs messages with its own keys (Easy DKIM). */
  readonly usesEasyDkim: boolean;
}

/** Reads the identity of the domain. Resolves to null if the transport has no identities. Never rejects. */
export function checkProviderIdentity(
  settings: ProviderSettings,
  domain: SendingDomain,
): Promise<ProviderStatus | null> {
  return withIdentities(settings, domain, (identities) => identities.readIdentity(domain.name));
}

/**
 * Creates the identity if it is missing, and replaces a previous key with the current signing key. Resolves like
 * `checkProviderIdentity`.
 */
export function ensureProviderIdentity(
  settings: ProviderSettings,
  domain: SendingDomain,
  keys: IdentityKeySource,
): Promise<ProviderStatus | null> {
  return withIdentities(settings, domain, (identities) =>
    ensureIdentity(identities, domain, keys, createKeyUnsealer(settings, domain)),
  );
}

/**
 * Returns a function that calls `updateDomain`. While a previous key retires, the function also sends the current
 * signing key to the provider after the update, so that a rotation completes in the background. A failure is reported
 * to `onError`, and the next check sends the key again.
 */
export function updateWithProviderKey(
  settings: ProviderSettings,
  updateDomain: DomainStore['updateDomain'],
  onError: (operation: string, error: unknown) => void,
): DomainStore['updateDomain'] {
  if (settings.transport.kind !== 'ses') return updateDomain;
  return async (domainUpdate) => {
    const updateResult = await updateDomain(domainUpdate);
    if (updateResult.kind !== 'done') return updateResult;
    const { value: domain } = updateResult;
    if (!domain.keys.some(({ algorithm, state }) => algorithm === 'rsa' && state === 'retiring')) return updateResult;
    const provider = await withIdentities(settings, domain, (identities) =>
      updateIdentityKey(identities, domain, createKeyUnsealer(settings, domain)),
    );
    if (provider?.identityCheck.found === 'unknown') {
      onError(`send the new key of ${domain.name} to Amazon SES`, new Error(provider.identityCheck.detail));
    }
    return updateResult;
  };
}

async function withIdentities(
  { transport }: ProviderSettings,
  { name }: SendingDomain,
  call: (identities: SesIdentities) => Promise<SesIdentity | null>,
): Promise<ProviderStatus | null> {
  if (transport.kind !== 'ses') return null;
  const { region } = transport;
  const toProviderStatus = (identity: SesIdentity | null, fault: string | null): ProviderStatus => {
    const checks = createIdentityChecks(name, region, identity, fault);
    const usesEasyDkim = identity !== null && identity.origin !== 'EXTERNAL';
    return {
      records: createIdentityRecords(name, region, identity),
      checks,
      identityCheck: checks[0] as RecordCheck,
      usesEasyDkim,
    };
  };
  let identities: SesIdentities | null = null;
  try {
    identities = await openSesIdentities(transport);
    return toProviderStatus(await call(identities), null);
  } catch (error) {
    return toProviderStatus(null, formatSesError(error));
  } finally {
    identities?.close();
  }
}

/**
 * Returns a function that unseals a key of the domain for the provider. The function overwrites the unencrypted buffer.
 */
function createKeyUnsealer(
  settings: ProviderSettings,
  { name }: SendingDomain,
): (selector: string, sealed: string) => SesKey {
  return (selector, sealed) => {
    const derKey = unsealKey(loadSealingKey(settings), name, selector, sealed);
    const privateKey = derKey.toString('base64');
    derKey.fill(0);
    return { selector, privateKey };
  };
}

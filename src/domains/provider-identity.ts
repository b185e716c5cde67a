/**
 * The identity of a domain at the provider of the transport. Only `ses:` has identities. If the provider cannot be
 * reached, the checks are `unknown`. Never rejects.
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
  /** The DNS records that the provider requires, and the status records, which are not published. */
  readonly records: readonly DnsRecord[];
  /** Of the status records. */
  readonly checks: readonly RecordCheck[];
  /** Whether the provider accepts messages from the domain. */
  readonly identityCheck: RecordCheck;
  /** The provider signs with its own keys. */
  readonly usesEasyDkim: boolean;
}

/** Null if the transport has no identities. */
export function checkProviderIdentity(
  settings: ProviderSettings,
  domain: SendingDomain,
): Promise<ProviderStatus | null> {
  return withIdentities(settings, domain, (identities) => identities.readIdentity(domain.name));
}

/** Creates a missing identity, and replaces a previous key with the current signing key. */
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
 * While a previous key retires, the update also sends the current key to the provider, so that a rotation completes in
 * the background. The next check repeats a failure.
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

/** Overwrites the unencrypted buffer. */
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

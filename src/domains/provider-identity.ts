/**
 * Reads, creates and updates the identity of a sending domain at the provider of the transport. Only `ses:` has
 * identities. If the provider cannot be reached, the result is a check with `unknown`, never an error.
 */
import type { Settings } from '../config/settings.ts';
import type { DnsRecord, RecordCheck, SendingDomain } from '../model/domain.ts';
import type { DomainStore } from '../store/contract.ts';
import { unsealKey } from './keys.ts';
import { identityChecks, identityRecords } from './ses-checks.ts';
import {
  ensureIdentity,
  type IdentityKeys,
  openSesIdentities,
  type SesIdentities,
  type SesIdentity,
  type SesKey,
  updateIdentityKey,
} from './ses-identity.ts';
import { sealingKey } from './setup.ts';

type ProviderSettings = Pick<Settings, 'transport' | 'secret' | 'database'>;

export interface ProviderStatus {
  /** The DNS records that the provider requires, and the status records of the identity. */
  readonly records: readonly DnsRecord[];
  /** The checks of the status records. */
  readonly checks: readonly RecordCheck[];
  /** The first check: whether the provider accepts messages from the domain. */
  readonly identityCheck: RecordCheck;
  /** True if the provider signs with its own keys. */
  readonly usesEasyDkim: boolean;
}

/** Reads the identity of the domain. Resolves to null if the transport has no identities. Never rejects. */
export function checkProviderIdentity(
  settings: ProviderSettings,
  domain: SendingDomain,
): Promise<ProviderStatus | null> {
  return withIdentities(settings, domain, (identities) => identities.view(domain.name));
}

/**
 * Creates the identity if it is missing, and replaces a previous key with the current signing key. Resolves like
 * `checkProviderIdentity`.
 */
export function ensureProviderIdentity(
  settings: ProviderSettings,
  domain: SendingDomain,
  keys: IdentityKeys,
): Promise<ProviderStatus | null> {
  return withIdentities(settings, domain, (identities) =>
    ensureIdentity(identities, domain, keys, keyOpener(settings, domain)),
  );
}

/**
 * Applies `update`. While a previous key retires, it then gives the provider the current signing key, so that a rotation
 * completes in the background. A failure is reported to `onError`. The next check repeats the step.
 */
export function updateWithProviderKey(
  settings: ProviderSettings,
  update: DomainStore['updateDomain'],
  onError: (operation: string, error: unknown) => void,
): DomainStore['updateDomain'] {
  if (settings.transport.kind !== 'ses') return update;
  return async (domainUpdate) => {
    const changed = await update(domainUpdate);
    if (changed.kind !== 'done') return changed;
    const { value: domain } = changed;
    if (!domain.keys.some(({ algorithm, state }) => algorithm === 'rsa' && state === 'retiring')) return changed;
    const provider = await withIdentities(settings, domain, (identities) =>
      updateIdentityKey(identities, domain, keyOpener(settings, domain)),
    );
    if (provider?.identityCheck.found === 'unknown') {
      onError(`give Amazon SES the new key of ${domain.name}`, new Error(provider.identityCheck.detail));
    }
    return changed;
  };
}

async function withIdentities(
  { transport }: ProviderSettings,
  { name }: SendingDomain,
  work: (identities: SesIdentities) => Promise<SesIdentity | null>,
): Promise<ProviderStatus | null> {
  if (transport.kind !== 'ses') return null;
  const { region } = transport;
  const statusOf = (identity: SesIdentity | null, fault: string | null): ProviderStatus => {
    const checks = identityChecks(name, region, identity, fault);
    const usesEasyDkim = identity !== null && identity.origin !== 'EXTERNAL';
    return {
      records: identityRecords(name, region, identity),
      checks,
      identityCheck: checks[0] as RecordCheck,
      usesEasyDkim,
    };
  };
  let identities: SesIdentities | null = null;
  try {
    identities = await openSesIdentities(transport);
    return statusOf(await work(identities), null);
  } catch (error) {
    return statusOf(null, errorText(error));
  } finally {
    identities?.close();
  }
}

/**
 * Returns the error as one line with the provider's error name, such as `AccessDeniedException: …`, which the documentation of
 * the provider explains.
 */
function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { name } = error;
  const causes = error instanceof AggregateError ? error.errors.map(String).join('; ') : '';
  const text = error.message === '' ? causes : error.message;
  const line = text.split('\n', 1).join('').trim();
  return name === 'Error' || line === '' ? line || name : `${name}: ${line}`;
}

/** Returns a function that unseals a key of the domain for the provider. The function overwrites the unencrypted buffer. */
function keyOpener(settings: ProviderSettings, { name }: SendingDomain): (selector: string, sealed: string) => SesKey {
  return (selector, sealed) => {
    const opened = unsealKey(sealingKey(settings), name, selector, sealed);
    const privateKey = opened.toString('base64');
    opened.fill(0);
    return { selector, privateKey };
  };
}

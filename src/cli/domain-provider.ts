/** What the commands of `postrider domain` do at the provider: nothing but for `ses:`. */
import type { Settings } from '../config/settings.ts';
import { openKey } from '../domains/keys.ts';
import {
  identityCheck,
  identityRecords,
  openSesIdentities,
  type SesIdentities,
  type SesIdentity,
  type SesKey,
} from '../domains/ses-identity.ts';
import { sealingKey } from '../domains/setup.ts';
import type { DnsRecord, RecordCheck, SendingDomain } from '../record/domain.ts';
import { describeError } from './failure.ts';

export interface ProviderView {
  /** What to publish for the provider, and its own line. */
  readonly records: readonly DnsRecord[];
  /** The check of that line. */
  readonly check: RecordCheck;
}

/** How the identity is made where there is none: with our key, or with the provider's. */
export type ProviderKeys = 'own' | 'easy';

/** The provider's view of the domain; null where the transport has no provider of identities. Never rejects. */
export function lookAtProvider(settings: Settings, domain: SendingDomain): Promise<ProviderView | null> {
  return atProvider(settings, domain, (identities) => identities.view(domain.name));
}

/** The same, with the identity made where it is missing, and given the key that signs now where it has another. */
export function settleAtProvider(
  settings: Settings,
  domain: SendingDomain,
  keys: ProviderKeys,
): Promise<ProviderView | null> {
  return atProvider(settings, domain, async (identities) => {
    const key = signingKey(settings, domain);
    const there = await identities.view(domain.name);
    if (there === null) return identities.create(domain.name, keys === 'easy' ? null : key);
    if (there.origin !== 'EXTERNAL' || key === null || there.tokens.includes(key.selector)) return there;
    await identities.replaceKey(domain.name, key);
    return (await identities.view(domain.name)) ?? there;
  });
}

async function atProvider(
  { transport }: Settings,
  { name }: SendingDomain,
  work: (identities: SesIdentities) => Promise<SesIdentity | null>,
): Promise<ProviderView | null> {
  if (transport.kind !== 'ses') return null;
  let identities: SesIdentities | null = null;
  try {
    identities = await openSesIdentities(transport);
    const identity = await work(identities);
    return { records: identityRecords(name, identity), check: identityCheck(name, identity, null) };
  } catch (error) {
    return { records: identityRecords(name, null), check: identityCheck(name, null, describeError(error)) };
  } finally {
    identities?.close();
  }
}

/** The RSA key that signs now; the provider takes no Ed25519. */
function signingKey(settings: Settings, { name, keys }: SendingDomain): SesKey | null {
  const key = keys.find(({ algorithm, state }) => algorithm === 'rsa' && state === 'active');
  if (key === undefined) return null;
  const opened = openKey(sealingKey(settings), name, key.selector, key.sealed);
  const privateKey = opened.toString('base64');
  opened.fill(0);
  return { selector: key.selector, privateKey };
}

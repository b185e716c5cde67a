/**
 * Defines the SPF record that authorizes the messages of a relay, and the header fields that the relay replaces.
 * Replaced fields must not be signed. The functions are pure.
 */
import { isIP } from 'node:net';
import type { ProviderName } from '../providers/provider.ts';
import { findProvider } from '../providers/providers.ts';

export interface RelayFacts {
  /** The suggested SPF record, or null if the relay needs no record at the sending domain. */
  readonly spf: string | null;
  /** The header fields that the relay replaces, in lower case. These fields must not be signed. */
  readonly rewrittenFields: ReadonlySet<string>;
  /** True if the relay refuses a message with more than one DKIM-Signature field. */
  readonly acceptsOneSignature: boolean;
}

/**
 * An SPF record that authorizes no host: the SPF result is `neutral` for every host, and DMARC passes with DKIM alone.
 */
export const NEUTRAL_SPF = 'v=spf1 ?all';

/**
 * Returns the facts about the relay of a provider, from the profile of the provider. If the profile contains no SPF
 * record, the envelope sender is in a domain of the provider, so the sending domain needs no SPF record.
 */
export function getProviderFacts(name: ProviderName): RelayFacts {
  const relay = findProvider(name)?.relay ?? null;
  return {
    spf: relay === null ? NEUTRAL_SPF : relay.spf,
    rewrittenFields: new Set(relay?.rewrittenFields),
    acceptsOneSignature: relay?.acceptsOneSignature === true,
  };
}

/**
 * Returns the facts about a relay without a known provider. `host` is null for a transport without a relay. The SPF
 * record authorizes the addresses of the relay, which is correct for an operator's own mail server.
 */
export function getHostFacts(host: string | null): RelayFacts {
  const hostName = (host ?? '').toLowerCase();
  const isPublicName = isIP(hostName) === 0 && hostName.includes('.') && !hostName.includes(':');
  return {
    spf: isPublicName ? `v=spf1 a:${hostName} ?all` : NEUTRAL_SPF,
    rewrittenFields: new Set(),
    acceptsOneSignature: false,
  };
}

/** The SPF record for a relay, and the header fields that it replaces, which must not be signed. Pure. */
import { isIP } from 'node:net';
import type { ProviderName } from '../providers/provider.ts';
import { findProvider } from '../providers/providers.ts';

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

/**
 * Without a known provider, the record authorizes the addresses of the relay, as for an own mail server. Null: no
 * relay.
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

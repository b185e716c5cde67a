/**
 * Known relays, as data: the SPF term that authorises their messages, and the header fields that they replace, which must not be signed.
 * Pure.
 */
import { isIP } from 'node:net';

export interface RelayFacts {
  /** The SPF record to suggest. */
  readonly spf: string;
  /** Header fields, lower case, that must stay unsigned. */
  readonly rewrittenFields: ReadonlySet<string>;
}

interface KnownRelay {
  readonly prefix: string;
  readonly suffix: string;
  readonly spf: string;
  readonly rewrittenFields: readonly string[];
}

const KNOWN_RELAYS: readonly KnownRelay[] = [
  {
    // Amazon SES, SMTP interface. Its Developer Guide ("Header fields", "Manual DKIM signing"): Date and Message-ID are
    // replaced, so they are not to be signed.
    prefix: 'email-smtp',
    suffix: '.amazonaws.com',
    spf: 'v=spf1 include:amazonses.com ~all',
    rewrittenFields: ['date', 'message-id'],
  },
];

/** Neutral for every host; DMARC passes by DKIM. */
export const NEUTRAL_SPF = 'v=spf1 ?all';

/**
 * The facts of the relay at `host`; null is a transport that is not a relay. For an unknown relay the SPF record names its own addresses,
 * which is correct for an operator's own mail server; a provider documents its SPF term.
 */
export function relayFacts(host: string | null): RelayFacts {
  const name = (host ?? '').toLowerCase();
  const relay = KNOWN_RELAYS.find(({ prefix, suffix }) => name.startsWith(prefix) && name.endsWith(suffix));
  if (relay !== undefined) return { spf: relay.spf, rewrittenFields: new Set(relay.rewrittenFields) };
  const isPublicName = isIP(name) === 0 && name.includes('.') && !name.includes(':');
  return { spf: isPublicName ? `v=spf1 a:${name} ?all` : NEUTRAL_SPF, rewrittenFields: new Set() };
}

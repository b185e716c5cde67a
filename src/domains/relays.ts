/**
 * Defines the SPF terms that authorise the messages of known relays, and the header fields that the relays replace.
 * Replaced fields must not be signed. The function is pure.
 */
import { isIP } from 'node:net';

export interface RelayFacts {
  /** The suggested SPF record. */
  readonly spf: string;
  /** The header fields that the relay replaces, in lower case. These fields must not be signed. */
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
    // The SMTP interface of Amazon SES replaces Date and Message-ID, so these fields must not be signed (Amazon SES
    // Developer Guide, "Header fields" and "Manual DKIM signing").
    prefix: 'email-smtp',
    suffix: '.amazonaws.com',
    spf: 'v=spf1 include:amazonses.com ~all',
    rewrittenFields: ['date', 'message-id'],
  },
];

/** With this record, the SPF result is `neutral` for every host, and DMARC passes with DKIM alone. */
export const NEUTRAL_SPF = 'v=spf1 ?all';

/**
 * Returns the facts about the relay at `host`, which is null for a transport without a relay. For an unknown relay, the
 * SPF record authorises the addresses of the relay. This is correct for an operator's own mail server, but a provider
 * documents another SPF term.
 */
export function getRelayFacts(host: string | null): RelayFacts {
  const hostName = (host ?? '').toLowerCase();
  const relay = KNOWN_RELAYS.find(({ prefix, suffix }) => hostName.startsWith(prefix) && hostName.endsWith(suffix));
  if (relay !== undefined) return { spf: relay.spf, rewrittenFields: new Set(relay.rewrittenFields) };
  const isPublicName = isIP(hostName) === 0 && hostName.includes('.') && !hostName.includes(':');
  return { spf: isPublicName ? `v=spf1 a:${hostName} ?all` : NEUTRAL_SPF, rewrittenFields: new Set() };
}

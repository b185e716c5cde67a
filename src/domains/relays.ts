/**
 * Contains data about known relays: the SPF term that authorises their messages, and the header fields that they replace. The
 * replaced fields must not be signed. The function is pure.
 */
import { isIP } from 'node:net';

export interface RelayFacts {
  /** The suggested SPF record. */
  readonly spf: string;
  /** Header fields, in lower case, that must not be signed. */
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
    // Amazon SES, SMTP interface. According to its Developer Guide ("Header fields", "Manual DKIM signing") it replaces
    // Date and Message-ID, so they must not be signed.
    prefix: 'email-smtp',
    suffix: '.amazonaws.com',
    spf: 'v=spf1 include:amazonses.com ~all',
    rewrittenFields: ['date', 'message-id'],
  },
];

/** SPF result `neutral` for every host. DMARC passes through DKIM. */
export const NEUTRAL_SPF = 'v=spf1 ?all';

/**
 * Returns the facts about the relay at `host`, which is null for a transport without a relay. For an unknown relay the
 * SPF record authorises the addresses of the relay, which is correct for an operator's own mail server. A provider
 * documents its own SPF term.
 */
export function relayFacts(host: string | null): RelayFacts {
  const name = (host ?? '').toLowerCase();
  const relay = KNOWN_RELAYS.find(({ prefix, suffix }) => name.startsWith(prefix) && name.endsWith(suffix));
  if (relay !== undefined) return { spf: relay.spf, rewrittenFields: new Set(relay.rewrittenFields) };
  const isPublicName = isIP(name) === 0 && name.includes('.') && !name.includes(':');
  return { spf: isPublicName ? `v=spf1 a:${name} ?all` : NEUTRAL_SPF, rewrittenFields: new Set() };
}

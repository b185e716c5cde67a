/**
 * What is known of relays, as data: which SPF term authorises their mail, and which header fields they write anew, so
 * that signing them would break the signature. Pure.
 */
import { isIP } from 'node:net';

export interface RelayFacts {
  /** The SPF record to suggest. */
  readonly spf: string;
  /** Header fields, lower case, that must stay unsigned. */
  readonly rewrites: ReadonlySet<string>;
}

interface Known {
  readonly prefix: string;
  readonly suffix: string;
  readonly spf: string;
  readonly rewrites: readonly string[];
}

const KNOWN: readonly Known[] = [
  {
    // Amazon SES, SMTP interface. Its Developer Guide ("Header fields", "Manual DKIM signing"): Date and Message-ID are
    // replaced, so they are not to be signed.
    prefix: 'email-smtp',
    suffix: '.amazonaws.com',
    spf: 'v=spf1 include:amazonses.com ~all',
    rewrites: ['date', 'message-id'],
  },
];

/** Says nothing for or against any host; DMARC passes by DKIM. */
export const NEUTRAL_SPF = 'v=spf1 ?all';

/**
 * What is known of the relay at `host`; null is a transport that is no relay. Of a relay that is not known only its own
 * addresses can be named: right for a mail server of one's own, while a provider tells its term in its documentation.
 */
export function relayFacts(host: string | null): RelayFacts {
  const name = (host ?? '').toLowerCase();
  const known = KNOWN.find(({ prefix, suffix }) => name.startsWith(prefix) && name.endsWith(suffix));
  if (known !== undefined) return { spf: known.spf, rewrites: new Set(known.rewrites) };
  const isPublicName = isIP(name) === 0 && name.includes('.') && !name.includes(':');
  return { spf: isPublicName ? `v=spf1 a:${name} ?all` : NEUTRAL_SPF, rewrites: new Set() };
}

/**
 * Evidence that can lock an account. An outsider owns any number of addresses of one domain, and gets any number of
 * names below the domain of a provider of names such as duckdns.org. So a registered domain is one source of evidence,
 * except at mailbox providers. Pure.
 */
import { getRegisteredDomain } from './public-suffix.ts';

export type EvidenceKind = 'bounce' | 'complaint';

/** Everyone can have an address at these domains. */
const SHARED_DOMAINS: ReadonlySet<string> = new Set([
  ...['gmail.com', 'googlemail.com'],
  ...['outlook.com', 'outlook.de', 'outlook.fr', 'hotmail.com', 'hotmail.co.uk', 'hotmail.de', 'hotmail.es'],
  ...['hotmail.fr', 'hotmail.it', 'live.com', 'live.co.uk', 'live.de', 'live.fr', 'live.nl', 'msn.com'],
  ...['yahoo.com', 'yahoo.co.jp', 'yahoo.co.uk', 'yahoo.co.in', 'yahoo.com.br', 'yahoo.de', 'yahoo.es', 'yahoo.fr'],
  ...['yahoo.it', 'ymail.com', 'rocketmail.com', 'aol.com', 'icloud.com', 'me.com', 'mac.com'],
  ...['gmx.de', 'gmx.net', 'gmx.at', 'gmx.ch', 'gmx.com', 'web.de', 't-online.de', 'freenet.de'],
  ...['proton.me', 'protonmail.com', 'fastmail.com', 'zoho.com', 'mail.com'],
  ...['orange.fr', 'wanadoo.fr', 'free.fr', 'laposte.net', 'sfr.fr', 'libero.it', 'virgilio.it', 'tiscali.it'],
  ...['comcast.net', 'verizon.net', 'att.net', 'sbcglobal.net', 'cox.net', 'btinternet.com', 'sky.com'],
  ...['mail.ru', 'yandex.ru', 'yandex.com', 'rambler.ru', 'seznam.cz', 'wp.pl', 'onet.pl', 'o2.pl', 'interia.pl'],
  ...['qq.com', '163.com', '126.com', 'sina.com', 'naver.com', 'daum.net', 'hanmail.net'],
  ...['docomo.ne.jp', 'ezweb.ne.jp', 'softbank.ne.jp', 'uol.com.br', 'bol.com.br', 'terra.com.br'],
]);

/** Without the detail after `+` (RFC 5233): the owner of a mailbox can use any detail. */
export function toComplainant(recipient: string): string {
  const atIndex = recipient.lastIndexOf('@');
  const plusIndex = recipient.indexOf('+');
  if (recipient.startsWith('"') || plusIndex < 1 || plusIndex > atIndex) return recipient;
  return recipient.slice(0, plusIndex) + recipient.slice(atIndex);
}

/** The registered domain, or the mailbox at a large mailbox provider. */
export function toEvidenceSource(recipient: string): string {
  const domain = recipient.slice(recipient.lastIndexOf('@') + 1);
  return SHARED_DOMAINS.has(domain) ? toComplainant(recipient) : getRegisteredDomain(domain);
}

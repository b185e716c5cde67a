/** Whether mail to the return path's domain, which is what bounces are, can find its way back. */
import type { Resolver } from '../domains/dns.ts';
import { type Finding, failure, ok, warning } from './finding.ts';

const CHECK = 'return path';
const MOST_EXCHANGES = 10;

/** `heard` where something takes the notices by which Amazon SES, whose envelope sender is its own, tells of bounces. */
export function checkProviderEvents(heard: boolean): readonly Finding[] {
  if (heard) return [ok(CHECK, 'not needed: Amazon SES tells of bounces and complaints by its notices')];
  const remedy =
    'set POSTRIDER_SES_QUEUE, or POSTRIDER_FEEDBACK_HTTP_LISTEN and POSTRIDER_SES_TOPICS (docs/providers.md)';
  return [
    warning(CHECK, 'nothing takes the notices of Amazon SES, so that bounces and complaints are not heard of', remedy),
  ];
}

/** `domain` is POSTRIDER_RETURN_PATH_DOMAIN, or null. */
export async function checkReturnPath(
  domain: string | null,
  resolver: Pick<Resolver, 'mx' | 'addresses'>,
): Promise<readonly Finding[]> {
  if (domain === null) {
    return [ok(CHECK, 'POSTRIDER_RETURN_PATH_DOMAIN is not set: later bounces go to the sender of each message')];
  }
  const lookup = await resolver.mx(domain);
  switch (lookup.kind) {
    case 'failed':
      return [
        warning(
          CHECK,
          `the MX of ${domain} could not be looked up (${lookup.why})`,
          'see that the resolver answers (POSTRIDER_DNS)',
        ),
      ];
    case 'none':
      return [
        failure(
          CHECK,
          `${domain} has no MX record, so that bounces get lost`,
          `publish: ${domain}. IN MX 10 HOST. where HOST has an address that leads to POSTRIDER_FEEDBACK_LISTEN`,
        ),
      ];
    case 'found':
      break;
  }
  const exchanges = lookup.values.slice(0, MOST_EXCHANGES);
  // RFC 7505: it says that there is no mail server.
  if (exchanges.some(({ exchange }) => exchange === '')) {
    return [failure(CHECK, `${domain} has a null MX, which refuses all bounces`, 'let its MX name this host')];
  }
  const hosts = await Promise.all(
    exchanges.map(async ({ exchange }) => ({ exchange, addresses: await resolver.addresses(exchange) })),
  );
  const dead = hosts.filter(({ addresses }) => addresses.kind === 'none').map(({ exchange }) => exchange);
  if (dead.length > 0) {
    return [
      failure(
        CHECK,
        `the MX of ${domain} names ${dead.join(', ')}, which has no address`,
        'publish an A or AAAA record for it',
      ),
    ];
  }
  const unknown = hosts.filter(({ addresses }) => addresses.kind === 'failed').map(({ exchange }) => exchange);
  if (unknown.length > 0) {
    return [
      warning(
        CHECK,
        `${unknown.join(', ')}, the MX of ${domain}, could not be looked up`,
        'see that its name servers answer',
      ),
    ];
  }
  const found = hosts.map(
    ({ exchange, addresses }) =>
      `${exchange} (${addresses.kind === 'found' ? addresses.values.slice(0, 3).join(', ') : ''})`,
  );
  return [ok(CHECK, `mail to ${domain} goes to ${found.join(', ')}`)];
}

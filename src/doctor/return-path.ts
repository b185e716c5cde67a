/** Checks that asynchronous bounces can reach the service. */
import type { Resolver } from '../domains/dns.ts';
import { createFailure, createOkFinding, createWarning, type Finding } from './finding.ts';

const CHECK_NAME = 'return path';
const MAX_EXCHANGES = 10;

const MAX_LISTED_NAMES = 3;

/**
 * Returns the finding for a provider that replaces the envelope sender. Such a provider reports bounces only by
 * provider events. `domainReturnPaths` are the return paths of sending domains. These return paths have no effect.
 */
export function createUnusedReturnPathFinding(provider: string, domainReturnPaths: readonly string[]): Finding {
  const reason = `not used: ${provider} replaces the envelope sender and reports bounces and complaints by provider events`;
  if (domainReturnPaths.length === 0) return createOkFinding(CHECK_NAME, reason);
  const listedNames = domainReturnPaths.slice(0, MAX_LISTED_NAMES).join(', ');
  const remainingNamesText =
    domainReturnPaths.length > MAX_LISTED_NAMES ? ` and ${domainReturnPaths.length - MAX_LISTED_NAMES} more` : '';
  return createOkFinding(
    CHECK_NAME,
    `${reason}; the return paths of sending domains have no effect (${listedNames}${remainingNamesText})`,
  );
}

/** Checks the MX records of POSTRIDER_RETURN_PATH_DOMAIN. `domain` is null when the setting is not set. */
export async function checkReturnPath(
  domain: string | null,
  resolver: Pick<Resolver, 'lookUpMx' | 'lookUpAddresses'>,
): Promise<readonly Finding[]> {
  if (domain === null) {
    return [
      createOkFinding(
        CHECK_NAME,
        'POSTRIDER_RETURN_PATH_DOMAIN is not set: asynchronous bounces are sent to the sender of each message',
      ),
    ];
  }
  const lookup = await resolver.lookUpMx(domain);
  switch (lookup.kind) {
    case 'failed':
      return [
        createWarning(
          CHECK_NAME,
          `the MX of ${domain} could not be looked up (${lookup.reason})`,
          'check that the resolver responds (POSTRIDER_DNS)',
        ),
      ];
    case 'none':
      return [
        createFailure(
          CHECK_NAME,
          `${domain} has no MX record, so asynchronous bounces are lost`,
          `publish \`${domain}. IN MX 10 HOST.\`, where HOST is a host name that resolves to the address of the feedback listener (POSTRIDER_FEEDBACK_LISTEN)`,
        ),
      ];
    case 'found':
      break;
  }
  const exchanges = lookup.values.slice(0, MAX_EXCHANGES);
  // RFC 7505: a null MX means that the domain accepts no messages.
  if (exchanges.some(({ exchange }) => exchange === '')) {
    return [
      createFailure(
        CHECK_NAME,
        `${domain} has a null MX, so asynchronous bounces are lost`,
        'publish an MX record that names this host',
      ),
    ];
  }
  const hosts = await Promise.all(
    exchanges.map(async ({ exchange }) => ({ exchange, addresses: await resolver.lookUpAddresses(exchange) })),
  );
  const hostsWithoutAddress = hosts
    .filter(({ addresses }) => addresses.kind === 'none')
    .map(({ exchange }) => exchange);
  if (hostsWithoutAddress.length > 0) {
    return [
      createFailure(
        CHECK_NAME,
        `the MX of ${domain} names ${hostsWithoutAddress.join(', ')}, which ${hostsWithoutAddress.length === 1 ? 'has' : 'have'} no address`,
        'publish an A or AAAA record for each name that has no address',
      ),
    ];
  }
  const unresolvedHosts = hosts.filter(({ addresses }) => addresses.kind === 'failed').map(({ exchange }) => exchange);
  if (unresolvedHosts.length > 0) {
    return [
      createWarning(
        CHECK_NAME,
        `the addresses of the MX hosts of ${domain} could not be looked up: ${unresolvedHosts.join(', ')}`,
        'check that the name servers of these hosts respond',
      ),
    ];
  }
  const hostTexts = hosts.map(
    ({ exchange, addresses }) =>
      `${exchange} (${addresses.kind === 'found' ? addresses.values.slice(0, 3).join(', ') : ''})`,
  );
  return [createOkFinding(CHECK_NAME, `messages to ${domain} are routed to ${hostTexts.join(', ')}`)];
}

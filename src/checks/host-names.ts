import type { Resolver } from '../domains/dns.ts';
import { type Finding, report } from './facts.ts';

const MAX_ADDRESSES = 4;
const MAX_EXCHANGES = 10;
const MAX_LISTED_NAMES = 3;
const RESOLVER_REMEDY = 'check that the resolver responds (POSTRIDER_DNS)';

const hostName = report('host name');

/**
 * The EHLO name must have an address whose PTR record contains the name (RFC 1912 section 2.1), or many receivers
 * classify its messages as spam. If a relay delivers the messages, receivers check the name of the relay.
 */
export async function checkHostName(
  name: string | null,
  provider: string | null,
  resolver: Pick<Resolver, 'lookUpAddresses' | 'lookUpHostNames'>,
): Promise<Finding> {
  const { ok, warning } = hostName;
  if (name === null) return ok('not needed: only the SMTP transport sends a host name');
  if (provider !== null)
    return ok(`not needed: the relay of ${provider} delivers the messages under its own host name`);
  const lowerCaseName = name.toLowerCase();
  if (!lowerCaseName.includes('.') || /^\[|\.local(domain)?$/.test(lowerCaseName))
    return warning(
      `the EHLO name ${name} is not a fully qualified host name (RFC 5321 section 2.3.5)`,
      'set the parameter name= of POSTRIDER_TRANSPORT to a fully qualified name that has an address in DNS',
    );
  const lookup = await resolver.lookUpAddresses(lowerCaseName);
  switch (lookup.kind) {
    case 'failed':
      return warning(`${name} could not be looked up (${lookup.reason})`, RESOLVER_REMEDY);
    case 'none':
      return warning(
        `the EHLO name ${name} has no address in DNS`,
        'publish an A or AAAA record for this name, or set the parameter name= of POSTRIDER_TRANSPORT to a name that has such a record',
      );
    case 'found':
      return checkReverseNames(lowerCaseName, lookup.values.slice(0, MAX_ADDRESSES), resolver);
  }
}

async function checkReverseNames(
  name: string,
  addresses: readonly string[],
  resolver: Pick<Resolver, 'lookUpHostNames'>,
): Promise<Finding> {
  const { ok, warning } = hostName;
  const lookups = await Promise.all(
    addresses.map(async (address) => ({ address, names: await resolver.lookUpHostNames(address) })),
  );
  const mismatch = lookups.find(({ names }) => names.kind !== 'found' || !names.values.includes(name));
  if (mismatch === undefined)
    return ok(`${name} has the address ${addresses.join(', ')}, and the PTR record names ${name}`);
  const { address, names } = mismatch;
  if (names.kind === 'failed')
    return warning(
      `the PTR record of ${address}, the address of ${name}, could not be looked up (${names.reason})`,
      RESOLVER_REMEDY,
    );
  const observed =
    names.kind === 'none'
      ? 'has no PTR record'
      : `has a PTR record that names ${names.values.slice(0, MAX_LISTED_NAMES).join(', ')}`;
  return warning(
    `${name} has the address ${address}, which ${observed}`,
    `ask the provider of the address to set its PTR record to ${name}`,
  );
}

const returnPath = report('return path');

export function createUnusedReturnPathFinding(provider: string, domainReturnPaths: readonly string[]): Finding {
  const reason = `not used: ${provider} replaces the envelope sender and reports bounces and complaints by provider events`;
  if (domainReturnPaths.length === 0) return returnPath.ok(reason);
  const moreCount = domainReturnPaths.length - MAX_LISTED_NAMES;
  const names = `${domainReturnPaths.slice(0, MAX_LISTED_NAMES).join(', ')}${moreCount > 0 ? ` and ${moreCount} more` : ''}`;
  return returnPath.ok(`${reason}; the return paths of sending domains have no effect (${names})`);
}

export async function checkReturnPath(
  domain: string | null,
  resolver: Pick<Resolver, 'lookUpMx' | 'lookUpAddresses'>,
): Promise<Finding> {
  const { ok, warning, failure } = returnPath;
  if (domain === null)
    return ok('POSTRIDER_RETURN_PATH_DOMAIN is not set: asynchronous bounces are sent to the sender of each message');
  const lookup = await resolver.lookUpMx(domain);
  if (lookup.kind === 'failed')
    return warning(`the MX of ${domain} could not be looked up (${lookup.reason})`, RESOLVER_REMEDY);
  if (lookup.kind === 'none')
    return failure(
      `${domain} has no MX record, so asynchronous bounces are lost`,
      `publish \`${domain}. IN MX 10 HOST.\`, where HOST is a host name that resolves to the address of the feedback listener (POSTRIDER_FEEDBACK_LISTEN)`,
    );
  const exchanges = lookup.values.slice(0, MAX_EXCHANGES);
  // RFC 7505: a null MX means that the domain accepts no messages.
  if (exchanges.some(({ exchange }) => exchange === ''))
    return failure(
      `${domain} has a null MX, so asynchronous bounces are lost`,
      'publish an MX record that names this host',
    );
  const hosts = await Promise.all(
    exchanges.map(async ({ exchange }) => ({ exchange, addresses: await resolver.lookUpAddresses(exchange) })),
  );
  const listHosts = (kind: 'none' | 'failed') =>
    hosts.filter(({ addresses }) => addresses.kind === kind).map(({ exchange }) => exchange);
  const [withoutAddress, unresolved] = [listHosts('none'), listHosts('failed')];
  if (withoutAddress.length > 0)
    return failure(
      `the MX of ${domain} names ${withoutAddress.join(', ')}, which ${withoutAddress.length === 1 ? 'has' : 'have'} no address`,
      'publish an A or AAAA record for each name that has no address',
    );
  if (unresolved.length > 0)
    return warning(
      `the addresses of the MX hosts of ${domain} could not be looked up: ${unresolved.join(', ')}`,
      'check that the name servers of these hosts respond',
    );
  const hostTexts = hosts.map(({ exchange, addresses }) => {
    const values = addresses.kind === 'found' ? addresses.values : [];
    return `${exchange} (${values.slice(0, MAX_LISTED_NAMES).join(', ')})`;
  });
  return ok(`messages to ${domain} are routed to ${hostTexts.join(', ')}`);
}

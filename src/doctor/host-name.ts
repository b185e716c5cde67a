/**
 * Checks the host name of EHLO: the name must have an address, and the PTR record of the address must contain the name
 * (RFC 1912 section 2.1). Many receivers treat a host without both records as a source of spam. With a relay, receivers
 * check the name of the relay.
 */
import type { Resolver } from '../domains/dns.ts';
import { type Finding, ok, warning } from './finding.ts';

const CHECK_NAME = 'host name';
/** Maximum number of addresses that are checked. */
const MAX_ADDRESSES = 4;

/** Checks the EHLO name. `name` is null when the transport does not use SMTP. */
export async function checkHostName(
  name: string | null,
  resolver: Pick<Resolver, 'addresses' | 'reverse'>,
): Promise<readonly Finding[]> {
  if (name === null) return [ok(CHECK_NAME, 'not needed: only the SMTP transport sends a host name')];
  const lowerCase = name.toLowerCase();
  if (
    !lowerCase.includes('.') ||
    lowerCase.endsWith('.local') ||
    lowerCase.endsWith('.localdomain') ||
    lowerCase.startsWith('[')
  ) {
    const remedy =
      'set the parameter name= of POSTRIDER_TRANSPORT to a fully qualified name that has an address in DNS';
    return [
      warning(CHECK_NAME, `the EHLO name ${name} is not a fully qualified host name (RFC 5321 section 2.3.5)`, remedy),
    ];
  }
  const forward = await resolver.addresses(lowerCase);
  switch (forward.kind) {
    case 'failed':
      return [
        warning(
          CHECK_NAME,
          `${name} could not be looked up (${forward.reason})`,
          'check that the resolver responds (POSTRIDER_DNS)',
        ),
      ];
    case 'none': {
      const remedy =
        'publish an A or AAAA record for this name, or set the parameter name= of POSTRIDER_TRANSPORT to another name that has one';
      return [warning(CHECK_NAME, `the EHLO name ${name} has no address in DNS`, remedy)];
    }
    case 'found':
      return [await reverseFinding(lowerCase, forward.values.slice(0, MAX_ADDRESSES), resolver)];
  }
}

async function reverseFinding(
  name: string,
  addresses: readonly string[],
  resolver: Pick<Resolver, 'reverse'>,
): Promise<Finding> {
  const lookups = await Promise.all(
    addresses.map(async (address) => ({ address, names: await resolver.reverse(address) })),
  );
  const [mismatch] = lookups.filter(({ names }) => names.kind !== 'found' || !names.values.includes(name));
  if (mismatch === undefined)
    return ok(CHECK_NAME, `${name} has the address ${addresses.join(', ')}, and the PTR record names ${name}`);
  const { address, names } = mismatch;
  if (names.kind === 'failed') {
    return warning(
      CHECK_NAME,
      `the PTR record of ${address}, the address of ${name}, could not be looked up (${names.reason})`,
      'check that the resolver responds (POSTRIDER_DNS)',
    );
  }
  const found =
    names.kind === 'none' ? 'has no PTR record' : `has a PTR record that names ${names.values.slice(0, 3).join(', ')}`;
  const remedy = `ask the provider of the address to set its PTR record to ${name}`;
  return warning(CHECK_NAME, `${name} has the address ${address}, which ${found}`, remedy);
}

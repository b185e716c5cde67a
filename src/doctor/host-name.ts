/**
 * Checks the host name in EHLO: the name must have an address, and the PTR record of the address must contain the name
 * (RFC 1912 section 2.1). Many receivers classify messages from a host without these records as spam. If a relay
 * delivers the messages, receivers check the name of the relay.
 */
import type { Resolver } from '../domains/dns.ts';
import { createOkFinding, createWarning, type Finding } from './finding.ts';

const CHECK_NAME = 'host name';
/** Maximum number of addresses that are checked. */
const MAX_ADDRESSES = 4;

/**
 * Checks the EHLO name. `name` is null if the transport does not use SMTP. `provider` is the display name of the
 * provider of the relay, or null.
 */
export async function checkHostName(
  name: string | null,
  provider: string | null,
  resolver: Pick<Resolver, 'lookUpAddresses' | 'lookUpHostNames'>,
): Promise<readonly Finding[]> {
  if (name === null) return [createOkFinding(CHECK_NAME, 'not needed: only the SMTP transport sends a host name')];
  if (provider !== null)
    return [
      createOkFinding(CHECK_NAME, `not needed: the relay of ${provider} delivers the messages under its own host name`),
    ];
  const lowerCaseName = name.toLowerCase();
  if (
    !lowerCaseName.includes('.') ||
    lowerCaseName.endsWith('.local') ||
    lowerCaseName.endsWith('.localdomain') ||
    lowerCaseName.startsWith('[')
  ) {
    const remedy =
      'set the parameter name= of POSTRIDER_TRANSPORT to a fully qualified name that has an address in DNS';
    return [
      createWarning(
        CHECK_NAME,
        `the EHLO name ${name} is not a fully qualified host name (RFC 5321 section 2.3.5)`,
        remedy,
      ),
    ];
  }
  const addressLookup = await resolver.lookUpAddresses(lowerCaseName);
  switch (addressLookup.kind) {
    case 'failed':
      return [
        createWarning(
          CHECK_NAME,
          `${name} could not be looked up (${addressLookup.reason})`,
          'check that the resolver responds (POSTRIDER_DNS)',
        ),
      ];
    case 'none': {
      const remedy =
        'publish an A or AAAA record for this name, or set the parameter name= of POSTRIDER_TRANSPORT to a name that has such a record';
      return [createWarning(CHECK_NAME, `the EHLO name ${name} has no address in DNS`, remedy)];
    }
    case 'found':
      return [await checkReverseNames(lowerCaseName, addressLookup.values.slice(0, MAX_ADDRESSES), resolver)];
  }
}

async function checkReverseNames(
  name: string,
  addresses: readonly string[],
  resolver: Pick<Resolver, 'lookUpHostNames'>,
): Promise<Finding> {
  const lookups = await Promise.all(
    addresses.map(async (address) => ({ address, names: await resolver.lookUpHostNames(address) })),
  );
  const [mismatch] = lookups.filter(({ names }) => names.kind !== 'found' || !names.values.includes(name));
  if (mismatch === undefined)
    return createOkFinding(
      CHECK_NAME,
      `${name} has the address ${addresses.join(', ')}, and the PTR record names ${name}`,
    );
  const { address, names } = mismatch;
  if (names.kind === 'failed') {
    return createWarning(
      CHECK_NAME,
      `the PTR record of ${address}, the address of ${name}, could not be looked up (${names.reason})`,
      'check that the resolver responds (POSTRIDER_DNS)',
    );
  }
  const observedText =
    names.kind === 'none' ? 'has no PTR record' : `has a PTR record that names ${names.values.slice(0, 3).join(', ')}`;
  const remedy = `ask the provider of the address to set its PTR record to ${name}`;
  return createWarning(CHECK_NAME, `${name} has the address ${address}, which ${observedText}`, remedy);
}

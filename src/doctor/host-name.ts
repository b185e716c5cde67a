/**
 * The name this host gives in EHLO: whether it has an address, and whether that address points back to it (RFC 1912
 * section 2.1). Receivers count a host without both as a spammer's; through a relay it is the relay's that counts most.
 */
import type { Resolver } from '../domains/dns.ts';
import { type Finding, ok, warning } from './finding.ts';

const CHECK = 'host name';
/** Addresses of one name that are asked about. */
const MOST_ADDRESSES = 4;

/** `name` is null where the transport speaks no SMTP. */
export async function checkHostName(
  name: string | null,
  resolver: Pick<Resolver, 'addresses' | 'reverse'>,
): Promise<readonly Finding[]> {
  if (name === null) return [ok(CHECK, 'not needed: only a relay is told one')];
  const plain = name.toLowerCase();
  if (!plain.includes('.') || plain.endsWith('.local') || plain.endsWith('.localdomain') || plain.startsWith('[')) {
    const remedy = 'set ?name= in POSTRIDER_TRANSPORT to a full name that has an address in DNS';
    return [warning(CHECK, `EHLO says ${name}, which is no full host name (RFC 5321 section 2.3.5)`, remedy)];
  }
  const forward = await resolver.addresses(plain);
  switch (forward.kind) {
    case 'failed':
      return [
        warning(
          CHECK,
          `${name} could not be looked up (${forward.why})`,
          'see that the resolver answers (POSTRIDER_DNS)',
        ),
      ];
    case 'none': {
      const remedy = 'publish an A or AAAA record for it, or set ?name= in POSTRIDER_TRANSPORT to a name that has one';
      return [warning(CHECK, `EHLO says ${name}, which has no address in DNS`, remedy)];
    }
    case 'found':
      return [await reverseFinding(plain, forward.values.slice(0, MOST_ADDRESSES), resolver)];
  }
}

async function reverseFinding(
  name: string,
  addresses: readonly string[],
  resolver: Pick<Resolver, 'reverse'>,
): Promise<Finding> {
  const back = await Promise.all(
    addresses.map(async (address) => ({ address, names: await resolver.reverse(address) })),
  );
  const [other] = back.filter(({ names }) => names.kind !== 'found' || !names.values.includes(name));
  if (other === undefined) return ok(CHECK, `${name} has ${addresses.join(', ')}, which point back to it`);
  const { address, names } = other;
  if (names.kind === 'failed') {
    return warning(
      CHECK,
      `where ${address} of ${name} points back to could not be looked up (${names.why})`,
      'see that the resolver answers (POSTRIDER_DNS)',
    );
  }
  const seen =
    names.kind === 'none' ? 'points back to no name' : `points back to ${names.values.slice(0, 3).join(', ')}`;
  const remedy = `have the provider of that address set its PTR record to ${name}`;
  return warning(CHECK, `${name} has ${address}, which ${seen}`, remedy);
}

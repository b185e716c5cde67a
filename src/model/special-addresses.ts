/**
 * The special-purpose address registries of IANA (RFC 6890) of 2026-11-23. `isReachable`: the column "Globally
 * Reachable" contains "True". Multicast and the IPv6 addresses outside 2000::/3 (RFC 4291) are in no registry and count
 * as not reachable. Pure.
 */
import { BlockList, isIP } from 'node:net';

interface SpecialNetwork {
  readonly network: string;
  readonly name: string;
  readonly isReachable: boolean;
}

/** An entry precedes the entries of larger networks that contain it. */
const IPV4_NETWORKS: readonly SpecialNetwork[] = [
  { network: '0.0.0.0/8', name: 'this network, RFC 791', isReachable: false },
  { network: '10.0.0.0/8', name: 'private use, RFC 1918', isReachable: false },
  { network: '100.64.0.0/10', name: 'shared address space, RFC 6598', isReachable: false },
  { network: '127.0.0.0/8', name: 'loopback, RFC 1122', isReachable: false },
  { network: '169.254.0.0/16', name: 'link-local, RFC 3927', isReachable: false },
  { network: '172.16.0.0/12', name: 'private use, RFC 1918', isReachable: false },
  { network: '192.0.0.9/32', name: 'port control protocol anycast, RFC 7723', isReachable: true },
  { network: '192.0.0.10/32', name: 'TURN anycast, RFC 8155', isReachable: true },
  { network: '192.0.0.0/24', name: 'IETF protocol assignments, RFC 6890', isReachable: false },
  { network: '192.0.2.0/24', name: 'documentation, RFC 5737', isReachable: false },
  { network: '192.31.196.0/24', name: 'AS112-v4, RFC 7535', isReachable: true },
  { network: '192.52.193.0/24', name: 'AMT, RFC 7450', isReachable: true },
  { network: '192.88.99.0/24', name: '6to4 relay anycast, RFC 7526', isReachable: false },
  { network: '192.168.0.0/16', name: 'private use, RFC 1918', isReachable: false },
  { network: '192.175.48.0/24', name: 'AS112 service, RFC 7534', isReachable: true },
  { network: '198.18.0.0/15', name: 'benchmarking, RFC 2544', isReachable: false },
  { network: '198.51.100.0/24', name: 'documentation, RFC 5737', isReachable: false },
  { network: '203.0.113.0/24', name: 'documentation, RFC 5737', isReachable: false },
  { network: '224.0.0.0/4', name: 'multicast, RFC 5771', isReachable: false },
  { network: '240.0.0.0/4', name: 'reserved, RFC 1112', isReachable: false },
];

/** NAT64 (RFC 6052): a translator embeds IPv4 addresses. */
const NAT64_PREFIX = '64:ff9b::';

const IPV6_NETWORKS: readonly SpecialNetwork[] = [
  { network: '::1/128', name: 'loopback, RFC 4291', isReachable: false },
  { network: '::/128', name: 'unspecified, RFC 4291', isReachable: false },
  { network: '::ffff:0:0/96', name: 'IPv4-mapped, RFC 4291', isReachable: false },
  { network: `${NAT64_PREFIX}/96`, name: 'IPv4-IPv6 translation, RFC 6052', isReachable: true },
  { network: '64:ff9b:1::/48', name: 'local-use translation, RFC 8215', isReachable: false },
  { network: '100::/64', name: 'discard-only, RFC 6666', isReachable: false },
  { network: '100:0:0:1::/64', name: 'dummy prefix, RFC 9780', isReachable: false },
  { network: '2001::/32', name: 'Teredo, RFC 4380', isReachable: false },
  { network: '2001:1::1/128', name: 'port control protocol anycast, RFC 7723', isReachable: true },
  { network: '2001:1::2/128', name: 'TURN anycast, RFC 8155', isReachable: true },
  { network: '2001:1::3/128', name: 'DNS-SD registration anycast, RFC 9665', isReachable: true },
  { network: '2001:2::/48', name: 'benchmarking, RFC 5180', isReachable: false },
  { network: '2001:3::/32', name: 'AMT, RFC 7450', isReachable: true },
  { network: '2001:4:112::/48', name: 'AS112-v6, RFC 7535', isReachable: true },
  { network: '2001:10::/28', name: 'deprecated ORCHID, RFC 4843', isReachable: false },
  { network: '2001:20::/28', name: 'ORCHIDv2, RFC 7343', isReachable: true },
  { network: '2001:30::/28', name: 'drone remote id tags, RFC 9374', isReachable: true },
  { network: '2001::/23', name: 'IETF protocol assignments, RFC 2928', isReachable: false },
  { network: '2001:db8::/32', name: 'documentation, RFC 3849', isReachable: false },
  { network: '2002::/16', name: '6to4, RFC 3056', isReachable: false },
  { network: '2620:4f:8000::/48', name: 'AS112 service, RFC 7534', isReachable: true },
  { network: '3fff::/20', name: 'documentation, RFC 9637', isReachable: false },
  { network: '5f00::/16', name: 'segment routing, RFC 9602', isReachable: false },
  { network: 'fc00::/7', name: 'unique local, RFC 4193', isReachable: false },
  { network: 'fe80::/10', name: 'link-local, RFC 4291', isReachable: false },
  { network: 'ff00::/8', name: 'multicast, RFC 4291', isReachable: false },
  { network: '2000::/3', name: 'global unicast, RFC 4291', isReachable: true },
  { network: '::/0', name: 'not allocated as global unicast, RFC 4291', isReachable: false },
];

/** One list for each entry, because a `BlockList` does not return the entry that contains an address. */
function createLists(networks: readonly SpecialNetwork[], family: 'ipv4' | 'ipv6') {
  return networks.map(({ network, ...entry }) => {
    const list = new BlockList();
    const [address = '', prefixBits = ''] = network.split('/');
    list.addSubnet(address, Number(prefixBits), family);
    return { ...entry, list };
  });
}

/** Created at the first lookup, because most commands look up no address. */
let lists: { readonly [family in 'ipv4' | 'ipv6']: ReturnType<typeof createLists> } | null = null;

function findEntry(address: string, family: 'ipv4' | 'ipv6') {
  lists ??= { ipv4: createLists(IPV4_NETWORKS, 'ipv4'), ipv6: createLists(IPV6_NETWORKS, 'ipv6') };
  return lists[family].find(({ list }) => list.check(address, family));
}

/**
 * Null if the address is globally reachable, otherwise its network, such as `loopback, RFC 1122`. IPv4-mapped, 6to4 and
 * Teredo addresses never are. The IPv4 address in a NAT64 address is checked as well.
 */
export function findSpecialNetwork(address: string): string | null {
  const zoneIndex = address.indexOf('%');
  const addressWithoutZone = zoneIndex === -1 ? address : address.slice(0, zoneIndex);
  switch (isIP(addressWithoutZone)) {
    case 4: {
      const entry = findEntry(addressWithoutZone, 'ipv4');
      return entry === undefined || entry.isReachable ? null : entry.name;
    }
    case 6: {
      const entry = findEntry(addressWithoutZone, 'ipv6');
      if (entry === undefined || !entry.isReachable) return entry?.name ?? 'not an IP address';
      const translatedAddress = getTranslatedAddress(addressWithoutZone);
      return translatedAddress === null ? null : findSpecialNetwork(translatedAddress);
    }
    default:
      return 'not an IP address';
  }
}

function getTranslatedAddress(address: string): string | null {
  // The URL parser converts every notation to `64:ff9b::` and at most two groups.
  const canonicalAddress = new URL(`http://[${address}]`).hostname.slice(1, -1);
  if (!canonicalAddress.startsWith(NAT64_PREFIX)) return null;
  const groups = canonicalAddress.slice(NAT64_PREFIX.length).split(':');
  if (groups.length > 2) return null;
  const [low = 0, high = 0] = groups.reverse().map((group) => Number.parseInt(group || '0', 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

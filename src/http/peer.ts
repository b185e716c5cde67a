/** Who a connection comes from, for shares and turns: an IPv4 address, or the /64 of an IPv6 address, which one customer has whole. */

const MAPPED = '::ffff:';
/** Groups of 16 bits in an IPv6 address, and in a /64. */
const GROUPS = 8;
const PREFIX_GROUPS = 4;

/** The peer of an address as Node writes it (RFC 5952); empty for a connection that is gone. Linear. */
export function peerOf(address: string | undefined): string {
  if (address === undefined) return '';
  if (!address.includes(':')) return address;
  if (address.startsWith(MAPPED) && address.includes('.')) return address.slice(MAPPED.length);
  const zone = address.indexOf('%');
  const text = zone < 0 ? address : address.slice(0, zone);
  const gap = text.indexOf('::');
  if (gap < 0) return text.split(':').slice(0, PREFIX_GROUPS).join(':');
  const head = groupsOf(text.slice(0, gap));
  const tail = groupsOf(text.slice(gap + 2));
  const zeros = new Array<string>(Math.max(0, GROUPS - head.length - tail.length)).fill('0');
  return [...head, ...zeros, ...tail].slice(0, PREFIX_GROUPS).join(':');
}

function groupsOf(part: string): readonly string[] {
  return part === '' ? [] : part.split(':');
}

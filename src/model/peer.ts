/** Who a connection comes from, as limits count it. One subscriber has a /64 of IPv6 (RFC 6177) and can use any address in it. */

/** The four leading groups of an IPv6 address, or an IPv4 address as it is, out of its mapped form too. */
export function peerOf(address: string): string {
  const plain = address.toLowerCase();
  if (plain.startsWith('::ffff:') && plain.includes('.')) return plain.slice('::ffff:'.length);
  if (!plain.includes(':')) return plain;
  const [head = '', tail] = plain.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  const groups = [...before, ...Array.from({ length: zeros }, () => '0'), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}

/**
 * Determines the client of a request behind reverse proxies (POSTRIDER_TRUSTED_PROXIES).
 *
 * Guarantees: the headers X-Forwarded-For and X-Forwarded-Proto have an effect only if the peer of the connection is a
 * trusted proxy. The peers of a unix socket are trusted, because the mode of the socket file restricts which processes
 * can connect. The address of the client is the right-most address of X-Forwarded-For that is not a trusted proxy,
 * because an untrusted peer sent every address to the left of this address. The cost is linear in the length of the
 * header.
 */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { toPeerNetwork } from '../model/address.ts';

export interface TrustedProxies {
  /** Returns true if the IP address belongs to a trusted proxy. */
  includesAddress(address: string): boolean;
  /** Returns true if the peer of a connection with this remote address is a trusted proxy. */
  isTrustedPeer(remoteAddress: string | undefined): boolean;
}

type ForwardedRequest = Pick<IncomingMessage, 'headers'> & {
  readonly socket: Pick<IncomingMessage['socket'], 'remoteAddress'>;
};

/**
 * Creates the set of trusted proxies from IP addresses and CIDR networks. `isUnixListener` is true for a listener on a
 * unix socket, whose connections have no remote address.
 */
export function createTrustedProxies(networks: readonly string[], isUnixListener = false): TrustedProxies {
  const trustedNetworks = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    const addressFamily = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (prefix === undefined) trustedNetworks.addAddress(address, addressFamily);
    else trustedNetworks.addSubnet(address, Number(prefix), addressFamily);
  }
  const includesAddress = (address: string): boolean => {
    if (networks.length === 0 || isIP(address) === 0) return false;
    // An IPv4-mapped IPv6 address is converted to its IPv4 address.
    const peer = toPeerNetwork(address);
    return isIP(peer) === 4 ? trustedNetworks.check(peer, 'ipv4') : trustedNetworks.check(address, 'ipv6');
  };
  return {
    includesAddress,
    isTrustedPeer: (remoteAddress) => (remoteAddress === undefined ? isUnixListener : includesAddress(remoteAddress)),
  };
}

/** Returns the IP address of the client. Returns an empty text if the connection is closed or has no remote address. */
export function getClientAddress(request: ForwardedRequest, proxies: TrustedProxies): string {
  let address = request.socket.remoteAddress ?? '';
  if (!proxies.isTrustedPeer(request.socket.remoteAddress)) return address;
  const forwardedFor = String(request.headers['x-forwarded-for'] ?? '');
  for (let hopEnd = forwardedFor.length; hopEnd > 0; ) {
    const commaIndex = forwardedFor.lastIndexOf(',', hopEnd - 1);
    const hopAddress = parseHop(forwardedFor.slice(commaIndex + 1, hopEnd).trim());
    // If an address is invalid, the result is the address of the proxy that added it: the last known peer before the
    // client.
    if (hopAddress === null) return address;
    address = hopAddress;
    if (!proxies.includesAddress(hopAddress)) return address;
    hopEnd = commaIndex;
  }
  return address;
}

/** Returns true if a trusted proxy reports that its client uses HTTPS. */
export function isForwardedHttps(request: ForwardedRequest, proxies: TrustedProxies): boolean {
  if (!proxies.isTrustedPeer(request.socket.remoteAddress)) return false;
  const protocols = String(request.headers['x-forwarded-proto'] ?? '').split(',');
  return protocols.at(-1)?.trim().toLowerCase() === 'https';
}

/**
 * Parses an IP address that may have a port, such as `192.0.2.7:4711` or `[2001:db8::1]:4711`. Returns null for any
 * other text.
 */
function parseHop(text: string): string | null {
  let host = text;
  if (text.startsWith('[')) host = text.slice(1, Math.max(1, text.indexOf(']')));
  else if (text.includes('.') && isIP(text) === 0) host = text.slice(0, Math.max(0, text.lastIndexOf(':')));
  return isIP(host) === 0 || host.includes('%') ? null : host;
}

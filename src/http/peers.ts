/** Peers of a unix socket are trusted: the mode of its file restricts who connects. */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { toPeerNetwork } from '../model/address.ts';

export interface TrustedProxies {
  includesAddress(address: string): boolean;
  isTrustedPeer(remoteAddress: string | undefined): boolean;
}

type ForwardedRequest = Pick<IncomingMessage, 'headers'> & {
  readonly socket: Pick<IncomingMessage['socket'], 'remoteAddress'>;
};

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
    const peer = toPeerNetwork(address);
    return isIP(peer) === 4 ? trustedNetworks.check(peer, 'ipv4') : trustedNetworks.check(address, 'ipv6');
  };
  return {
    includesAddress,
    isTrustedPeer: (remoteAddress) => (remoteAddress === undefined ? isUnixListener : includesAddress(remoteAddress)),
  };
}

export function getClientAddress(request: ForwardedRequest, proxies: TrustedProxies): string {
  let address = request.socket.remoteAddress ?? '';
  if (!proxies.isTrustedPeer(request.socket.remoteAddress)) return address;
  const forwardedFor = String(request.headers['x-forwarded-for'] ?? '');
  for (let hopEnd = forwardedFor.length; hopEnd > 0; ) {
    const commaIndex = forwardedFor.lastIndexOf(',', hopEnd - 1);
    const hopAddress = parseHop(forwardedFor.slice(commaIndex + 1, hopEnd).trim());
    if (hopAddress === null) return address;
    address = hopAddress;
    if (!proxies.includesAddress(hopAddress)) return address;
    hopEnd = commaIndex;
  }
  return address;
}

export function isForwardedHttps(request: ForwardedRequest, proxies: TrustedProxies): boolean {
  if (!proxies.isTrustedPeer(request.socket.remoteAddress)) return false;
  const protocols = String(request.headers['x-forwarded-proto'] ?? '').split(',');
  return protocols.at(-1)?.trim().toLowerCase() === 'https';
}

function parseHop(text: string): string | null {
  let host = text;
  if (text.startsWith('[')) host = text.slice(1, Math.max(1, text.indexOf(']')));
  else if (text.includes('.') && isIP(text) === 0) host = text.slice(0, Math.max(0, text.lastIndexOf(':')));
  return isIP(host) === 0 || host.includes('%') ? null : host;
}

// Counts wrong passwords, tokens and signatures by peer: an IPv4 address or an IPv6 /64 network.

/** A peer is limited after this number of failures within a window, which starts with its first failure. */
export const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;
const MAX_PEERS = 10_000;

interface FailureWindow {
  count: number;
  readonly startedAt: number;
}

export class FailureCounts {
  readonly #windows = new Map<string, FailureWindow>();

  getWaitMs(address: string, now: number): number {
    const window = this.#findCurrentWindow(toPeerNetwork(address), now);
    return window !== undefined && window.count >= MAX_FAILURES ? window.startedAt + WINDOW_MS - now : 0;
  }

  count(address: string, now: number): number {
    const peer = toPeerNetwork(address);
    const window = this.#findCurrentWindow(peer, now);
    if (window === undefined) this.#startWindow(peer, now);
    else if (window.count >= MAX_FAILURES) return window.startedAt + WINDOW_MS - now;
    else window.count += 1;
    return 0;
  }

  #findCurrentWindow(peer: string, now: number): FailureWindow | undefined {
    const window = this.#windows.get(peer);
    if (window === undefined) return undefined;
    if (now >= window.startedAt && now - window.startedAt < WINDOW_MS) return window;
    this.#windows.delete(peer);
    return undefined;
  }

  #startWindow(peer: string, now: number): void {
    if (this.#windows.size >= MAX_PEERS) {
      for (const oldestPeer of this.#windows.keys()) {
        this.#windows.delete(oldestPeer);
        break;
      }
    }
    this.#windows.set(peer, { count: 1, startedAt: now });
  }
}

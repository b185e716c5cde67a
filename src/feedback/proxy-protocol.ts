/** Versions 1 and 2 (haproxy.org, "The PROXY protocol", sections 2.1 and 2.2). */
import { isIPv4, isIPv6 } from 'node:net';

/** Version 1 allows 107 bytes, and version 2 allows extensions of any length. */
export const MAX_PROXY_HEADER_BYTES = 2_048;
const MAX_V1_BYTES = 107;
const V1_PREFIX = Buffer.from('PROXY ', 'latin1');
const V2_SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const V2_FIXED_BYTES = 16;

export type ProxyHeader =
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'malformed' }
  /** Null `address`: from the proxy itself, for example a health check. `length` is in bytes. */
  | { readonly kind: 'complete'; readonly address: string | null; readonly length: number };

const INCOMPLETE_HEADER: ProxyHeader = { kind: 'incomplete' };
const MALFORMED_HEADER: ProxyHeader = { kind: 'malformed' };

export function parseProxyHeader(bytes: Buffer): ProxyHeader {
  if (matchesBeginning(bytes, V2_SIGNATURE)) return parseV2(bytes);
  if (matchesBeginning(bytes, V1_PREFIX)) return parseV1(bytes);
  return MALFORMED_HEADER;
}

function matchesBeginning(bytes: Buffer, prefix: Buffer): boolean {
  const length = Math.min(bytes.length, prefix.length);
  return bytes.subarray(0, length).equals(prefix.subarray(0, length));
}

/** Section 2.1: `PROXY TCP4 CLIENT SERVER PORT PORT` and CR LF. The text after `PROXY UNKNOWN` is ignored. */
function parseV1(bytes: Buffer): ProxyHeader {
  const lineLength = bytes.subarray(0, MAX_V1_BYTES).indexOf('\r\n');
  if (lineLength < 0) return bytes.length < MAX_V1_BYTES ? INCOMPLETE_HEADER : MALFORMED_HEADER;
  const line = bytes.toString('latin1', 0, lineLength);
  const length = lineLength + 2;
  if (line === 'PROXY UNKNOWN' || line.startsWith('PROXY UNKNOWN ')) return { kind: 'complete', address: null, length };
  const [, family, client = '', server = '', ...ports] = line.split(' ');
  const isAddress = family === 'TCP4' ? isIPv4 : family === 'TCP6' ? isIPv6 : null;
  if (isAddress === null || !isAddress(client) || !isAddress(server) || client.includes('%')) return MALFORMED_HEADER;
  if (ports.length !== 2 || !ports.every(isPort)) return MALFORMED_HEADER;
  return { kind: 'complete', address: client, length };
}

function isPort(text: string): boolean {
  return /^(0|[1-9][0-9]{0,4})$/.test(text) && Number(text) <= 65_535;
}

/** Section 2.2. Extensions after the addresses are ignored. */
function parseV2(bytes: Buffer): ProxyHeader {
  const versionAndCommand = bytes[12] ?? 0x20;
  if (versionAndCommand !== 0x20 && versionAndCommand !== 0x21) return MALFORMED_HEADER;
  if (bytes.length < V2_FIXED_BYTES) return INCOMPLETE_HEADER;
  const length = V2_FIXED_BYTES + bytes.readUInt16BE(14);
  if (length > MAX_PROXY_HEADER_BYTES) return MALFORMED_HEADER;
  const isLocal = versionAndCommand === 0x20;
  const family = bytes[13] ?? 0;
  const addressBytes = isLocal ? 0 : family === TCP_OVER_IPV4 ? 12 : family === TCP_OVER_IPV6 ? 36 : 0;
  if (length < V2_FIXED_BYTES + addressBytes) return MALFORMED_HEADER;
  if (bytes.length < length) return INCOMPLETE_HEADER;
  // The command LOCAL and every family other than TCP over IPv4 and TCP over IPv6 report no IP address.
  const address = addressBytes === 0 ? null : formatAddress(bytes.subarray(V2_FIXED_BYTES), family);
  return { kind: 'complete', address, length };
}

const TCP_OVER_IPV4 = 0x11;
const TCP_OVER_IPV6 = 0x21;

function formatAddress(bytes: Buffer, family: number): string {
  if (family === TCP_OVER_IPV4) return bytes.subarray(0, 4).join('.');
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(2 * index));
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) return bytes.subarray(12, 16).join('.');
  return groups.map((group) => group.toString(16)).join(':');
}

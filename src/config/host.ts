/** Checks host names and IP addresses, and parses the addresses of listeners, networks and resolvers. */
import { isIP, isIPv6 } from 'node:net';
import type { HostPort, HttpListen } from '../model/listen-address.ts';
import { createFault, createParseResult, findDuplicate, type ParseResult, parseCount, quote } from './units.ts';

/** RFC 1123 section 2.1, and underscores, because existing host names contain them. */
export function isHostName(text: string): boolean {
  if (text.length === 0 || text.length > 253) return false;
  return text.split('.').every((label) => /^(?!-)[A-Za-z0-9_-]{1,63}$/.test(label) && !label.endsWith('-'));
}

/** Without brackets. Digits and dots alone are a mistyped IPv4 address. */
export function isHost(text: string): boolean {
  return isIP(text) !== 0 || (isHostName(text) && !/^[0-9.]+$/.test(text));
}

/** `host:port`, `[::1]:8080`, or `:8080` for every IPv4 address. With port 0 the system chooses a free port. */
export function parseListen(text: string): ParseResult<HostPort> {
  const colonIndex = text.lastIndexOf(':');
  const fault = createFault(`${quote(text)} is not an address such as 127.0.0.1:8080, [::1]:8080 or :8080`);
  if (colonIndex === -1) return fault;
  if (text.startsWith('unix:'))
    return createFault(
      `${quote(text)} is a unix socket, which this setting does not support; give an address such as :8080`,
    );
  const port = parseCount(text.slice(colonIndex + 1), 0, 65535);
  if (!port.ok) return createFault(`${quote(text)} has no port from 0 to 65535; give one, as in 127.0.0.1:8080`);
  const hostText = text.slice(0, colonIndex);
  if (hostText === '') return createParseResult({ host: '0.0.0.0', port: port.value });
  const isBracketed = hostText.startsWith('[') && hostText.endsWith(']');
  const host = isBracketed ? hostText.slice(1, -1) : hostText;
  if (isBracketed ? !isIPv6(host) : !isHost(host)) return fault;
  if (!isBracketed && host.includes(':') && isIPv6(host))
    return createFault(`${quote(text)} needs brackets around the IPv6 address; write [${host}]:${port.value}`);
  return createParseResult({ host, port: port.value });
}

/** With the final NUL 104 bytes on macOS and 108 bytes on Linux. */
const MAX_SOCKET_PATH_BYTES = 103;

export function parseHttpListen(text: string): ParseResult<HttpListen> {
  if (!text.startsWith('unix:')) return parseListen(text);
  const socketPath = text.slice('unix:'.length);
  if (!socketPath.startsWith('/') || socketPath.endsWith('/') || socketPath.includes('\0'))
    return createFault(`${quote(text)} is not the absolute path of a unix socket such as unix:/run/postrider/api.sock`);
  const lengthBytes = Buffer.byteLength(socketPath);
  if (lengthBytes > MAX_SOCKET_PATH_BYTES)
    return createFault(
      `${quote(text)} has a path of ${lengthBytes} bytes, and the limit is ${MAX_SOCKET_PATH_BYTES} bytes; choose a shorter path such as unix:/run/postrider/api.sock`,
    );
  return createParseResult({ socketPath });
}

/** RFC 4632, RFC 4291 section 2.3. */
export function parseNetworks(text: string): ParseResult<readonly string[]> {
  const networks = text.split(',').map((network) => network.trim());
  const invalidNetwork = networks.find((network) => !isNetwork(network));
  if (invalidNetwork === undefined) return findDuplicate(networks) ?? createParseResult(Object.freeze(networks));
  return createFault(
    `${quote(invalidNetwork)} is not an IP address or a network such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32; give one or more, separated by commas`,
  );
}

function isNetwork(text: string): boolean {
  const slashIndex = text.indexOf('/');
  const address = slashIndex === -1 ? text : text.slice(0, slashIndex);
  // A zone is valid only on one link.
  if (isIP(address) === 0 || address.includes('%')) return false;
  return slashIndex === -1 || parseCount(text.slice(slashIndex + 1), 0, isIP(address) === 6 ? 128 : 32).ok;
}

/** An IP address or `localhost`, because any other name would require a DNS server. */
export function parseResolver(text: string): ParseResult<HostPort> {
  const listenResult = parseListen(text);
  const isAddress = listenResult.ok && (isIP(listenResult.value.host) !== 0 || listenResult.value.host === 'localhost');
  if (listenResult.ok && isAddress && !text.startsWith(':') && listenResult.value.port > 0) return listenResult;
  return createFault(`${quote(text)} is not a resolver such as 127.0.0.1:53 or [::1]:53`);
}

/** Null if the text is malformed. */
export function decodePercentEncoding(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

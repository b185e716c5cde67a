/** Addresses of listeners: TCP or a unix socket. Pure. */
import { isIP, isIPv6 } from 'node:net';

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** The absolute path of a unix socket. Its peers are programs of this machine, such as a reverse proxy. */
export interface UnixSocket {
  readonly socketPath: string;
}

/** The address of an HTTP listener. */
export type HttpListen = HostPort | UnixSocket;

export interface ListenAddress {
  /** `unix:/PATH` for a unix socket. */
  readonly url: string;
  /** 0 for a unix socket. */
  readonly port: number;
}

/** Returns true for a unix socket. */
export function isUnixSocket(at: HttpListen): at is UnixSocket {
  return 'socketPath' in at;
}

/** Formats an address in the form that `parseHttpListen` accepts. */
export function formatListen(at: HttpListen): string {
  return isUnixSocket(at) ? `unix:${at.socketPath}` : formatHostPort(at);
}

/** Formats `host:port`, with brackets around an IPv6 address. */
export function formatHostPort({ host, port }: HostPort): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Returns true if only programs on this machine can connect. */
export function isLocalListen(at: HttpListen): boolean {
  return isUnixSocket(at) || isLoopback(at.host);
}

/** Returns true for a loopback host, to which only programs on this machine can connect. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Returns the URL and the port of a bound listener. */
export function listenAddressOf(at: HttpListen, scheme: 'http' | 'https'): ListenAddress {
  return isUnixSocket(at)
    ? { url: formatListen(at), port: 0 }
    : { url: `${scheme}://${formatHostPort(at)}`, port: at.port };
}

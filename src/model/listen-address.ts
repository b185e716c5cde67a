/** Formats and classifies the addresses of listeners: TCP addresses and unix sockets. Pure. */
import { isIP } from 'node:net';

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** A unix socket, identified by its absolute path. Its peers are programs on this machine, such as a reverse proxy. */
export interface UnixSocket {
  readonly socketPath: string;
}

/** The address of an HTTP listener. */
export type HttpListen = HostPort | UnixSocket;

export interface ListenAddress {
  /** The URL of the listener: `unix:/PATH` for a unix socket. */
  readonly url: string;
  /** The TCP port, or 0 for a unix socket. */
  readonly port: number;
}

/** Returns true for a unix socket. */
export function isUnixSocket(address: HttpListen): address is UnixSocket {
  return 'socketPath' in address;
}

/** Formats an address in the form that `parseHttpListen` accepts. */
export function formatListen(address: HttpListen): string {
  return isUnixSocket(address) ? `unix:${address.socketPath}` : formatHostPort(address);
}

/** Formats `host:port`, with brackets around an IPv6 address. */
export function formatHostPort({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Returns true if only programs on this machine can connect to the listener. */
export function isLocalListen(address: HttpListen): boolean {
  return isUnixSocket(address) || isLoopback(address.host);
}

/** Returns true for a loopback host, to which only programs on this machine can connect. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Returns the URL and the port of a bound listener. */
export function toListenAddress(address: HttpListen, scheme: 'http' | 'https'): ListenAddress {
  return isUnixSocket(address)
    ? { url: formatListen(address), port: 0 }
    : { url: `${scheme}://${formatHostPort(address)}`, port: address.port };
}

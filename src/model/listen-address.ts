/** Formats and classifies the addresses of listeners: TCP addresses and unix sockets. Pure. */
import { isIP } from 'node:net';

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Its peers are programs on this machine, such as a reverse proxy. */
export interface UnixSocket {
  readonly socketPath: string;
}

export type HttpListen = HostPort | UnixSocket;

export interface ListenAddress {
  /** `unix:/PATH` for a unix socket. */
  readonly url: string;
  /** 0 for a unix socket. */
  readonly port: number;
}

export function isUnixSocket(address: HttpListen): address is UnixSocket {
  return 'socketPath' in address;
}

export function formatListen(address: HttpListen): string {
  return isUnixSocket(address) ? `unix:${address.socketPath}` : formatHostPort(address);
}

export function formatHostPort({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Only programs on this machine can connect. */
export function isLocalListen(address: HttpListen): boolean {
  return isUnixSocket(address) || isLoopback(address.host);
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) !== 0 && /^(?:::ffff:)?127\./.test(host));
}

export function toListenAddress(address: HttpListen, scheme: 'http' | 'https'): ListenAddress {
  return isUnixSocket(address)
    ? { url: formatListen(address), port: 0 }
    : { url: `${scheme}://${formatHostPort(address)}`, port: address.port };
}

/** Binds a server to an address. Rejects with a one-line error that names the setting, the address and the remedy. */
import type { Server } from 'node:net';
import type { HostPort } from '../config/settings.ts';

/** Resolves to the bound address. The system chooses the port if the configured port is 0. */
export type Bind = (server: Server, at: HostPort, setting: string) => Promise<HostPort>;

export const bind: Bind = (server, at, setting) =>
  new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => {
      server.off('listening', onListening);
      reject(new Error(`${setting} ${formatHostPort(at)}: ${describeError(error)}`));
    };
    const onListening = () => {
      server.off('error', onError);
      const address = server.address();
      resolve({ host: at.host, port: address !== null && typeof address === 'object' ? address.port : at.port });
    };
    server.once('error', onError);
    server.once('listening', onListening);
    server.listen({ host: at.host, port: at.port });
  });

/** Formats an address as `host:port`, with brackets around an IPv6 address (RFC 3986 section 3.2.2). */
export function formatHostPort({ host, port }: HostPort): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function describeError(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return 'the port is in use; stop the process that uses it, or choose another port';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied; choose a port above 1023, or grant CAP_NET_BIND_SERVICE';
    case 'EADDRNOTAVAIL':
      return 'this machine does not have this address; use 127.0.0.1, 0.0.0.0 or another address of this machine';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'the host name cannot be resolved; use an IP address';
    default:
      return `cannot listen (${error.message})`;
  }
}

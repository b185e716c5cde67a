/**
 * Binds a server to an address or to a unix socket, which is accessible to the user and the group of the service.
 * Rejects with a one-line error with the setting, the address, the problem and the remedy.
 */

import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { connect, type Server } from 'node:net';
import {
  formatListen,
  type HostPort,
  type HttpListen,
  isUnixSocket,
  type UnixSocket,
} from '../model/listen-address.ts';

const SOCKET_MODE = 0o660;

/** If the port is 0, the system chooses it. */
export type BindServer = <Address extends HttpListen>(
  server: Server,
  listenAddress: Address,
  setting: string,
) => Promise<Address>;

export const bind: BindServer = async (server, listenAddress, setting) => {
  try {
    if (isUnixSocket(listenAddress)) {
      await listenOnSocket(server, listenAddress);
      return listenAddress;
    }
    return { ...listenAddress, port: await listen(server, { host: listenAddress.host, port: listenAddress.port }) };
  } catch (error) {
    throw new Error(`${setting} ${formatListen(listenAddress)}: ${describeError(error, isUnixSocket(listenAddress))}`);
  }
};

async function listenOnSocket(server: Server, { socketPath }: UnixSocket): Promise<void> {
  try {
    await listen(server, { path: socketPath });
  } catch (error) {
    if (!isInUse(error)) throw error;
    // The file of a process that ended without closing its listener remains. Other files are never removed.
    if (!lstatSync(socketPath).isSocket()) throw new Error('the file exists and is not a socket; choose another path');
    if (await acceptsConnections(socketPath)) throw error;
    unlinkSync(socketPath);
    await listen(server, { path: socketPath });
  }
  chmodSync(socketPath, SOCKET_MODE);
}

function isInUse(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}

/** Resolves to false only if the system reports that no process listens. */
function acceptsConnections(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path }, () => {
      resolve(true);
      socket.destroy();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
}

function listen(server: Server, listenAddress: HostPort | { readonly path: string }): Promise<number> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => {
      server.off('listening', onListening);
      reject(error);
    };
    const onListening = () => {
      server.off('error', onError);
      const address = server.address();
      resolve(address !== null && typeof address === 'object' ? address.port : 0);
    };
    server.once('error', onError);
    server.once('listening', onListening);
    server.listen(listenAddress);
  });
}

function describeError(error: unknown, isSocket: boolean): string {
  if (!(error instanceof Error)) return `cannot listen (${String(error)})`;
  const code = 'code' in error ? error.code : null;
  if (isSocket) {
    switch (code) {
      case 'EADDRINUSE':
        return 'another process listens on this socket; stop it, or choose another path';
      case 'EACCES':
      case 'EPERM':
        return 'the socket cannot be created; create its folder, and let the user of the service write there';
      case null:
        return error.message;
    }
  }
  switch (code) {
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

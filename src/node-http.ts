/**
 * Node's HTTP and TLS modules. An import statement of `node:http` reads all its exports, and the getter of one of them
 * loads undici, which takes more processor time than all modules of this folder. `node:https` and `node:tls` are loaded
 * at their first use (docs/decisions/launcher.md).
 */
import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';

export const { Agent, createServer, request, STATUS_CODES } = process.getBuiltinModule('node:http');

export const getHttps = () => process.getBuiltinModule('node:https');
export const getTls = () => process.getBuiltinModule('node:tls');

/** Returns true for a server of `node:https`, without loading that module. */
export function isTlsServer(server: Server): server is TlsServer {
  return 'setSecureContext' in server;
}

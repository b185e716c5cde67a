/** How a connection ended without the reply that was waited for, in words for the operator. */
import type { ServerReply } from './reply-parser.ts';

export interface Lost {
  readonly kind: 'lost';
  readonly cause: 'connect' | 'closed' | 'timeout' | 'tls' | 'certificate' | 'protocol';
  readonly text: string;
}

export type Answer = ServerReply | Lost;

/** Why no connection came about, from the system's error code, with what to look at. */
export function connectFault(peer: string, error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ECONNREFUSED':
      return `${peer} refused the connection (ECONNREFUSED); is the mail server running there?`;
    case 'ENOTFOUND':
      return `the host name of ${peer} is not known (ENOTFOUND)`;
    case 'EAI_AGAIN':
      return `the name service did not answer for ${peer} (EAI_AGAIN)`;
    default:
      return `no connection to ${peer}: ${error.code ?? error.message}`;
  }
}

/** OpenSSL's reason without its file names and line break; null where there is no fault. */
export function handshakeFault(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { reason } = error as { readonly reason?: unknown };
  if (reason === 'wrong version number') return 'what answers there speaks no TLS (wrong version number)';
  return typeof reason === 'string' ? reason : error.message;
}

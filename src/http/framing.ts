import type { IncomingMessage } from 'node:http';

/**
 * Returns true for Transfer-Encoding in HTTP/1.0, whose framing is faulty (RFC 9112 section 6.1): a proxy that does not
 * know the field takes the body for the next request. Node accepts it. Node alone limits chunk extensions, to 16 KiB
 * for each chunk; a lower limit would need a parser of our own.
 */
export function hasFaultyFraming({ httpVersionMinor, headers }: Pick<IncomingMessage, 'httpVersionMinor' | 'headers'>) {
  return httpVersionMinor === 0 && headers['transfer-encoding'] !== undefined;
}

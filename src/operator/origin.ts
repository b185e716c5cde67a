/**
 * Determines the origin of a request: a page of this listener, a page of another origin, or a program, which sends no
 * Origin header.
 */
import type { FastifyRequest } from 'fastify';

/**
 * Returns true for a request of a page of another origin, which is another site or another port of this host. A browser
 * reports the origin in the header Origin (RFC 6454), or its relation to this origin in Sec-Fetch-Site (W3C Fetch
 * Metadata).
 */
export function isCrossOrigin(request: Pick<FastifyRequest, 'headers'>): boolean {
  const { origin } = request.headers;
  const fetchSite = request.headers['sec-fetch-site'];
  return (origin !== undefined && !isSameOrigin(request)) || fetchSite === 'cross-site' || fetchSite === 'same-site';
}

/**
 * Returns true if the Origin header names this listener with the scheme https. This is the case behind a proxy that
 * terminates TLS.
 */
export function isHttpsOrigin(request: Pick<FastifyRequest, 'headers'>): boolean {
  return isSameOrigin(request) && request.headers.origin?.startsWith('https://') === true;
}

/** Returns true if the Origin header (RFC 6454) names this listener. */
export function isSameOrigin({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  const { origin, host } = headers;
  return origin !== undefined && host !== undefined && (origin === `http://${host}` || origin === `https://${host}`);
}

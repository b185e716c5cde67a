/** Which page of a browser asks: one of this listener, one from elsewhere, or none, as with scripts. */
import type { FastifyRequest } from 'fastify';

/**
 * True where a page of another origin asks: another site, or another port of this host. A browser names the page by Origin (RFC
 * 6454), or says by Sec-Fetch-Site (W3C Fetch Metadata) how it relates to this listener. A script names none.
 */
export function isCrossOrigin(request: Pick<FastifyRequest, 'headers'>): boolean {
  const { origin } = request.headers;
  const site = request.headers['sec-fetch-site'];
  return (origin !== undefined && !isSameOrigin(request)) || site === 'cross-site' || site === 'same-site';
}

/** True if the Origin header names this listener with the scheme https, as it does behind a proxy that terminates TLS. */
export function isHttpsOrigin(request: Pick<FastifyRequest, 'headers'>): boolean {
  return isSameOrigin(request) && request.headers.origin?.startsWith('https://') === true;
}

/** True if the Origin header (RFC 6454) names this listener. */
export function isSameOrigin({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  const { origin, host } = headers;
  return origin !== undefined && host !== undefined && (origin === `http://${host}` || origin === `https://${host}`);
}

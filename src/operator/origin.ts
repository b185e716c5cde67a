/** The origin of a request. A program sends no Origin header. */
import type { FastifyRequest } from 'fastify';

/** Another site, or another port of this host (RFC 6454, W3C Fetch Metadata). */
export function isCrossOrigin(request: Pick<FastifyRequest, 'headers'>): boolean {
  const { origin } = request.headers;
  const fetchSite = request.headers['sec-fetch-site'];
  return (origin !== undefined && !isSameOrigin(request)) || fetchSite === 'cross-site' || fetchSite === 'same-site';
}

/** As behind a proxy that terminates TLS. */
export function isHttpsOrigin(request: Pick<FastifyRequest, 'headers'>): boolean {
  return isSameOrigin(request) && request.headers.origin?.startsWith('https://') === true;
}

export function isSameOrigin({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  const { origin, host } = headers;
  return origin !== undefined && host !== undefined && (origin === `http://${host}` || origin === `https://${host}`);
}

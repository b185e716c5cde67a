/** Which page of a browser asks: one of this listener, one from elsewhere, or none, as with scripts. */
import type { FastifyRequest } from 'fastify';

/**
 * True where a page of another origin asks: another site, or another port of this host. A browser names the page by Origin (RFC
 * 6454), or says by Sec-Fetch-Site (W3C Fetch Metadata) how it relates to this listener. A script names none.
 */
export function comesFromElsewhere(request: Pick<FastifyRequest, 'headers'>): boolean {
  const { origin } = request.headers;
  const site = request.headers['sec-fetch-site'];
  return (origin !== undefined && !comesFromHere(request)) || site === 'cross-site' || site === 'same-site';
}

/** True where the page that asks names itself, came over HTTPS, and is one of this listener. A proxy in front speaks HTTPS. */
export function comesOverHttps(request: Pick<FastifyRequest, 'headers'>): boolean {
  return comesFromHere(request) && request.headers.origin?.startsWith('https://') === true;
}

/** True where the page that asks names itself, and is one of this listener (RFC 6454). */
export function comesFromHere({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  const { origin, host } = headers;
  return origin !== undefined && host !== undefined && (origin === `http://${host}` || origin === `https://${host}`);
}

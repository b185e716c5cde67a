/**
 * The dashboard's files, as `npm ci` built them into dashboard/dist: one page for all its addresses, and its assets, which are
 * code without any data, so that they need no sign-in.
 *
 * Promises: only files of a build are served, from memory, compressed once (dashboard-build.ts); the page's styles carry a nonce
 * of this request, so that no style or script from elsewhere runs. Without a build the page says how to make it.
 */
import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { DashboardBuild } from './dashboard-build.ts';

/** The pages' addresses; their own parts are read by the page itself. */
const ADDRESSES = ['/', '/sign-in', '/messages', '/inbox', '/accounts', '/domains', '/suppressions', '/audit'];
/** What begins an address for programs; below any other one the page says that nothing is there. */
const FOR_PROGRAMS: ReadonlySet<string> = new Set([
  'api',
  'assets',
  'healthz',
  'icon.svg',
  'metrics',
  'openapi.json',
  'reference',
]);
const NONCE = '__NONCE__';
const NOT_BUILT =
  '<!doctype html><html lang="en"><title>Postrider</title><p>The dashboard is not built: run <code>npm ci</code>, or <code>npm run build</code>, and load this page again. ' +
  'The operator API is described at <a href="/reference">/reference</a>.</p></html>';

/** Adds the routes; `folder` is read at the first request. Returns what answers with the page at any other address. */
export function addDashboard(app: FastifyInstance, folder: string): (reply: FastifyReply) => FastifyReply {
  const build = new DashboardBuild(folder);

  const page = (reply: FastifyReply) => {
    const index = build.index();
    if (index === null) return reply.type('text/html; charset=utf-8').send(NOT_BUILT);
    const nonce = randomBytes(16).toString('base64');
    return reply
      .header('Content-Security-Policy', policy(nonce))
      .type('text/html; charset=utf-8')
      .send(index.replaceAll(NONCE, nonce));
  };
  for (const address of ADDRESSES) {
    app.get(address, (_request, reply) => page(reply));
    if (address !== '/') app.get(`${address}/*`, (_request, reply) => page(reply));
  }
  const file = (name: string, accepted: string | undefined, reply: FastifyReply) => {
    const asset = build.asset(name);
    if (asset === undefined) return reply.callNotFound();
    const brotli = asset.compressed !== null && (accepted ?? '').includes('br');
    reply.type(asset.type).header('Vary', 'Accept-Encoding');
    // An asset's name holds a digest of it.
    reply.header('Cache-Control', name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache');
    if (brotli) reply.header('Content-Encoding', 'br');
    return reply.send(brotli ? asset.compressed : asset.plain);
  };
  app.get<{ Params: { name: string } }>('/assets/:name', (request, reply) =>
    file(`assets/${request.params.name}`, request.headers['accept-encoding'], reply),
  );
  app.get('/icon.svg', (request, reply) => file('icon.svg', request.headers['accept-encoding'], reply));
  return page;
}

/** True for a browser that wants a page; scripts take anything. */
function readsPages({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? '').includes('text/html');
}

/** True where somebody at a browser has come to an address that nothing has: the page tells them, without sign-in as well. */
export function isLost(request: FastifyRequest): boolean {
  const { is404, method, url } = request;
  const [path = ''] = url.slice(1).split('?', 1);
  const [first = ''] = path.split('/', 1);
  return is404 && method === 'GET' && readsPages(request) && !FOR_PROGRAMS.has(first);
}

/** True for what is served without sign-in. */
export function isDashboard(route: string | undefined): boolean {
  if (route === undefined) return false;
  return (
    route === '/icon.svg' ||
    route === '/assets/:name' ||
    ADDRESSES.includes(route) ||
    (route.endsWith('/*') && ADDRESSES.includes(route.slice(0, -2)))
  );
}

/** Scripts and connections from here alone; frames for captured HTML, which has a policy of its own. */
function policy(nonce: string): string {
  return (
    `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data:; connect-src 'self'; ` +
    "frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
  );
}

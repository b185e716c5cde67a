/**
 * The dashboard's files, as `npm ci` built them into dashboard/dist: one page for all its addresses, and its assets, which are
 * code without any data, so that they need no sign-in.
 *
 * Promises: only the page, the icon and the assets of a build are served, compressed where the build has compressed them; the page's
 * styles carry a nonce of this request, so that no style or script from elsewhere runs. A build made while the service runs is
 * served at once, and pages opened before keep their assets (bin/finish-build.js). Without a build the page says how to make it.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, dirname, extname, join, resolve } from 'node:path';
import staticFiles from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

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
const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** The end of the name of a file that the build has compressed. */
const COMPRESSED = '.br';
/** A file of one folder, as Vite names assets. */
const ASSET_NAME = /^[A-Za-z0-9_-][A-Za-z0-9_.-]*$/;
const NONCE = '__NONCE__';
const NOT_BUILT =
  '<!doctype html><html lang="en"><title>Postrider</title><p>The dashboard is not built: run <code>npm ci</code>, or <code>npm run build</code>, and load this page again. ' +
  'The operator API is described at <a href="/reference">/reference</a>.</p></html>';

/** Adds the routes; `folder` is read at each request. Returns what answers with the page at any other address. */
export function addDashboard(app: FastifyInstance, folder: string): (reply: FastifyReply) => FastifyReply {
  void app.register(staticFiles, {
    root: resolve(folder),
    serve: false,
    // The folder may be made later.
    suppressWarning: true,
    preCompressed: true,
    contentType: false,
    cacheControl: false,
    // Only of a file that there is.
    setHeaders(reply, path) {
      // An asset's name holds a digest of it.
      const lasting = basename(dirname(path)) === 'assets';
      reply.header('Cache-Control', lasting ? 'public, max-age=31536000, immutable' : 'no-cache');
      reply.type(
        TYPES[extname(path.endsWith(COMPRESSED) ? path.slice(0, -COMPRESSED.length) : path)] ??
          'application/octet-stream',
      );
    },
  });

  const page = (reply: FastifyReply) => {
    const index = readPage(folder);
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
  app.get<{ Params: { name: string } }>('/assets/:name', ({ params: { name } }, reply) => {
    if (TYPES[extname(name)] === undefined || !ASSET_NAME.test(name)) return reply.callNotFound();
    return reply.sendFile(`assets/${name}`);
  });
  app.get('/icon.svg', (_request, reply) => reply.sendFile('icon.svg'));
  return page;
}

/** The page of the latest build; null where nothing was built. */
function readPage(folder: string): string | null {
  try {
    return readFileSync(join(folder, 'index.html'), 'utf8');
  } catch {
    return null;
  }
}

/** True for a browser that wants a page; scripts take anything. */
function readsPages({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? '').includes('text/html');
}

/** True where somebody at a browser has come to an address that nothing has: the page tells them, without sign-in as well. */
export function isUnknownPage(request: FastifyRequest): boolean {
  const { is404, method, url } = request;
  const [path = ''] = url.slice(1).split('?', 1);
  const [first = ''] = path.split('/', 1);
  return is404 && method === 'GET' && readsPages(request) && !FOR_PROGRAMS.has(first);
}

/** True for what is served without sign-in. */
export function isDashboardRoute(route: string | undefined): boolean {
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

/**
 * Serves the dashboard that `npm ci` builds into dashboard/dist: one page for all URLs of the dashboard, and the
 * assets. The page and the assets contain no data and require no authentication.
 *
 * Guarantees: only the page, the icon and the assets of a build are served. If the build contains a compressed copy of
 * an asset and the client accepts the compression, the compressed copy is sent. The content security policy of the page
 * forbids inline scripts and allows only styles with the nonce of the request. A new build is served immediately,
 * without a restart, and the assets of open pages remain available (bin/finish-build.js). Without a build, the page
 * explains how to create one.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, dirname, extname, join, resolve } from 'node:path';
import staticFiles from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** The paths of pages. The scripts of the page interpret the part of the URL path that follows one of these paths. */
const PAGE_PATHS = [
  ...['/', '/sign-in', '/messages', '/deliverability', '/inbox', '/accounts', '/domains', '/suppressions', '/webhooks'],
  ...['/providers', '/feedback', '/health', '/audit', '/tokens', '/settings', '/api-reference'],
];
/**
 * The first path segments below which no page exists. For an unknown path below any other segment, the page shows that
 * nothing was found.
 */
const NON_PAGE_SEGMENTS: ReadonlySet<string> = new Set([
  'api',
  'assets',
  'healthz',
  'icon.svg',
  'metrics',
  'openapi.json',
  'reference',
]);
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};
/** The suffix of files that the build has compressed. */
const COMPRESSED_SUFFIX = '.br';
/** The pattern of file names of assets. */
const ASSET_NAME = /^[A-Za-z0-9_-][A-Za-z0-9_.-]*$/;
const NONCE_PLACEHOLDER = '__NONCE__';
const NOT_BUILT_PAGE =
  '<!doctype html><html lang="en"><title>Postrider</title><p>The dashboard is not built. Run <code>npm ci</code> or <code>npm run build</code>, then reload this page. ' +
  'The operator API is described at <a href="/reference">/reference</a>.</p></html>';

/**
 * Adds the routes. The files in `folder` are read for each request. Returns a function that sends the page as the
 * response to a request.
 */
export function addDashboard(app: FastifyInstance, folder: string): (reply: FastifyReply) => FastifyReply {
  void app.register(staticFiles, {
    root: resolve(folder),
    serve: false,
    // The folder need not exist yet, because a build may create it later.
    suppressWarning: true,
    preCompressed: true,
    contentType: false,
    cacheControl: false,
    // This function is called only for existing files.
    setHeaders(reply, path) {
      // The file name of an asset contains a digest of its content.
      const isImmutable = basename(dirname(path)) === 'assets';
      reply.header('Cache-Control', isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache');
      reply.type(
        MEDIA_TYPES[extname(path.endsWith(COMPRESSED_SUFFIX) ? path.slice(0, -COMPRESSED_SUFFIX.length) : path)] ??
          'application/octet-stream',
      );
    },
  });

  const sendPage = (reply: FastifyReply) => {
    const pageHtml = readPage(folder);
    if (pageHtml === null) return reply.type('text/html; charset=utf-8').send(NOT_BUILT_PAGE);
    const nonce = randomBytes(16).toString('base64');
    return reply
      .header('Content-Security-Policy', createContentSecurityPolicy(nonce))
      .type('text/html; charset=utf-8')
      .send(pageHtml.replaceAll(NONCE_PLACEHOLDER, nonce));
  };
  for (const path of PAGE_PATHS) {
    app.get(path, (_request, reply) => sendPage(reply));
    if (path !== '/') app.get(`${path}/*`, (_request, reply) => sendPage(reply));
  }
  app.get<{ Params: { name: string } }>('/assets/:name', ({ params: { name } }, reply) => {
    if (MEDIA_TYPES[extname(name)] === undefined || !ASSET_NAME.test(name)) return reply.callNotFound();
    return reply.sendFile(`assets/${name}`);
  });
  app.get('/icon.svg', (_request, reply) => reply.sendFile('icon.svg'));
  return sendPage;
}

/** Returns the page of the latest build, or null without a build. */
function readPage(folder: string): string | null {
  try {
    return readFileSync(join(folder, 'index.html'), 'utf8');
  } catch {
    return null;
  }
}

/** Returns true for the navigation request of a browser. Other programs do not request text/html explicitly. */
function acceptsHtml({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? '').includes('text/html');
}

/**
 * Returns true for the navigation request of a browser to an unknown path. The response is the page, and the request
 * requires no authentication.
 */
export function isUnknownPage(request: FastifyRequest): boolean {
  const { is404, method, url } = request;
  const [path = ''] = url.slice(1).split('?', 1);
  const [firstSegment = ''] = path.split('/', 1);
  return is404 && method === 'GET' && acceptsHtml(request) && !NON_PAGE_SEGMENTS.has(firstSegment);
}

/** Returns true for routes of the dashboard, which require no authentication. */
export function isDashboardRoute(route: string | undefined): boolean {
  if (route === undefined) return false;
  return (
    route === '/icon.svg' ||
    route === '/assets/:name' ||
    PAGE_PATHS.includes(route) ||
    (route.endsWith('/*') && PAGE_PATHS.includes(route.slice(0, -2)))
  );
}

/**
 * Returns a content security policy that allows scripts, connections and frames only from this origin. Frames show
 * captured HTML, which has its own policy.
 */
function createContentSecurityPolicy(nonce: string): string {
  return (
    `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data:; connect-src 'self'; ` +
    "frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
  );
}

/**
 * Serves dashboard/dist: one page for all URLs, and the assets, compressed if the client accepts it. They contain no
 * data and need no authentication. A new build is served at once, and the assets of open pages remain
 * (bin/finish-build.js).
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, dirname, extname, join, resolve } from 'node:path';
import staticFiles from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

const PAGE_PATHS = [
  ...['/', '/sign-in', '/messages', '/deliverability', '/inbox', '/accounts', '/domains', '/suppressions', '/routes'],
  ...['/holds', '/webhooks', '/providers', '/feedback', '/health', '/audit', '/tokens', '/settings', '/api-reference'],
];
/** No page exists below these segments. Below any other, the page shows that nothing was found. */
const NON_PAGE_SEGMENTS = ['api', 'assets', 'healthz', 'icon.svg', 'metrics', 'openapi.json'];
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};
const COMPRESSED_SUFFIX = '.br';
const ASSET_NAME = /^[A-Za-z0-9_-][A-Za-z0-9_.-]*$/;
const NONCE_PLACEHOLDER = '__NONCE__';
const NOT_BUILT_PAGE =
  '<!doctype html><html lang="en"><title>Postrider</title><p>The dashboard is not built. Run <code>npm ci</code> or <code>npm run build</code>, then reload this page. ' +
  'The operator API is described at <a href="/api/v1/openapi.json">/api/v1/openapi.json</a>.</p></html>';

/** The files are read for each request. The returned function sends the page. */
export function addDashboard(app: FastifyInstance, folder: string): (reply: FastifyReply) => FastifyReply {
  void app.register(staticFiles, {
    root: resolve(folder),
    serve: false,
    // A build may create the folder later.
    suppressWarning: true,
    preCompressed: true,
    contentType: false,
    cacheControl: false,
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

function readPage(folder: string): string | null {
  try {
    return readFileSync(join(folder, 'index.html'), 'utf8');
  } catch {
    return null;
  }
}

/** Other programs do not request text/html explicitly. */
function acceptsHtml({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? '').includes('text/html');
}

/** The navigation of a browser to an unknown path. It needs no authentication. */
export function isUnknownPage(request: FastifyRequest): boolean {
  const { is404, method, url } = request;
  const [path = ''] = url.slice(1).split('?', 1);
  const [firstSegment = ''] = path.split('/', 1);
  return is404 && method === 'GET' && acceptsHtml(request) && !NON_PAGE_SEGMENTS.includes(firstSegment);
}

export function isDashboardRoute(route: string | undefined): boolean {
  if (route === undefined) return false;
  return (
    route === '/icon.svg' ||
    route === '/assets/:name' ||
    PAGE_PATHS.includes(route) ||
    (route.endsWith('/*') && PAGE_PATHS.includes(route.slice(0, -2)))
  );
}

/** Only this origin. Frames show captured HTML, which has its own policy. */
function createContentSecurityPolicy(nonce: string): string {
  return (
    `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data:; connect-src 'self'; ` +
    "frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
  );
}

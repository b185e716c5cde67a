/**
 * The shared servers of the run. A server starts when a test first asks for it. A copy of its template database, an
 * empty store, takes less time than the migrations.
 */
import { createServer } from 'node:http';
import { parseDatabaseUrl } from '../../src/config/database-url.ts';
import { openStore } from '../../src/store/open.ts';
import { listenOnFreePort } from './free-port.ts';
import { type Server, type ServerVersion, startServer } from './postgres-server.ts';
import { SHARED_SERVERS, TEMPLATE_DATABASE } from './postgres-version.ts';

const VERSIONS = ['newest', 'oldest'] as const satisfies readonly ServerVersion[];

export async function setup(): Promise<(() => Promise<void>) | undefined> {
  // Every Vitest project calls this setup; the first call is enough.
  if (process.env[SHARED_SERVERS.newest] !== undefined) return undefined;
  const servers = new Map<ServerVersion, Promise<Server>>();
  const startOnce = (version: ServerVersion): Promise<Server> => {
    const server = servers.get(version) ?? startWithTemplate(version);
    servers.set(version, server);
    return server;
  };
  const front = createServer((request, response) => {
    const version = VERSIONS.find((name) => request.url === `/${name}`) ?? 'newest';
    startOnce(version).then(
      (server) => response.end(server.url('postgres')),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  const port = await listenOnFreePort(front);
  for (const version of VERSIONS) process.env[SHARED_SERVERS[version]] = `http://127.0.0.1:${port}/${version}`;
  return async () => {
    for (const name of Object.values(SHARED_SERVERS)) delete process.env[name];
    front.close();
    front.closeAllConnections();
    const startResults = await Promise.allSettled(servers.values());
    await Promise.all(startResults.map((result) => (result.status === 'fulfilled' ? result.value.stop() : null)));
  };
}

async function startWithTemplate(version: ServerVersion): Promise<Server> {
  const server = await startServer({ version, inMemory: true });
  await server.run(`CREATE DATABASE ${TEMPLATE_DATABASE}`);
  const setting = parseDatabaseUrl(server.url(TEMPLATE_DATABASE));
  if (!setting.ok) throw new Error(setting.fault);
  const store = await openStore(setting.value, { exclusive: true });
  await store.close();
  return server;
}

/**
 * Starts two PostgreSQL servers for the test run, of the newest and the oldest supported version. The environment of
 * every test process contains their URLs. Each server has a template database that contains an empty store, because a
 * copy of the template takes less time than the migrations.
 */
import { parseDatabaseUrl } from '../../src/config/database-url.ts';
import { openStore } from '../../src/store/open.ts';
import { type Server, startServer } from './postgres-server.ts';
import { SHARED_SERVERS, TEMPLATE_DATABASE } from './postgres-version.ts';

export async function setup(): Promise<(() => Promise<void>) | undefined> {
  // Every Vitest project calls this setup; the first call starts the servers.
  if (process.env[SHARED_SERVERS.newest] !== undefined) return undefined;
  const [newest, oldest] = await Promise.all([
    startServer({ inMemory: true }),
    startServer({ version: 'oldest', inMemory: true }),
  ]);
  await Promise.all([createTemplate(newest), createTemplate(oldest)]);
  process.env[SHARED_SERVERS.newest] = newest.url('postgres');
  process.env[SHARED_SERVERS.oldest] = oldest.url('postgres');
  return async () => {
    for (const name of Object.values(SHARED_SERVERS)) delete process.env[name];
    await Promise.all([newest.stop(), oldest.stop()]);
  };
}

/**
 * Creates the template database, and the tables of an empty store in it. No client connects to the template afterwards.
 */
async function createTemplate(server: Server): Promise<void> {
  await server.run(`CREATE DATABASE ${TEMPLATE_DATABASE}`);
  const setting = parseDatabaseUrl(server.url(TEMPLATE_DATABASE));
  if (!setting.ok) throw new Error(setting.fault);
  const store = await openStore(setting.value, { exclusive: true });
  await store.close();
}

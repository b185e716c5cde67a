/**
 * Starts two PostgreSQL servers for the test run, of the newest and the oldest supported version. The environment of
 * every test process contains their URLs.
 */
import { startServer } from './postgres-server.ts';
import { SHARED_SERVERS } from './postgres-version.ts';

export async function setup(): Promise<(() => Promise<void>) | undefined> {
  // Every Vitest project calls this setup; the first call starts the servers.
  if (process.env[SHARED_SERVERS.newest] !== undefined) return undefined;
  const [newest, oldest] = await Promise.all([startServer(), startServer({ version: 'oldest' })]);
  process.env[SHARED_SERVERS.newest] = newest.url('postgres');
  process.env[SHARED_SERVERS.oldest] = oldest.url('postgres');
  return async () => {
    for (const name of Object.values(SHARED_SERVERS)) delete process.env[name];
    await Promise.all([newest.stop(), oldest.stop()]);
  };
}

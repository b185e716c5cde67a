/** One PostgreSQL for the whole test run; its port is in the environment of every test process. */
import { startServer } from './postgres-server.ts';

export async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env.TEST_POSTGRES !== undefined) return undefined;
  const server = await startServer();
  process.env.TEST_POSTGRES = server.url('postgres');
  return async () => {
    delete process.env.TEST_POSTGRES;
    await server.stop();
  };
}

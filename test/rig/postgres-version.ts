/**
 * The PostgreSQL version of a test process: the oldest supported version in the Vitest project `postgres-15`, otherwise
 * the newest.
 */
import type { ServerVersion } from './postgres-server.ts';

/** The environment variables with the addresses that start the shared servers (postgres-setup.ts), by version. */
export const SHARED_SERVERS: Readonly<Record<ServerVersion, string>> = {
  newest: 'TEST_POSTGRES',
  oldest: 'TEST_POSTGRES_OLDEST',
};

/** The name of the template database with an empty store on each shared server. */
export const TEMPLATE_DATABASE = 'empty_store';

/** Returns the version for the tests of this process. */
export function getTestedVersion(): ServerVersion {
  return process.env.TEST_POSTGRES_VERSION === 'oldest' ? 'oldest' : 'newest';
}

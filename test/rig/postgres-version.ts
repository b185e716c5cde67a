/**
 * The PostgreSQL version of a test process: the newest supported version; in the Vitest project `postgres-15`, the
 * oldest.
 */
import type { ServerVersion } from './postgres-server.ts';

/** Environment variables with the URL of the shared server of each version. */
export const SHARED_SERVERS: Readonly<Record<ServerVersion, string>> = {
  newest: 'TEST_POSTGRES',
  oldest: 'TEST_POSTGRES_OLDEST',
};

/** The database of each shared server that contains an empty store. */
export const TEMPLATE_DATABASE = 'empty_store';

/** Returns the version for the tests of this process. */
export function getTestedVersion(): ServerVersion {
  return process.env.TEST_POSTGRES_VERSION === 'oldest' ? 'oldest' : 'newest';
}

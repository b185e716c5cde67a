/** Which version of PostgreSQL a test process uses: the newest, or in the Vitest project `postgres-15` the oldest one supported. */
import type { ServerVersion } from './postgres-server.ts';

/** Variables with the URL of the run's shared server of each version. */
export const SHARED_SERVERS: Readonly<Record<ServerVersion, string>> = {
  newest: 'TEST_POSTGRES',
  oldest: 'TEST_POSTGRES_OLDEST',
};

/** The version that the tests of this process use. */
export function testedVersion(): ServerVersion {
  return process.env.TEST_POSTGRES_VERSION === 'oldest' ? 'oldest' : 'newest';
}

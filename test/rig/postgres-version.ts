/** The oldest supported version in the Vitest project `postgres-15`, otherwise the newest. */
import type { ServerVersion } from './postgres-server.ts';

export const SHARED_SERVERS: Readonly<Record<ServerVersion, string>> = {
  newest: 'TEST_POSTGRES',
  oldest: 'TEST_POSTGRES_OLDEST',
};

export const TEMPLATE_DATABASE = 'empty_store';

export function getTestedVersion(): ServerVersion {
  return process.env.TEST_POSTGRES_VERSION === 'oldest' ? 'oldest' : 'newest';
}

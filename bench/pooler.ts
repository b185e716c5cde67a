/**
 * Compares the rate of accepting through PgBouncer in transaction mode with the rate on a direct connection. Both nodes use
 * databases of one server, and the rounds alternate. The server, PgBouncer, the nodes and the load generator share the cores.
 */
import { isPgBouncerInstalled, launchPgBouncer } from '../test/rig/pgbouncer.ts';
import { startServer } from '../test/rig/postgres-server.ts';
import { type BenchService, createBenchFolder, removeFolder, startPostrider } from './postrider.ts';

const SECRET = '5e'.repeat(32);
const ROUNDS = 3;
const REQUESTS = 8_000;

export interface PoolerBenchParts {
  record(measure: string, value: number, unit: string, target?: string | null): void;
  /** Sends requests to a node. Resolves to the requests per second. */
  measureAcceptRate(node: BenchService, requests: number): Promise<number>;
}

/** Records the rates and their ratio. Records nothing if PgBouncer is not installed. */
export async function benchPooler({ record, measureAcceptRate }: PoolerBenchParts): Promise<void> {
  if (!isPgBouncerInstalled()) return;
  const server = await startServer({ settings: { shared_buffers: '256MB', max_wal_size: '4GB' } });
  const folder = createBenchFolder();
  const [directUrl, pooledUrl] = [await server.createDatabase(), new URL(await server.createDatabase())];
  const pgBouncer = await launchPgBouncer({ serverPort: Number(pooledUrl.port) }, folder);
  try {
    pooledUrl.port = String(pgBouncer.port);
    pooledUrl.searchParams.set('pooler', 'transaction');
    const shared = { POSTRIDER_ROLES: 'api', POSTRIDER_SECRET: SECRET };
    const direct = await startPostrider({ ...shared, POSTRIDER_DATABASE: directUrl });
    const pooled = await startPostrider({ ...shared, POSTRIDER_DATABASE: pooledUrl.href });
    for (const node of [direct, pooled]) await measureAcceptRate(node, REQUESTS / 2);
    const rounds: { readonly directRate: number; readonly pooledRate: number }[] = [];
    while (rounds.length < ROUNDS) {
      const directRate = await measureAcceptRate(direct, REQUESTS);
      rounds.push({ directRate, pooledRate: await measureAcceptRate(pooled, REQUESTS) });
    }
    const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0;
    const version = pgBouncer.version;
    record('durable accept on PostgreSQL, direct', median(rounds.map(({ directRate }) => directRate)), '/s');
    record(`durable accept through ${version}`, median(rounds.map(({ pooledRate }) => pooledRate)), '/s');
    const ratios = rounds.map(({ directRate, pooledRate }) => pooledRate / directRate);
    record(`durable accept through ${version} over direct`, median(ratios), 'ratio');
    for (const node of [direct, pooled]) {
      await node.stop();
      removeFolder(node.folder);
    }
  } finally {
    await pgBouncer.stop();
    await server.stop();
    removeFolder(folder);
  }
}

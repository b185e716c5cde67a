/**
 * Compares the accept rate through PgBouncer in transaction mode with the accept rate on a direct connection. One node
 * uses PgBouncer, and the other node uses a direct connection. Each node has its own database on the same server. The
 * rounds alternate between the two nodes. The server, PgBouncer, the nodes and the load generator share the processor
 * cores.
 */
import { isPgBouncerInstalled, launchPgBouncer } from '../test/rig/pgbouncer.ts';
import { startServer } from '../test/rig/postgres-server.ts';
import { calculateMedian } from './median.ts';
import { type BenchService, createBenchFolder, removeFolder, runCommand, startPostrider } from './postrider.ts';

const SECRET = '5e'.repeat(32);
const ROUND_COUNT = 5;
const REQUESTS_PER_ROUND = 30_000;

export interface PoolerBenchParts {
  record(measure: string, value: number, unit: string, target?: string | null): void;
  /** Sends `requestCount` requests to a node. Resolves to the number of accepted requests per second. */
  measureAcceptRate(node: BenchService, requestCount: number): Promise<number>;
}

/** Records the accept rates of both connections and their ratio. Records nothing if PgBouncer is not installed. */
export async function benchPooler({ record, measureAcceptRate }: PoolerBenchParts): Promise<void> {
  if (!isPgBouncerInstalled()) return;
  const server = await startServer({ settings: { shared_buffers: '256MB', max_wal_size: '4GB' } });
  const folder = createBenchFolder();
  const [directUrl, pooledUrl] = [await server.createDatabase(), new URL(await server.createDatabase())];
  const pgBouncer = await launchPgBouncer({ serverPort: Number(pooledUrl.port) }, folder);
  try {
    pooledUrl.port = String(pgBouncer.port);
    pooledUrl.searchParams.set('pooler', 'transaction');
    const startNode = (database: string) =>
      startPostrider({ POSTRIDER_ROLES: 'api', POSTRIDER_SECRET: SECRET, POSTRIDER_DATABASE: database });
    const directNode = await startNode(directUrl);
    const { version } = pgBouncer;
    await compareWithDirectConnection('', pooledUrl.href);
    if (pgBouncer.tracksStatements) {
      pooledUrl.searchParams.set('prepared', 'yes');
      await compareWithDirectConnection(' with prepared=yes', pooledUrl.href);
    }
    await stopNode(directNode);

    async function compareWithDirectConnection(variant: string, url: string): Promise<void> {
      const newNode = await startNode(url);
      const pooledNode = { ...newNode, key: newNode.key === '' ? await createKey(newNode, url) : newNode.key };
      for (const node of [directNode, pooledNode]) await measureAcceptRate(node, REQUESTS_PER_ROUND / 2);
      const rounds: { readonly directRate: number; readonly pooledRate: number }[] = [];
      while (rounds.length < ROUND_COUNT) {
        const directRate = await measureAcceptRate(directNode, REQUESTS_PER_ROUND);
        rounds.push({ directRate, pooledRate: await measureAcceptRate(pooledNode, REQUESTS_PER_ROUND) });
      }
      const ratios = rounds.map(({ directRate, pooledRate }) => pooledRate / directRate);
      record('durable accept on PostgreSQL, direct', calculateMedian(rounds.map(({ directRate }) => directRate)), '/s');
      record(`through ${version}${variant}`, calculateMedian(rounds.map(({ pooledRate }) => pooledRate)), '/s');
      record(
        `through ${version}${variant}, relative to a direct connection`,
        calculateMedian(ratios),
        'ratio',
        variant === '' ? null : '0.8',
      );
      await stopNode(newNode);
    }
  } finally {
    await pgBouncer.stop();
    await server.stop();
    removeFolder(folder);
  }
}

async function createKey(node: BenchService, url: string): Promise<string> {
  const settings = { POSTRIDER_DATABASE: url, POSTRIDER_SECRET: SECRET };
  const output = await runCommand(node.folder, settings, 'key', 'create', 'default', '--json');
  return (JSON.parse(output) as { readonly key: string }).key;
}

async function stopNode(node: BenchService): Promise<void> {
  await node.stop();
  removeFolder(node.folder);
}

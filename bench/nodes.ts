/**
 * Compares 1, 2 and 3 nodes on PostgreSQL with one node on the embedded store, all on this machine. Measures the accept
 * rate, the end-to-end rate into the sink, the rate of claims with 1,000,000 queued messages, and the processor time
 * and the transactions of an idle node. The database server, the nodes, the sink and the load generator share the
 * processor cores, so the results show the overhead of running several nodes, not the gain from additional machines.
 */
import { parseDatabaseUrl } from '../src/config/database-url.ts';
import type { Store } from '../src/store/contract.ts';
import { openStore } from '../src/store/open.ts';
import { type Server, startServer } from '../test/rig/postgres-server.ts';
import { type BenchService, removeFolder, runCommand, startPostrider } from './postrider.ts';

const SECRET = '5e'.repeat(32);

interface LoadRate {
  readonly perSecond: number;
  /** The start time of the load in milliseconds since the epoch. */
  readonly startedAt: number;
}

export interface NodeBenchParts {
  record(measure: string, value: number, unit: string, target?: string | null): void;
  /**
   * Sends `requestCount` requests in total to several nodes at the same time. Resolves to the requests per second and
   * the start time.
   */
  load(nodes: readonly { readonly port: number; readonly key: string }[], requestCount: number): Promise<LoadRate>;
  withSink<T>(run: (port: number, readReceivedCount: () => Promise<number>) => Promise<T>): Promise<T>;
  measureSecondsUntilReceived(
    readReceivedCount: () => Promise<number>,
    count: number,
    startLoad: () => Promise<LoadRate>,
  ): Promise<number>;
}

/** Starts `count` nodes on a new database. The returned nodes have the API key of the first node. */
async function startNodes(server: Server, count: number, settings: Record<string, string>): Promise<BenchService[]> {
  const url = await server.createDatabase();
  const sharedSettings = { POSTRIDER_DATABASE: url, POSTRIDER_SECRET: SECRET, ...settings };
  const firstNode = await startPostrider(sharedSettings);
  await runCommand(firstNode.folder, sharedSettings, 'account', 'set', 'default', '--volume', '1000000000');
  const nodes = [firstNode];
  while (nodes.length < count) nodes.push({ ...(await startPostrider(sharedSettings)), key: firstNode.key });
  return nodes;
}

async function stopNodes(nodes: readonly BenchService[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.stop()));
  for (const { folder } of nodes) removeFolder(folder);
}

export async function benchNodes({
  record,
  load,
  withSink,
  measureSecondsUntilReceived: secondsUntilReceived,
}: NodeBenchParts): Promise<void> {
  const server = await startServer({ settings: { shared_buffers: '256MB', max_wal_size: '4GB' } });
  try {
    const embeddedNode = await startPostrider({ POSTRIDER_ROLES: 'api' });
    await load([embeddedNode], 10_000);
    for (const count of [1, 2, 3]) {
      const nodes = await startNodes(server, count, { POSTRIDER_ROLES: 'api' });
      await load(nodes, 5_000);
      const { perSecond: embeddedRate } = await load([embeddedNode], 20_000);
      const { perSecond: nodesRate } = await load(nodes, 15_000);
      record(`durable accept on PostgreSQL, ${count} nodes`, nodesRate, '/s');
      record(
        `durable accept on PostgreSQL, ${count} nodes, relative to the embedded store`,
        nodesRate / embeddedRate,
        'ratio',
      );
      await stopNodes(nodes);
    }
    await stopNodes([embeddedNode]);

    await withSink(async (port, readReceivedCount) => {
      const relaySettings = { POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${port}` };
      const embeddedNode = await startPostrider(relaySettings);
      const measureEndToEnd = async (nodes: readonly BenchService[], minMessageCount: number) => {
        const messageCount = minMessageCount - (minMessageCount % nodes.length);
        return (
          messageCount / (await secondsUntilReceived(readReceivedCount, messageCount, () => load(nodes, messageCount)))
        );
      };
      await measureEndToEnd([embeddedNode], 3_000);
      for (const count of [1, 2, 3]) {
        const nodes = await startNodes(server, count, relaySettings);
        await measureEndToEnd(nodes, 2_000);
        const embeddedRate = await measureEndToEnd([embeddedNode], 8_000);
        const nodesRate = await measureEndToEnd(nodes, 6_000);
        record(`end to end on PostgreSQL, ${count} nodes`, nodesRate, '/s');
        record(
          `end to end on PostgreSQL, ${count} nodes, relative to the embedded store`,
          nodesRate / embeddedRate,
          'ratio',
        );
        await stopNodes(nodes);
      }
      await stopNodes([embeddedNode]);
    });

    const [smallQueueRate, largeQueueRate] = [
      await measureClaimRate(server, 20_000),
      await measureClaimRate(server, 1_000_000),
    ];
    record('claims with settlement on PostgreSQL, 20,000 queued', smallQueueRate, '/s');
    record('claims with settlement on PostgreSQL, 1,000,000 queued', largeQueueRate, '/s');
    record(
      'claims on PostgreSQL with 1,000,000 queued, relative to 20,000 queued',
      largeQueueRate / smallQueueRate,
      'ratio',
      '0.9',
    );

    const [idleNode] = await startNodes(server, 1, {});
    if (idleNode !== undefined) {
      await new Promise((resolve) => setTimeout(resolve, 5_000));
      const initialUsage = { cpu: idleNode.readCpuMs(), commits: await countCommits(server) };
      await new Promise((resolve) => setTimeout(resolve, 20_000));
      record(
        'processor time of an idle node on PostgreSQL',
        (idleNode.readCpuMs() - initialUsage.cpu) / 200,
        '%',
        'under 1',
      );
      record(
        'transactions of an idle node on PostgreSQL',
        ((await countCommits(server)) - initialUsage.commits) / 20,
        '/s',
      );
      await stopNodes([idleNode]);
    }
  } finally {
    await server.stop();
  }
}

/** Returns the number of committed transactions of all databases. */
async function countCommits(server: Server): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const { rows } = await server.run('SELECT sum(xact_commit)::int AS n FROM pg_stat_database');
  return Number((rows[0] as { n: number }).n);
}

/**
 * Returns the number of messages per second that are claimed, up to 512 in one claim, and settled. The queue contains
 * `queuedCount` messages of 1,000 accounts. The measurement claims 10,000 messages.
 */
async function measureClaimRate(server: Server, queuedCount: number): Promise<number> {
  const url = await server.createDatabase();
  const databaseUrl = parseDatabaseUrl(url);
  if (!databaseUrl.ok) throw new Error(databaseUrl.fault);
  const store = await openStore(databaseUrl.value, { exclusive: true });
  const database = new URL(url).pathname.slice(1);
  const idExpression = `lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint - 1000000 + n), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8' || lpad(to_hex(n), 15, '0')`;
  await server.run(
    `INSERT INTO account (name, created_at, revision) SELECT 'a' || n, 1, 1 FROM generate_series(1, 1000) n;
     CREATE TEMP TABLE seed AS SELECT (${idExpression})::uuid AS id, 1 + n % 1000 AS account_id FROM generate_series(1, ${queuedCount}) n;
     INSERT INTO mail_request (id, account_id, key_id, accepted_at, "to", "from", subject)
       SELECT id, account_id, 1, 1, 'r' || account_id || '@example.com', 's@example.org', 'Subject' FROM seed;
     INSERT INTO body (id, account_id, message) SELECT id, account_id, repeat('x', 200) FROM seed;
     INSERT INTO queue (id, account_id, state, lane, due_at, attempts, accepted_at, bytes)
       SELECT id, account_id, 'queued', 0, 1, 0, 1, 200 FROM seed;
     ANALYZE`,
    database,
  );
  const measureRate = async (messageCount: number) => {
    const startedAt = performance.now();
    let claimedCount = 0;
    while (claimedCount < messageCount) claimedCount += await claimAndSettle(store);
    return (claimedCount * 1000) / (performance.now() - startedAt);
  };
  await measureRate(2_000);
  const rate = await measureRate(10_000);
  await store.close();
  return rate;
}

async function claimAndSettle(store: Store): Promise<number> {
  const now = Date.now();
  const lease = { owner: 'bench', until: now + 600_000 };
  const { messages: leasedMessages } = await store.claim({ maxMessages: 512, maxBytes: 16_777_216 }, lease, now);
  const event = { at: now, verb: 'delivered', by: 'bench', detail: null, failure: null, attempt: null };
  await store.settle(
    leasedMessages.map(({ id, attempts }) => ({
      id,
      owner: lease.owner,
      attempts,
      refundAttempt: false,
      changes: [{ to: 'delivered', dueAt: null, event, suppress: null }] as const,
    })),
  );
  if (leasedMessages.length === 0) throw new Error('the queue contains no due message; seed more messages');
  return leasedMessages.length;
}

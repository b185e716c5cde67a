/**
 * Compares PostgreSQL with the embedded store, with 1, 2 and 3 nodes on this machine: accepting, end to end into the sink, claims
 * with 1,000,000 queued, and the cost of an idle node. The server, the nodes, the sink and the load generator share the same cores,
 * so the results show the overhead of sharing, not the gain of more machines.
 */
import { parseDatabaseUrl } from '../src/config/database-url.ts';
import type { Store } from '../src/store/contract.ts';
import { openStore } from '../src/store/open.ts';
import { type Server, startServer } from '../test/rig/postgres-server.ts';
import { type BenchService, command, removeFolder, startPostrider } from './postrider.ts';

const SECRET = '5e'.repeat(32);

interface Loaded {
  readonly perSecond: number;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
}

export interface NodeBench {
  record(measure: string, value: number, unit: string, reach?: string | null): void;
  /** Sends a total number of requests to several nodes at once; resolves to the requests per second and the start time. */
  load(nodes: readonly { readonly port: number; readonly key: string }[], requests: number): Promise<Loaded>;
  withSink<T>(use: (port: number, taken: () => Promise<number>) => Promise<T>): Promise<T>;
  secondsUntilReceived(taken: () => Promise<number>, count: number, begin: () => Promise<Loaded>): Promise<number>;
}

/** Starts nodes on a new database, all with the key of the first. */
async function startNodes(server: Server, count: number, settings: Record<string, string>): Promise<BenchService[]> {
  const url = await server.createDatabase();
  const shared = { POSTRIDER_DATABASE: url, POSTRIDER_SECRET: SECRET, ...settings };
  const first = await startPostrider(shared);
  await command(first.folder, shared, 'account', 'set', 'default', '--volume', '1000000000');
  const nodes = [first];
  while (nodes.length < count) nodes.push({ ...(await startPostrider(shared)), key: first.key });
  return nodes;
}

async function end(nodes: readonly BenchService[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.stop()));
  for (const { folder } of nodes) removeFolder(folder);
}

export async function benchNodes({
  record,
  load,
  withSink,
  secondsUntilReceived: untilTaken,
}: NodeBench): Promise<void> {
  const server = await startServer({ settings: { shared_buffers: '256MB', max_wal_size: '4GB' } });
  try {
    const embedded = await startPostrider({ POSTRIDER_ROLES: 'api' });
    await load([embedded], 10_000);
    for (const count of [1, 2, 3]) {
      const nodes = await startNodes(server, count, { POSTRIDER_ROLES: 'api' });
      await load(nodes, 5_000);
      const { perSecond: theirs } = await load([embedded], 20_000);
      const { perSecond: ours } = await load(nodes, 15_000);
      record(`durable accept on PostgreSQL, ${count} nodes`, ours, '/s');
      record(`durable accept on PostgreSQL, ${count} nodes, over the embedded store`, ours / theirs, 'ratio');
      await end(nodes);
    }
    await end([embedded]);

    await withSink(async (port, taken) => {
      const relay = { POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${port}` };
      const alone = await startPostrider(relay);
      const through = async (nodes: readonly BenchService[], about: number) => {
        const mails = about - (about % nodes.length);
        return mails / (await untilTaken(taken, mails, () => load(nodes, mails)));
      };
      await through([alone], 3_000);
      for (const count of [1, 2, 3]) {
        const nodes = await startNodes(server, count, relay);
        await through(nodes, 2_000);
        const theirs = await through([alone], 8_000);
        const ours = await through(nodes, 6_000);
        record(`end to end on PostgreSQL, ${count} nodes`, ours, '/s');
        record(`end to end on PostgreSQL, ${count} nodes, over the embedded store`, ours / theirs, 'ratio');
        await end(nodes);
      }
      await end([alone]);
    });

    const [small, large] = [await claimRate(server, 20_000), await claimRate(server, 1_000_000)];
    record('claims with settlement on PostgreSQL, 20,000 queued', small, '/s');
    record('claims with settlement on PostgreSQL, 1,000,000 queued', large, '/s');
    record('claims with 1,000,000 queued over 20,000, PostgreSQL', large / small, 'ratio', '0.9');

    const [idle] = await startNodes(server, 1, {});
    if (idle !== undefined) {
      await new Promise((resolve) => setTimeout(resolve, 5_000));
      const before = { cpu: idle.cpuMs(), commits: await commits(server) };
      await new Promise((resolve) => setTimeout(resolve, 20_000));
      record('processor of an idle node on PostgreSQL', (idle.cpuMs() - before.cpu) / 200, '%', 'under 1');
      record('transactions of an idle node on PostgreSQL', ((await commits(server)) - before.commits) / 20, '/s');
      await end([idle]);
    }
  } finally {
    await server.stop();
  }
}

/** Transactions of every database so far. */
async function commits(server: Server): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const { rows } = await server.run('SELECT sum(xact_commit)::int AS n FROM pg_stat_database');
  return Number((rows[0] as { n: number }).n);
}

/** Messages per second claimed in groups of 512 and settled, from a queue of `queued` messages of 1,000 accounts; measured over 10,000. */
async function claimRate(server: Server, queued: number): Promise<number> {
  const url = await server.createDatabase();
  const setting = parseDatabaseUrl(url);
  if (!setting.ok) throw new Error(setting.fault);
  const store = await openStore(setting.value, { exclusive: true });
  const database = new URL(url).pathname.slice(1);
  const id = `lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint - 1000000 + n), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8' || lpad(to_hex(n), 15, '0')`;
  await server.run(
    `INSERT INTO account (name, created_at, revision) SELECT 'a' || n, 1, 1 FROM generate_series(1, 1000) n;
     CREATE TEMP TABLE seed AS SELECT (${id})::uuid AS id, 1 + n % 1000 AS account_id FROM generate_series(1, ${queued}) n;
     INSERT INTO mail_request (id, account_id, key_id, accepted_at, "to", "from", subject)
       SELECT id, account_id, 1, 1, 'r' || account_id || '@example.com', 's@example.org', 'Subject' FROM seed;
     INSERT INTO body (id, account_id, message) SELECT id, account_id, repeat('x', 200) FROM seed;
     INSERT INTO queue (id, account_id, state, lane, due_at, attempts, accepted_at, bytes)
       SELECT id, account_id, 'queued', 0, 1, 0, 1, 200 FROM seed;
     ANALYZE`,
    database,
  );
  const round = async (wanted: number) => {
    const began = performance.now();
    let done = 0;
    while (done < wanted) done += await claimAndSettle(store);
    return (done * 1000) / (performance.now() - began);
  };
  await round(2_000);
  const rate = await round(10_000);
  await store.close();
  return rate;
}

async function claimAndSettle(store: Store): Promise<number> {
  const now = Date.now();
  const lease = { owner: 'bench', until: now + 600_000 };
  const { messages: mails } = await store.claim({ messages: 512, bytes: 16_777_216 }, lease, now);
  const event = { at: now, verb: 'delivered', by: 'bench', detail: null, attempt: null };
  await store.settle(
    mails.map(({ id, attempts }) => ({
      id,
      owner: lease.owner,
      attempts,
      refundAttempt: false,
      changes: [{ to: 'delivered', dueAt: null, event, suppress: null }] as const,
    })),
  );
  if (mails.length === 0) throw new Error('nothing was due');
  return mails.length;
}

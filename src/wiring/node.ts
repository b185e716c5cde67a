/**
 * One node and its place among the others: its name, its time, and whether what it holds is still its own. On the embedded
 * store a service is alone; on PostgreSQL nodes follow the server's clock and watch each other.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { MonotonicClock } from '../clock.ts';
import { synchronizedClock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { NodeIdentity } from '../model/node.ts';
import { type AgeClock, joinCluster, type Membership, SINGLE_NODE, startAgeClock } from '../queue/membership.ts';
import type { NodeStore } from '../store/contract.ts';

/** How long a lone service is listed after its start without a further beat. */
const ALONE_MS = 3_600_000;

export interface ClusterNode {
  readonly name: string;
  readonly clock: MonotonicClock;
  readonly ages: AgeClock;
  readonly membership: Membership;
  /** True where other nodes may share the store. */
  readonly sharesStore: boolean;
  /** Tells the others, and keeps the running time a last time. */
  leave(): Promise<void>;
}

/** A name unique for this start of the process: host, process, chance. */
export function createNodeName(): string {
  return `${hostname().split('.')[0]}-${process.pid}-${randomBytes(3).toString('hex')}`;
}

/** Takes this node's place; rejects where the store takes no writes. `clock` is the machine's own. */
export async function startNode(
  name: string,
  settings: Settings,
  store: Pick<NodeStore, 'recordHeartbeat' | 'removeNode' | 'updateRunningTime'>,
  clock: MonotonicClock,
  failed: (what: string, error: unknown) => void,
): Promise<ClusterNode> {
  const node: NodeIdentity = { name, roles: [...settings.roles], version: ownVersion() };
  if (settings.database.kind === 'sqlite') {
    await store.recordHeartbeat(node, ALONE_MS, clock.now());
    const membership = { ...SINGLE_NODE, leave: () => store.removeNode(name) };
    return withAges({ name, clock, membership, sharesStore: false }, store, failed);
  }
  const { monotonic } = clock;
  const following = synchronizedClock(clock, monotonic);
  const membership = await joinCluster({
    node,
    store,
    clock: following,
    monotonic,
    onStoreTime: following.synchronize,
    onError: failed,
  });
  return withAges({ name, clock: following, membership, sharesStore: true }, store, failed);
}

async function withAges(
  place: Pick<ClusterNode, 'name' | 'clock' | 'membership' | 'sharesStore'>,
  store: Pick<NodeStore, 'recordHeartbeat' | 'removeNode' | 'updateRunningTime'>,
  failed: (what: string, error: unknown) => void,
): Promise<ClusterNode> {
  try {
    const { ages, stop } = await startAgeClock({ clock: place.clock, store, onError: failed });
    const leave = async () => {
      await stop();
      await place.membership.leave();
    };
    return { ...place, ages, leave };
  } catch (error) {
    await place.membership.leave().catch(() => undefined);
    throw error;
  }
}

/** This Postrider's version, as package.json has it. */
function ownVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/**
 * Defines one node of the cluster: its name, its clock and its membership. The membership determines whether the leases
 * of the node are still valid. On the embedded store, a service is the only node. On PostgreSQL, the nodes use the
 * clock of the database server and detect dead nodes by their heartbeats.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { MonotonicClock } from '../clock.ts';
import { createSynchronizedClock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { NodeIdentity } from '../model/node.ts';
import { type AgeClock, joinCluster, type Membership, SINGLE_NODE, startAgeClock } from '../queue/membership.ts';
import type { NodeStore } from '../store/contract.ts';
import { readVersion } from '../version.ts';

/** The liveness timeout of a service on the embedded store, which sends only one heartbeat, at its start. */
const SINGLE_NODE_TTL_MS = 3_600_000;

export interface ClusterNode {
  readonly name: string;
  readonly clock: MonotonicClock;
  readonly ages: AgeClock;
  readonly membership: Membership;
  /** True if other nodes may share the store. */
  readonly sharesStore: boolean;
  /** Stores the running time and removes the node from the cluster. */
  leave(): Promise<void>;
}

/**
 * Returns a name that is unique for this start of the process. The name consists of the host name, the process id and
 * random digits.
 */
export function createNodeName(): string {
  return `${hostname().split('.')[0]}-${process.pid}-${randomBytes(3).toString('hex')}`;
}

/** Adds this node to the cluster. `clock` is the clock of this machine. Rejects if the store cannot write. */
export async function startNode(
  name: string,
  settings: Settings,
  store: Pick<NodeStore, 'recordHeartbeat' | 'removeNode' | 'updateRunningTime'>,
  clock: MonotonicClock,
  reportFailure: (operation: string, error: unknown) => void,
): Promise<ClusterNode> {
  const node: NodeIdentity = { name, roles: [...settings.roles], version: readVersion() };
  if (settings.database.kind === 'sqlite') {
    await store.recordHeartbeat(node, SINGLE_NODE_TTL_MS, clock.now());
    const membership = { ...SINGLE_NODE, leave: () => store.removeNode(name) };
    return withAges({ name, clock, membership, sharesStore: false }, store, reportFailure);
  }
  const { monotonic } = clock;
  const sharedClock = createSynchronizedClock(clock, monotonic);
  const membership = await joinCluster({
    node,
    store,
    clock: sharedClock,
    monotonic,
    onStoreTime: sharedClock.synchronize,
    onError: reportFailure,
  });
  return withAges({ name, clock: sharedClock, membership, sharesStore: true }, store, reportFailure);
}

async function withAges(
  nodeParts: Pick<ClusterNode, 'name' | 'clock' | 'membership' | 'sharesStore'>,
  store: Pick<NodeStore, 'recordHeartbeat' | 'removeNode' | 'updateRunningTime'>,
  reportFailure: (operation: string, error: unknown) => void,
): Promise<ClusterNode> {
  try {
    const { ages, stop } = await startAgeClock({ clock: nodeParts.clock, store, onError: reportFailure });
    const leave = async () => {
      await stop();
      await nodeParts.membership.leave();
    };
    return { ...nodeParts, ages, leave };
  } catch (error) {
    await nodeParts.membership.leave().catch(() => undefined);
    throw error;
  }
}

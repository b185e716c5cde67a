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
import type { DeliveryStatus, NodeIdentity, RefusedReports } from '../model/node.ts';
import {
  type AgeClock,
  joinCluster,
  type Membership,
  repeatHeartbeats,
  SINGLE_NODE,
  startAgeClock,
} from '../queue/membership.ts';
import type { NodeStore } from '../store/contract.ts';
import { readVersion } from '../version.ts';

/** The liveness timeout of a service on the embedded store. */
const SINGLE_NODE_LIVENESS_TIMEOUT_MS = 3_600_000;
/**
 * The heartbeat interval of a service on the embedded store while its refused reports and delivery status do not
 * change.
 */
const SINGLE_NODE_HEARTBEAT_MS = 1_800_000;
/**
 * The interval at which a service on the embedded store checks its refused reports and its delivery status for changes.
 */
const STATUS_CHECK_INTERVAL_MS = 15_000;

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

/**
 * Adds this node to the cluster. `clock` is the clock of this machine. The heartbeats store the results of
 * `readRefusedReports` and `readDelivery`. Rejects if the store cannot write.
 */
export async function startNode(
  name: string,
  settings: Settings,
  store: Pick<NodeStore, 'recordHeartbeat' | 'removeNode' | 'updateRunningTime' | 'listNodes'>,
  clock: MonotonicClock,
  reportFailure: (operation: string, error: unknown) => void,
  readRefusedReports: () => readonly RefusedReports[],
  readDelivery: () => DeliveryStatus | null = () => null,
): Promise<ClusterNode> {
  const node: NodeIdentity = { name, roles: [...settings.roles], version: readVersion() };
  if (settings.database.kind === 'sqlite') {
    const membership = await startSingleNode(node, store, clock, reportFailure, readRefusedReports, readDelivery);
    return addAgeClock({ name, clock, membership, sharesStore: false }, store, reportFailure);
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
    readRefusedReports,
    readDelivery,
  });
  return addAgeClock({ name, clock: sharedClock, membership, sharesStore: true }, store, reportFailure);
}

/**
 * Removes the stored nodes and starts the heartbeats. Only one service uses the embedded store, so each stored node
 * belongs to a process that ended without removing it. A heartbeat is sent if the refused reports or the delivery
 * status changed, and otherwise every 30 minutes.
 */
async function startSingleNode(
  node: NodeIdentity,
  store: Pick<NodeStore, 'recordHeartbeat' | 'removeNode' | 'listNodes'>,
  clock: MonotonicClock,
  reportFailure: (operation: string, error: unknown) => void,
  readRefusedReports: () => readonly RefusedReports[],
  readDelivery: () => DeliveryStatus | null,
): Promise<Membership> {
  for (const { name } of await store.listNodes(clock.now())) await store.removeNode(name);
  let storedReports = '';
  let heartbeatAt = 0;

  async function sendHeartbeat(): Promise<void> {
    const refusedReports = readRefusedReports();
    const delivery = readDelivery();
    const reports = JSON.stringify([refusedReports, delivery]);
    const now = clock.monotonic();
    if (reports === storedReports && now - heartbeatAt < SINGLE_NODE_HEARTBEAT_MS) return;
    await store.recordHeartbeat(node, SINGLE_NODE_LIVENESS_TIMEOUT_MS, clock.now(), refusedReports, delivery);
    storedReports = reports;
    heartbeatAt = now;
  }

  await sendHeartbeat();
  const heartbeats = repeatHeartbeats(clock, STATUS_CHECK_INTERVAL_MS, sendHeartbeat, reportFailure);
  return {
    ...SINGLE_NODE,
    sendStatus: heartbeats.wake,
    async leave() {
      await heartbeats.stop();
      await store.removeNode(node.name);
    },
  };
}

async function addAgeClock(
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

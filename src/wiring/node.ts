/**
 * One node: its name, its clock and its membership. On the embedded store, a service is the only node. On PostgreSQL,
 * the nodes use the clock of the database server and detect dead nodes by their heartbeats.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { createSynchronizedClock, type MonotonicClock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { PublishOf } from '../model/events.ts';
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

const SINGLE_NODE_LIVENESS_TIMEOUT_MS = 3_600_000;
/** On the embedded store, while refused reports and delivery status do not change. */
const SINGLE_NODE_HEARTBEAT_MS = 1_800_000;
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

export interface NodeParts {
  readonly name: string;
  readonly settings: Pick<Settings, 'roles' | 'database'>;
  readonly store: Pick<NodeStore, 'recordHeartbeat' | 'removeNode' | 'updateRunningTime' | 'listNodes'>;
  /** The clock of this machine. */
  readonly clock: MonotonicClock;
  readonly onError: (operation: string, error: unknown) => void;
  /** The heartbeats store both results. */
  readonly readRefusedReports: () => readonly RefusedReports[];
  readonly readDelivery: () => DeliveryStatus | null;
}

/** Returns the function that a component calls if an operation fails but the component continues. */
export function createFailureReporter(
  publish: PublishOf<'node.operation_failed'>,
  clock: { now(): number },
): (operation: string, error: unknown) => void {
  return (operation, error) => publish({ type: 'node.operation_failed', at: clock.now(), operation, error });
}

/** Unique for this start: the host name, the process id and random digits. */
export function createNodeName(): string {
  return `${hostname().split('.')[0]}-${process.pid}-${randomBytes(3).toString('hex')}`;
}

/** Adds this node to the cluster. Rejects if the store cannot write. */
export async function startNode(parts: NodeParts): Promise<ClusterNode> {
  const { name, settings, store, clock: machineClock, onError } = parts;
  const node: NodeIdentity = { name, roles: [...settings.roles], version: readVersion() };
  const sharesStore = settings.database.kind !== 'sqlite';
  const { monotonic } = machineClock;
  const sharedClock = createSynchronizedClock(machineClock, monotonic);
  const clock = sharesStore ? sharedClock : machineClock;
  const membership = sharesStore
    ? await joinCluster({ ...parts, node, clock, monotonic, onStoreTime: sharedClock.synchronize })
    : await startSingleNode(node, parts);
  try {
    const { ages, stop } = await startAgeClock({ clock, store, onError });
    const leave = async () => {
      await stop();
      await membership.leave();
    };
    return { name, clock, ages, membership, sharesStore, leave };
  } catch (error) {
    await membership.leave().catch(() => undefined);
    throw error;
  }
}

/**
 * Only one service uses the embedded store, so each stored node belongs to a process that ended without removing it. A
 * heartbeat is sent if the refused reports or the delivery status changed, and otherwise every 30 minutes.
 */
async function startSingleNode(
  node: NodeIdentity,
  { store, clock, onError, readRefusedReports, readDelivery }: NodeParts,
): Promise<Membership> {
  for (const { name } of await store.listNodes(clock.now())) await store.removeNode(name);
  let storedStatus = '';
  let heartbeatAt = 0;

  async function sendHeartbeat(): Promise<void> {
    const refusedReports = readRefusedReports();
    const delivery = readDelivery();
    const status = JSON.stringify([refusedReports, delivery]);
    const now = clock.monotonic();
    if (status === storedStatus && now - heartbeatAt < SINGLE_NODE_HEARTBEAT_MS) return;
    await store.recordHeartbeat(node, SINGLE_NODE_LIVENESS_TIMEOUT_MS, clock.now(), refusedReports, delivery);
    storedStatus = status;
    heartbeatAt = now;
  }

  await sendHeartbeat();
  const heartbeats = repeatHeartbeats(clock, STATUS_CHECK_INTERVAL_MS, sendHeartbeat, onError);
  return {
    ...SINGLE_NODE,
    sendStatus: heartbeats.wake,
    async leave() {
      await heartbeats.stop();
      await store.removeNode(node.name);
    },
  };
}

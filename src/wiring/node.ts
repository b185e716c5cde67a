/** On the embedded store, a service is the only node. On PostgreSQL, nodes use the clock of the database server. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { createSynchronizedClock, type MonotonicClock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { PublishOf } from '../model/events.ts';
import type { DeliveryStatus, NodeIdentity, RefusedReports } from '../model/node.ts';
import { joinCluster, type Membership, repeatHeartbeats, SINGLE_NODE, startAgeClock } from '../queue/membership.ts';
import type { NodeStore } from '../store/contract.ts';
import { readVersion } from '../version.ts';
import { MAX_CONCURRENT_ATTEMPTS } from '../webhooks/slots.ts';

const SINGLE_NODE_LIVENESS_TIMEOUT_MS = 3_600_000;
/** On the embedded store, while refused reports and delivery status do not change. */
const SINGLE_NODE_HEARTBEAT_MS = 1_800_000;
const STATUS_CHECK_INTERVAL_MS = 15_000;

export type ClusterNode = Awaited<ReturnType<typeof startNode>>;

export interface NodeParts {
  readonly name: string;
  readonly settings: Pick<Settings, 'roles' | 'database'>;
  readonly store: Pick<NodeStore, 'recordHeartbeat' | 'removeNode' | 'updateRunningTime' | 'listNodes'>;
  readonly clock: MonotonicClock;
  readonly onError: (operation: string, error: unknown) => void;
  /** The heartbeats store both results. */
  readonly readRefusedReports: () => readonly RefusedReports[];
  readonly readDelivery: () => DeliveryStatus | null;
}

export function createFailureReporter(
  publish: PublishOf<'node.operation_failed'>,
  clock: { now(): number },
): (operation: string, error: unknown) => void {
  return (operation, error) => publish({ type: 'node.operation_failed', at: clock.now(), operation, error });
}

export function createNodeName(): string {
  return `${hostname().split('.')[0]}-${process.pid}-${randomBytes(3).toString('hex')}`;
}

export async function startNode(parts: NodeParts) {
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
    /** Stores the running time and removes the node from the cluster. */
    const leave = async (): Promise<void> => {
      await stop();
      await membership.leave();
    };
    return { name, clock, ages, membership, sharesStore, leave };
  } catch (error) {
    await membership.leave().catch(() => undefined);
    throw error;
  }
}

/** Each stored node belongs to a process that ended without removing it: only one service uses the store. */
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

// The connections of each listener, which depend on the limit of open files and on what the process needs besides.

export const MAX_CONNECTIONS = { public: 10_000, operator: 1_000, events: 512 } as const;
/** For files and connections of the store, threads, pipes, resolvers, and commands of operators. */
const RESERVED_DESCRIPTORS = 128;
const MIN_CONNECTIONS = 8;
/** Includes a reserve for connections that the SMTP listener refuses. */
const MAX_SMTP_CONNECTIONS = 250;

export function allocateConnections(
  { roles, feedbackListen }: Pick<Settings, 'roles' | 'feedbackListen'>,
  descriptorCount: number,
  concurrency: number,
  warn: (line: string) => void,
): Readonly<Record<keyof typeof MAX_CONNECTIONS, number>> {
  const deliveryCount = roles.has('deliver') ? concurrency + MAX_CONCURRENT_ATTEMPTS : 0;
  const smtpCount = roles.has('feedback') && feedbackListen !== null ? MAX_SMTP_CONNECTIONS : 0;
  const connections = divideDescriptors(descriptorCount, deliveryCount + smtpCount);
  if (connections.public < MAX_CONNECTIONS.public)
    warn(
      `the limit of ${descriptorCount} open files leaves ${connections.public} connections to the public listener and ${connections.operator} to the operator listener; raise it (\`ulimit -n 65536\`, LimitNOFILE=65536)`,
    );
  return connections;
}

/** Each listener gets its maximum, or the same fraction of it. Delivery and the SMTP listener use `otherCount`. */
export function divideDescriptors(limit: number, otherCount: number) {
  const maxTotal = MAX_CONNECTIONS.public + MAX_CONNECTIONS.operator + MAX_CONNECTIONS.events;
  // If the limit is low, half of the descriptors remain for the store and delivery.
  const available = Math.max(limit - RESERVED_DESCRIPTORS - otherCount, limit / 2 - MIN_CONNECTIONS);
  const scale = (maxConnections: number): number =>
    Math.max(MIN_CONNECTIONS, Math.floor(maxConnections * Math.min(1, available / maxTotal)));
  return {
    public: scale(MAX_CONNECTIONS.public),
    operator: scale(MAX_CONNECTIONS.operator),
    events: scale(MAX_CONNECTIONS.events),
  };
}

export function readDescriptorLimit(): number {
  try {
    const line = readFileSync('/proc/self/limits', 'latin1')
      .split('\n')
      .find((candidate) => candidate.startsWith('Max open files'));
    if (line !== undefined) return parseLimit(line.slice('Max open files'.length).trim().split(' ')[0]);
  } catch {
    // Only Linux has this file. On every POSIX system, the report of Node.js contains the limit.
  }
  // Without this option, the report would resolve the host name of each peer.
  Reflect.set(process.report, 'excludeNetwork', true);
  const report = Object(process.report.getReport());
  return parseLimit(String(report.userLimits?.open_files?.soft));
}

function parseLimit(text: string | undefined): number {
  const limit = Number(text);
  return Number.isSafeInteger(limit) && limit > 0 ? limit : Number.POSITIVE_INFINITY;
}

/** A node of an installation: its identity, its share of the throttle and its status. */
import type { RouteStatus } from './route.ts';

export interface NodeIdentity {
  /** Unique for each start of a process. Its leases have this owner. */
  readonly name: string;
  /** The roles, in the order of the setting: `api`, `deliver`, `feedback`, `operator`. */
  readonly roles: readonly string[];
  readonly version: string;
}

export interface NodeStatus extends NodeIdentity {
  readonly startedAt: number;
  /** The time of the last heartbeat and the end of the liveness timeout, by the clock of the store. */
  readonly seenAt: number;
  readonly aliveUntil: number;
  readonly isAlive: boolean;
  /** The delivery status of the node as of its last heartbeat. Null if the node does not deliver. */
  readonly delivery: DeliveryStatus | null;
  readonly refusedReports: readonly RefusedReports[];
}

export interface TokenRequest {
  readonly accountId: number;
  readonly perSecond: number;
  readonly burst: number;
  readonly requested: number;
}

export interface TokenGrant {
  /** A whole number from 0 to `requested`. */
  readonly granted: number;
  readonly remaining: number;
  /** Milliseconds until the bucket contains a whole token. 0 if the bucket contains a whole token now. */
  readonly nextTokenMs: number;
}

// Each heartbeat stores the refused reports and the delivery status.

export const SIGNING_ALARM = 'signing';

export interface Alarm {
  /** The reason for the alarm, for example `configuration` or `signing`. */
  readonly reason: string;
  /** The text of the next hop (untrusted), or for `signing` a text of this service. */
  readonly text: string;
  readonly lastAt: number;
  /** With several routes. */
  readonly route?: string;
}

/** The delivery status of a process. Each heartbeat stores it, so that every process can read it. */
export interface DeliveryStatus {
  /** Alike in order on all nodes: that of the settings. */
  readonly routes: readonly RouteStatus[];
  /** The latest alarm of each reason, newest first. */
  readonly alarms: readonly Alarm[];
}

/** Since the process started, for one reason, also `formatUnmatchedReason`. */
export interface RefusedReports {
  /** The reason, for example `postmark-unauthenticated`. */
  readonly reason: string;
  readonly count: number;
  readonly lastAt: number;
}

/** Of events that match no message. `source` is their channel. */
export function formatUnmatchedReason(source: string): string {
  return `${source}-unmatched`;
}

/** The reason for a 404 response to a path below `/events`: no provider with a configured secret has this path. */
export const UNKNOWN_PATH_REASON = 'events-not-found';

/** The reason for the refusal if a request to the listener for provider events is too slow or is not valid HTTP. */
export const BROKEN_HTTP_REASON = 'http-broken';

export interface RuntimeStatus {
  readonly node: string;
  readonly version: string;
  readonly storeFault: string | null;
  readonly storeRemedy?: string | null;
  readonly delivery: DeliveryStatus | null;
  readonly refusedReports: readonly RefusedReports[];
}

/** As far as the database role can read it. `asynchronous`: a failover may lose acknowledged messages. */
export type Standby = 'none' | 'asynchronous' | 'synchronous' | 'hidden';

export const STANDBY_TEXTS: Readonly<Record<Standby, string>> = {
  none: 'the database server has no standby',
  asynchronous: 'the standby of the database server is asynchronous: a failover may lose acknowledged messages',
  synchronous: 'every commit waits for a synchronous standby of the database server',
  hidden: 'the standby of the database server, if any, is not visible to this role',
};

/**
 * The types of the nodes of an installation, of their shared throttle tokens, and of the runtime status of a process.
 */

/** The identity of one running process. */
export interface NodeIdentity {
  /**
   * The name, which is unique for each start of a process. The leases of this process contain the name as their owner.
   */
  readonly name: string;
  /** The roles, in the order of the setting: `api`, `deliver`, `feedback`, `operator`. */
  readonly roles: readonly string[];
  /** The version of Postrider. */
  readonly version: string;
}

export interface NodeStatus extends NodeIdentity {
  readonly startedAt: number;
  /** The time of the last heartbeat and the end of the liveness timeout, by the clock of the store. */
  readonly seenAt: number;
  readonly aliveUntil: number;
  /** True if the liveness timeout has not expired, by the clock of the store. */
  readonly isAlive: boolean;
  /** The delivery status of the node as of its last heartbeat. Null if the node does not deliver. */
  readonly delivery: DeliveryStatus | null;
  /** The reports and requests that the node refused, as of its last heartbeat. */
  readonly refusedReports: readonly RefusedReports[];
}

/** A request for tokens from the token bucket of one account. */
export interface TokenRequest {
  readonly accountId: number;
  readonly perSecond: number;
  readonly burst: number;
  readonly requested: number;
}

export interface TokenGrant {
  /** A whole number from 0 to `requested`. */
  readonly granted: number;
  /** The number of whole tokens that remain in the bucket. */
  readonly remaining: number;
  /** Milliseconds until the bucket contains a whole token. 0 if the bucket contains a whole token now. */
  readonly nextTokenMs: number;
}

// The runtime status of a process: the delivery, the alarms and the store. Each heartbeat stores the refused reports and
// the delivery status.

/** The reason for an alarm about a message that could not be signed. */
export const SIGNING_ALARM = 'signing';

/** An alarm about a refusal that concerns this service itself, or about a message that could not be signed. */
export interface Alarm {
  /** The reason for the alarm, for example `configuration` or `signing`. */
  readonly reason: string;
  /** The text of the next hop (untrusted), or for `signing` a text of this service. */
  readonly text: string;
  readonly lastAt: number;
}

/** An attempt that failed for a reason that does not concern the message. */
export interface DeliveryFailure {
  /** The reason, the next hop, and the reply or the connection error, on one line. The text is untrusted. */
  readonly text: string;
  readonly at: number;
}

/** The delivery status of a process. Each heartbeat stores it, so that every process can read it. */
export interface DeliveryStatus {
  readonly breaker: { readonly state: 'closed' | 'half-open' | 'open'; readonly retryAt: number | null };
  /** The latest alarm of each reason, newest first. */
  readonly alarms: readonly Alarm[];
  /** The last attempt that failed for a reason that does not concern the message. */
  readonly lastFailure: DeliveryFailure | null;
}

/**
 * The number of feedback reports and provider-event requests that a process refused for one reason since the process
 * started, or the number of events that matched no message (`formatUnmatchedReason`).
 */
export interface RefusedReports {
  /** The reason, for example `postmark-unauthenticated`. */
  readonly reason: string;
  readonly count: number;
  readonly lastAt: number;
}

/**
 * Returns the reason with which events are counted that match no message of this installation. `source` is their
 * channel.
 */
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
  /** The reason why the store cannot be written. Null if the store can be written. */
  readonly storeFault: string | null;
  /** The remedy that the store names, or null. */
  readonly storeRemedy?: string | null;
  /** The delivery status, or null if this process does not deliver. */
  readonly delivery: DeliveryStatus | null;
  readonly refusedReports: readonly RefusedReports[];
}

/**
 * The kind of standby of the database server, as far as the database role of the service can read it. `none`: there is
 * no standby. `synchronous`: every commit waits for a standby. `asynchronous`: a failover may lose acknowledged
 * messages. `hidden`: the role has no permission to read whether a standby exists.
 */
export type Standby = 'none' | 'asynchronous' | 'synchronous' | 'hidden';

/** The text that describes each kind of standby to an operator. */
export const STANDBY_TEXTS: Readonly<Record<Standby, string>> = {
  none: 'the database server has no standby',
  asynchronous: 'the standby of the database server is asynchronous: a failover may lose acknowledged messages',
  synchronous: 'every commit waits for a synchronous standby of the database server',
  hidden: 'the standby of the database server, if any, is not visible to this role',
};

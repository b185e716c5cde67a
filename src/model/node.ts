/** Nodes of an installation, the throttle tokens that they share, and the runtime status of each. Pure. */

/** One running process. */
export interface NodeIdentity {
  /** Unique for each start of a process; the owner of its leases. */
  readonly name: string;
  /** In the order of the setting: `api`, `deliver`, `feedback`, `operator`. */
  readonly roles: readonly string[];
  /** Postrider's version. */
  readonly version: string;
}

export interface NodeStatus extends NodeIdentity {
  readonly startedAt: number;
  /** When it last said that it lives, and until when it counts as alive without saying so again; by the store's clock. */
  readonly seenAt: number;
  readonly aliveUntil: number;
}

/** Tokens wanted from one account's bucket. */
export interface TokenRequest {
  readonly accountId: number;
  readonly perSecond: number;
  readonly burst: number;
  readonly requested: number;
}

export interface TokensGranted {
  /** 0 to `wanted`, whole. */
  readonly granted: number;
  /** Whole tokens left in the bucket. */
  readonly left: number;
  /** How long until the bucket holds a whole token, in ms; 0 where it does. */
  readonly nextMs: number;
}

// What a running service knows of itself and no store tells: its next hop, its alarms, whether its store commits.

/** The reason of an alarm that is no refusal by the next hop. */
export const SIGNING_ALARM = 'signing';

/** A refusal that is about this service itself, or a message that could not be signed. */
export interface Alarm {
  /** Such as `configuration`, or `signing`. */
  readonly reason: string;
  /** The next hop's own words, untrusted; for `signing` this service's. */
  readonly text: string;
  readonly lastAt: number;
}

/** An attempt that failed for a reason other than the message. */
export interface DeliveryFailure {
  /** With the next hop's own words; untrusted. */
  readonly text: string;
  readonly at: number;
}

/** How the deliveries of this process fare. */
export interface DeliveryStatus {
  readonly breaker: { readonly state: 'closed' | 'half-open' | 'open'; readonly retryAt: number | null };
  /** The last of each reason, the newest first. */
  readonly alarms: readonly Alarm[];
  /** The last attempt that failed for a reason which is not a message's own. */
  readonly lastFailure: DeliveryFailure | null;
}

export interface RuntimeStatus {
  readonly node: string;
  readonly version: string;
  /** Why the store cannot be written, or null. */
  readonly storeFault: string | null;
  /** What to do about it where the store says so itself, or null. */
  readonly storeRemedy?: string | null;
  /** Null where this process does not deliver. */
  readonly delivery: DeliveryStatus | null;
}

/** Nodes of an installation, and the throttle tokens that they share. */

/** One running process. */
export interface NodeBeat {
  /** Unique for each start of a process; the owner of its leases. */
  readonly name: string;
  /** In the order of the setting: `api`, `deliver`, `feedback`, `operator`. */
  readonly roles: readonly string[];
  /** Postrider's version. */
  readonly version: string;
}

export interface NodeStanding extends NodeBeat {
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
  readonly wanted: number;
}

export interface TokensGranted {
  /** 0 to `wanted`, whole. */
  readonly granted: number;
  /** Whole tokens left in the bucket. */
  readonly left: number;
  /** How long until the bucket holds a whole token, in ms; 0 where it does. */
  readonly nextMs: number;
}

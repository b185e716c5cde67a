/**
 * The store contract's part for installations of more than one node: who is alive, and throttles that hold on all nodes
 * together. Held by the same suite.
 */
import type { RunningTime } from '../model/running-time.ts';

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
  /** Whole tokens left in the bucket for whoever comes next. */
  readonly left: number;
  /** How long until the bucket holds a whole token, in ms; 0 where it does. */
  readonly nextMs: number;
}

export interface NodesStore {
  /**
   * Reads the running time, advances it (`advanceRunningTime`) to the store's own time (the database server's where nodes
   * share one, else `now`), and writes it back, in one transaction. Resolves to what it wrote.
   */
  keepRunningTime(passedMs: number, now: number): Promise<RunningTime>;
  /**
   * Says that this node lives, and will for `ttlMs` without saying so again. Resolves to the store's own time, in
   * milliseconds since the epoch: the database server's where nodes share one, else `now`.
   */
  beat(node: NodeBeat, ttlMs: number, now: number): Promise<number>;
  /** Says that this node ends: what it still holds may be taken over at once. */
  leave(name: string): Promise<void>;
  /** Those alive, and those that died within the last hour, by name. */
  listNodes(now: number): Promise<readonly NodeStanding[]>;
  /**
   * Takes tokens out of the buckets that all nodes share, by the store's own time; a bucket not seen before is full. One
   * whose limit has changed keeps its tokens as far as they fit, and a full one stays full.
   */
  takeTokens(batch: readonly TokenRequest[], now: number): Promise<readonly TokensGranted[]>;
}

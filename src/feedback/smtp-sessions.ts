/**
 * The open sessions of the feedback listener, and which of them makes room for a new one when it is full: the idlest of those
 * that have not yet given a valid recipient, then of those for a role mailbox, which anybody can name. A session for a return
 * path is ended only after it has been idle for a minute, one whose report is being recorded never.
 */
import { peerNetworkOf } from '../model/address.ts';

/** Sessions of one peer, and of all. */
export const MAX_SESSIONS = { perPeer: 20, total: 200 } as const;
/** After so long a session of a peer that has all of its own makes room for that peer's next one. */
const OWN_IDLE_MS = 10_000;
const RETURN_PATH_IDLE_MS = 60_000;

/** `new`: no valid recipient yet, or the last message is over. */
export type SessionStage = 'new' | 'role' | 'return-path' | 'recording';

export interface OpenSession {
  /** IP address. */
  readonly address: string;
  stage: SessionStage;
  /** When the peer sent something, in ms. */
  lastActiveAt: number;
  /** Ends the session in favour of another one. */
  readonly evict: () => void;
}

export interface OpenSessions {
  /** True where it may stay, which may end another one; `leave` must follow then. */
  admit(visit: OpenSession, now: number): boolean;
  remove(visit: OpenSession): void;
}

export function createOpenSessions(): OpenSessions {
  const visits = new Set<OpenSession>();
  const byPeer = new Map<string, Set<OpenSession>>();

  function leave(visit: OpenSession): void {
    if (!visits.delete(visit)) return;
    const peer = peerNetworkOf(visit.address);
    const own = byPeer.get(peer);
    own?.delete(visit);
    if (own?.size === 0) byPeer.delete(peer);
  }

  /** True where one of them has made room. */
  function evictOne(from: Iterable<OpenSession>, now: number, leastIdleMs: number): boolean {
    let found: OpenSession | null = null;
    for (const visit of from) {
      // A clock that is set back makes nobody busy.
      const idleMs = Math.max(0, now - visit.lastActiveAt);
      if (idleMs < Math.max(leastIdleMs, LEAST_IDLE_MS[visit.stage])) continue;
      if (found === null || goesBefore(visit, found)) found = visit;
    }
    if (found === null) return false;
    leave(found);
    found.evict();
    return true;
  }

  return {
    admit(visit, now) {
      const peer = peerNetworkOf(visit.address);
      const own = byPeer.get(peer) ?? new Set<OpenSession>();
      if (own.size >= MAX_SESSIONS.perPeer && !evictOne(own, now, OWN_IDLE_MS)) return false;
      if (visits.size >= MAX_SESSIONS.total && !evictOne(visits, now, 0)) return false;
      visits.add(visit);
      // Leaving may have taken the peer's own set away.
      byPeer.set(peer, own.add(visit));
      return true;
    },
    remove: leave,
  };
}

const LEAST_IDLE_MS: Readonly<Record<SessionStage, number>> = {
  new: 0,
  role: 0,
  'return-path': RETURN_PATH_IDLE_MS,
  recording: Number.POSITIVE_INFINITY,
};
const ORDER: Readonly<Record<SessionStage, number>> = { new: 0, role: 1, 'return-path': 2, recording: 3 };

function goesBefore(one: OpenSession, other: OpenSession): boolean {
  const order = ORDER[one.stage] - ORDER[other.stage];
  return order === 0 ? one.lastActiveAt < other.lastActiveAt : order < 0;
}

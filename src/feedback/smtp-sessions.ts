/**
 * Manages the open sessions of the feedback listener. When the limit is reached, a new session evicts the session that has been
 * idle longest: first among sessions without a valid recipient, then among sessions for a role mailbox. A session for a return
 * path is evicted only after one minute without activity. A session whose report is being recorded is never evicted.
 */
import { toPeerNetwork } from '../model/address.ts';

/** Maximum number of sessions per peer and in total. */
export const MAX_SESSIONS = { perPeer: 20, total: 200 } as const;
/** If a peer has reached its limit, a new session of the peer evicts a session of the peer that has been idle for this time. */
const MIN_PEER_IDLE_MS = 10_000;
const MIN_RETURN_PATH_IDLE_MS = 60_000;

/** `new`: there is no valid recipient yet, or the last message is complete. */
export type SessionStage = 'new' | 'role' | 'return-path' | 'recording';

export interface OpenSession {
  /** IP address. */
  readonly address: string;
  stage: SessionStage;
  /** The time when the peer last sent a byte, in ms. */
  lastActiveAt: number;
  /** Ends the session. */
  readonly evict: () => void;
}

export interface OpenSessions {
  /** Admits a session, which may evict another one. When it returns true, the caller must remove the session at its end. */
  admit(session: OpenSession, now: number): boolean;
  remove(session: OpenSession): void;
}

export function createOpenSessions(): OpenSessions {
  const sessions = new Set<OpenSession>();
  const byPeer = new Map<string, Set<OpenSession>>();

  function removeSession(session: OpenSession): void {
    if (!sessions.delete(session)) return;
    const peer = toPeerNetwork(session.address);
    const peerSessions = byPeer.get(peer);
    peerSessions?.delete(session);
    if (peerSessions?.size === 0) byPeer.delete(peer);
  }

  /** Evicts one session. Returns false when no session may be evicted. */
  function evictOne(candidates: Iterable<OpenSession>, now: number, minIdleMs: number): boolean {
    let candidate: OpenSession | null = null;
    for (const session of candidates) {
      // The clock may have been set back.
      const idleMs = Math.max(0, now - session.lastActiveAt);
      if (idleMs < Math.max(minIdleMs, MIN_IDLE_MS[session.stage])) continue;
      if (candidate === null || isEvictedBefore(session, candidate)) candidate = session;
    }
    if (candidate === null) return false;
    removeSession(candidate);
    candidate.evict();
    return true;
  }

  return {
    admit(session, now) {
      const peer = toPeerNetwork(session.address);
      const peerSessions = byPeer.get(peer) ?? new Set<OpenSession>();
      if (peerSessions.size >= MAX_SESSIONS.perPeer && !evictOne(peerSessions, now, MIN_PEER_IDLE_MS)) return false;
      if (sessions.size >= MAX_SESSIONS.total && !evictOne(sessions, now, 0)) return false;
      sessions.add(session);
      // The eviction may have removed the peer's set.
      byPeer.set(peer, peerSessions.add(session));
      return true;
    },
    remove: removeSession,
  };
}

const MIN_IDLE_MS: Readonly<Record<SessionStage, number>> = {
  new: 0,
  role: 0,
  'return-path': MIN_RETURN_PATH_IDLE_MS,
  recording: Number.POSITIVE_INFINITY,
};
const EVICTION_ORDER: Readonly<Record<SessionStage, number>> = { new: 0, role: 1, 'return-path': 2, recording: 3 };

function isEvictedBefore(one: OpenSession, other: OpenSession): boolean {
  const order = EVICTION_ORDER[one.stage] - EVICTION_ORDER[other.stage];
  return order === 0 ? one.lastActiveAt < other.lastActiveAt : order < 0;
}

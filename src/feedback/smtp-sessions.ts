/**
 * Manages the open sessions of the feedback listener. When a limit on the number of sessions is reached, a new session
 * evicts an open session: one without a valid recipient, or if there is none, one for a role mailbox, or if there is
 * none, one for a return path. Among several such sessions, the session that has been idle longest is evicted. A
 * session for a return path is evicted only after one minute without activity. A session whose report is being recorded
 * is never evicted.
 */
import { toPeerNetwork } from '../model/address.ts';

/** Maximum number of sessions per peer and in total. */
export const MAX_SESSIONS = { perPeer: 20, total: 200 } as const;
/** Minimum idle time of a session that a new session of the same peer can evict when the peer has reached its limit. */
const MIN_PEER_IDLE_MS = 10_000;
const MIN_RETURN_PATH_IDLE_MS = 60_000;

/** The stage of a session. `new`: the current message has no valid recipient yet. */
export type SessionStage = 'new' | 'role' | 'return-path' | 'recording';

export interface OpenSession {
  /** The IP address of the client. */
  readonly address: string;
  stage: SessionStage;
  /** The time when the peer last sent a byte, in milliseconds since the epoch. */
  lastActiveAt: number;
  /** Ends the session. */
  readonly evict: () => void;
}

export interface SessionTable {
  /**
   * Admits a session. The admission may evict an open session. Returns false if the session is refused. The caller must
   * remove an admitted session when it ends.
   */
  admit(session: OpenSession, now: number): boolean;
  remove(session: OpenSession): void;
}

export function createSessionTable(): SessionTable {
  const sessions = new Set<OpenSession>();
  const sessionsByPeer = new Map<string, Set<OpenSession>>();

  function removeSession(session: OpenSession): void {
    if (!sessions.delete(session)) return;
    const peer = toPeerNetwork(session.address);
    const peerSessions = sessionsByPeer.get(peer);
    peerSessions?.delete(session);
    if (peerSessions?.size === 0) sessionsByPeer.delete(peer);
  }

  /** Evicts one of the candidates. Returns false if no candidate may be evicted. */
  function evictOne(candidates: Iterable<OpenSession>, now: number, minIdleMs: number): boolean {
    let candidate: OpenSession | null = null;
    for (const session of candidates) {
      // The difference is negative if the clock was set back.
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
      const peerSessions = sessionsByPeer.get(peer) ?? new Set<OpenSession>();
      if (peerSessions.size >= MAX_SESSIONS.perPeer && !evictOne(peerSessions, now, MIN_PEER_IDLE_MS)) return false;
      if (sessions.size >= MAX_SESSIONS.total && !evictOne(sessions, now, 0)) return false;
      sessions.add(session);
      // The eviction may have removed the set of the peer's sessions.
      sessionsByPeer.set(peer, peerSessions.add(session));
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

function isEvictedBefore(session: OpenSession, otherSession: OpenSession): boolean {
  const order = EVICTION_ORDER[session.stage] - EVICTION_ORDER[otherSession.stage];
  return order === 0 ? session.lastActiveAt < otherSession.lastActiveAt : order < 0;
}

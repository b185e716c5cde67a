/** Tests which session is evicted for a new session. */
import { expect, test } from 'vitest';
import {
  createSessionTable,
  MAX_SESSIONS,
  type OpenSession,
  type SessionStage,
} from '../../../src/feedback/smtp-sessions.ts';

const MINUTE_MS = 60_000;

function createRig() {
  const sessions = createSessionTable();
  const evictedSessions: OpenSession[] = [];
  const createSession = (address: string, stage: SessionStage, activeAt: number): OpenSession => {
    const session: OpenSession = {
      address,
      stage,
      lastActiveAt: activeAt,
      evict: () => void evictedSessions.push(session),
    };
    return session;
  };
  /** Admits `count` sessions, with as many peers as necessary. */
  const admitSessions = (count: number, stage: SessionStage, activeAt: number): OpenSession[] =>
    Array.from({ length: count }, (_, n) => {
      const session = createSession(`192.0.2.${Math.floor(n / MAX_SESSIONS.perPeer)}`, stage, activeAt + n);
      expect(sessions.admit(session, MINUTE_MS)).toBe(true);
      return session;
    });
  return { sessions, evictedSessions, createSession, admitSessions };
}

test('at the limit, the session without a valid recipient that has been idle longest is evicted', () => {
  const { sessions, evictedSessions, createSession, admitSessions } = createRig();
  const addedSessions = admitSessions(MAX_SESSIONS.total, 'new', 1_000);
  const longestIdle = addedSessions[77];
  if (longestIdle !== undefined) longestIdle.lastActiveAt = 5;
  expect(sessions.admit(createSession('198.51.100.1', 'new', MINUTE_MS), MINUTE_MS)).toBe(true);
  expect(evictedSessions).toEqual([longestIdle]);
});

test('sessions without a recipient are evicted first, then those for a role mailbox, then those for return paths', () => {
  const { sessions, evictedSessions, createSession, admitSessions } = createRig();
  const addedSessions = admitSessions(MAX_SESSIONS.total, 'return-path', 0);
  const [roleSession, newSession] = [addedSessions[3], addedSessions[5]];
  if (roleSession === undefined || newSession === undefined) throw new Error('no sessions');
  Object.assign(roleSession, { stage: 'role', lastActiveAt: MINUTE_MS });
  Object.assign(newSession, { stage: 'new', lastActiveAt: MINUTE_MS });
  for (let n = 1; n <= 2; n += 1) sessions.admit(createSession(`198.51.100.${n}`, 'recording', MINUTE_MS), MINUTE_MS);
  expect(evictedSessions).toEqual([newSession, roleSession]);
});

test('a session for a return path is evicted only after one idle minute, and a session whose message is being recorded is never evicted', () => {
  const { sessions, evictedSessions, createSession, admitSessions } = createRig();
  admitSessions(MAX_SESSIONS.total - 1, 'recording', 0);
  const returnPathSession = createSession('198.51.100.1', 'return-path', MINUTE_MS);
  sessions.admit(returnPathSession, MINUTE_MS);
  const nextSession = createSession('198.51.100.2', 'recording', MINUTE_MS);
  expect(sessions.admit(nextSession, MINUTE_MS + 1)).toBe(false);
  expect(sessions.admit(nextSession, 2 * MINUTE_MS)).toBe(true);
  expect(evictedSessions).toEqual([returnPathSession]);
  expect(sessions.admit(createSession('198.51.100.3', 'new', 2 * MINUTE_MS), 1_000 * MINUTE_MS)).toBe(false);
});

test('an IPv6 /64 network has the session limit of one peer, and at the limit an idle session of the network is evicted for a new session', () => {
  const { sessions, evictedSessions, createSession } = createRig();
  const admitPeer = (n: number, now: number) =>
    sessions.admit(createSession(`2001:db8::${n.toString(16)}`, 'new', now), now);
  for (let n = 0; n < MAX_SESSIONS.perPeer; n += 1) expect(admitPeer(n, 0)).toBe(true);
  expect(admitPeer(100, 5_000)).toBe(false);
  expect(sessions.admit(createSession('2001:db8:0:1::1', 'new', 0), 5_000)).toBe(true);
  expect(admitPeer(101, 10_000)).toBe(true);
  expect(evictedSessions).toHaveLength(1);
});

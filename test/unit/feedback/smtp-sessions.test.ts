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
  const openSession = (address: string, stage: SessionStage, activeAt: number): OpenSession => {
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
      const session = openSession(`192.0.2.${Math.floor(n / MAX_SESSIONS.perPeer)}`, stage, activeAt + n);
      expect(sessions.admit(session, MINUTE_MS)).toBe(true);
      return session;
    });
  return { sessions, evicted: evictedSessions, openSession, fill: admitSessions };
}

test('at the limit, the session without a valid recipient that has been idle longest is evicted', () => {
  const { sessions, evicted, openSession, fill } = createRig();
  const addedSessions = fill(MAX_SESSIONS.total, 'new', 1_000);
  const longestIdle = addedSessions[77];
  if (longestIdle !== undefined) longestIdle.lastActiveAt = 5;
  expect(sessions.admit(openSession('198.51.100.1', 'new', MINUTE_MS), MINUTE_MS)).toBe(true);
  expect(evicted).toEqual([longestIdle]);
});

test('sessions without a recipient are evicted first, then those for a role mailbox, then those for return paths', () => {
  const { sessions, evicted, openSession, fill } = createRig();
  const addedSessions = fill(MAX_SESSIONS.total, 'return-path', 0);
  const [role, newSession] = [addedSessions[3], addedSessions[5]];
  if (role === undefined || newSession === undefined) throw new Error('no sessions');
  Object.assign(role, { stage: 'role', lastActiveAt: MINUTE_MS });
  Object.assign(newSession, { stage: 'new', lastActiveAt: MINUTE_MS });
  for (let n = 1; n <= 2; n += 1) sessions.admit(openSession(`198.51.100.${n}`, 'recording', MINUTE_MS), MINUTE_MS);
  expect(evicted).toEqual([newSession, role]);
});

test('a session for a return path is evicted only after one idle minute, and a session whose message is being recorded is never evicted', () => {
  const { sessions, evicted, openSession, fill } = createRig();
  fill(MAX_SESSIONS.total - 1, 'recording', 0);
  const returnPathSession = openSession('198.51.100.1', 'return-path', MINUTE_MS);
  sessions.admit(returnPathSession, MINUTE_MS);
  const nextSession = openSession('198.51.100.2', 'recording', MINUTE_MS);
  expect(sessions.admit(nextSession, MINUTE_MS + 1)).toBe(false);
  expect(sessions.admit(nextSession, 2 * MINUTE_MS)).toBe(true);
  expect(evicted).toEqual([returnPathSession]);
  expect(sessions.admit(openSession('198.51.100.3', 'new', 2 * MINUTE_MS), 1_000 * MINUTE_MS)).toBe(false);
});

test('a peer or an IPv6 /64 network has a limit, and its idle session is evicted for its next session', () => {
  const { sessions, evicted, openSession } = createRig();
  const admitPeer = (n: number, now: number) =>
    sessions.admit(openSession(`2001:db8::${n.toString(16)}`, 'new', now), now);
  for (let n = 0; n < MAX_SESSIONS.perPeer; n += 1) expect(admitPeer(n, 0)).toBe(true);
  expect(admitPeer(100, 5_000)).toBe(false);
  expect(sessions.admit(openSession('2001:db8:0:1::1', 'new', 0), 5_000)).toBe(true);
  expect(admitPeer(101, 10_000)).toBe(true);
  expect(evicted).toHaveLength(1);
});

test('removing a session more than once admits only one new session', () => {
  const { sessions, openSession } = createRig();
  const addedSessions = Array.from({ length: MAX_SESSIONS.perPeer }, () => openSession('192.0.2.1', 'new', 0));
  for (const session of addedSessions) sessions.admit(session, 0);
  const [firstSession] = addedSessions;
  if (firstSession !== undefined) for (let n = 0; n < 3; n += 1) sessions.remove(firstSession);
  expect(sessions.admit(openSession('192.0.2.1', 'new', 0), 0)).toBe(true);
  expect(sessions.admit(openSession('192.0.2.1', 'new', 0), 0)).toBe(false);
});

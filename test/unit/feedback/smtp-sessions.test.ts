/** Which session makes room for another one. */
import { expect, test } from 'vitest';
import {
  createOpenSessions,
  MAX_SESSIONS,
  type OpenSession,
  type SessionStage,
} from '../../../src/feedback/smtp-sessions.ts';

const MINUTE = 60_000;

function rig() {
  const visits = createOpenSessions();
  const evicted: OpenSession[] = [];
  const visit = (address: string, stage: SessionStage, activeAt: number): OpenSession => {
    const made: OpenSession = { address, stage, lastActiveAt: activeAt, evict: () => void evicted.push(made) };
    return made;
  };
  /** Enters so many sessions of as many peers as it takes. */
  const fill = (count: number, stage: SessionStage, activeAt: number): OpenSession[] =>
    Array.from({ length: count }, (_, n) => {
      const made = visit(`192.0.2.${Math.floor(n / MAX_SESSIONS.perPeer)}`, stage, activeAt + n);
      expect(visits.admit(made, MINUTE)).toBe(true);
      return made;
    });
  return { visits, evicted, visit, fill };
}

test('when all are taken the idlest without a valid recipient makes room', () => {
  const { visits, evicted, visit, fill } = rig();
  const all = fill(MAX_SESSIONS.total, 'new', 1_000);
  const idlest = all[77];
  if (idlest !== undefined) idlest.lastActiveAt = 5;
  expect(visits.admit(visit('198.51.100.1', 'new', MINUTE), MINUTE)).toBe(true);
  expect(evicted).toEqual([idlest]);
});

test('sessions without a recipient go before those for a role mailbox, and those before return paths', () => {
  const { visits, evicted, visit, fill } = rig();
  const all = fill(MAX_SESSIONS.total, 'return-path', 0);
  const [role, fresh] = [all[3], all[5]];
  if (role === undefined || fresh === undefined) throw new Error('no sessions');
  Object.assign(role, { stage: 'role', activeAt: MINUTE });
  Object.assign(fresh, { stage: 'new', activeAt: MINUTE });
  for (let n = 1; n <= 2; n += 1) visits.admit(visit(`198.51.100.${n}`, 'recording', MINUTE), MINUTE);
  expect(evicted).toEqual([fresh, role]);
});

test('a session for a return path makes room only after a minute, one that is being recorded never', () => {
  const { visits, evicted, visit, fill } = rig();
  fill(MAX_SESSIONS.total - 1, 'recording', 0);
  const stalled = visit('198.51.100.1', 'return-path', MINUTE);
  visits.admit(stalled, MINUTE);
  const next = visit('198.51.100.2', 'recording', MINUTE);
  expect(visits.admit(next, MINUTE + 1)).toBe(false);
  expect(visits.admit(next, 2 * MINUTE)).toBe(true);
  expect(evicted).toEqual([stalled]);
  expect(visits.admit(visit('198.51.100.3', 'new', 2 * MINUTE), 1_000 * MINUTE)).toBe(false);
});

test('a peer, or a /64 of IPv6, has its share; what it left idle makes room for its own next one', () => {
  const { visits, evicted, visit } = rig();
  const enter = (n: number, now: number) => visits.admit(visit(`2001:db8::${n.toString(16)}`, 'new', now), now);
  for (let n = 0; n < MAX_SESSIONS.perPeer; n += 1) expect(enter(n, 0)).toBe(true);
  expect(enter(100, 5_000)).toBe(false);
  expect(visits.admit(visit('2001:db8:0:1::1', 'new', 0), 5_000)).toBe(true);
  expect(enter(101, 10_000)).toBe(true);
  expect(evicted).toHaveLength(1);
});

test('who leaves makes room, once', () => {
  const { visits, visit } = rig();
  const all = Array.from({ length: MAX_SESSIONS.perPeer }, () => visit('192.0.2.1', 'new', 0));
  for (const one of all) visits.admit(one, 0);
  const [first] = all;
  if (first !== undefined) for (let n = 0; n < 3; n += 1) visits.remove(first);
  expect(visits.admit(visit('192.0.2.1', 'new', 0), 0)).toBe(true);
  expect(visits.admit(visit('192.0.2.1', 'new', 0), 0)).toBe(false);
});

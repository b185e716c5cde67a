import { expect, test } from 'vitest';
import { createSessions, SESSION_LIFETIME_MS, TICKET_LIFETIME_MS } from '../../../src/operator/sessions.ts';

const KEY = Buffer.alloc(32, 7);
const NOW = 1_800_000_000_000;

test('a session is valid only with its cookie and its secret, until its expiry, on every node that has the same key', () => {
  const { cookie, secret } = createSessions(KEY, false).create(NOW);
  const otherNode = createSessions(KEY, false);
  expect(otherNode.verify(cookie, secret, NOW)).toBe(true);
  // The clocks of nodes may differ slightly.
  expect(otherNode.verify(cookie, secret, NOW - 1_000)).toBe(true);
  expect(otherNode.verify(cookie, secret, NOW + SESSION_LIFETIME_MS - 1)).toBe(true);
  expect(otherNode.verify(cookie, secret, NOW + SESSION_LIFETIME_MS)).toBe(false);
  expect(otherNode.verify(cookie, secret, NOW - SESSION_LIFETIME_MS)).toBe(false);
  expect(createSessions(Buffer.alloc(32, 8), false).verify(cookie, secret, NOW)).toBe(false);
  for (const wrongSecret of ['', `${secret}x`, cookie]) expect(otherNode.verify(cookie, wrongSecret, NOW)).toBe(false);
  expect(cookie).not.toContain(secret);
});

test('a ticket is valid for 30 s, for its path and together with the cookie of its session', () => {
  const sessions = createSessions(KEY, false);
  const [firstSession, secondSession] = [sessions.create(NOW), sessions.create(NOW)];
  const ticket = sessions.createTicket(firstSession.cookie, '/a', NOW);
  expect(createSessions(KEY, false).verifyTicket(ticket, firstSession.cookie, '/a', NOW)).toBe(true);
  expect(sessions.verifyTicket(ticket, firstSession.cookie, '/b', NOW)).toBe(false);
  expect(sessions.verifyTicket(ticket, secondSession.cookie, '/a', NOW)).toBe(false);
  expect(sessions.verifyTicket(ticket, firstSession.cookie, '/a', NOW + TICKET_LIFETIME_MS)).toBe(false);
  expect(
    sessions.verifyTicket(`${NOW + 2 * TICKET_LIFETIME_MS}.${ticket.split('.')[1]}`, firstSession.cookie, '/a', NOW),
  ).toBe(false);
  for (const invalidTicket of ['', '.', 'x', `${NOW + 1}.`])
    expect(sessions.verifyTicket(invalidTicket, firstSession.cookie, '/a', NOW)).toBe(false);
});

import { expect, test } from 'vitest';
import { CONNECTIONS, createPeerLimits, MESSAGES, ROLE_MESSAGES } from '../../../src/feedback/smtp-limits.ts';
import { peerOf } from '../../../src/record/peer.ts';

test('one address has so many connections, all together so many, and each is free again once left', () => {
  const limits = createPeerLimits();
  const enter = (address: string, count: number) =>
    Array.from({ length: count }, () => limits.enter(address)).filter(Boolean).length;
  expect(enter('192.0.2.1', CONNECTIONS.each + 5)).toBe(CONNECTIONS.each);
  for (let n = 2; n <= CONNECTIONS.all / CONNECTIONS.each; n += 1)
    expect(enter(`192.0.2.${n}`, CONNECTIONS.each)).toBe(CONNECTIONS.each);
  expect(limits.enter('192.0.2.200')).toBe(false);
  limits.leave('192.0.2.1');
  limits.leave('192.0.2.201');
  expect(limits.enter('192.0.2.200')).toBe(true);
  expect(limits.enter('192.0.2.201')).toBe(false);
});

test('one address sends so many messages at once, then so many a second; others are not held up', () => {
  const limits = createPeerLimits();
  const send = (count: number, now: number, address = '192.0.2.1') =>
    Array.from({ length: count }, () => limits.message(address, now)).filter(Boolean).length;
  expect(send(MESSAGES.burst + 10, 0)).toBe(MESSAGES.burst);
  expect(send(1, 0, '192.0.2.2')).toBe(1);
  expect(send(1_000, 1_000)).toBe(MESSAGES.perSecond);
  expect(send(1_000, 500)).toBe(0);
  expect(send(MESSAGES.burst + 10, 3_600_000)).toBe(MESSAGES.burst);
});

test('of more addresses than are remembered the idle ones are forgotten, and a busy one keeps its limit', () => {
  const limits = createPeerLimits();
  for (let n = 0; n < 9_999; n += 1) limits.message(`idle ${n}`, 0);
  for (let n = 0; n < MESSAGES.burst; n += 1) limits.message('busy', 60_000);
  for (let n = 0; n < 5_000; n += 1) limits.message(`new ${n}`, 60_000);
  expect(limits.message('busy', 60_001)).toBe(false);
  expect(limits.message('busy', 60_100)).toBe(true);
});

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2::1', '2001:db8:1:2::/64'],
  ['2001:0db8:0001:0002::1', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
])('%s is the peer %s', (address, peer) => {
  expect(peerOf(address)).toBe(peer);
});

test('a network of IPv6 addresses has the limits of one address', () => {
  const limits = createPeerLimits();
  const from = (n: number) => `2001:db8:1:2::${n.toString(16)}`;
  const count = (run: (n: number) => boolean) => Array.from({ length: 1_000 }, (_, n) => run(n)).filter(Boolean).length;
  expect(count((n) => limits.enter(from(n)))).toBe(CONNECTIONS.each);
  expect(count((n) => limits.message(from(n), 0))).toBe(MESSAGES.burst);
});

test('role mailboxes take so much from all together', () => {
  const limits = createPeerLimits();
  const taken = (now: number) => Array.from({ length: 100 }, () => limits.roleMessage(now)).filter(Boolean).length;
  expect([taken(1_000_000), taken(1_010_000)]).toEqual([ROLE_MESSAGES.burst, 10]);
});

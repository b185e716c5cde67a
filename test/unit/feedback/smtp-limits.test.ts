import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  createPeerLimits,
  NETWORK_STORED_MESSAGE_RATE,
  PEER_MESSAGE_RATE,
  PEER_ROLE_MESSAGE_RATE,
  RETURN_PATH_MESSAGE_RATE,
  STORED_MESSAGE_RATE,
} from '../../../src/feedback/smtp-limits.ts';
import { toPeerNetwork } from '../../../src/model/address.ts';

const ROLE = { kind: 'role' } as const;
/** Returns the return path of a message, by default of a message that no other call names. */
const createReturnPath = (id: string = randomUUID()) => ({ kind: 'return-path', id }) as const;

test('an address may send a burst and then a limited number of messages per second, independently of other addresses', () => {
  const limits = createPeerLimits();
  const sendMessages = (count: number, now: number, address = '192.0.2.1') =>
    Array.from({ length: count }, () => limits.consumeMessageTokens(address, createReturnPath(), now)).filter(Boolean)
      .length;
  expect(sendMessages(PEER_MESSAGE_RATE.burst + 10, 0)).toBe(PEER_MESSAGE_RATE.burst);
  expect(limits.allowsMessage('192.0.2.1', null, 0)).toBe(false);
  expect(sendMessages(1, 0, '192.0.2.2')).toBe(1);
  expect(sendMessages(1_000, 1_000)).toBe(PEER_MESSAGE_RATE.perSecond);
  expect(sendMessages(1_000, 500)).toBe(0);
  expect(sendMessages(PEER_MESSAGE_RATE.burst + 10, 3_600_000)).toBe(PEER_MESSAGE_RATE.burst);
});

test('with more addresses than buckets, idle addresses are removed and the limit of a busy address is not reset', () => {
  const limits = createPeerLimits();
  const takeTokens = (address: string, now: number) => limits.consumeMessageTokens(address, createReturnPath(), now);
  for (let n = 0; n < 9_999; n += 1) takeTokens(`idle ${n}`, 0);
  for (let n = 0; n < PEER_MESSAGE_RATE.burst; n += 1) takeTokens('busy', 60_000);
  for (let n = 0; n < 5_000; n += 1) takeTokens(`new ${n}`, 60_000);
  expect(takeTokens('busy', 60_001)).toBe(false);
  expect(takeTokens('busy', 60_100)).toBe(true);
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
  expect(toPeerNetwork(address)).toBe(peer);
});

test('an IPv6 /64 network has the limits of one address', () => {
  const limits = createPeerLimits();
  const createAddress = (n: number) => `2001:db8:1:2::${n.toString(16)}`;
  const countAllowedCalls = (isAllowed: (n: number) => boolean) =>
    Array.from({ length: 1_000 }, (_, n) => isAllowed(n)).filter(Boolean).length;
  expect(countAllowedCalls((n) => limits.consumeMessageTokens(createAddress(n), createReturnPath(), 0))).toBe(
    PEER_MESSAGE_RATE.burst,
  );
});

test('role mailboxes have a limit per peer, which the messages of other peers do not lower', () => {
  const limits = createPeerLimits();
  const countAccepted = (address: string, now: number) =>
    Array.from({ length: 100 }, () => limits.consumeMessageTokens(address, ROLE, now)).filter(Boolean).length;
  for (let n = 1; n < 20; n += 1) expect(countAccepted(`192.0.2.${n}`, 0)).toBe(PEER_ROLE_MESSAGE_RATE.burst);
  expect(limits.consumeMessageTokens('192.0.2.1', createReturnPath(), 0)).toBe(true);
  expect(limits.allowsMessage('192.0.2.1', ROLE, 0)).toBe(false);
  expect(limits.allowsMessage('192.0.2.1', ROLE, 1_000)).toBe(true);
});

test('what is stored is limited in total, a network that sent little is never refused, and reports about a message are not counted', () => {
  const limits = createPeerLimits();
  const countStored = (createAddress: (n: number) => string, now = 0) =>
    Array.from({ length: 1_000 }, (_, n) => limits.consumeReportToken(createAddress(n), null, now)).filter(Boolean)
      .length;
  const networkBurst = NETWORK_STORED_MESSAGE_RATE.burst;
  expect(countStored((n) => `192.0.2.${n % 256}`)).toBe(STORED_MESSAGE_RATE.burst + networkBurst);
  expect(countStored((n) => `2001:db8:1:${n.toString(16)}::1`)).toBe(networkBurst);
  expect(countStored(() => '198.51.100.1')).toBe(networkBurst);
  expect(countStored(() => '198.51.100.1', 1_000)).toBe(STORED_MESSAGE_RATE.perSecond);
  expect(limits.consumeReportToken('192.0.2.1', 'a', 0)).toBe(true);
  for (let n = 0; n < RETURN_PATH_MESSAGE_RATE.burst; n += 1) limits.consumeReportToken(`203.0.113.${n}`, 'a', 0);
  expect(limits.consumeReportToken('192.0.2.1', 'a', 0)).toBe(false);
});

test('a return path has a limit for all peers together, without effect on other return paths', () => {
  const limits = createPeerLimits();
  const countAccepted = (id: string, now: number) =>
    Array.from({ length: 100 }, (_, n) =>
      limits.consumeMessageTokens(`192.0.2.${n}`, createReturnPath(id), now),
    ).filter(Boolean).length;
  expect(countAccepted('a', 0)).toBe(RETURN_PATH_MESSAGE_RATE.burst);
  expect(limits.allowsMessage('198.51.100.1', createReturnPath('a'), 0)).toBe(false);
  expect(countAccepted('b', 0)).toBe(RETURN_PATH_MESSAGE_RATE.burst);
  expect(countAccepted('a', 60_000)).toBe(1);
});

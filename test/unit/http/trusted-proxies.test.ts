import { expect, test } from 'vitest';
import { createTrustedProxies, getClientAddress, isForwardedHttps } from '../../../src/http/peers.ts';
import { measureProcessorMs } from '../../rig/processor-time.ts';

const PROXIES = createTrustedProxies(['10.0.0.0/8', '192.0.2.7', '2001:db8:1::/48']);
const createRequest = (remoteAddress: string | undefined, forwardedFor?: string, forwardedProto?: string) => ({
  socket: { remoteAddress },
  headers: {
    ...(forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor }),
    ...(forwardedProto === undefined ? {} : { 'x-forwarded-proto': forwardedProto }),
  },
});

test.each([
  ['an untrusted peer is the client, regardless of its header fields', '198.51.100.1', '203.0.113.9', '198.51.100.1'],
  ['a trusted peer without X-Forwarded-For is the client', '10.0.0.1', undefined, '10.0.0.1'],
  ['the only hop in the header of a trusted peer is the client', '10.0.0.1', '203.0.113.9', '203.0.113.9'],
  ['the right-most untrusted hop is the client', '10.0.0.1', '1.1.1.1, 203.0.113.9, 192.0.2.7', '203.0.113.9'],
  ['if all hops are trusted, the first hop is the client', '10.0.0.1', '10.0.0.3,10.0.0.2', '10.0.0.3'],
  [
    'for an invalid hop, the proxy that added it is the client',
    '10.0.0.1',
    '203.0.113.9, unknown, 10.0.0.2',
    '10.0.0.2',
  ],
  ['an empty hop', '10.0.0.1', '203.0.113.9,', '10.0.0.1'],
  ['an empty header', '10.0.0.1', '', '10.0.0.1'],
  ['hops with ports', '10.0.0.1', '203.0.113.9:4711, 10.0.0.2:80', '203.0.113.9'],
  ['an IPv6 hop with a port', '2001:db8:1::1', '[2001:db8:2::9]:4711', '2001:db8:2::9'],
  ['an IPv6 hop without a port', '2001:db8:1::1', '2001:db8:2::9', '2001:db8:2::9'],
  ['an IPv4-mapped peer', '::ffff:10.0.0.1', '203.0.113.9', '203.0.113.9'],
  ['an address with a zone is invalid', '10.0.0.1', 'fe80::1%eth0', '10.0.0.1'],
  ['an unclosed bracket is invalid', '10.0.0.1', '[2001:db8:2::9', '10.0.0.1'],
  ['a closed connection has no address', undefined, '203.0.113.9', ''],
] as const)('client address: %s', (_name, peer, forwardedFor, expected) => {
  expect(getClientAddress(createRequest(peer, forwardedFor), PROXIES)).toBe(expected);
});

test.each([
  ['10.0.0.1', 'https', true],
  ['10.0.0.1', 'http, HTTPS', true],
  ['10.0.0.1', 'https, http', false],
  ['10.0.0.1', undefined, false],
  ['198.51.100.1', 'https', false],
] as const)('a request of %s with X-Forwarded-Proto %s uses HTTPS: %s', (peer, forwardedProto, expected) => {
  expect(isForwardedHttps(createRequest(peer, undefined, forwardedProto), PROXIES)).toBe(expected);
});

test('without trusted proxies, the forwarding headers are ignored', () => {
  const noProxies = createTrustedProxies([]);
  expect(getClientAddress(createRequest('127.0.0.1', '203.0.113.9'), noProxies)).toBe('127.0.0.1');
  expect(isForwardedHttps(createRequest('127.0.0.1', undefined, 'https'), noProxies)).toBe(false);
});

test('a header with thousands of hops is read in linear time', () => {
  const hops = Array.from({ length: 100_000 }, () => '10.0.0.2').join(',');
  const processorMs = measureProcessorMs(() =>
    expect(getClientAddress(createRequest('10.0.0.1', hops), PROXIES)).toBe('10.0.0.2'),
  );
  expect(processorMs).toBeLessThan(5_000);
});

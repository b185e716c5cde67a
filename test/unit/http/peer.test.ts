import { expect, test } from 'vitest';
import { peerOf } from '../../../src/http/peer.ts';

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8:1:2::9', '2001:db8:1:2'],
  ['2001:db8::9', '2001:db8:0:0'],
  ['2001:db8:0:0:1::', '2001:db8:0:0'],
  ['1::2:3:4:5:6:7', '1:0:2:3'],
  ['::1', '0:0:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['64:ff9b::203.0.113.7', '64:ff9b:0:0'],
  [undefined, ''],
])('%s is the peer %s: an IPv6 customer has a whole /64', (address, peer) => {
  expect(peerOf(address)).toBe(peer);
});

import { expect, test } from 'vitest';
import { MAX_PROXY_HEADER_BYTES, parseProxyHeader } from '../../../src/feedback/proxy-protocol.ts';
import { createProxyHeaderV2 } from '../../rig/proxy-header.ts';

const encodeVersion1 = (line: string) => Buffer.from(`${line}\r\n`, 'latin1');
const IPV6_ADDRESSES = Buffer.from(`${'20010db8000000000000000000000009'.repeat(2)}12670019`, 'hex');

test.each([
  ['version 1, IPv4', encodeVersion1('PROXY TCP4 203.0.113.9 192.0.2.1 4711 25'), '203.0.113.9'],
  ['version 1, IPv6', encodeVersion1('PROXY TCP6 2001:db8::9 2001:db8::1 4711 25'), '2001:db8::9'],
  ['version 1, unknown', encodeVersion1('PROXY UNKNOWN'), null],
  ['version 1, unknown with addresses', encodeVersion1('PROXY UNKNOWN ffff::1 ffff::2 65535 65535'), null],
  ['version 2, IPv4', createProxyHeaderV2('203.0.113.9'), '203.0.113.9'],
  ['version 2, IPv6', createProxyHeaderV2(IPV6_ADDRESSES, 0x21), '2001:db8:0:0:0:0:0:9'],
  [
    'version 2, IPv4-mapped',
    createProxyHeaderV2(Buffer.from(`${'00'.repeat(10)}ffffcb007109${'00'.repeat(20)}`, 'hex'), 0x21),
    '203.0.113.9',
  ],
  [
    'version 2, extensions',
    Buffer.concat([createProxyHeaderV2('203.0.113.9', 0x11, Buffer.alloc(1_000, 4))]),
    '203.0.113.9',
  ],
  ['version 2, LOCAL', createProxyHeaderV2('203.0.113.9', 0x11, Buffer.alloc(0), 0x20), null],
  ['version 2, unspecified', createProxyHeaderV2(Buffer.alloc(0), 0x00), null],
  ['version 2, unix socket', createProxyHeaderV2(Buffer.alloc(216), 0x31), null],
] as const)('%s: the address is read, and the bytes after the header remain', (_name, header, address) => {
  const bytes = Buffer.concat([header, Buffer.from('EHLO a\r\n')]);
  expect(parseProxyHeader(bytes)).toEqual({ kind: 'complete', address, length: header.length });
  for (let index = 0; index < header.length; index += 1)
    expect(parseProxyHeader(bytes.subarray(0, index)), `${index} bytes`).toEqual({ kind: 'incomplete' });
});

test.each([
  ['an SMTP command', Buffer.from('EHLO a\r\n')],
  ['a lower-case word', encodeVersion1('proxy TCP4 203.0.113.9 192.0.2.1 4711 25')],
  ['an unknown family', encodeVersion1('PROXY UDP4 203.0.113.9 192.0.2.1 4711 25')],
  ['no addresses', encodeVersion1('PROXY TCP4')],
  ['an address of the wrong family', encodeVersion1('PROXY TCP4 2001:db8::9 192.0.2.1 4711 25')],
  ['a host name', encodeVersion1('PROXY TCP4 client.example 192.0.2.1 4711 25')],
  ['an address with a zone', encodeVersion1('PROXY TCP6 fe80::1%eth0 2001:db8::1 4711 25')],
  ['two spaces', encodeVersion1('PROXY TCP4  203.0.113.9 192.0.2.1 4711 25')],
  ['a port that is too large', encodeVersion1('PROXY TCP4 203.0.113.9 192.0.2.1 65536 25')],
  ['a port with a leading zero', encodeVersion1('PROXY TCP4 203.0.113.9 192.0.2.1 04711 25')],
  ['a missing port', encodeVersion1('PROXY TCP4 203.0.113.9 192.0.2.1 4711')],
  ['a third port', encodeVersion1('PROXY TCP4 203.0.113.9 192.0.2.1 4711 25 26')],
  ['a bare LF', Buffer.from('PROXY TCP4 203.0.113.9 192.0.2.1 4711 25\n'.padEnd(107))],
  ['a line without an end', Buffer.from(`PROXY UNKNOWN ${'x'.repeat(200)}`)],
  ['version 2, another version', createProxyHeaderV2('203.0.113.9', 0x11, Buffer.alloc(0), 0x11)],
  ['version 2, an unknown command', createProxyHeaderV2('203.0.113.9', 0x11, Buffer.alloc(0), 0x22)],
  ['version 2, addresses that are too short', createProxyHeaderV2(Buffer.alloc(11), 0x11)],
  ['version 2, IPv6 addresses that are too short', createProxyHeaderV2(Buffer.alloc(35), 0x21)],
  [
    'version 2, a header above the limit',
    createProxyHeaderV2('203.0.113.9', 0x11, Buffer.alloc(MAX_PROXY_HEADER_BYTES)),
  ],
])('a header with %s is malformed', (_name, bytes) => {
  expect(parseProxyHeader(bytes)).toEqual({ kind: 'malformed' });
});

import { expect, test } from 'vitest';
import { parseFieldAddress } from '../../../../src/feedback/read/evidence.ts';
import { findAddresses } from '../../../../src/feedback/read/report-addresses.ts';

const listAddresses = (text: string) => findAddresses(text).map(({ address, role }) => [address, role]);

test.each([
  ['<anna@kunde.example>: no', 'anna@kunde.example', 'named'],
  ['   * anna@kunde.example', 'anna@kunde.example', 'named'],
  ['"anna@kunde.example"', 'anna@kunde.example', 'named'],
  ['RCPT TO:<anna@kunde.example>', 'anna@kunde.example', 'named'],
  ['Unknown user: anna@kunde.example', 'anna@kunde.example', 'named'],
  ['could not be delivered to\nanna@kunde.example', 'anna@kunde.example', 'named'],
  ['    (expanded from: <anna@kunde.example>)', 'anna@kunde.example', 'origin'],
  ['MAIL FROM:<shop@shop.example>', 'shop@shop.example', 'other'],
  ['From: Shop <shop@shop.example>', 'shop@shop.example', 'mentioned'],
  ['please contact it@kunde.example.', 'it@kunde.example', 'other'],
  ['<postmaster@kunde.example>', 'postmaster@kunde.example', 'other'],
  ['the people of anna@kunde.example know', 'anna@kunde.example', 'mentioned'],
  ['and if you\nanna@kunde.example try', 'anna@kunde.example', 'mentioned'],
  ['to=<anna+tag@kunde.example>, dsn=5.1.1', 'anna+tag@kunde.example', 'mentioned'],
  ['"anna b"@kunde.example', '"anna b"@kunde.example', 'named'],
  ['宛先anna@kunde.exampleさん', 'anna@kunde.example', 'named'],
  ['<дарья@kunde.example>', 'дарья@kunde.example', 'named'],
  ['<anna@bücher.example>', 'anna@bücher.example', 'named'],
  ["addressed to 'anna@kunde.example',", 'anna@kunde.example', 'named'],
])('in %j the address %s has the role %s', (text, address, role) => {
  expect(listAddresses(text)).toEqual([[address, role]]);
});

test('text that only resembles an address is ignored', () => {
  expect(listAddresses('a @ b, @home, me@, x@localhost, a@b@, <>')).toEqual([]);
});

test.each([
  ['rfc822; anna@kunde.example', 'anna@kunde.example'],
  ['RFC822;<anna@kunde.example>', 'anna@kunde.example'],
  ['anna@kunde.example (Anna)', 'anna@kunde.example'],
  ['rfc822;anna+2Bshop@kunde.example', 'anna+shop@kunde.example'],
  ['rfc822;anna+shop@kunde.example', 'anna+shop@kunde.example'],
  ['utf-8;\\x{434}\\x{430}@kunde.example', 'да@kunde.example'],
  ['x400; /S=anna/O=kunde/', null],
  ['rfc822; anna', null],
  ['', null],
])('the field %j contains the address %j', (value, address) => {
  expect(parseFieldAddress(value)).toBe(address);
});

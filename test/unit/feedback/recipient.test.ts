import { expect, test } from 'vitest';
import {
  classifyRecipient,
  findReportedMessageId,
  MAX_RETURN_PATH_AGE_DAYS,
} from '../../../src/feedback/smtp-report.ts';
import { createReturnPathToken } from '../../../src/message/return-path.ts';

const DAY_MS = 86_400_000;
const NOW = Date.UTC(2026, 5, 1, 12);
const ID = '0192a3b4-c5d6-7e8f-9012-3456789abcde';
const OTHER_ID = '0192a3b4-c5d6-7e8f-9012-3456789abcdf';
const RETURN_PATH_DOMAINS = ['bounces.example.org', 'bounces.example.net'];
const returnPathOptions = {
  key: Buffer.alloc(32, 7),
  isReturnPathDomain: (name: string) => RETURN_PATH_DOMAINS.includes(name),
};
const createToken = (at = NOW, key = returnPathOptions.key, id = ID) => createReturnPathToken(key, id, at);
const classify = (address: string, now = NOW) => classifyRecipient(returnPathOptions, address, now);

test('a return path of this installation, in upper or lower case, names its message', () => {
  const validRecipient = { kind: 'return-path', id: ID };
  expect(classify(`${createToken()}@bounces.example.org`)).toEqual(validRecipient);
  expect(classify(`${createToken().toUpperCase()}@Bounces.EXAMPLE.org`)).toEqual(validRecipient);
});

test('a return path expires at the end of its validity period, and the clock of the node that created it may be ahead by one day', () => {
  const address = `${createToken()}@bounces.example.org`;
  expect(classify(address, NOW + MAX_RETURN_PATH_AGE_DAYS * DAY_MS)).toMatchObject({ kind: 'return-path' });
  expect(classify(address, NOW + (MAX_RETURN_PATH_AGE_DAYS + 1) * DAY_MS)).toEqual({
    kind: 'refused',
    reason: 'expired',
  });
  expect(classify(address, NOW - DAY_MS)).toMatchObject({ kind: 'return-path' });
  expect(classify(address, NOW - 2 * DAY_MS)).toEqual({ kind: 'refused', reason: 'expired' });
});

test('a changed return path and a return path of another installation are refused', () => {
  const changedToken = createToken().replace(/.$/, (last) => (last === 'a' ? 'q' : 'a'));
  expect(classify(`${changedToken}@bounces.example.org`)).toEqual({ kind: 'refused', reason: 'unknown' });
  expect(classify(`${createToken(NOW, Buffer.alloc(32, 8))}@bounces.example.org`)).toMatchObject({ kind: 'refused' });
});

test.each(['postmaster', 'POSTMASTER@bounces.example.org', 'abuse@bounces.example.org'])(
  '%s is a role mailbox',
  (role) => {
    expect(classify(role)).toEqual({ kind: 'role' });
  },
);

test.each([
  ['an unknown mailbox', 'somebody@bounces.example.org', 'unknown'],
  ['a mailbox at a domain without return paths', 'somebody@example.org', 'relay'],
  ['a changed return path at a domain without return paths', `${createToken().slice(0, -2)}aa@example.org`, 'relay'],
  ['postmaster elsewhere', 'postmaster@example.com', 'relay'],
  ['a percent hack', 'victim%example.com@bounces.example.org', 'unknown'],
  ['a source route', '@bounces.example.org:victim@example.com', 'relay'],
  ['abuse without a domain', 'abuse', 'relay'],
  ['an empty address', '', 'relay'],
])('%s is refused', (_, address, reason) => {
  expect(classify(address)).toEqual({ kind: 'refused', reason });
});

test('after the removal of a return path, an address with a valid token at this return path names its message until the token expires', () => {
  const address = `${createToken()}@removed.example.com`;
  expect(classify(address)).toEqual({ kind: 'return-path', id: ID });
  expect(classify(address, NOW + (MAX_RETURN_PATH_AGE_DAYS + 1) * DAY_MS)).toEqual({
    kind: 'refused',
    reason: 'expired',
  });
});

test('a report to a role mailbox is about a message only if all valid return paths in the report belong to this message', () => {
  const findMessageId = (text: string) => findReportedMessageId(returnPathOptions, Buffer.from(text), NOW);
  const address = `${createToken()}@bounces.example.org`;
  expect(findMessageId(`Return-Path: <${address}>\r\nOriginal-Mail-From: ${address.toUpperCase()}\r\n`)).toBe(ID);
  expect(
    findMessageId(
      `Return-Path: <${address}>\r\n${createToken(NOW, returnPathOptions.key, OTHER_ID)}@bounces.example.org`,
    ),
  ).toBeNull();
  expect(findMessageId(`Return-Path: <x${address.slice(1)}>`)).toBeNull();
  expect(findMessageId(`Return-Path: <${createToken(NOW - 50 * DAY_MS)}@bounces.example.org>`)).toBeNull();
  expect(findMessageId(`Return-Path: <${createToken()}@removed.example.com>`)).toBe(ID);
  expect(findMessageId('@bounces.example.org '.repeat(1_000) + address)).toBe(ID);
  // Only a limited number of candidates is checked.
  expect(findMessageId(`b-${'a'.repeat(45)}@bounces.example.org `.repeat(1_000) + address)).toBeNull();
  expect(findMessageId('')).toBeNull();
});

import { expect, test } from 'vitest';
import { feedbackRecipient, findReportedMessageId, MAX_RETURN_PATH_AGE_DAYS } from '../../../src/feedback/recipient.ts';
import { returnPathToken } from '../../../src/message/return-path.ts';

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 5, 1, 12);
const ID = '0192a3b4-c5d6-7e8f-9012-3456789abcde';
const OTHER = '0192a3b4-c5d6-7e8f-9012-3456789abcdf';
const path = { domain: 'bounces.example.org', key: Buffer.alloc(32, 7) };
const token = (at = NOW, key = path.key, id = ID) => returnPathToken(key, id, at);
const asked = (address: string, now = NOW) => feedbackRecipient(path, address, now);

test('a return path of this installation is its mail request, whatever the case of its letters', () => {
  const valid = { kind: 'return-path', id: ID };
  expect(asked(`${token()}@bounces.example.org`)).toEqual(valid);
  expect(asked(`${token().toUpperCase()}@Bounces.EXAMPLE.org`)).toEqual(valid);
});

test('a return path lasts for its days and no longer, and another node’s clock may be a little ahead', () => {
  const address = `${token()}@bounces.example.org`;
  expect(asked(address, NOW + MAX_RETURN_PATH_AGE_DAYS * DAY)).toMatchObject({ kind: 'return-path' });
  expect(asked(address, NOW + (MAX_RETURN_PATH_AGE_DAYS + 1) * DAY)).toEqual({ kind: 'refused', reason: 'expired' });
  expect(asked(address, NOW - DAY)).toMatchObject({ kind: 'return-path' });
  expect(asked(address, NOW - 2 * DAY)).toEqual({ kind: 'refused', reason: 'expired' });
});

test('one bit changed, or another installation’s key, is no return path', () => {
  const made = token();
  for (let at = 2; at < made.length; at += 1) {
    const changed = made.slice(0, at) + (made[at] === 'a' ? 'b' : 'a') + made.slice(at + 1);
    expect(asked(`${changed}@bounces.example.org`)).toEqual({ kind: 'refused', reason: 'unknown' });
  }
  expect(asked(`${token(NOW, Buffer.alloc(32, 8))}@bounces.example.org`)).toMatchObject({ kind: 'refused' });
});

test.each(['postmaster', 'POSTMASTER@bounces.example.org', 'abuse@bounces.example.org'])(
  '%s is for the operator',
  (role) => {
    expect(asked(role)).toEqual({ kind: 'role' });
  },
);

test.each([
  ['a stranger here', 'somebody@bounces.example.org', 'unknown'],
  ['a return path at another domain', `${token()}@example.org`, 'relay'],
  ['postmaster elsewhere', 'postmaster@example.com', 'relay'],
  ['a percent hack', 'victim%example.com@bounces.example.org', 'unknown'],
  ['a source route', '@bounces.example.org:victim@example.com', 'relay'],
  ['abuse without a domain', 'abuse', 'relay'],
  ['nothing', '', 'relay'],
])('%s is refused', (_, address, reason) => {
  expect(asked(address)).toEqual({ kind: 'refused', reason });
});

test('a report to a role mailbox names the one mail request whose signed return path stands in it', () => {
  const named = (text: string) => findReportedMessageId(path, Buffer.from(text), NOW);
  const address = `${token()}@bounces.example.org`;
  expect(named(`Return-Path: <${address}>\r\nOriginal-Mail-From: ${address.toUpperCase()}\r\n`)).toBe(ID);
  expect(named(`Return-Path: <${address}>\r\n${token(NOW, path.key, OTHER)}@bounces.example.org`)).toBeNull();
  expect(named(`Return-Path: <x${address.slice(1)}>`)).toBeNull();
  expect(named(`Return-Path: <${token(NOW - 50 * DAY)}@bounces.example.org>`)).toBeNull();
  expect(named('@bounces.example.org '.repeat(1_000) + address)).toBeNull();
  expect(named('')).toBeNull();
});

import { expect, test } from 'vitest';
import { findEnhancedStatus, findReplyCode, parseEnhancedStatus } from '../../../../src/feedback/read/codes.ts';

test.each([
  ['5.1.1', '5.1.1'],
  [' 5.1.1 (bad destination mailbox address)', '5.1.1'],
  ['#5.01.001', '5.1.1'],
  ['2.0.0', '2.0.0'],
  ['553 too large', null],
  ['5.1', null],
  ['5.1.1.1', null],
  ['', null],
])('the field %j has the status %j', (value, status) => {
  expect(parseEnhancedStatus(value)).toBe(status);
});

test.each([
  ['550-5.1.1 none', '5.1.1'],
  ['(#5.2.2)', '5.2.2'],
  ['said: 550 5.1.10 RESOLVER', '5.1.10'],
  ['relay 5.1.1.9 refused', null],
  ['version 8.5.1.1', null],
  ['host mx4.5.1.example', null],
  ['192.0.2.10 said 450 4.7.1', '4.7.1'],
])('the text %j has the status %j', (text, status) => {
  expect(findEnhancedStatus(text)).toBe(status);
});

test.each([
  ['550 no', 550],
  ['host a[192.0.2.1] said: 452 later', 452],
  ['Remote host said: 550-no', 550],
  ['<<< 553 <a@b.example>... no', 553],
  ['Error 550', 550],
  ['(550)', 550],
  ['[SMTP Error Code 550]', 550],
  ['in 500 hours', null],
  ['message of 550 bytes', null],
  ['order 4711 of 2550 pieces', null],
  ['port 587', null],
  ['Room 421B', null],
])('the text %j has the reply code %j', (text, code) => {
  expect(findReplyCode(text)?.code ?? null).toBe(code);
});

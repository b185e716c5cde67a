import { expect, test } from 'vitest';
import { toComplainant, toEvidenceSource } from '../../../src/model/address.ts';

test.each([
  ['rita@example.com', 'rita@example.com'],
  ['rita+news@example.com', 'rita@example.com'],
  ['rita+a+b@example.com', 'rita@example.com'],
  ['+rita@example.com', '+rita@example.com'],
  ['"a+b c"@example.com', '"a+b c"@example.com'],
  ['rita@xn--bcher-kva.example', 'rita@xn--bcher-kva.example'],
])('a complaint of %s is counted for %s', (recipient, complainant) => {
  expect(toComplainant(recipient)).toBe(complainant);
});

test.each([
  ['rita@example.com', 'example.com'],
  ['otto+x@mail.shop.example.co.uk', 'example.co.uk'],
  ['otto@me.duckdns.org', 'duckdns.org'],
  ['otto@localhost', 'localhost'],
  ['rita+news@gmail.com', 'rita@gmail.com'],
  ['otto@gmail.com', 'otto@gmail.com'],
])('the source of the evidence of %s is %s', (recipient, source) => {
  expect(toEvidenceSource(recipient)).toBe(source);
});

import { expect, test } from 'vitest';
import { listMatchingPatterns, matchesPattern, parseAddressPattern } from '../../../src/model/address-pattern.ts';

test.each([
  ['QA@Example.org', 'qa@example.org'],
  [' @Example.com', '@example.com'],
  ['@*.BÜCHER.example', '@*.xn--bcher-kva.example'],
  ['"a@b"@example.com', '"a@b"@example.com'],
])('the canonical pattern of %s is %s', (text, value) => {
  expect(parseAddressPattern(text)).toEqual({ ok: true, value });
});

test.each([
  '',
  'qa',
  'example.com',
  '@',
  '@com',
  '@*.com',
  '@*',
  '@*.*.example.com',
  '*@example.com',
  '@a\u202e\n.com',
])('the pattern %j is refused with one line', (text) => {
  const parsed = parseAddressPattern(text);
  expect(parsed).toMatchObject({ ok: false, fault: expect.stringMatching(/^"[^\p{C}]*" is neither [^\p{C}]*$/u) });
});

test('a domain matches itself alone, and a wildcard its subdomains of every depth', () => {
  expect(listMatchingPatterns('x@a.b.example.com')).toEqual([
    'x@a.b.example.com',
    '@a.b.example.com',
    '@*.b.example.com',
    '@*.example.com',
  ]);
  expect(matchesPattern('@example.com', 'x@example.com')).toBe(true);
  expect(matchesPattern('@example.com', 'x@sub.example.com')).toBe(false);
  expect(matchesPattern('@*.example.com', 'x@example.com')).toBe(false);
  expect(matchesPattern('@*.example.com', 'x@notexample.com')).toBe(false);
  expect(matchesPattern('@b.example', '"x@a"@b.example')).toBe(true);
});

import { describe, expect, test } from 'vitest';
import { CAUSES } from '../../../../src/feedback/read/causes.ts';
import * as idioms from '../../../../src/feedback/read/idioms.ts';
import { plainWords } from '../../../../src/feedback/read/phrases.ts';
import * as signs from '../../../../src/feedback/read/signs.ts';
import { causeOf } from '../../../../src/feedback/read/verdict.ts';

describe.each(CAUSES.map((rule) => [rule.name, rule] as const))('%s', (name, { samples }) => {
  test.each(samples)('%s', (sample) => {
    expect(causeOf(plainWords(sample))?.name).toBe(name);
  });
});

test('phrases are written as text is made ready for them, or they would never be found', () => {
  const phrases = CAUSES.flatMap(({ words, without = [] }) => [...words, ...without]);
  const written = [...phrases, ...signs.FAILING, ...signs.WAITING, ...signs.FINAL, ...signs.ANSWERING];
  for (const phrase of written) expect(plainWords(phrase)).toBe(phrase);
  const lists = [...Object.values(signs), ...Object.values(idioms)];
  for (const list of lists) for (const phrase of list) expect(phrase).toBe(phrase.toLowerCase().trim());
});

test('a name in an address is no reason', () => {
  expect(causeOf(plainWords('<mailbox.full@over-quota.example>: blocked@spam.example'))).toBeNull();
});

test('a reason that a line end cuts in two is one', () => {
  expect(causeOf(plainWords('the mailbox\n   is full'))?.cause).toBe('passing');
});

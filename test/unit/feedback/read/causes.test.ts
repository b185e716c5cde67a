import { describe, expect, test } from 'vitest';
import { CAUSE_RULES } from '../../../../src/feedback/read/causes.ts';
import { findCauseRule } from '../../../../src/feedback/read/classify-failure.ts';
import * as kindPhrases from '../../../../src/feedback/read/kind-phrases.ts';
import * as layoutPhrases from '../../../../src/feedback/read/layout-phrases.ts';
import { normalizeText } from '../../../../src/feedback/read/phrases.ts';

describe.each(CAUSE_RULES.map((rule) => [rule.name, rule] as const))('%s', (name, { samples }) => {
  test.each(samples)('%s', (sample) => {
    expect(findCauseRule(normalizeText(sample))?.name).toBe(name);
  });
});

test('every phrase is normalized, because the search normalizes the text', () => {
  const phrases = CAUSE_RULES.flatMap(({ phrases, exceptPhrases: exceptions = [] }) => [...phrases, ...exceptions]);
  const normalizedPhrases = [
    ...phrases,
    ...kindPhrases.FAILURE_PHRASES,
    ...kindPhrases.DELAY_PHRASES,
    ...kindPhrases.FINAL_FAILURE_PHRASES,
    ...kindPhrases.AUTO_REPLY_SUBJECTS,
  ];
  for (const phrase of normalizedPhrases) expect(normalizeText(phrase)).toBe(phrase);
  const lists = [...Object.values(kindPhrases), ...Object.values(layoutPhrases)];
  for (const list of lists) for (const phrase of list) expect(phrase).toBe(phrase.toLowerCase().trim());
});

test('a phrase within an address does not match', () => {
  expect(findCauseRule(normalizeText('<mailbox.full@over-quota.example>: blocked@spam.example'))).toBeNull();
});

test('a phrase matches across a line end', () => {
  expect(findCauseRule(normalizeText('the mailbox\n   is full'))?.cause).toBe('temporary');
});

import { describe, expect, test } from 'vitest';
import { CAUSE_RULES } from '../../../../src/feedback/read/causes.ts';
import { findCauseRule } from '../../../../src/feedback/read/classify-failure.ts';
import { normalizeText } from '../../../../src/feedback/read/phrases.ts';

describe.each(CAUSE_RULES.map((rule) => [rule.name, rule] as const))('%s', (name, { samples }) => {
  test.each(samples)('%s', (sample) => {
    expect(findCauseRule(normalizeText(sample))?.name).toBe(name);
  });
});

test('a phrase within an address does not match', () => {
  expect(findCauseRule(normalizeText('<mailbox.full@over-quota.example>: blocked@spam.example'))).toBeNull();
});

test('a phrase matches across a line end', () => {
  expect(findCauseRule(normalizeText('the mailbox\n   is full'))?.cause).toBe('temporary');
});

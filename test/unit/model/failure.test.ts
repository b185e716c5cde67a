/** Tests the text of a failure in the history. */
import { expect, test } from 'vitest';
import { FAILURE_CATEGORIES, FAILURE_CLASSES, formatFailure, parseFailure } from '../../../src/model/failure.ts';

test('every failure is parsed from the detail that begins with it', () => {
  for (const failureClass of FAILURE_CLASSES) {
    for (const category of FAILURE_CATEGORIES) {
      const failure = { class: failureClass, category };
      expect(parseFailure(`${formatFailure(failure)}: 550 no (hard (domain): x)`)).toEqual(failure);
    }
  }
});

test.each(['', 'hard', 'hard (domain)', 'hard (other): x', 'other (domain): x', '550 hard (domain): x', '): '])(
  'the detail "%s" contains no failure',
  (detail) => {
    expect(parseFailure(detail)).toBeNull();
  },
);

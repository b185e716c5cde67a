import { expect, test } from 'vitest';
import { FAILURE_CATEGORIES, FAILURE_CLASSES, formatFailure } from '../../../src/model/failure.ts';
import { toFailureColumn, toHistoryEntry } from '../../../src/store/rules/rows.ts';

test('a failure is shown as its class and its category', () => {
  expect(formatFailure({ class: 'hard', category: 'mailbox-unknown' })).toBe('hard (mailbox-unknown)');
});

test('every stored failure is read unchanged, and a row without a failure is read as null', () => {
  const row = { at: 1, verb: 'bounced', by: 'node', detail: null, attempt: null };
  const diagnostic = '550 5.1.1 "no" (hard (domain): x)';
  for (const failureClass of FAILURE_CLASSES) {
    for (const category of FAILURE_CATEGORIES) {
      for (const failure of [
        { class: failureClass, category, status: '5.1.1', diagnostic },
        { class: failureClass, category, status: null, diagnostic: null },
      ])
        expect(toHistoryEntry({ ...row, failure: toFailureColumn(failure) }).failure).toEqual(failure);
    }
  }
  expect(toHistoryEntry({ ...row, failure: toFailureColumn(null) }).failure).toBeNull();
});

/** Tests the rules for messages with tables of cases, and with properties of random cases. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { getMaxIdAt, getMinIdAt, getRowsPerTurn, toSeq } from '../../../src/store/rules/messages.ts';
import { createMessageIdAt } from '../../rig/messages.ts';
import { selectCaseCount } from '../../rig/sample.ts';

const RUN_OPTIONS = { seed: 13, numRuns: selectCaseCount(100, 300) };

test.each([
  [1, 1],
  [63, 1],
  [64, 1],
  [128, 2],
  [512, 8],
  [100_000, 8],
])('a claim of %i messages leases %i messages of an account in one turn of the rotation', (messages, rows) => {
  expect(getRowsPerTurn(messages)).toBe(rows);
});

describe('sequence numbers of ids', () => {
  const time = fc.integer({ min: Date.UTC(2025, 0, 1), max: Date.UTC(2090, 0, 1) });

  test('increase with the ids of one process, and are exact integers', () => {
    fc.assert(
      fc.property(fc.array(time, { minLength: 2, maxLength: 20 }), (times) => {
        const ids = times.map(createMessageIdAt);
        const sortedIds = ids.toSorted();
        expect(sortedIds.map(toSeq)).toEqual(ids.map(toSeq).toSorted((left, right) => left - right));
        expect(ids.every((id) => Number.isSafeInteger(toSeq(id)))).toBe(true);
      }),
      RUN_OPTIONS,
    );
  });

  test('a range of time corresponds to the range of ids created in it', () => {
    fc.assert(
      fc.property(time, (ms) => {
        const id = createMessageIdAt(ms);
        expect(getMinIdAt(ms) <= id && id <= getMaxIdAt(ms)).toBe(true);
        expect(getMaxIdAt(ms - 1) < getMinIdAt(ms)).toBe(true);
      }),
      RUN_OPTIONS,
    );
    expect([getMinIdAt(-1), getMinIdAt(Number.MAX_SAFE_INTEGER)]).toEqual([
      '00000000-0000-0000-0000-000000000000',
      'ffffffff-ffff-0000-0000-000000000000',
    ]);
  });
});

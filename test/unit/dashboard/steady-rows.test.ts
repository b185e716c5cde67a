import { describe, expect, test } from 'vitest';
import { mergeFilteredRows, mergeRows } from '../../../dashboard/src/parts/steady-rows.ts';

const toRows = (ids: string, state = 'old') => Array.from(ids, (id) => ({ id, state }));
const mergeIds = (shown: string, latest: string) => {
  const { rows, newCount } = mergeRows(toRows(shown), toRows(latest, 'new'));
  return { ids: rows.map(({ id }) => id).join(''), states: rows.map(({ state }) => state), newCount };
};

describe('rows of a live list', () => {
  test.each([
    ['a new row at the top is counted and not shown', 'cba', 'dcba', 'cba', 1],
    ['a new row between shown rows is counted and not shown', 'ca', 'cba', 'ca', 1],
    ['a row that was removed from the list is no longer shown', 'cba', 'ca', 'ca', 0],
    ['rows remain shown even if new rows displace them from the end of the page', 'cba', 'edc', 'cba', 2],
    ['all rows remain shown even if new rows displace all of them from the page', 'cba', 'fed', 'cba', 3],
    ['older rows are appended', 'cb', 'cba', 'cba', 0],
    ['the rows of an empty list are shown immediately', '', 'ba', 'ba', 0],
    ['a list is empty after all its rows were removed', 'ba', '', '', 0],
  ])('%s', (_, shown, latest, ids, newCount) => {
    expect(mergeIds(shown, latest)).toMatchObject({ ids, newCount });
  });

  test('a shown row has the state of the newest response', () => {
    expect(mergeIds('cba', 'edc').states).toEqual(['new', 'old', 'old']);
  });
});

describe('rows of a live list with a filter', () => {
  test.each([
    ['a row that no longer matches the filter remains shown', 'cba', 'ca', 'cba', 0],
    ['all rows remain shown if no row matches the filter any more', 'cba', '', 'cba', 0],
    ['older rows are appended if no shown row matches the filter any more', 'dc', 'ba', 'dcba', 0],
    ['a new row at the top is counted and not shown', 'cb', 'dcb', 'cb', 1],
    ['a new row between shown rows is counted and not shown', 'ca', 'cba', 'ca', 1],
    ['the rows of an empty list are shown immediately', '', 'ba', 'ba', 0],
  ])('%s', (_, shown, latest, ids, newCount) => {
    const mergedRows = mergeFilteredRows(toRows(shown), toRows(latest, 'new'));
    expect({ ids: mergedRows.rows.map(({ id }) => id).join(''), newCount: mergedRows.newCount }).toEqual({
      ids,
      newCount,
    });
  });
});

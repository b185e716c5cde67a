/** Tests that a segment returns exactly the messages that have a term, and their sequence numbers. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { getMinIdOfSeq, toSeq } from '../../../src/store/rules/messages.ts';
import type { SearchableMessage } from '../../../src/store/search/query.ts';
import {
  decodeDirectory,
  decodeSeqs,
  encodeSegment,
  findPageRange,
  getAccountRange,
  listTerms,
  MAX_SEGMENT_MESSAGES,
  markMatches,
  type TermRange,
} from '../../../src/store/search/segment.ts';
import { createMessageIdAt } from '../../rig/messages.ts';

const createMessage = (ms: number, inputs: Partial<SearchableMessage> = {}): SearchableMessage => ({
  id: createMessageIdAt(ms),
  accountId: 1,
  to: 'rita@example.com',
  recipient: null,
  from: 'shop@example.org',
  subject: '',
  ...inputs,
});

function listNumbers(segment: ReturnType<typeof encodeSegment>, range: TermRange): readonly number[] {
  const bits = new Uint8Array(Math.ceil(segment.messageCount / 8));
  const [from, to] = findPageRange(decodeDirectory(segment.directory), range);
  for (const page of segment.termPages.slice(from, to)) markMatches(page, range, bits);
  return Array.from({ length: segment.messageCount }, (_, index) => index).filter(
    (index) => ((bits[index >> 3] ?? 0) >> (index & 7)) & 1,
  );
}

test('for every range of terms a segment returns the messages that have one of the terms, and their sequence numbers', () => {
  const word = fc.oneof(
    fc.constantFrom('a', 'ab', 'abc', 'b', 'é', '订', '𝒜', '𝒞', '\uffff'),
    fc.string({ maxLength: 6 }),
  );
  const subject = fc.array(word, { maxLength: 6 }).map((words) => words.join(' '));
  const messages = fc.array(fc.record({ subject, accountId: fc.nat(30), after: fc.nat(5) }), {
    minLength: 1,
    maxLength: 400,
  });
  fc.assert(
    fc.property(messages, fc.array(word, { maxLength: 8 }), (inputs, words) => {
      let nextMs = Date.UTC(2024, 11, 31, 23, 59, 59, 900);
      const testMessages = inputs.map(({ after, ...members }) => {
        nextMs += after;
        return createMessage(nextMs, members);
      });
      testMessages.sort((a, b) => (a.id < b.id ? -1 : 1));
      const segment = encodeSegment(testMessages);
      const ranges = [
        ...words.map((first) => ({ first, end: `${first}\uffff`, fieldLetters: 'ts' })),
        ...words.map((first) => ({ first: `${first}\u0000`, end: `${first}\u0001`, fieldLetters: 's' })),
        getAccountRange(7),
      ];
      for (const range of ranges) {
        const { first, end, fieldLetters: letters } = range;
        const isInRange = (term: string) =>
          term >= first && term < end && (letters === null || letters.includes(term.at(-1) ?? ' '));
        const expected = testMessages.flatMap((message, n) => (listTerms(message).some(isInRange) ? [n] : []));
        expect(listNumbers(segment, range)).toEqual(expected);
      }
      expect(segment.seqPages.flatMap(decodeSeqs)).toEqual(testMessages.map(({ id }) => toSeq(id)));
    }),
    { numRuns: 60 },
  );
});

test('each page of the largest segment fits into a page of a database', () => {
  const startMs = Date.UTC(2026, 0, 1);
  const messages = Array.from({ length: MAX_SEGMENT_MESSAGES }, (_, index) => {
    return createMessage(startMs + (index >> 3), {
      subject: `Order ${index} ${index % 2 === 0 ? 'even' : 'odd'} ${'x'.repeat(900)}`,
    });
  });
  const segment = encodeSegment(messages);
  expect(Math.max(...segment.termPages.map((page) => page.length))).toBeLessThanOrEqual(3_900);
  expect(Math.max(...segment.seqPages.map((page) => page.length))).toBeLessThanOrEqual(3_900);
  const evenNumbers = listNumbers(segment, { first: 'even\u0000', end: 'even\u0001', fieldLetters: 's' });
  expect(evenNumbers).toHaveLength(MAX_SEGMENT_MESSAGES / 2);
  expect(listNumbers(segment, { first: '1638', end: '1638\uffff', fieldLetters: 's' })).toEqual([
    1638, 16380, 16381, 16382, 16383,
  ]);
});

test('an id is between the least id of its sequence number and the least id of the next sequence number', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: Date.UTC(2093, 0, 1) }), (ms) => {
      const id = createMessageIdAt(ms);
      const seq = toSeq(id);
      expect(getMinIdOfSeq(seq) <= id && id < getMinIdOfSeq(seq + 1)).toBe(true);
      expect(toSeq(getMinIdOfSeq(seq))).toBe(seq);
    }),
  );
});

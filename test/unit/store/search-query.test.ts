import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  ALL_FIELDS,
  type Field,
  matchesCriteria,
  parseSearchText,
  type SearchableMessage,
} from '../../../src/store/search/query.ts';
import { listTermGroups, toDocument } from '../../../src/store/search/terms.ts';
import { openDatabase } from '../../../src/store/sqlite/database.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { selectCaseCount } from '../../rig/sample.ts';

const createMessage = (overrides: Partial<SearchableMessage> = {}): SearchableMessage => ({
  id: '019c0000-0000-7000-8000-000000000000',
  accountId: 1,
  to: 'rita@example.com',
  recipient: null,
  from: 'shop@example.org',
  subject: 'Your receipt',
  ...overrides,
});

test.each<readonly [string, Partial<SearchableMessage>, boolean]>([
  ['your rec', {}, true],
  ['rec your', {}, false],
  ['"your" "rec"', {}, false],
  ['"your receipt"', {}, true],
  ['<rita@example.com>,', {}, true],
  ['rita@', {}, true],
  ['ita@example.com', {}, false],
  ['@example', {}, true],
  ['@ample', {}, false],
  ['"rita b"@example.com', { to: '"Rita', subject: '' }, false],
  ['"rita"@example.com', { to: '"Rita"@example.com' }, true],
  ['"a@b"@example.com', { to: '"a@b"@example.com' }, true],
  ['!! rita', {}, true],
])('the query %s against the message %j returns %s', (text, overrides, expected) => {
  expect(matchesCriteria(parseSearchText(text, ALL_FIELDS) ?? [], createMessage(overrides))).toBe(expected);
});

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc
    .array(fc.constantFrom('rita', '.', '+', '@', '"', ' ', 'ÄSS', 'ẞ', 'Σ', '订', '🎉', '\u0301', '1'), {
      maxLength: 12,
    })
    .map((parts) => parts.join('')),
);

test('every match has a term for each condition, so the index omits nothing', () => {
  const cutArbitrary = fc.record({
    begin: fc.nat(20),
    size: fc.nat(40),
    field: fc.constantFrom<Field>('to', 'from', 'subject'),
  });
  fc.assert(
    fc.property(
      text,
      text,
      text,
      text,
      cutArbitrary,
      fc.constantFrom(ALL_FIELDS, ...ALL_FIELDS.map((field) => [field])),
      (to, from, recipient, subject, cut, fields) => {
        const message = createMessage({ to: `${to}@${from}`, from, recipient, subject });
        // The search is built from parts of the message, so that most of its words match.
        const searchText = message[cut.field].slice(cut.begin, cut.begin + cut.size);
        const criteria = parseSearchText(searchText, fields) ?? [];
        if (!matchesCriteria(criteria, message)) return;
        const terms = toDocument(12, message).split(' ');
        for (const group of listTermGroups({ criteria, accountIds: [1] })) {
          const hasTerm = group.some(({ text, prefix }) =>
            terms.some((term) => (prefix ? term.startsWith(`12${text}`) : term === `12${text}`)),
          );
          expect([group, hasTerm]).toEqual([group, true]);
        }
      },
    ),
    { numRuns: selectCaseCount(100, 5_000) },
  );
});

test('a term that is deleted from the index leaves the file of the embedded store', () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  const database = openDatabase(path);
  database.exec('PRAGMA secure_delete = ON');
  const insert = database.prepare('INSERT INTO search (rowid, terms) VALUES (?, ?)');
  const addMessages = (first: number) => {
    database.exec('BEGIN');
    for (let n = first; n < first + 500; n += 1)
      insert.run(n, toDocument(1, createMessage({ subject: n === 7 ? 'confidential' : `Receipt ${n}` })));
    database.exec('COMMIT');
  };
  for (let n = 0; n < 5_000; n += 500) addMessages(n);
  const isStored = () => {
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    return readFileSync(path).includes('confidential');
  };
  expect(isStored()).toBe(true);
  database
    .prepare("INSERT INTO search (search, rowid, terms) VALUES ('delete', ?, ?)")
    .run(7, toDocument(1, createMessage({ subject: 'confidential' })));
  expect(isStored()).toBe(false);
  database.close();
});

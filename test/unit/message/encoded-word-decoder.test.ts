import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeEncodedWords } from '../../../src/message/encoded-word-decoder.ts';
import { subjectLines } from '../../../src/message/headers.ts';

test('any subject that is written is read back exactly', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1, maxLength: 400 }), fc.nat(40), (text, column) => {
      const subject = text.replaceAll(/[\r\n\0]/g, ' ').toWellFormed();
      const lines = subjectLines(subject, column);
      expect(decodeEncodedWords(typeof lines === 'string' ? lines : lines.join(' '))).toBe(subject);
    }),
  );
});

test('hostile input costs linear time and stays as it stands', () => {
  const began = performance.now();
  for (const part of ['=?utf-8?Q?', '=?', '?=', '= ', '=?utf-8?B??= ']) {
    const value = part.repeat(400_000);
    expect(decodeEncodedWords(value).length).toBeLessThanOrEqual(value.length);
  }
  expect(performance.now() - began).toBeLessThan(2_000);
});

test('encoded words are read, whatever else stays as it stands', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['plain text', 'plain text'],
    ['=?UTF-8?Q?caf=C3=A9_?= x', 'café  x'],
    ['=?utf-8?B?8J+Y?= =?utf-8?B?gA==?=', '😀'],
    ['a =?utf-8?B?YQ==?= b', 'a a b'],
    ['=?iso-2022-jp?B?YQ==?=', '=?iso-2022-jp?B?YQ==?='],
    ['=?utf-8?X?YQ==?=', '=?utf-8?X?YQ==?='],
    ['=?utf-8?Q?=ZZ=?=', '=ZZ='],
    ['=?utf-8?Q?=+1=4?=', '=+1=4'],
    ['=?=', '=?='],
    ['=?utf-8?Q??=', ''],
    ['=??=', '=??='],
  ];
  for (const [value, expected] of cases) expect(decodeEncodedWords(value)).toBe(expected);
});

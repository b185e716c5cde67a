import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { decodeEncodedWords, formatSubject, HeaderWriter } from '../../../src/message/headers.ts';
import { selectCaseCount } from '../../rig/sample.ts';
import { decodeEncodedWords as decodeIndependently } from './part-decoder.ts';

function writeField(name: string, value: string | readonly string[], utf8 = false): string {
  const headers = new HeaderWriter(utf8);
  headers.add(name, value);
  return headers.text;
}

describe('the header writer', () => {
  it('writes one field per line, and folds a list of pieces', () => {
    const headers = new HeaderWriter(false);
    headers.add('From', 'a@b.co');
    headers.add('Content-Type', ['text/plain;', 'charset=utf-8']);
    expect(headers.text).toBe('From: a@b.co\r\nContent-Type: text/plain;\r\n charset=utf-8\r\n');
  });

  it.each(['', 'a b', 'a:', 'a\r\nb', 'a\n', 'ä', '\0', ' a'])('throws for the name %j', (name) => {
    expect(() => writeField(name, 'x')).toThrow(TypeError);
  });

  it('throws for every control character except the tab, at every position', () => {
    for (let code = 0; code <= 0x7f; code++) {
      if (code > 0x1f && code < 0x7f) continue;
      const character = String.fromCharCode(code);
      for (const value of [`${character}ab`, `a${character}b`, `ab${character}`]) {
        if (code === 0x09) expect(writeField('X', value)).toBe(`X: ${value}\r\n`);
        else {
          expect(() => writeField('X', value)).toThrow(TypeError);
          expect(() => writeField('X', ['a', value], true)).toThrow(TypeError);
        }
      }
    }
  });

  it('throws for blank lines, for an empty list, and for lines over 998 octets', () => {
    for (const value of ['', ' ', '\t ', [], ['a', ''], ['a', ' ']])
      expect(() => writeField('X', value)).toThrow(TypeError);
    expect(writeField('X', 'a'.repeat(995))).toHaveLength(1000);
    expect(() => writeField('X', 'a'.repeat(996))).toThrow(TypeError);
    expect(() => writeField('X', ['a', 'é'.repeat(499)], true)).toThrow(TypeError);
  });

  it('accepts characters that are not ASCII only with SMTPUTF8', () => {
    expect(() => writeField('X', 'é')).toThrow(TypeError);
    expect(writeField('X', 'é', true)).toBe('X: é\r\n');
  });
});

describe('the subject', () => {
  const encodeLines = (subject: string) => {
    const value = formatSubject(subject, 'Subject: '.length);
    return typeof value === 'string' ? [value] : value;
  };

  it('is plain text if possible, folded at single spaces', () => {
    expect(encodeLines('Your order #1: 20% off!')).toEqual(['Your order #1: 20% off!']);
    expect(encodeLines(`${'word '.repeat(20)}end`)).toHaveLength(2);
    expect(encodeLines(`${'a'.repeat(69)} b`)).toEqual(['a'.repeat(69), 'b']);
    expect(encodeLines('a'.repeat(69))).toEqual(['a'.repeat(69)]);
  });

  it.each(['a'.repeat(70), ` a`, 'a ', 'a\tb', ' ', '=?x', 'é', `${'a  '.repeat(40)}b`])(
    'is encoded if mail servers or parsers could change the plain text: %j',
    (subject) => {
      for (const line of encodeLines(subject)) expect(line).toMatch(/^=\?UTF-8\?[BQ]\?[!-~]+\?=$/);
      expect(decodeIndependently(encodeLines(subject).join(' '))).toBe(subject);
    },
  );

  it('is decoded to the same text, and has lines of at most 78 columns, or 76 with an encoded word', () => {
    const asciiText = fc.string({ unit: fc.constantFrom(...'ab =?_ '), minLength: 1, maxLength: 300 });
    const anyText = fc.string({ unit: 'binary', minLength: 1, maxLength: 300 });
    fc.assert(
      fc.property(fc.oneof(asciiText, anyText), (subject) => {
        const value = encodeLines(subject);
        // The decoder throws if an encoded word contains a part of a character.
        expect(decodeIndependently(value.join(' '))).toBe(subject);
        for (const [index, line] of value.entries()) {
          const columns = line.length + (index === 0 ? 'Subject: '.length : 1);
          expect(columns).toBeLessThanOrEqual(line.startsWith('=?') ? 76 : 78);
          expect(line.trim()).toBe(line);
        }
      }),
      { numRuns: selectCaseCount(100, 3_000) },
    );
  });
});

test('encoded words are decoded, and all other text is unchanged', () => {
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

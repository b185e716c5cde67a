/** The relaxed canonical forms: RFC 6376's own examples, its wording taken literally, and another implementation. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bodyHash, relaxedBody, relaxedField, splitFields } from '../../../src/message/canonical.ts';
import { literalBody, literalField, mailauthBodyHash, mailauthField } from './dkim-verifier.ts';

const canonical = (body: string, before = '') =>
  relaxedBody(Buffer.from(before + body, 'latin1'), before.length).toString('latin1');

/** Text in which white space, line ends and everything around them meet. */
const octets = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ' ',
        '  ',
        '\t',
        ' \t',
        '\r\n',
        ' \r\n',
        '\r\n\r\n',
        '\t\r\n',
        'a',
        'bc',
        '\xa0',
        '\x85',
        '\xff',
        ':',
      ),
      fc.string({ unit: fc.integer({ min: 0x21, max: 0xff }).map((c) => String.fromCharCode(c)), maxLength: 6 }),
    ),
    { maxLength: 40 },
  )
  .map((pieces) => pieces.join(''));
const value = octets.map((text) => text.replaceAll(/\r\n(?![ \t])/g, '\r\n '));
const name = fc.constantFrom('Subject', 'FROM', 'x-A', 'List-ID');

describe('the relaxed body', () => {
  it('is that of RFC 6376 section 3.4.5', () => {
    expect(canonical(' C \r\nD \t E\r\n\r\n\r\n')).toBe(' C\r\nD E\r\n');
  });

  it('is nothing where the body is nothing but white space and line ends', () => {
    for (const body of ['', '\r\n', '\r\n\r\n\r\n', ' ', ' \t', ' \r\n\t\r\n', '\t']) expect(canonical(body)).toBe('');
  });

  it('ends in one CRLF, whatever the body ends in', () => {
    for (const end of ['', ' ', '\r\n', '\r\n\r\n', ' \r\n \r\n', '\t\r\n\r\n '])
      expect(canonical(`x${end}`)).toBe('x\r\n');
  });

  it('leaves what is no white space of the RFC alone: bare CR and LF, form feeds, no-break spaces', () => {
    expect(canonical('a\rb\nc\x0bd\x0ce\xa0\xa0f\r\n')).toBe('a\rb\nc\x0bd\x0ce\xa0\xa0f\r\n');
  });

  it('is what the RFC says, wherever in the message it begins', () => {
    fc.assert(
      fc.property(octets, fc.constantFrom('', 'A: b\r\n\r\n', '  \r\n'), (body, before) => {
        expect(canonical(body, before)).toBe(literalBody(body));
      }),
      { numRuns: 5000 },
    );
  });

  it('is a view of a message that is canonical already', () => {
    const data = Buffer.from('A: b\r\n\r\nx y\r\n\r\n');
    const body = relaxedBody(data, 8);
    expect([body.buffer, body.byteOffset]).toEqual([data.buffer, data.byteOffset + 8]);
  });

  it('has the hash that mailauth finds', () => {
    fc.assert(
      fc.property(octets, (body) => {
        const bytes = Buffer.from(`x${body}\r\n`, 'latin1');
        expect(bodyHash(bytes, 0)).toBe(mailauthBodyHash(bytes));
      }),
      { numRuns: 2000 },
    );
    const empty = createHash('sha256').update('').digest('base64');
    expect(bodyHash(Buffer.from('A: b\r\n\r\n'), 8)).toBe(empty);
  });

  it('of a mebibyte of anything takes one pass', () => {
    for (const unit of [' ', '\t', '\r\n', ' \r\n', 'a  b', 'a', ' a']) {
      const body = unit.repeat((1024 * 1024) / unit.length);
      expect(canonical(body) === literalBody(body)).toBe(true);
    }
  });
});

describe('a relaxed field', () => {
  const relaxed = (text: string) => splitFields(`${text}\r\n\r\n`).map(relaxedField);

  it('is that of RFC 6376 section 3.4.5', () => {
    expect(relaxed('A: X\r\nB : Y\t\r\n\tZ  ')).toEqual(['a:X', 'b:Y Z']);
  });

  it('is what the RFC says', () => {
    fc.assert(
      fc.property(name, fc.constantFrom('', ' ', '\t'), value, (name, gap, value) => {
        const field = `${name}${gap}:${value}`;
        expect(relaxed(field)).toEqual([literalField(field)]);
      }),
      { numRuns: 5000 },
    );
  });

  it('is what mailauth makes of it', () => {
    fc.assert(
      fc.property(name, value, (name, value) => {
        const field = `${name}:${value}`;
        expect(relaxed(field)).toEqual([mailauthField(field)]);
      }),
      { numRuns: 2000 },
    );
  });

  it('keeps the UTF-8 of an internationalised address', () => {
    const [field = ''] = relaxed(
      `From:  à\u3000ü@example.org`.replace(/[^ -~]/g, (c) => Buffer.from(c).toString('latin1')),
    );
    expect(Buffer.from(field, 'latin1').toString()).toBe('from:à\u3000ü@example.org');
  });
});

describe('a header', () => {
  it('is split at its fields and not at its folds, up to the empty line', () => {
    const header = 'A: 1\r\nB:\r\n 2\r\n\t3\r\nno colon\r\nC : 4\r\n\r\nD: body\r\n';
    expect(splitFields(header)).toEqual([
      { name: 'a', text: 'A: 1' },
      { name: 'b', text: 'B:\r\n 2\r\n\t3' },
      { name: '', text: 'no colon' },
      { name: 'c', text: 'C : 4' },
    ]);
    expect(splitFields('')).toEqual([]);
    expect(splitFields('A: 1')).toEqual([{ name: 'a', text: 'A: 1' }]);
  });
});

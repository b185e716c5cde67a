import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  createMessageIdGenerator,
  getIdCounter,
  getIdTimestamp,
  isMessageId,
  validateSubmission,
} from '../../../src/model/submission.ts';

const validBody = { to: 'Ann@Example.com', from: 'shop@example.org', subject: 'Hi', message: 'Hello' };

function getRefusal(body: unknown): unknown {
  const admission = validateSubmission(body);
  return admission.kind === 'refused' ? admission.refusal : 'valid';
}

describe('admission', () => {
  it('accepts the four fields unchanged, and returns both parsed addresses and the suppression key', () => {
    expect(validateSubmission({ ...validBody, unknown: 1 })).toEqual({
      kind: 'valid',
      submission: {
        ...validBody,
        toAddress: { localPart: 'Ann', domain: 'example.com', isAscii: true },
        fromAddress: { localPart: 'shop', domain: 'example.org', isAscii: true },
        recipient: 'ann@example.com',
      },
    });
  });

  it.each([null, [], [validBody], 'text', 1, true, undefined])(
    'refuses a body that is not an object (%j) as an invalid JSON payload',
    (body) => {
      expect(getRefusal(body)).toEqual({ code: 'invalid-json' });
    },
  );

  it('treats absent, null and empty fields as missing, and names them in the order of the fields', () => {
    const fields = ['to', 'from', 'subject', 'message'];
    expect(getRefusal({})).toEqual({ code: 'missing-fields', fields });
    expect(getRefusal({ message: null, subject: '', from: undefined, to: null })).toEqual({
      code: 'missing-fields',
      fields,
    });
    expect(getRefusal({ ...validBody, subject: '', to: null })).toEqual({
      code: 'missing-fields',
      fields: ['to', 'subject'],
    });
  });

  it('reports missing fields before wrong types, and wrong types before invalid content', () => {
    expect(getRefusal({ ...validBody, to: 1, from: '' })).toEqual({ code: 'missing-fields', fields: ['from'] });
    expect(getRefusal({ ...validBody, to: 1, from: 'unknown', subject: ['x'], message: false })).toEqual({
      code: 'not-strings',
      fields: ['to', 'subject', 'message'],
    });
    expect(getRefusal({ ...validBody, to: 'unknown', message: 'a\0' })).toMatchObject({
      code: 'invalid-field',
      field: 'message',
    });
    expect(getRefusal({ ...validBody, to: 'unknown', subject: 'a\nb' })).toEqual({
      code: 'invalid-address',
      fields: ['to'],
    });
  });

  const SURROGATES = ['unpaired surrogates', ['a\ud800b', 'a\udc00', 'a\ud800@b.example']] as const;
  const NULS = ['NUL characters', ['a\0b', '\0', 'a\0\ud800']] as const;
  it.each([
    ...['to', 'from', 'subject', 'message'].map((field) => [field, ...SURROGATES] as const),
    ...['subject', 'message'].map((field) => [field, ...NULS] as const),
  ])('refuses in %s %s, with the field and the fault', (field, name, texts) => {
    for (const text of texts)
      expect(getRefusal({ ...validBody, [field]: text })).toEqual({
        code: 'invalid-field',
        field,
        fault: `${name} are not allowed`,
      });
  });

  it('refuses an address with a NUL at any position as an invalid address', () => {
    const texts = [
      '\0',
      '\0a@b.example',
      'a\0@b.example',
      'a@b\0.example',
      'a@b.example\0',
      '"a\0"@b.example',
      'a\0\ud800@b.example',
    ];
    for (const text of texts) {
      for (const [members, fields] of [
        [{ to: text }, ['to']],
        [{ from: text }, ['from']],
        [{ to: text, from: 'none' }, ['to', 'from']],
      ] as const)
        expect(getRefusal({ ...validBody, ...members })).toEqual({ code: 'invalid-address', fields });
    }
  });

  it('refuses a sender whose quoted local part mail programs misread, but accepts such a recipient', () => {
    for (const localPart of ['a@b', 'a\\@b', '<a', 'a>', 'a,b', '=?utf-8?q?a?=']) {
      const address = `"${localPart}"@b.example`;
      expect(getRefusal({ ...validBody, from: address })).toEqual({ code: 'invalid-address', fields: ['from'] });
      expect(validateSubmission({ ...validBody, to: address }).kind).toBe('valid');
    }
    for (const from of ['"ada lovelace"@b.example', '=?a?=@b.example'])
      expect(validateSubmission({ ...validBody, from }).kind).toBe('valid');
  });

  it('refuses line breaks and control characters except tab in the subject', () => {
    const lineBreakRefusal = { code: 'invalid-field', field: 'subject', fault: 'line breaks are not allowed' };
    for (const subject of ['a\r\nBcc: x@y.zz', '\n', 'a\r', '\x07\n'])
      expect(getRefusal({ ...validBody, subject })).toEqual(lineBreakRefusal);
    for (const subject of ['\x07', 'a\x1b[0m', '\x7f', '\x0b']) {
      expect(getRefusal({ ...validBody, subject })).toMatchObject({
        field: 'subject',
        fault: expect.stringContaining('control'),
      });
    }
    expect(validateSubmission({ ...validBody, subject: 'a\tb' }).kind).toBe('valid');
  });

  it('accepts a subject of up to 998 bytes in UTF-8', () => {
    for (const [subject, kind] of [
      ['a'.repeat(998), 'valid'],
      ['a'.repeat(999), 'refused'],
      ['é'.repeat(499), 'valid'],
      [`${'é'.repeat(499)}a`, 'refused'],
      [`${'用'.repeat(332)}aa`, 'valid'],
      ['用'.repeat(333), 'refused'],
      ['😀'.repeat(250), 'refused'],
      ['a'.repeat(1024 * 1024), 'refused'],
    ]) {
      expect(validateSubmission({ ...validBody, subject }).kind).toBe(kind);
    }
  });

  it('accepts any Unicode text without control characters in the subject, and any text without NUL in the message', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', minLength: 1, maxLength: 80 }),
        fc.string({ minLength: 1 }),
        (subject, message) => {
          fc.pre(![...subject].some((character) => character < ' ' || character === '\x7f') && !message.includes('\0'));
          expect(validateSubmission({ ...validBody, subject, message })).toMatchObject({
            kind: 'valid',
            submission: { subject, message },
          });
        },
      ),
    );
  });

  it('never throws for any JSON value', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.dictionary(fc.constantFrom('to', 'from', 'subject', 'message'), fc.jsonValue()),
        (any, members) => {
          validateSubmission(any);
          validateSubmission(members);
        },
      ),
    );
  });
});

const NOW = Date.UTC(2026, 0, 5, 12);

function areIncreasing(ids: readonly string[]): boolean {
  return ids.every((id, index) => index === 0 || (ids[index - 1] ?? '') < id);
}

test('a message id is a lower-case UUIDv7 with the time of its creation', () => {
  const id = createMessageIdGenerator(null, randomUUID).next(NOW);
  expect(isMessageId(id)).toBe(true);
  expect([getIdTimestamp(id), getIdCounter(id)]).toEqual([NOW, 0]);
  expect(id).toBe(id.toLowerCase());
});

test('message ids are strictly increasing for every sequence of clock readings', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: NOW - 5_000, max: NOW + 5_000 }), { maxLength: 200 }), (times) => {
      const ids = createMessageIdGenerator(null, randomUUID);
      const createdIds = times.map((now) => ids.next(now));
      expect(areIncreasing(createdIds)).toBe(true);
      expect(createdIds.every(isMessageId)).toBe(true);
    }),
  );
});

test('after a restart, ids are greater than the last stored id, even if the clock is set back and the counter is full', () => {
  const generatorBefore = createMessageIdGenerator(null, randomUUID);
  let lastId = '';
  for (let n = 0; n < 4_096; n += 1) lastId = generatorBefore.next(NOW);
  expect(getIdCounter(lastId)).toBe(4_095);
  const generatorAfter = createMessageIdGenerator(lastId, randomUUID);
  const createdIds = [
    generatorAfter.next(NOW - 3_600_000),
    generatorAfter.next(NOW),
    generatorAfter.next(NOW + 60_000),
  ];
  expect(areIncreasing([lastId, ...createdIds])).toBe(true);
  expect(createdIds.every(isMessageId)).toBe(true);
});

test.each([
  '',
  '01990000-0000-4000-8000-000000000001',
  '01990000-0000-7000-c000-000000000001',
  '01990000-0000-7000-8000-00000000000A',
  '01990000-0000-7000-8000-0000000000011',
  '01990000-0000-7000-8000-000000000001\n',
  '019900000000700080000000000000010000',
])('%j is not a message id', (text) => {
  expect(isMessageId(text)).toBe(false);
});

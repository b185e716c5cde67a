/** Tests the functions that read untrusted JSON. */
import { describe, expect, it } from 'vitest';
import { computeDigest, findPostriderId, findRow, parseJson, toMessageId } from '../../../src/providers/json.ts';

const parse = (text: string) => parseJson(Buffer.from(text));

function nestJson(depth: number): string {
  return `${'[{"a":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`;
}

describe('parseJson', () => {
  it.each([64, 65, 1_000_000])('accepts %i levels of objects and arrays', (depth) => {
    expect(parse(nestJson(depth))).toBeDefined();
  });

  it('replaces bytes that are not UTF-8', () => {
    expect(parseJson(Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d]))).toEqual(['\ufffd']);
  });

  it.each([
    ['brackets in a string', `["${'['.repeat(1_000)}"]`],
    ['brackets after an escaped quotation mark', `["\\"${'{'.repeat(1_000)}"]`],
    ['brackets after an escaped backslash and the end of the string', `["\\\\",${'[],'.repeat(1_000)}1]`],
    ['many adjacent objects', `[${'{},'.repeat(10_000)}1]`],
    ['a byte order mark', '\uFEFF[]'],
  ])('accepts %s', (_name, text) => {
    expect(parse(text)).toBeDefined();
  });

  it.each(['', '[', '"', '"\\', '[}', ']'.repeat(1_000), 'undefined'])('returns undefined for “%s”', (text) => {
    expect(parse(text)).toBeUndefined();
  });
});

it('computeDigest returns null for a value that is nested deeper than 64 levels, and never throws', () => {
  expect(computeDigest(parse(nestJson(64)))).toMatch(/^[0-9a-f]{64}$/);
  expect(computeDigest(parse(`[${nestJson(64)}]`))).toBeNull();
  expect(computeDigest(parse(nestJson(1_000_000)))).toBeNull();
});

it.each(['constructor', 'toString', '__proto__', 'hasOwnProperty', '', null])(
  'no row of a table is found under the name “%s”',
  (name) => {
    expect(findRow({ bounce: 'hard' }, name)).toBeUndefined();
  },
);

it('toMessageId returns only ids of messages', () => {
  const id = '01990000-0000-7000-8000-000000000001';
  expect(toMessageId(id)).toBe(id);
  for (const value of ['', 'x', `${id} `, `<${id}>`, 7, [id], null, undefined]) expect(toMessageId(value)).toBeNull();
});

const ID = '01990000-0000-7000-8000-000000000001';

it.each([
  ['the id', ID],
  ['a Message-ID', `<${ID}@mail.example.com>`],
  ['a Message-ID without angle brackets', `${ID}@mail.example.com`],
  ['metadata', { 'postrider-id': ID }],
  ['metadata as JSON text', JSON.stringify({ 'postrider-id': ID })],
  ['metadata with an array', { 'postrider-id': [ID] }],
  ['metadata in an array', [{ 'postrider-id': ID }]],
])('%s identifies a message of Postrider', (_name, value) => {
  expect(findPostriderId(value)).toBe(ID);
});

it.each([
  ['another id', 'abc'],
  ['a Message-ID of another program', '<abc@example.com>'],
  ['an id with a suffix', `${ID}x`],
  ['metadata of another program', { id: ID }],
  ['JSON text of another value', `["${ID}"]`],
  ['JSON text of more than 4,096 characters', `{"postrider-id":"${ID}","x":"${'x'.repeat(4_096)}"}`],
  ['nothing', undefined],
])('%s identifies no message of Postrider', (_name, value) => {
  expect(findPostriderId(value)).toBeNull();
});

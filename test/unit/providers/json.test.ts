import { describe, expect, it } from 'vitest';
import { findPostriderId, parseJson } from '../../../src/providers/json.ts';

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

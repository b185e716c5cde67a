/** Tests the functions that read untrusted JSON. */
import { describe, expect, it } from 'vitest';
import { parseJson, rowOf, toMessageId } from '../../../src/providers/json.ts';

const parse = (text: string) => parseJson(Buffer.from(text));

function nest(depth: number): string {
  return `${'[{"a":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`;
}

describe('parseJson', () => {
  it('accepts 64 levels of objects and arrays and refuses more', () => {
    expect(parse(nest(64))).toBeDefined();
    expect(parse(`[${nest(64)}]`)).toBeUndefined();
    expect(parse(nest(1_000_000))).toBeUndefined();
  });

  it.each([
    ['brackets in a string', `["${'['.repeat(1_000)}"]`],
    ['brackets after an escaped quotation mark', `["\\"${'{'.repeat(1_000)}"]`],
    ['brackets after an escaped backslash and the end of the string', `["\\\\",${'[],'.repeat(1_000)}1]`],
    ['many objects beside each other', `[${'{},'.repeat(10_000)}1]`],
    ['a byte order mark', '\uFEFF[]'],
  ])('accepts %s', (_name, text) => {
    expect(parse(text)).toBeDefined();
  });

  it.each(['', '[', '"', '"\\', '[}', ']'.repeat(1_000), 'undefined'])('returns undefined for “%s”', (text) => {
    expect(parse(text)).toBeUndefined();
  });
});

it.each(['constructor', 'toString', '__proto__', 'hasOwnProperty', '', null])('a table has no row “%s”', (name) => {
  expect(rowOf({ bounce: 'hard' }, name)).toBeUndefined();
});

it('toMessageId returns only ids of messages', () => {
  const id = '01990000-0000-7000-8000-000000000001';
  expect(toMessageId(id)).toBe(id);
  for (const value of ['', 'x', `${id} `, `<${id}>`, 7, [id], null, undefined]) expect(toMessageId(value)).toBeNull();
});

/**
 * Array parameters in PostgreSQL's binary form (array_send in src/backend/utils/adt/arrayfuncs.c): the server reads them without
 * parsing text, which takes a fifth of its processor time from a batch (docs/decisions/hot-path.md).
 *
 * A statement says the type of each array parameter with a cast where it is used (`$1::uuid[]`). A value that does not fit its
 * type stays as it is, so that the server refuses it as it does in text form.
 */
import type { Statement } from './session.ts';

type Element = 'uuid' | 'text' | 'int' | 'bigint';

/** Numbers of the types in pg_type. */
const OID: Readonly<Record<Element, number>> = { uuid: 2950, text: 25, int: 23, bigint: 20 };
/** Dimensions, whether there are nulls, element type, length and lower bound of the one dimension. */
const HEAD_BYTES = 20;
const LENGTH_BYTES = 4;
const NULL_LENGTH = -1;
const CAST = /\$(\d{1,3})::(uuid|text|int|bigint)\[\]/g;

/** By statement: the element type of each parameter that is such an array. */
const TYPES = new WeakMap<Statement, readonly (Element | undefined)[]>();

/** The values of `statement` as the driver sends them: arrays as Buffers, which it sends in binary form. */
export function encoded(statement: Statement, values: readonly unknown[]): unknown[] {
  let types = TYPES.get(statement);
  if (types === undefined) {
    types = typesOf(statement.text);
    TYPES.set(statement, types);
  }
  const sent = new Array<unknown>(values.length);
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at];
    const type = types[at];
    sent[at] = type !== undefined && Array.isArray(value) ? (arrayOf(type, value) ?? value) : value;
  }
  return sent;
}

function typesOf(text: string): readonly (Element | undefined)[] {
  const types: (Element | undefined)[] = [];
  for (const [, number, type] of text.matchAll(CAST)) types[Number(number) - 1] = type as Element;
  return types;
}

/** The array in binary form, or null where an element is not of the type. */
export function arrayOf(type: Element, values: readonly unknown[]): Buffer | null {
  const bytes = sizeOf(type, values);
  if (bytes === null) return null;
  const array = Buffer.allocUnsafe(bytes);
  array.writeInt32BE(values.length === 0 ? 0 : 1, 0);
  array.writeInt32BE(values.includes(null) ? 1 : 0, 4);
  array.writeInt32BE(OID[type], 8);
  if (values.length === 0) return array;
  array.writeInt32BE(values.length, 12);
  array.writeInt32BE(1, 16);
  let at = HEAD_BYTES;
  for (const value of values) {
    if (value === null) at = array.writeInt32BE(NULL_LENGTH, at);
    else if (typeof value === 'number') at = writeNumber(array, at, type, value);
    else if (typeof value === 'string' && type === 'text') {
      const length = array.write(value, at + LENGTH_BYTES);
      array.writeInt32BE(length, at);
      at += LENGTH_BYTES + length;
    } else if (typeof value === 'string') {
      const hex = value.length === 36 ? value.replaceAll('-', '') : value;
      if (hex.length !== 32 || array.write(hex, at + LENGTH_BYTES, 'hex') !== 16) return null;
      array.writeInt32BE(16, at);
      at += LENGTH_BYTES + 16;
    }
  }
  return array;
}

/** Bytes of the whole array, or null where an element is not of the type. */
function sizeOf(type: Element, values: readonly unknown[]): number | null {
  if (values.length === 0) return HEAD_BYTES - 8;
  let bytes = HEAD_BYTES + LENGTH_BYTES * values.length;
  for (const value of values) {
    if (value === null) continue;
    switch (type) {
      case 'text':
        if (typeof value !== 'string') return null;
        bytes += Buffer.byteLength(value);
        break;
      case 'uuid':
        if (typeof value !== 'string') return null;
        bytes += 16;
        break;
      case 'int':
        if (typeof value !== 'number' || (value | 0) !== value) return null;
        bytes += 4;
        break;
      case 'bigint':
        if (typeof value !== 'number' || !Number.isSafeInteger(value)) return null;
        bytes += 8;
        break;
    }
  }
  return bytes;
}

function writeNumber(array: Buffer, at: number, type: Element, value: number): number {
  if (type === 'int') return array.writeInt32BE(value, array.writeInt32BE(4, at));
  const high = Math.floor(value / 2 ** 32);
  return array.writeUInt32BE(value - high * 2 ** 32, array.writeInt32BE(high, array.writeInt32BE(8, at)));
}

/**
 * Array parameters in PostgreSQL's binary format (array_send in src/backend/utils/adt/arrayfuncs.c), so that the server
 * does not parse text, which saves it a seventh of the processor time of an accepted message (docs/decisions/hot-path.md).
 * A cast in the statement declares the type of each array parameter (`$1::uuid[]`).
 */
import type { Statement } from './session.ts';

/** OIDs of the element types in pg_type. */
const TYPE_OIDS = { uuid: 2950, text: 25, int: 23, bigint: 20 } as const;
type ElementType = keyof typeof TYPE_OIDS;

const HEADER_BYTES = 20;
const LENGTH_BYTES = 4;
const NULL_LENGTH = -1;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The element type of each array parameter of each statement. */
const ARRAY_TYPES = new WeakMap<Statement, (ElementType | undefined)[]>();

/** Returns the values of `statement` in the form that the driver requires. The driver sends a Buffer in binary format. */
export function encodeValues(statement: Statement, values: readonly unknown[]): unknown[] {
  const types = ARRAY_TYPES.get(statement) ?? [];
  if (!ARRAY_TYPES.has(statement)) {
    ARRAY_TYPES.set(statement, types);
    for (const [, number, type] of statement.text.matchAll(/\$(\d{1,3})::(uuid|text|int|bigint)\[\]/g))
      types[Number(number) - 1] = type as ElementType;
  }
  return values.map((value, index) => {
    const type = types[index];
    return type !== undefined && Array.isArray(value) ? (encodeArray(type, value) ?? value) : value;
  });
}

/**
 * Returns the array in binary format. Returns null, so that the driver sends it as text and the server reports an error,
 * if an element does not fit the type; also for an empty array.
 */
function encodeArray(type: ElementType, values: readonly unknown[]): Buffer | null {
  if (values.length === 0) return null;
  let bytes = HEADER_BYTES + LENGTH_BYTES * values.length;
  for (const value of values) {
    const valueBytes = value === null ? 0 : measureElement(type, value);
    if (valueBytes === null) return null;
    bytes += valueBytes;
  }
  const array = Buffer.allocUnsafe(bytes);
  let offset = 0;
  // The number of dimensions, whether there is a null, the element type, and the length and lower bound of the dimension.
  for (const word of [1, Number(values.includes(null)), TYPE_OIDS[type], values.length, 1])
    offset = array.writeInt32BE(word, offset);
  for (const value of values) {
    const start = offset + LENGTH_BYTES;
    let length = NULL_LENGTH;
    if (type === 'bigint' && typeof value === 'number') length = array.writeBigInt64BE(BigInt(value), start) - start;
    else if (typeof value === 'number') length = array.writeInt32BE(value, start) - start;
    else if (typeof value === 'string')
      length = type === 'uuid' ? array.write(value.replaceAll('-', ''), start, 'hex') : array.write(value, start);
    array.writeInt32BE(length, offset);
    offset = start + Math.max(0, length);
  }
  return array;
}

/** Returns the size of an element in bytes, or null if it does not fit the type. */
function measureElement(type: ElementType, value: unknown): number | null {
  switch (type) {
    case 'text':
      return typeof value === 'string' ? Buffer.byteLength(value) : null;
    case 'uuid':
      return typeof value === 'string' && UUID.test(value) ? 16 : null;
    case 'int':
      return typeof value === 'number' && (value | 0) === value ? 4 : null;
    case 'bigint':
      return Number.isSafeInteger(value) ? 8 : null;
  }
}

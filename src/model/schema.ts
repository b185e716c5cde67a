/**
 * Builds the JSON Schemas of TypeBox. Only the types of the library are imported, because loading its code took a third
 * of the run time of a short command (docs/decisions/launcher.md). Pure.
 */
import type { TSchema, TUnsafe, Type as TypeBox } from 'typebox';

type UsedTypes =
  | 'Array'
  | 'Boolean'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'String'
  | 'Union'
  | 'Unknown'
  | 'Unsafe';

/** Marks the schema of an optional member. The JSON does not contain it. */
const OPTIONAL_MARK = Symbol('optional');

const builder = {
  Array: (items: object, options?: object) => ({ type: 'array', items, ...options }),
  Boolean: (options?: object) => ({ type: 'boolean', ...options }),
  Integer: (options?: object) => ({ type: 'integer', ...options }),
  Literal: (value: string | number | boolean, options?: object) => ({ type: typeof value, const: value, ...options }),
  Null: (options?: object) => ({ type: 'null', ...options }),
  Number: (options?: object) => ({ type: 'number', ...options }),
  Object(properties: Readonly<Record<string, object>>, options?: object) {
    const members = Object.entries(properties);
    const required = members.filter(([, schema]) => !(OPTIONAL_MARK in schema)).map(([name]) => name);
    return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options };
  },
  Optional: (schema: object) => Object.defineProperty({ ...schema }, OPTIONAL_MARK, { value: true }),
  String: (options?: object) => ({ type: 'string', ...options }),
  Union: (anyOf: readonly object[], options?: object) => ({ anyOf, ...options }),
  Unknown: (options?: object) => ({ ...options }),
  Unsafe: (schema: object) => ({ ...schema }),
};

/** A test checks that the library produces the same schemas. */
export const Type = builder as unknown as Pick<typeof TypeBox, UsedTypes>;

export function createEnum<const T extends string>(values: readonly T[], description: string): TUnsafe<T> {
  return Type.Unsafe<T>({ type: 'string', enum: [...values], description });
}

export function createNullable<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()]);
}

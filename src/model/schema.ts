/**
 * Builds JSON Schemas with the calls and the types of TypeBox, and with the same result, as far as they are used here. Loading the
 * library took a third of a short command's time (docs/decisions/launcher.md); its types cost nothing. Pure.
 */
import type { Type as TypeBox } from 'typebox';

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

/** Marks a member that an object need not have; not part of the JSON. */
const OPTIONAL = Symbol('optional');

const builder = {
  Array: (items: object, options?: object) => ({ type: 'array', items, ...options }),
  Boolean: (options?: object) => ({ type: 'boolean', ...options }),
  Integer: (options?: object) => ({ type: 'integer', ...options }),
  Literal: (value: string | number | boolean, options?: object) => ({ type: typeof value, const: value, ...options }),
  Null: (options?: object) => ({ type: 'null', ...options }),
  Number: (options?: object) => ({ type: 'number', ...options }),
  Object(properties: Readonly<Record<string, object>>, options?: object) {
    const members = Object.entries(properties);
    const required = members.filter(([, schema]) => !(OPTIONAL in schema)).map(([name]) => name);
    return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options };
  },
  Optional: (schema: object) => Object.defineProperty({ ...schema }, OPTIONAL, { value: true }),
  String: (options?: object) => ({ type: 'string', ...options }),
  Union: (anyOf: readonly object[], options?: object) => ({ anyOf, ...options }),
  Unknown: (options?: object) => ({ ...options }),
  Unsafe: (schema: object) => ({ ...schema }),
};

/** The builder; its types are those of the library, which a test holds its results to. */
export const Type = builder as unknown as Pick<typeof TypeBox, UsedTypes>;

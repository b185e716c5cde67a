/** Schemas of names, times and pages that several operations share. The API reference shows their descriptions. */
import type { TSchema, TUnsafe } from 'typebox';
import { MAX_INT32 } from '../config/units.ts';
import { Type } from '../model/schema.ts';
import { SUPPRESSION_REASONS } from '../model/suppression.ts';

/** Creates the schema of a value from a fixed set of strings. */
export function createStringEnum<const T extends string>(
  values: readonly T[],
  options: { readonly description?: string; readonly default?: T } = {},
): TUnsafe<T> {
  return Type.Unsafe<T>({ type: 'string', enum: [...values], ...options });
}

/** Creates the schema of a value that may be null. */
export function createNullable<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()]);
}

export const AccountName = Type.String({ description: 'The name of the account.' });
export const ListName = Type.String({
  description: 'The name of the account, or `*` for the suppression list of the whole service.',
});
/** A time in ISO 8601 format, UTC. */
export const Time = Type.String({ format: 'date-time', description: 'ISO 8601, UTC.' });
export const MessageId = Type.String({ format: 'uuid', description: 'The id of the message.' });

/** The reason, source and time of an entry of a suppression list. */
export const suppressionMembers = {
  reason: createStringEnum(SUPPRESSION_REASONS, { description: 'The reason why the address is suppressed.' }),
  source: createNullable(
    Type.String({
      description:
        'The id of the message that caused the entry; null if an operator added it, or if an import contained no message id.',
    }),
  ),
  at: Time,
};
/** An entry of an address in a suppression list. */
export const SuppressionListEntry = Type.Object({
  list: Type.String({ description: 'The name of an account, or `*` for the whole service.' }),
  ...suppressionMembers,
});

/**
 * Creates the schema of the number of a row, such as a token. The default of `maximum` is the greatest number that a
 * column of type `integer` in PostgreSQL can contain. The numbers of feedback reports need a greater maximum, because
 * their column is a `bigint`. `fault` follows an invalid value in the error text: `is not the number of a token; …`.
 */
export function createRowNumber(description: string, fault: string, maximum = MAX_INT32) {
  return Type.Integer({ minimum: 1, maximum, description, errorMessage: fault });
}

/** Creates the schema of a page size. */
export function createPageSizeMember(maximum: number) {
  return Type.Integer({
    minimum: 1,
    maximum,
    default: 50,
    description: `The page size, 1 to ${maximum}; the default is 50.`,
  });
}

/** Schemas that several operations share: names, times, pages. Each carries its description into the API reference. */
import type { TSchema, TUnsafe } from 'typebox';
import { MAX_INT32 } from '../config/units.ts';
import { Type } from '../model/schema.ts';

/** One of a closed set of strings. */
export function oneOf<const T extends string>(
  values: readonly T[],
  options: { readonly description?: string; readonly default?: T } = {},
): TUnsafe<T> {
  return Type.Unsafe<T>({ type: 'string', enum: [...values], ...options });
}

/** A value that may be null. */
export function nullable<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()]);
}

export const AccountName = Type.String({ description: 'The account’s name.' });
export const ListName = Type.String({
  description: 'The account’s name, or `*` for the suppression list of the whole service.',
});
/** ISO 8601, UTC. */
export const Time = Type.String({ format: 'date-time', description: 'ISO 8601, UTC.' });
export const MessageId = Type.String({ format: 'uuid', description: 'The message’s id.' });

export const SUPPRESSION_REASONS = ['bounce', 'complaint', 'manual'] as const;
/** Why and since when an address is on a suppression list. */
export const suppressionMembers = {
  reason: oneOf(SUPPRESSION_REASONS, { description: 'Why the address receives no messages.' }),
  source: nullable(
    Type.String({ description: 'The id of the message that caused the entry; null: an operator or an import.' }),
  ),
  at: Time,
};
/** A suppression list that an address is on. */
export const SuppressionListEntry = Type.Object({
  list: Type.String({ description: 'An account’s name, or `*` for the whole service.' }),
  ...suppressionMembers,
});

/**
 * The number of a row, such as a token's: what both stores hold as one. `what` is said of anything else, after the value:
 * `is not the number of a token; …`. Rows that come as fast as feedback reports need more than 31 bits.
 */
export function rowNumber(description: string, what: string, maximum = MAX_INT32) {
  return Type.Integer({ minimum: 1, maximum, description, errorMessage: what });
}

/** The size of a page. */
export function limit(maximum: number) {
  return Type.Integer({
    minimum: 1,
    maximum,
    default: 50,
    description: `Page size, 1 to ${maximum}; 50 unless given.`,
  });
}

import type { TSchema, TUnsafe } from 'typebox';
import { createFault, createParseResult, MAX_INT32, type ParseResult, parseTimestamp, quote } from '../config/units.ts';
import { Type } from '../model/schema.ts';
import { isMessageId } from '../model/submission.ts';
import { SUPPRESSION_REASONS } from '../model/suppression.ts';

/** The key of the function that `readInput` applies to the text of a member. No JSON contains the function. */
export const PARSE = Symbol('parse');
export type ParseText<T = unknown> = (text: string, now: number) => ParseResult<T>;

export function createParsed<T>(options: Readonly<Record<string, unknown>>, parse: ParseText<T>): TUnsafe<T> {
  return Type.Unsafe<T>({ type: 'string', ...options, [PARSE]: parse } as object);
}

const MAX_NAME_LENGTH = 64;

export function parseVisibleText(text: string, maxLength = MAX_NAME_LENGTH): ParseResult<string> {
  const isValid = text.length >= 1 && text.length <= maxLength && text.trim() === text && !/\p{C}/u.test(text);
  return isValid ? createParseResult(text) : createFault(`${quote(text)} is not 1 to ${maxLength} visible characters`);
}

/** Parses a name. A leading hyphen is refused, because a command would read the name as an option. */
export function parseName(text: string): ParseResult<string> {
  const parsed = parseVisibleText(text);
  return parsed.ok && text.startsWith('-') ? createFault(`${quote(text)} begins with a hyphen`) : parsed;
}

export function parseMessageId(text: string): ParseResult<string> {
  const id = text.toLowerCase();
  if (isMessageId(id)) return createParseResult(id);
  return createFault(`${quote(text)} is not a message id; \`postrider message list\` shows ids`);
}

export function createStringEnum<const T extends string>(
  values: readonly T[],
  options: { readonly description?: string; readonly default?: T } = {},
): TUnsafe<T> {
  return Type.Unsafe<T>({ type: 'string', enum: [...values], ...options });
}

export function createNullable<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()]);
}

export const createOptionalText = (description: string) => Type.Optional(Type.String({ description }));

/** Creates the schema of a list of values separated by commas. `x-values` are the values that completion offers. */
export const createOptionalList = (description: string, values: readonly string[]) =>
  Type.Optional(Type.String({ description, 'x-values': [...values] }));

export const AccountName = Type.String({ description: 'The name of the account.' });
export const ListName = Type.String({
  description: 'The name of the account, or `*` for the suppression list of the whole service.',
});
/** A time in ISO 8601 format, UTC. */
export const Time = Type.String({ format: 'date-time', description: 'ISO 8601, UTC.' });
export const MessageId = createParsed({ format: 'uuid', description: 'The id of the message.' }, parseMessageId);
export const createExpiry = (object: string) =>
  Type.Optional(
    createParsed(
      { description: `A date (UTC) or a duration such as \`90d\`; without it the ${object} does not expire.` },
      (text, now) => parseTimestamp(text, now, 'ahead'),
    ),
  );

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
export const SuppressionListEntry = Type.Object({
  list: Type.String({ description: 'The name of an account, or `*` for the whole service.' }),
  ...suppressionMembers,
});

/** The default of `maximum` is that of a column of type `integer` in PostgreSQL. */
export function createRowNumber(description: string, fault: string, maximum = MAX_INT32) {
  return Type.Integer({ minimum: 1, maximum, description, errorMessage: fault });
}

export function createPageSizeMember(maximum: number) {
  return Type.Integer({
    minimum: 1,
    maximum,
    default: 50,
    description: `The page size, 1 to ${maximum}; the default is 50.`,
  });
}

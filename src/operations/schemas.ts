import type { TProperties, TSchema, TUnsafe } from 'typebox';
import { createFault, createParseResult, MAX_INT32, type ParseResult, parseTimestamp, quote } from '../config/units.ts';
import { Type as Base } from '../model/schema.ts';
import { isMessageId } from '../model/submission.ts';
import { SUPPRESSION_REASONS } from '../model/suppression.ts';

/** The key of the function that `readInput` applies to the text of a member. No JSON contains the function. */
export const PARSE = Symbol('parse');
export type ParseText<T = unknown> = (text: string, now: number) => ParseResult<T>;

export function createParsed<T>(options: Options, parse: ParseText<T>): TUnsafe<T> {
  return Base.Unsafe<T>({ type: 'string', ...toOptions(options), [PARSE]: parse } as object);
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

type Options = string | Readonly<Record<string, unknown>>;

function toOptions(options: Options = {}): Exclude<Options, string> {
  return typeof options === 'string' ? { description: options } : options;
}

export function createStringEnum<const T extends string>(values: readonly T[], options?: Options): TUnsafe<T> {
  return Base.Unsafe<T>({ type: 'string', enum: [...values], ...toOptions(options) });
}

export function createNullable<S extends TSchema>(schema: S, options: { readonly description?: string } = {}) {
  return Base.Union([schema, Base.Null()], { ...options });
}

/** The builders of schemas, which also accept a description instead of options. */
export const Type = {
  ...Base,
  Array: <S extends TSchema>(items: S, options?: Options) => Base.Array(items, toOptions(options)),
  Boolean: (options?: Options) => Base.Boolean(toOptions(options)),
  Enum: createStringEnum,
  Flag: (description: string) => Base.Boolean({ default: false, description }),
  Integer: (options?: Options) => Base.Integer(toOptions(options)),
  Nullable: <S extends TSchema>(schema: S, description?: string) =>
    createNullable(schema, description === undefined ? {} : { description }),
  NullableEnum: <const T extends string>(values: readonly T[], description: string) =>
    createNullable(createStringEnum(values, description)),
  NullableInteger: (description: string) => createNullable(Base.Integer({ description })),
  NullableNumber: (description: string) => createNullable(Base.Number({ description })),
  NullableString: (description: string) => createNullable(Base.String({ description })),
  NullableTime: (description: string) => createNullable(Base.String({ format: 'date-time', description })),
  NullableUuid: (description: string) => createNullable(Base.String({ format: 'uuid', description })),
  Number: (options?: Options) => Base.Number(toOptions(options)),
  Object: <P extends TProperties>(properties: P, options?: Options) => Base.Object(properties, toOptions(options)),
  OptionalParsed: <T>(options: Options, parse: ParseText<T>) => Base.Optional(createParsed(options, parse)),
  OptionalString: (description: string) => Base.Optional(Base.String({ description })),
  String: (options?: Options) => Base.String(toOptions(options)),
  /** In ISO 8601 format, UTC. */
  Time: (description: string) => Base.String({ format: 'date-time', description }),
  Unknown: (options?: Options) => Base.Unknown(toOptions(options)),
  Uuid: (description?: string) => Base.String({ format: 'uuid', ...toOptions(description) }),
};

export const createPercentiles = (description: string) =>
  createNullable(Base.Object({ p50: Base.Number(), p99: Base.Number() }, { description }));

/** Creates the schema of a list of values separated by commas. `x-values` are the values that completion offers. */
export const createOptionalList = (description: string, values: readonly string[]) =>
  Type.Optional(Type.String({ description, 'x-values': [...values] }));

export const AccountName = Type.String('The name of the account.');
export const ListName = Type.String('The name of the account, or `*` for the suppression list of the whole service.');
export const Time = Type.Time('ISO 8601, UTC.');
export const MessageId = createParsed({ format: 'uuid', description: 'The id of the message.' }, parseMessageId);
export const createExpiry = (object: string) =>
  Type.Optional(
    createParsed(
      { description: `A date (UTC) or a duration such as \`90d\`; without it the ${object} does not expire.` },
      (text, now) => parseTimestamp(text, now, 'ahead'),
    ),
  );

export const suppressionMembers = {
  reason: Type.Enum(SUPPRESSION_REASONS, 'The reason why the address is suppressed.'),
  source: Type.NullableString(
    'The id of the message that caused the entry; null if an operator added it, or if an import contained no message id.',
  ),
  at: Time,
  expires: Type.NullableTime('The end of the entry; null: it does not expire.'),
};
export const SuppressionListEntry = Type.Object({
  list: Type.String('The name of an account, or `*` for the whole service.'),
  address: Type.String('The address, or the pattern of its domain.'),
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

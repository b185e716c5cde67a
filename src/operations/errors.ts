/**
 * The errors of operations, as data: a code that adapters map to exit codes and HTTP statuses, and one sentence for
 * people. No adapter reads the sentence.
 */
import { type Parsed, quote } from '../config/units.ts';

/** Each code with what it means and the HTTP status that the operator API answers with. */
export const ERROR_CODES = {
  /** The input is wrong; `field` names the member at fault. */
  invalid: { status: 400, meaning: 'A parameter is missing, unknown or invalid.' },
  forbidden: { status: 403, meaning: 'The caller may not do this.' },
  'not-found': { status: 404, meaning: 'The named thing does not exist.' },
  /** The request is valid, and the current state does not allow it. */
  conflict: { status: 409, meaning: 'The request conflicts with the current state.' },
  /** The store, DNS or the provider cannot do its part now. The same request may succeed later. */
  unavailable: { status: 503, meaning: 'A part that the operation needs does not answer.' },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly meaning: string }>>;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface OperationError {
  readonly code: ErrorCode;
  /** Names the thing, the problem and the remedy. Without a line break. Members of the input have their own names in it. */
  readonly message: string;
  /** The message with the members named otherwise, where it names any: `--volume-expires` on the command line. */
  readonly template?: MessageTemplate;
  /** The member of the input at fault; null where no single one is. */
  readonly field: string | null;
}

/** Makes a message out of the names that an adapter has for members of the input. */
export type MessageTemplate = (nameOf: (member: string) => string) => string;

/** What an operation resolves to. */
export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: OperationError };

export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

/** A failure, assignable to the result of every operation. */
export type Failed = Extract<Result<never>, { readonly ok: false }>;

function failed(code: ErrorCode, field: string | null, message: string): Failed {
  return { ok: false, error: { code, message, field } };
}

/** `field` is the member of the input at fault. `fault` does not repeat its name, which stands in front: `rate: …`. */
export function invalid(field: string | null, fault: string): Failed {
  return field === null
    ? failed('invalid', null, fault)
    : invalidTemplate(field, (nameOf) => `${nameOf(field)}: ${fault}`);
}

/** As `invalid`, for a sentence that names members of the input elsewhere than in front. */
export function invalidTemplate(field: string | null, phrase: MessageTemplate): Failed {
  return { ok: false, error: { code: 'invalid', field, message: phrase((member) => member), template: phrase } };
}

/** The value of a member that was read by one of the parsers of config/units.ts; or its fault, of that member. */
export function memberResult<T>(field: string, parsed: Parsed<T>): Result<T> {
  return parsed.ok ? ok(parsed.value) : invalid(field, parsed.fault);
}

export function notFound(field: string | null, message: string): Failed {
  return failed('not-found', field, message);
}

/** There is no account of this name. */
export function accountNotFound(name: string): Failed {
  return notFound('account', `there is no account ${quote(name)}; \`postrider account list\` shows them`);
}

export function conflict(field: string | null, message: string): Failed {
  return failed('conflict', field, message);
}

export function forbidden(message: string): Failed {
  return failed('forbidden', null, message);
}

export function unavailable(message: string): Failed {
  return failed('unavailable', null, message);
}

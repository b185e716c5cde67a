/** Errors of operations: a stable code, and one sentence for the operator that no program parses. */
import { type ParseResult, quote } from '../config/units.ts';

export const ERROR_CODES = {
  invalid: { status: 400, meaning: 'A parameter is missing, unknown or invalid.' },
  forbidden: { status: 403, meaning: 'The caller does not have permission for the operation.' },
  'not-found': { status: 404, meaning: 'The named object does not exist.' },
  conflict: { status: 409, meaning: 'The request conflicts with the current state.' },
  /** The store, DNS or the provider does not answer. The same request may succeed later. */
  unavailable: { status: 503, meaning: 'The store, DNS or the provider does not answer.' },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly meaning: string }>>;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface OperationError {
  readonly code: ErrorCode;
  /** Object, problem and remedy in one line. Input members have the names of the API. */
  readonly message: string;
  /** Builds the message with the member names of an adapter, such as `--volume-expires` on the command line. */
  readonly template?: MessageTemplate;
  /** The invalid member of the input; null if the error does not concern a single member. */
  readonly field: string | null;
}

type MessageTemplate = (getMemberName: (member: string) => string) => string;

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: OperationError };

export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

export type ErrorResult = Extract<Result<never>, { readonly ok: false }>;

function createErrorResult(code: ErrorCode, field: string | null, message: string): ErrorResult {
  return { ok: false, error: { code, message, field } };
}

export function createInvalid(field: string | null, fault: string): ErrorResult {
  return createInvalidTemplate(field, (getMemberName) => (field === null ? '' : `${getMemberName(field)}: `) + fault);
}

export function createInvalidTemplate(field: string | null, template: MessageTemplate): ErrorResult {
  return { ok: false, error: { code: 'invalid', field, message: template((member) => member), template } };
}

export function toMemberResult<T>(field: string, parsed: ParseResult<T>): Result<T> {
  return parsed.ok ? ok(parsed.value) : createInvalid(field, parsed.fault);
}

export function createNotFound(field: string | null, message: string): ErrorResult {
  return createErrorResult('not-found', field, message);
}

export function createAccountNotFound(name: string): ErrorResult {
  return createNotFound('account', `there is no account ${quote(name)}; \`postrider account list\` lists accounts`);
}

export function createConflict(field: string | null, message: string): ErrorResult {
  return createErrorResult('conflict', field, message);
}

export function createUnavailable(message: string): ErrorResult {
  return createErrorResult('unavailable', null, message);
}

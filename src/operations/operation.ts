/**
 * Defines operations. An operation is one action of an operator with a typed input, a typed result, error codes, and an
 * audit log entry in the transaction of the change. The command line and the operator API are adapters of operations.
 * The OpenAPI document and the types of the dashboard are generated from the schemas of the operations.
 *
 * `perform` returns an error if the input or a setting is invalid, the store does not answer, or the secret of the
 * installation is missing or wrong. An exception is a bug.
 */
import type { Static, TObject, TSchema } from 'typebox';
import type { AccessRule } from '../model/access.ts';
import { describeError } from '../printing/error-line.ts';
import type { OperationContext } from './context.ts';
import type { ErrorCode, Result } from './errors.ts';
import { createConflict, createUnavailable } from './errors.ts';
import { readInput } from './input.ts';

/** A warning to the operator about an operation that succeeded. */
export interface Warning {
  /** A stable code in kebab-case. */
  readonly code: string;
  readonly message: string;
}

/** The context of most operations. It does not contain `warn`, which `perform` adds. */
type DefaultContext = Omit<OperationContext, 'warn'>;

/** The members that all operations have, including those on files (file-operation.ts). */
export interface OperationBase<I extends TObject = TObject> extends AccessRule {
  /** `noun.verb`, the action in the audit log: `suppression.remove`. */
  readonly name: string;
  /** The `operationId` of the OpenAPI document: `removeSuppression`. */
  readonly id: string;
  /** One line in the imperative, without a full stop. */
  readonly summary: string;
  /** True if the operation makes a change and writes an audit log entry. */
  readonly makesChange: boolean;
  readonly input: I;
  /** The error codes of `run`, besides `invalid` and `unavailable`, which every operation can return. */
  readonly errors: readonly ErrorCode[];
}

/** An operation. `C` is the type of the context with which the operation runs. */
export interface Operation<I extends TObject = TObject, R extends TSchema = TSchema, C extends object = DefaultContext>
  extends OperationBase<I> {
  readonly result: R;
  run(input: Static<I>, context: C & Pick<OperationContext, 'warn'>): Promise<Result<Static<R>>>;
}

/** Defines an operation. The types of `run` are inferred from the schemas. */
export function defineOperation<I extends TObject, R extends TSchema>(definition: Operation<I, R>): Operation<I, R> {
  return definition;
}

/** A result with the warnings of the operation. */
export type OperationResult<T> = Result<T> & { readonly warnings: readonly Warning[] };

/**
 * Reads the input by the schema of the operation and runs the operation. `rawInput` contains the members as the adapter
 * received them: strings of a command line, a path or a query, or JSON values of a body.
 */
export function perform<I extends TObject, R extends TSchema, C extends object>(
  { input, run }: Operation<I, R, C>,
  rawInput: Readonly<Record<string, unknown>>,
  context: C,
): Promise<OperationResult<Static<R>>> {
  return performWith(input, rawInput, (parsedInput, warn) => run(parsedInput, { ...context, warn }));
}

/**
 * Reads an input by its schema and calls `run` with the result. Converts StoreError, SettingsError and SecretError into
 * error results.
 */
export async function performWith<I extends TObject, T>(
  input: I,
  rawInput: Readonly<Record<string, unknown>>,
  run: (parsedInput: Static<I>, warn: OperationContext['warn']) => Promise<Result<T>>,
): Promise<OperationResult<T>> {
  const warnings: Warning[] = [];
  const parsedInput = readInput(input, rawInput);
  if (!parsedInput.ok) return { ...parsedInput, warnings };
  try {
    const result = await run(parsedInput.value, (code, message) => warnings.push({ code, message }));
    return { ...result, warnings };
  } catch (error) {
    const { name } = error instanceof Error ? error : { name: '' };
    switch (name) {
      // The message of a StoreError is one line that names the remedy.
      case 'StoreError':
        return { ...createUnavailable(describeError(error)), warnings };
      // A setting is invalid, or the secret of the installation is lost or wrong. The message names the remedy. A
      // repeated request fails until an operator applies the remedy.
      case 'SettingsError':
      case 'SecretError':
        return { ...createConflict(null, describeError(error)), warnings };
      default:
        throw error;
    }
  }
}

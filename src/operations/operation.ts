/**
 * An operation is one thing that an operator can do: a typed input, a typed result, error codes, and an audit log entry
 * in the transaction of the change. The command line and the operator API are adapters over operations; the OpenAPI
 * document and the dashboard's types come from the same schemas.
 *
 * `perform` never throws for a person's mistake, a store that does not answer, or a secret of the installation that is lost:
 * these are results. A throw is a bug.
 */
import type { Static, TObject, TSchema } from 'typebox';
import { describeError } from '../printing/error-line.ts';
import type { OperationContext } from './context.ts';
import type { ErrorCode, Result } from './errors.ts';
import { conflict, unavailable } from './errors.ts';
import { readInput } from './input.ts';

/** Something that the operator should know although the operation succeeded. */
export interface Warning {
  /** Kebab-case, stable. */
  readonly code: string;
  readonly message: string;
}

/** What most operations are given, apart from `warn`, which `perform` adds. */
type Given = Omit<OperationContext, 'warn'>;

/** What every operation says of itself, also one of files (file-operation.ts). */
export interface OperationBase<I extends TObject = TObject> {
  /** `noun.verb`, as the audit log names it: `suppression.remove`. */
  readonly name: string;
  /** The `operationId` of the OpenAPI document: `removeSuppression`. */
  readonly id: string;
  /** One line, imperative, without a full stop. */
  readonly summary: string;
  /** True where it changes something, and so writes the audit log. */
  readonly changes: boolean;
  readonly input: I;
  /** The codes that `run` itself answers with, besides `invalid` and `unavailable`, which any operation can. */
  readonly errors: readonly ErrorCode[];
}

/** The members of an operation; see `operation`. `C` is what it is given: only what it uses, where that is less than the store. */
export interface Operation<I extends TObject = TObject, R extends TSchema = TSchema, C extends object = Given>
  extends OperationBase<I> {
  readonly result: R;
  run(input: Static<I>, context: C & Pick<OperationContext, 'warn'>): Promise<Result<Static<R>>>;
}

/** Defines an operation; the types of `run` follow from the schemas. */
export function operation<I extends TObject, R extends TSchema>(definition: Operation<I, R>): Operation<I, R> {
  return definition;
}

/** A result with the warnings that were given on the way. */
export type OperationResult<T> = Result<T> & { readonly warnings: readonly Warning[] };

/**
 * Reads the input by the operation's schema and runs it. `given` holds the members as an adapter received them: strings
 * where they come from a command line, a path or a query, JSON values where they come from a body.
 */
export function perform<I extends TObject, R extends TSchema, C extends object>(
  { input, run }: Operation<I, R, C>,
  given: Readonly<Record<string, unknown>>,
  context: C,
): Promise<OperationResult<Static<R>>> {
  return performWith(input, given, (read, warn) => run(read, { ...context, warn }));
}

/** Reads an input by its schema and runs the work of an operation on it; every failure that `perform` promises becomes a result. */
export async function performWith<I extends TObject, T>(
  input: I,
  given: Readonly<Record<string, unknown>>,
  run: (read: Static<I>, warn: OperationContext['warn']) => Promise<Result<T>>,
): Promise<OperationResult<T>> {
  const warnings: Warning[] = [];
  const read = readInput(input, given);
  if (!read.ok) return { ...read, warnings };
  try {
    const result = await run(read.value, (code, message) => warnings.push({ code, message }));
    return { ...result, warnings };
  } catch (error) {
    const { name } = error instanceof Error ? error : { name: '' };
    switch (name) {
      // The store names its own faults in one line that a person can act on.
      case 'StoreError':
        return { ...unavailable(describeError(error)), warnings };
      // A setting is invalid, or the secret of the installation is lost or another: the message has the remedy, and without that
      // nothing changes.
      case 'SettingsError':
      case 'SecretError':
        return { ...conflict(null, describeError(error)), warnings };
      default:
        throw error;
    }
  }
}

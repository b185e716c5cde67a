/**
 * The command-line adapter: a command is an operation with a usage line and the text of its result. Arguments and flags are
 * derived from the input schema. Warnings are written to standard error, the result to standard output, with `--json` as one
 * JSON value. The exit code is 2 if the input is invalid and 1 for every other failure.
 */
import { type Command, Option } from 'commander';
import type { Static, TObject, TSchema } from 'typebox';
import { quote } from '../config/units.ts';
import { inputMembers, isRequired } from '../operations/input.ts';
import { type Operation, type OperationResult, perform } from '../operations/operation.ts';
import { printable } from '../printing/escape.ts';
import { declareChoices } from './choices.ts';
import type { Context } from './context.ts';
import { CommandFailure } from './failure.ts';

/** The output of a command, and the context of its operation. */
export interface CommandContext<C extends object>
  extends Pick<Context, 'clock' | 'inputLine' | 'out' | 'json' | 'warn'> {
  operate<T>(work: (given: C) => Promise<T>): Promise<T>;
}

export interface CommandOptions<I extends TObject, R extends TSchema> {
  /** Returns the result as text that ends with a line feed. */
  text(result: Static<R>, input: Readonly<Record<string, unknown>>, now: number): string;
  /**
   * Returns the value printed with `--json`, if it differs from the result. `flags` contains the flags of
   * `outputFlags`.
   */
  readonly json?: (result: Static<R>, flags: Readonly<Record<string, unknown>>) => unknown;
  /** Flags of the output, which are not in the input schema, with their help: `{ '--details': 'with --json: …' }`. */
  readonly outputFlags?: { readonly [flag: string]: string };
  /** A member whose value is the first line of standard input, because it is a secret (input-line.ts). */
  readonly standardInput?: keyof Static<I> & string;
  /** The help of the command; default: the summary of the operation. */
  readonly help?: string;
  /** Arguments whose member of the input has another name: `{ text: 'search' }`. */
  readonly arguments?: { readonly [argument: string]: keyof Static<I> & string };
  /**
   * Commander's flags of members, if they differ from `--name <name>`: `{ ed25519: '--no-ed25519' }`. A boolean flag with a value
   * accepts `yes` or `no`: `{ subdomains: '--subdomains <yes|no>' }`.
   */
  readonly flags?: { readonly [name in keyof Static<I>]?: string };
  /** The help of a flag whose meaning is the opposite of its member, such as `--no-ed25519`. */
  readonly flagHelp?: { readonly [name in keyof Static<I>]?: string };
  /** Flags that stand for one value of a member: `{ '--no-volume': { member: 'volume', value: 'unlimited' } }`. */
  readonly shorthands?: {
    readonly [flag: string]: { readonly member: keyof Static<I> & string; readonly value: string };
  };
  /** The help of `--json`. */
  readonly jsonHelp?: string;
  /**
   * Returns in one line why the command fails although the operation succeeded, such as for `domain verify` of a domain
   * that is not authenticated.
   */
  readonly failure?: (result: Static<R>) => string | null;
}

/** An operation without its types. */
type NamedOperation = Pick<Operation, 'name'>;

const OPERATIONS = new WeakMap<Command, readonly NamedOperation[]>();

/** Returns the operations that a command performs; empty if it performs none. */
export function operationsOf(command: Command): readonly NamedOperation[] {
  return OPERATIONS.get(command) ?? [];
}

/** Declares the operations of a command that `operationCommand` did not create. */
export function declareOperations(command: Command, operations: readonly NamedOperation[]): void {
  OPERATIONS.set(command, operations);
}

/** Adds `usage`, such as `remove <account> <address>`, as a command of `group`. */
export function operationCommand<I extends TObject, R extends TSchema, C extends object>(
  group: Command,
  context: CommandContext<C>,
  usage: string,
  operation: Operation<I, R, C>,
  options: CommandOptions<I, R>,
): void {
  const command = group.command(usage).description(options.help ?? lowerFirst(operation.summary));
  declareOperations(command, [operation]);
  const positional = command.registeredArguments.map(
    (argument) => options.arguments?.[argument.name()] ?? argument.name(),
  );
  const members = inputMembers(operation.input);
  for (const [name, member] of Object.entries(members)) {
    if (positional.includes(name) || name === options.standardInput) continue;
    const customFlags = options.flags?.[name as keyof Static<I>];
    const flags =
      customFlags ??
      (member.type === 'boolean' ? `--${toKebabCase(name)}` : `--${toKebabCase(name)} <${toKebabCase(name)}>`);
    const { description: memberDescription = '' } = member as { readonly description?: string };
    const description = options.flagHelp?.[name as keyof Static<I>] ?? memberDescription;
    const option = new Option(flags, description).makeOptionMandatory(isRequired(operation.input, name));
    if (member.enum !== undefined) declareChoices(option, member.enum);
    command.addOption(option);
  }
  const shorthands = Object.entries(options.shorthands ?? {});
  for (const [flag, { member, value }] of shorthands) {
    command.option(flag, `the same as --${toKebabCase(member)} ${value}`);
  }
  command.option('--json', options.jsonHelp ?? 'print JSON');
  for (const [flag, help] of Object.entries(options.outputFlags ?? {})) command.option(flag, help);
  /** Returns `--rate`, `ADDRESS` or `standard input`. */
  const nameOf = (member: string): string => {
    if (member === options.standardInput) return 'standard input';
    const argument = command.registeredArguments[positional.indexOf(member)];
    return argument === undefined ? `--${toKebabCase(member)}` : argument.name().toUpperCase();
  };
  command.action(async (...args: unknown[]) => {
    const { json, ...flags } = command.opts() as Readonly<Record<string, unknown>>;
    const rawInput: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(flags)) {
      const member = members[name];
      if (member !== undefined) rawInput[name] = member.type === 'boolean' ? parseYesOrNo(nameOf(name), value) : value;
    }
    for (const [index, name] of positional.entries()) {
      const value = args[index];
      // Several arguments are one text: `message search two words`.
      if (value !== undefined) rawInput[name] = Array.isArray(value) ? value.join(' ') : value;
    }
    // Commander sets a member to false when its `--no-` flag is given.
    for (const [, { member, value }] of shorthands) if (rawInput[member] === false) rawInput[member] = value;
    if (options.standardInput !== undefined) {
      const name = options.standardInput;
      rawInput[name] = await context.inputLine(`the ${name}`);
    }
    const operationResult = await context.operate((operationContext) => perform(operation, rawInput, operationContext));
    const value = unwrapResult(context, operationResult, nameOf);
    if (json === true) context.json(options.json?.(value, flags) ?? value);
    else context.out(options.text(value, rawInput, context.clock.now()));
    const failure = options.failure?.(value) ?? null;
    if (failure !== null) throw new CommandFailure(failure);
  });
}

/**
 * Returns the value of a successful operation and writes its warnings to standard error. `nameOf` returns the name of an input
 * member on the command line, such as `--rate`. @throws CommandFailure if the operation failed
 */
export function unwrapResult<T>(
  { warn }: Pick<Context, 'warn'>,
  operationResult: OperationResult<T>,
  nameOf: (member: string) => string,
): T {
  for (const { message } of operationResult.warnings) warn(printable(message));
  if (operationResult.ok) return operationResult.value;
  const { code, message, template } = operationResult.error;
  throw new CommandFailure(printable(template?.(nameOf) ?? message), code === 'invalid' ? 2 : 1);
}

/** Returns the value of a boolean flag. A flag with a value accepts `yes` or `no`. @throws CommandFailure */
function parseYesOrNo(flag: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (value !== 'yes' && value !== 'no') throw new CommandFailure(`${flag}: ${quote(value)} is not yes or no`, 2);
  return value === 'yes';
}

/** Converts `maxBounces` to `max-bounces`. */
function toKebabCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function lowerFirst(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}

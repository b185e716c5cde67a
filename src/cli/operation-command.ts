/**
 * Adapts operations to the command line: a command is an operation with a usage line and the text of its result.
 * Arguments and flags are derived from the input schema. Warnings are written to standard error. The result is written
 * to standard output, with `--json` as one JSON value. The exit code is 2 if the input is invalid, and 1 for every
 * other failure.
 */

import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { type Argument, type Command, Option } from 'commander';
import type { Static, TObject, TSchema } from 'typebox';
import { quote } from '../config/units.ts';
import { getInputMembers, isRequired } from '../operations/input.ts';
import { type Operation, type OperationResult, perform } from '../operations/operation.ts';
import { toPrintable } from '../printing/escape.ts';
import { CommandFailure, type Context } from './context.ts';

/** The output of a command, and the context of its operation. */
export interface CommandContext<C extends object>
  extends Pick<Context, 'clock' | 'readInputLine' | 'writeText' | 'writeJson' | 'warn'> {
  withOperationContext<T>(work: (context: C) => Promise<T>): Promise<T>;
}

export interface CommandOptions<I extends TObject, R extends TSchema> {
  /** Returns the result as text that ends with a line feed. */
  formatResult(result: Static<R>, input: Readonly<Record<string, unknown>>, now: number): string;
  /**
   * Returns the value that `--json` prints. By default, `--json` prints the result. `flags` contains the values of all
   * flags.
   */
  readonly toJsonValue?: (result: Static<R>, flags: Readonly<Record<string, unknown>>) => unknown;
  /**
   * Flags that only change the output and are not in the input schema, with their help: `{ '--details': 'with --json:
   * …' }`.
   */
  readonly outputFlags?: { readonly [flag: string]: string };
  /** The member whose value is the first line of standard input, because the value is a secret (input-line.ts). */
  readonly standardInputMember?: keyof Static<I> & string;
  /**
   * Members whose flag names a file that contains the value, because the value is a secret of several lines
   * (input-file.ts).
   */
  readonly fileMembers?: readonly (keyof Static<I> & string)[];
  /** The help of the command. The default is the summary of the operation. */
  readonly help?: string;
  /** The input member of each argument whose name differs from the name of the member: `{ text: 'search' }`. */
  readonly argumentMembers?: { readonly [argument: string]: keyof Static<I> & string };
  /**
   * The commander flags of members, if they differ from `--name <name>`: `{ ed25519: '--no-ed25519' }`. A boolean flag
   * with a value accepts `yes` or `no`: `{ subdomains: '--subdomains <yes|no>' }`.
   */
  readonly customFlags?: { readonly [name in keyof Static<I>]?: string };
  /** The help of a flag whose meaning is the opposite of its member, such as `--no-ed25519`. */
  readonly flagHelp?: { readonly [name in keyof Static<I>]?: string };
  /** Flags that set a member to a fixed value: `{ '--no-volume': { member: 'volume', value: 'unlimited' } }`. */
  readonly shorthands?: {
    readonly [flag: string]: { readonly member: keyof Static<I> & string; readonly value: string };
  };
  /** The help of `--json`. */
  readonly jsonHelp?: string;
  /**
   * Returns a one-line error if the command fails although the operation succeeded, for example if `domain verify`
   * finds that a domain is not authenticated. Otherwise returns null.
   */
  readonly findFailure?: (result: Static<R>) => string | null;
}

/** An operation of any input and result type. */
type NamedOperation = Pick<Operation, 'name'>;

const OPERATIONS = new WeakMap<Command, readonly NamedOperation[]>();

/** Returns the operations that a command performs, or an empty list. */
export function getOperations(command: Command): readonly NamedOperation[] {
  return OPERATIONS.get(command) ?? [];
}

/** Declares the operations of a command that `addOperationCommand` did not create. */
export function declareOperations(command: Command, operations: readonly NamedOperation[]): void {
  OPERATIONS.set(command, operations);
}

/**
 * Adds a command to `group` that performs the operation. `usage` is the name of the command with its arguments, such as
 * `remove <account> <address>`.
 */
export function addOperationCommand<I extends TObject, R extends TSchema, C extends object>(
  group: Command,
  context: CommandContext<C>,
  usage: string,
  operation: Operation<I, R, C>,
  options: CommandOptions<I, R>,
): void {
  const command = group.command(usage).description(options.help ?? toLowerFirstCharacter(operation.summary));
  declareOperations(command, [operation]);
  const positionalMembers = command.registeredArguments.map(
    (argument) => options.argumentMembers?.[argument.name()] ?? argument.name(),
  );
  const members = getInputMembers(operation.input);
  for (const [name, member] of Object.entries(members)) {
    if (positionalMembers.includes(name) || name === options.standardInputMember) continue;
    const customFlag = options.customFlags?.[name as keyof Static<I>];
    const flags =
      customFlag ??
      (member.type === 'boolean' ? `--${toKebabCase(name)}` : `--${toKebabCase(name)} <${toKebabCase(name)}>`);
    const { description: memberDescription = '' } = member as { readonly description?: string };
    const description = options.flagHelp?.[name as keyof Static<I>] ?? memberDescription;
    const option = new Option(flags, description).makeOptionMandatory(isRequired(operation.input, name));
    const choices = member.enum ?? member['x-values'];
    if (choices !== undefined) declareChoices(option, choices);
    command.addOption(option);
  }
  const shorthands = Object.entries(options.shorthands ?? {});
  for (const [flag, { member, value }] of shorthands) {
    command.option(flag, `the same as --${toKebabCase(member)} ${value}`);
  }
  command.option('--json', options.jsonHelp ?? 'print JSON');
  for (const [flag, help] of Object.entries(options.outputFlags ?? {})) command.option(flag, help);
  /** Returns the name of an input member on the command line: `--rate`, `ADDRESS` or `standard input`. */
  const getInputName = (member: string): string => {
    if (member === options.standardInputMember) return 'standard input';
    const argument = command.registeredArguments[positionalMembers.indexOf(member)];
    return argument === undefined ? `--${toKebabCase(member)}` : argument.name().toUpperCase();
  };
  command.action(async (...actionArguments: unknown[]) => {
    const { json, ...flags } = command.opts() as Readonly<Record<string, unknown>>;
    const rawInput: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(flags)) {
      const member = members[name];
      if (member !== undefined)
        rawInput[name] = member.type === 'boolean' ? parseYesOrNo(getInputName(name), value) : value;
    }
    for (const [index, name] of positionalMembers.entries()) {
      const value = actionArguments[index];
      // The words of a variadic argument are joined into one text: `message search two words`.
      if (value !== undefined) rawInput[name] = Array.isArray(value) ? value.join(' ') : value;
    }
    // Commander sets a member to false when its `--no-` flag is given.
    for (const [, { member, value }] of shorthands) if (rawInput[member] === false) rawInput[member] = value;
    for (const name of options.fileMembers ?? []) {
      const file = rawInput[name];
      if (typeof file === 'string') rawInput[name] = await readInputFile(getInputName(name), file, context.warn);
    }
    if (options.standardInputMember !== undefined) {
      const name = options.standardInputMember;
      rawInput[name] = await context.readInputLine(`the ${name}`);
    }
    const operationResult = await context.withOperationContext((operationContext) =>
      perform(operation, rawInput, operationContext),
    );
    const value = unwrapResult(context, operationResult, getInputName);
    if (json === true) context.writeJson(options.toJsonValue?.(value, flags) ?? value);
    else context.writeText(options.formatResult(value, rawInput, context.clock.now()));
    const failure = options.findFailure?.(value) ?? null;
    if (failure !== null) throw new CommandFailure(failure);
  });
}

/**
 * Returns the value of a successful operation and writes its warnings to standard error. `getInputName` returns the
 * name of an input member on the command line, such as `--rate`. @throws CommandFailure if the operation failed
 */
export function unwrapResult<T>(
  { warn }: Pick<Context, 'warn'>,
  operationResult: OperationResult<T>,
  getInputName: (member: string) => string,
): T {
  for (const { message } of operationResult.warnings) warn(toPrintable(message));
  if (operationResult.ok) return operationResult.value;
  const { code, message, template } = operationResult.error;
  throw new CommandFailure(toPrintable(template?.(getInputName) ?? message), code === 'invalid' ? 2 : 1);
}

/**
 * Returns the value of a boolean flag. A flag with a value accepts only `yes` and `no`. @throws CommandFailure for
 * another value
 */
function parseYesOrNo(flag: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (value !== 'yes' && value !== 'no') throw new CommandFailure(`${flag}: ${quote(value)} is not yes or no`, 2);
  return value === 'yes';
}

/** Converts `maxBounces` to `max-bounces`. */
export function toKebabCase(memberName: string): string {
  return memberName.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Returns the text with its first character in lower case, because help texts begin in lower case. */
export function toLowerFirstCharacter(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}

const CHOICES_BY_PARAMETER = new WeakMap<Option | Argument, readonly string[]>();

/**
 * Declares the values of an option and returns the option. Commander's own `choices` would also print the values in the
 * help, where the description already lists them.
 */
export function declareChoices(option: Option, choices: readonly string[]): Option {
  CHOICES_BY_PARAMETER.set(option, choices);
  return option;
}

/**
 * Returns the declared values, or an empty list if every value is accepted. The placeholder of a flag can also declare
 * values: `--subdomains <yes|no>`.
 */
export function getChoices(target: Option | Argument): readonly string[] {
  const declaredChoices = CHOICES_BY_PARAMETER.get(target) ?? target.argChoices;
  if (declaredChoices !== undefined) return declaredChoices;
  const placeholder = 'flags' in target ? /<([a-z]+(?:\|[a-z]+)+)>$/.exec(target.flags)?.[1] : undefined;
  return placeholder?.split('|') ?? [];
}

/** The maximum size of the file. */
const MAX_FILE_BYTES = 16_384;

/**
 * Returns the text of the file. `flag` is the name of the flag in error messages. Calls `warn` if other users of the
 * machine can access the file. @throws CommandFailure
 */
export async function readInputFile(flag: string, file: string, warn: (message: string) => void): Promise<string> {
  let handle: FileHandle;
  try {
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
    throw new CommandFailure(
      code === 'ENOENT'
        ? `${flag}: there is no file ${quote(file)}; give the name of a file`
        : `${flag}: ${quote(file)} cannot be read (${code}); make it readable for this user`,
      2,
    );
  }
  try {
    const status = await handle.stat();
    if (!status.isFile())
      throw new CommandFailure(`${flag}: ${quote(file)} is not a regular file; give a regular file`, 2);
    const content = Buffer.alloc(MAX_FILE_BYTES + 1);
    const { bytesRead } = await handle.read(content, 0, content.length, 0);
    if (bytesRead > MAX_FILE_BYTES)
      throw new CommandFailure(
        `${flag}: ${quote(file)} has more than ${MAX_FILE_BYTES} bytes; give the file of one key`,
        2,
      );
    if (bytesRead === 0) throw new CommandFailure(`${flag}: ${quote(file)} is empty; give the file of a key`, 2);
    const permissions = status.mode & 0o777;
    if ((permissions & 0o077) !== 0) {
      const modeText = permissions.toString(8).padStart(4, '0');
      warn(`other users can access the file ${quote(file)} (mode ${modeText}); run: chmod 600 ${file}`);
    }
    const text = content.toString('utf8', 0, bytesRead);
    content.fill(0);
    return text;
  } finally {
    await handle.close();
  }
}

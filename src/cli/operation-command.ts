/** Derives commands from operations. Warnings go to standard error; exit code 2 for invalid input, else 1. */

import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { type Argument, type Command, Option } from 'commander';
import type { Static, TObject, TSchema } from 'typebox';
import { quote } from '../config/units.ts';
import { getInputMembers, isRequired } from '../operations/input.ts';
import { type Operation, type OperationResult, perform } from '../operations/operation.ts';
import { toPrintable } from '../printing/escape.ts';
import { CommandFailure, type Context } from './context.ts';

export interface CommandContext<C extends object>
  extends Pick<Context, 'clock' | 'readInputLine' | 'writeText' | 'writeData' | 'writeJson' | 'warn'> {
  withOperationContext<T>(work: (context: C) => Promise<T>): Promise<T>;
}

export interface CommandOptions<I extends TObject, R extends TSchema> {
  /** Returns the result as text that ends with a line feed. */
  formatResult(result: Static<R>, input: Readonly<Record<string, unknown>>, now: number): string;
  readonly toJsonValue?: (result: Static<R>, flags: Readonly<Record<string, unknown>>) => unknown;
  /** Flags that only change the output, with their help. */
  readonly outputFlags?: { readonly [flag: string]: string };
  readonly writesData?: true;
  readonly listWarnings?: (result: Static<R>) => readonly string[];
  /** A secret that is the first line of standard input. */
  readonly standardInputMember?: keyof Static<I> & string;
  /** Secrets of several lines: the flag names a file that contains the value. */
  readonly fileMembers?: readonly (keyof Static<I> & string)[];
  readonly help?: string;
  /** The input member of an argument with another name: `{ text: 'search' }`. */
  readonly argumentMembers?: { readonly [argument: string]: keyof Static<I> & string };
  /** `{ ed25519: "--no-ed25519" }`. A boolean flag with a value takes `yes` or `no`. */
  readonly customFlags?: { readonly [name in keyof Static<I>]?: string };
  /** The help of a flag whose meaning is the opposite of its member. */
  readonly flagHelp?: { readonly [name in keyof Static<I>]?: string };
  /** Flags that set a member to a fixed value: `{ '--no-volume': { member: 'volume', value: 'unlimited' } }`. */
  readonly shorthands?: {
    readonly [flag: string]: { readonly member: keyof Static<I> & string; readonly value: string };
  };
  readonly jsonHelp?: string;
  /** Returns a one-line error if the command fails although the operation succeeded, or null. */
  readonly findFailure?: (result: Static<R>) => string | null;
}

type NamedOperation = Pick<Operation, 'name'>;

const OPERATIONS = new WeakMap<Command, readonly NamedOperation[]>();

export function getOperations(command: Command): readonly NamedOperation[] {
  return OPERATIONS.get(command) ?? [];
}

/** For commands that `addOperationCommand` does not create. */
export function declareOperations(command: Command, operations: readonly NamedOperation[]): void {
  OPERATIONS.set(command, operations);
}

export function addMemberFlags(
  command: Command,
  members: ReturnType<typeof getInputMembers>,
  {
    customFlags = {},
    flagHelp = {},
    skippedNames = [],
    isMandatory = () => false,
  }: {
    readonly customFlags?: { readonly [name in string]?: string | undefined };
    readonly flagHelp?: { readonly [name in string]?: string | undefined };
    readonly skippedNames?: readonly (string | undefined)[];
    readonly isMandatory?: (name: string) => boolean;
  } = {},
): void {
  for (const [name, member] of Object.entries(members)) {
    if (skippedNames.includes(name)) continue;
    const flagName = toFlagName(name);
    const defaultFlags = member.type === 'boolean' ? flagName : `${flagName} <${flagName.slice(2)}>`;
    const option = new Option(customFlags[name] ?? defaultFlags, flagHelp[name] ?? member.description);
    const choices = member.enum ?? member['x-values'];
    if (choices !== undefined) declareChoices(option, choices);
    command.addOption(option.makeOptionMandatory(isMandatory(name)));
  }
}

/** `usage` is the name of the command with its arguments, such as `remove <account> <address>`. */
export function addOperationCommand<I extends TObject, R extends TSchema, C extends object>(
  group: Command,
  context: CommandContext<C>,
  usage: string,
  operation: Operation<I, R, C>,
  options: CommandOptions<I, R>,
): void {
  const command = group.command(usage).description(options.help ?? toLowerFirstCharacter(operation.summary));
  declareOperations(command, [operation]);
  const { standardInputMember, argumentMembers, fileMembers = [], customFlags = {}, flagHelp = {} } = options;
  const positionalMembers = command.registeredArguments.map(
    (argument) => argumentMembers?.[argument.name()] ?? argument.name(),
  );
  const members = getInputMembers(operation.input);
  addMemberFlags(command, members, {
    customFlags,
    flagHelp,
    skippedNames: [...positionalMembers, standardInputMember],
    isMandatory: (name) => isRequired(operation.input, name),
  });
  const shorthands = Object.entries(options.shorthands ?? {});
  for (const [flag, { member, value }] of shorthands) {
    command.option(flag, `the same as ${toFlagName(member)} ${value}`);
  }
  command.option('--json', options.jsonHelp ?? 'print JSON');
  for (const [flag, help] of Object.entries(options.outputFlags ?? {})) command.option(flag, help);
  const getInputName = (member: string): string => {
    if (member === standardInputMember) return 'standard input';
    const argument = command.registeredArguments[positionalMembers.indexOf(member)];
    return argument === undefined ? toFlagName(member) : argument.name().toUpperCase();
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
    for (const name of fileMembers) {
      const file = rawInput[name];
      if (typeof file === 'string') rawInput[name] = await readInputFile(getInputName(name), file, context.warn);
    }
    if (standardInputMember !== undefined)
      rawInput[standardInputMember] = await context.readInputLine(`the ${standardInputMember}`);
    const result = await context.withOperationContext((inner) => perform(operation, rawInput, inner));
    const value = unwrapResult(context, result, getInputName);
    if (json === true) context.writeJson(options.toJsonValue?.(value, flags) ?? value);
    else {
      for (const warning of options.listWarnings?.(value) ?? []) context.warn(warning);
      const text = options.formatResult(value, rawInput, context.clock.now());
      if (options.writesData === true) context.writeData(text);
      else context.writeText(text);
    }
    const failure = options.findFailure?.(value) ?? null;
    if (failure !== null) throw new CommandFailure(failure);
  });
}

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

function parseYesOrNo(flag: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (value !== 'yes' && value !== 'no') throw new CommandFailure(`${flag}: ${quote(value)} is not yes or no`, 2);
  return value === 'yes';
}

/** Converts `maxBounces` to `--max-bounces`. */
export function toFlagName(memberName: string): string {
  return `--${memberName.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

export function toLowerFirstCharacter(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}

const CHOICES_BY_PARAMETER = new WeakMap<Option | Argument, readonly string[]>();

/** Commander's own `choices` would also print them in the help, where the description lists them. */
export function declareChoices(option: Option, choices: readonly string[]): Option {
  CHOICES_BY_PARAMETER.set(option, choices);
  return option;
}

/** The placeholder of a flag can also declare values: `--subdomains <yes|no>`. */
export function getChoices(target: Option | Argument): readonly string[] {
  const declaredChoices = CHOICES_BY_PARAMETER.get(target) ?? target.argChoices;
  if (declaredChoices !== undefined) return declaredChoices;
  const placeholder = 'flags' in target ? /<([a-z]+(?:\|[a-z]+)+)>$/.exec(target.flags)?.[1] : undefined;
  return placeholder?.split('|') ?? [];
}

const MAX_FILE_BYTES = 16_384;

/** Private keys come from files because `ps` shows a command line to all. No error contains a part of the file. */
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

/**
 * The command-line adapter: a command is an operation with a usage line and the text of its result. Arguments and flags
 * follow from the input schema. Warnings go to standard error, the result to standard output, with `--json` as one JSON
 * value. Exit code 2 where the input is invalid, 1 for every other failure.
 */
import type { Command } from 'commander';
import type { Static, TObject, TSchema } from 'typebox';
import { isRequired, membersOf } from '../operations/input.ts';
import { type Operation, perform } from '../operations/operation.ts';
import { printable } from '../printing/escape.ts';
import type { Context } from './context.ts';
import { CommandFailure } from './failure.ts';

export interface CommandOptions<I extends TObject, R extends TSchema> {
  /** The result for people; ends with a line feed. */
  text(result: Static<R>, input: Readonly<Record<string, unknown>>, now: number): string;
  /** The value printed with `--json`, where it differs from the result. */
  readonly json?: (result: Static<R>) => unknown;
  /** Members of the input whose argument has another name: `{ text: 'search' }`. */
  readonly arguments?: { readonly [argument: string]: keyof Static<I> & string };
  /** Commander's flags of members that need other ones than `--name <name>`: `{ ed25519: '--no-ed25519' }`. */
  readonly flags?: { readonly [name in keyof Static<I>]?: string };
  /** The help of `--json`. */
  readonly jsonHelp?: string;
  /** The failure that a successful result stands for, as one line: `domain verify` of a domain that is not authenticated. */
  readonly failure?: (result: Static<R>) => string | null;
}

/** Adds `usage`, such as `remove <account> <address>`, as a command of `group`. */
export function operationCommand<I extends TObject, R extends TSchema>(
  group: Command,
  context: Context,
  usage: string,
  operation: Operation<I, R>,
  options: CommandOptions<I, R>,
): void {
  const command = group.command(usage).description(lowerFirst(operation.summary));
  const positional = command.registeredArguments.map(
    (argument) => options.arguments?.[argument.name()] ?? argument.name(),
  );
  const members = membersOf(operation.input);
  for (const [name, member] of Object.entries(members)) {
    if (positional.includes(name)) continue;
    const own = options.flags?.[name as keyof Static<I>];
    const flags = own ?? (member.type === 'boolean' ? `--${kebab(name)}` : `--${kebab(name)} <${kebab(name)}>`);
    const { description = '' } = member as { readonly description?: string };
    if (isRequired(operation.input, name)) command.requiredOption(flags, description);
    else command.option(flags, description);
  }
  command.option('--json', options.jsonHelp ?? 'for machines');
  command.action(async (...args: unknown[]) => {
    const { json, ...flags } = command.opts() as Readonly<Record<string, unknown>>;
    const given: Record<string, unknown> = { ...flags };
    for (const [at, name] of positional.entries()) if (args[at] !== undefined) given[name] = args[at];
    const performed = await context.operate((operating) => perform(operation, given, operating));
    for (const { message } of performed.warnings) context.warn(message);
    if (!performed.ok) {
      const { code, field, message } = performed.error;
      throw new CommandFailure(fieldText(positional, field, code === 'invalid', message), code === 'invalid' ? 2 : 1);
    }
    const { value } = performed;
    if (json === true) context.json(options.json?.(value) ?? value);
    else context.out(options.text(value, given, context.clock.now()));
    const failure = options.failure?.(value) ?? null;
    if (failure !== null) throw new CommandFailure(failure);
  });
}

/** `--rate: …` or `ADDRESS: …` where the input is invalid. */
function fieldText(positional: readonly string[], field: string | null, isInvalid: boolean, message: string): string {
  if (!isInvalid || field === null || message.startsWith('Missing: ')) return printable(message);
  const name = positional.includes(field) ? kebab(field).toUpperCase() : `--${kebab(field)}`;
  return printable(`${name}: ${message}`);
}

/** `maxBounces` → `max-bounces`. */
function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function lowerFirst(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}

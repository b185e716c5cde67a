/** The values that an option or an argument accepts, for shell completion. The operation checks the value. */
import type { Argument, Option } from 'commander';

const CHOICES = new WeakMap<Option | Argument, readonly string[]>();

/**
 * Declares the values of an option and returns it. Commander's own `choices` would also add them to the help, where descriptions
 * name them.
 */
export function declareChoices(option: Option, choices: readonly string[]): Option {
  CHOICES.set(option, choices);
  return option;
}

/**
 * Returns the declared values; empty if every value is accepted. The text of a flag can declare values: `--subdomains
 * <yes|no>`.
 */
export function choicesOf(target: Option | Argument): readonly string[] {
  const declared = CHOICES.get(target) ?? target.argChoices;
  if (declared !== undefined) return declared;
  const placeholder = 'flags' in target ? /<([a-z]+(?:\|[a-z]+)+)>$/.exec(target.flags)?.[1] : undefined;
  return placeholder?.split('|') ?? [];
}

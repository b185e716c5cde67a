/**
 * Declares, for shell completion, which values an option or an argument accepts. The operation that a command performs
 * checks the entered value.
 */
import type { Argument, Option } from 'commander';

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

/** Why a command ends: one clear line and an exit code, 1 where the work failed and 2 where the command was misused. */
import type { Parsed } from '../config/units.ts';

export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  readonly exitCode: 1 | 2;
  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The value of a flag or argument. @throws CommandFailure naming it. */
export function flagValue<T>(name: string, parsed: Parsed<T>): T {
  if (!parsed.ok) throw new CommandFailure(`${name}: ${parsed.fault}`, 2);
  return parsed.value;
}

/**
 * The failure of a command: a message of one line, and an exit code. The exit code is 1 if the work failed, and 2 if
 * the command was used wrongly.
 */

export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  readonly exitCode: 1 | 2;
  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

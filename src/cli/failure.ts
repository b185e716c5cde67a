/**
 * The failure of a command: a one-line message and an exit code. The exit code is 1 if the work failed, 2 for a usage
 * error, and `EXIT_INVALID_SETTINGS` if a setting prevents the start of the service.
 */

/**
 * The exit code of `serve` if a setting is invalid (EX_CONFIG of sysexits.h). A supervisor must not restart the service,
 * because the next start fails too.
 */
export const EXIT_INVALID_SETTINGS = 78;

type FailureExitCode = 1 | 2 | typeof EXIT_INVALID_SETTINGS;

export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  readonly exitCode: FailureExitCode;
  constructor(message: string, exitCode: FailureExitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

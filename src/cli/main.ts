/**
 * The command line: `postrider COMMAND`. Every error is one line on standard error that begins with `postrider: `. The exit code
 * is 1 if the work failed and 2 if the command was used wrongly. A stack trace is never printed.
 */
import { Command, CommanderError } from 'commander';
import { withCommandPrefix } from '../printing/command-line.ts';
import { describeError, joinLines } from '../printing/error-line.ts';
import { version } from '../version.ts';
import { type Context, processContext } from './context.ts';
import { CommandFailure } from './failure.ts';

/** Runs one command and sets the exit code of this process. `args` are the arguments after the name of the program. */
export async function main(args: readonly string[]): Promise<void> {
  // `postrider message list | head -1` closes the pipe early, which is not an error. The first use of the stream also makes a pipe
  // non-blocking, on which the log of `serve` relies (observability/log.ts).
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  const fail = (error: unknown): void => {
    process.exitCode = error instanceof CommandFailure ? error.exitCode : 1;
    process.stderr.write(`postrider: ${withCommandPrefix(describeError(error), process.env)}\n`);
  };
  process.on('uncaughtException', (error) => {
    fail(error);
    process.exit(1);
  });
  try {
    await runCommand(args, processContext());
  } catch (error) {
    fail(error);
    // A failed start may have left handles open.
    process.exit();
  }
}

/** Runs one command. @throws CommandFailure if the command was used wrongly, and every error of the command */
export async function runCommand(args: readonly string[], context: Context): Promise<void> {
  const errors: string[] = [];
  const program = await buildProgram(context, (text) => errors.push(text), args[0]);
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed' || error.code === 'commander.version') return;
    if (error.code === 'commander.help')
      throw new CommandFailure(`no command is given; ${usageHint(program, args)}`, 2);
    const text = removeFlagValues(errors.join(' ') || error.message, args).replace(/^error: /, '');
    throw new CommandFailure(`${joinLines(text)}; ${usageHint(program, args)}`, 2);
  }
}

/** Removes the value of a mistyped flag `--kee=VALUE`, which commander quotes: it may be a secret. */
function removeFlagValues(text: string, args: readonly string[]): string {
  return args.reduce((result, arg) => {
    const equals = arg.startsWith('-') ? arg.indexOf('=') : -1;
    return equals === -1 ? result : result.replaceAll(arg, () => arg.slice(0, equals));
  }, text);
}

/** Names the help of the command that the arguments select. */
function usageHint(program: Command, args: readonly string[]): string {
  const path = [program];
  for (const arg of args.filter((argument) => !argument.startsWith('-'))) {
    const next = path.at(-1)?.commands.find((command) => command.name() === arg);
    if (next === undefined) break;
    path.push(next);
  }
  return `\`${path.map((command) => command.name()).join(' ')} --help\` shows the usage`;
}

/** Adds the commands of one file. */
type AddCommands = (program: Command, context: Context) => void;

/** The commands in the order of the help. A file is loaded only for its own commands. */
const COMMANDS: readonly { readonly names: readonly string[]; readonly load: () => Promise<AddCommands> }[] = [
  { names: ['serve'], load: async () => (await import('./serve.ts')).addServeCommand },
  { names: ['send'], load: async () => (await import('./send.ts')).addSendCommand },
  { names: ['overview'], load: async () => (await import('./overview.ts')).addOverviewCommand },
  { names: ['account'], load: async () => (await import('./account.ts')).addAccountCommands },
  { names: ['key'], load: async () => (await import('./key.ts')).addKeyCommands },
  { names: ['domain'], load: async () => (await import('./domain.ts')).addDomainCommands },
  { names: ['suppression'], load: async () => (await import('./suppression.ts')).addSuppressionCommands },
  { names: ['message'], load: async () => (await import('./message.ts')).addMessageCommands },
  { names: ['feedback'], load: async () => (await import('./feedback.ts')).addFeedbackCommands },
  { names: ['token', 'audit'], load: async () => (await import('./operator.ts')).addOperatorCommands },
  { names: ['backup', 'restore'], load: async () => (await import('./backup.ts')).addBackupCommands },
  { names: ['migrate-store'], load: async () => (await import('./migrate-store.ts')).addMigrateStoreCommand },
  { names: ['doctor'], load: async () => (await import('./doctor.ts')).addDoctorCommand },
  { names: ['config'], load: async () => (await import('./config.ts')).addConfigCommand },
  { names: ['completion'], load: async () => (await import('./completion.ts')).addCompletionCommand },
  { names: ['openapi'], load: async () => (await import('./openapi.ts')).addOpenApiCommand },
];

/**
 * Builds the commands with their arguments and flags. `onError` receives the errors of commander. Only the file with
 * the command `first` is loaded. No file is loaded to print the version, and all files are loaded in any other case,
 * such as the help and `completion`.
 */
export async function buildProgram(
  context: Context,
  onError: (text: string) => void,
  first?: string,
): Promise<Command> {
  const program = new Command('postrider');
  program
    .description('The transactional email sending service that teams run themselves.')
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ writeOut: context.out, writeErr: onError });
  if (first === '--version' || first === '-V') return program;
  const isSingle = first !== undefined && first !== 'completion';
  const commandWriters = COMMANDS.find(({ names }) => isSingle && names.includes(first));
  for (const { load } of commandWriters === undefined ? COMMANDS : [commandWriters]) (await load())(program, context);
  return program;
}

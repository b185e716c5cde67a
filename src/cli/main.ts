/** Every error is one line on standard error. Exit code 1: the work failed; 2: usage. Never a stack trace. */
import { Command, CommanderError } from 'commander';
import { describeError, joinLines } from '../printing/escape.ts';
import { replaceCommandName } from '../printing/text.ts';
import { readVersion } from '../version.ts';
import { CommandFailure, type CommandHost, type Context, createContext } from './context.ts';

export async function main(args: readonly string[]): Promise<void> {
  // `postrider message list | head -1` closes the pipe early, which is not an error. The first use of `process.stdout`
  // also makes a pipe non-blocking. The log of `serve` requires this (observability/log.ts).
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  process.on('uncaughtException', (error) => process.exit(reportFailure(error, process)));
  process.exitCode = await runProgram(args, process);
  // A failed start may have left handles open, which would keep the process alive.
  if (process.exitCode !== 0) process.exit();
}

export async function runProgram(args: readonly string[], host: CommandHost): Promise<number> {
  try {
    await runCommand(args, createContext(host));
    return 0;
  } catch (error) {
    return reportFailure(error, host);
  }
}

function reportFailure(error: unknown, host: CommandHost): number {
  host.stderr.write(`postrider: ${replaceCommandName(describeError(error), host.env)}\n`);
  return error instanceof CommandFailure ? error.exitCode : 1;
}

export async function runCommand(args: readonly string[], context: Context): Promise<void> {
  const errorTexts: string[] = [];
  const program = await buildProgram(context, (text) => errorTexts.push(text), args[0]);
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed' || error.code === 'commander.version') return;
    if (error.code === 'commander.help')
      throw new CommandFailure(`no command is given; ${formatUsageHint(program, args)}`, 2);
    const text = removeFlagValues(errorTexts.join(' ') || error.message, args).replace(/^error: /, '');
    throw new CommandFailure(`${joinLines(text)}; ${formatUsageHint(program, args)}`, 2);
  }
}

/** Removes the value of a mistyped flag, such as `--kee=VALUE`, because it may be a secret. */
function removeFlagValues(text: string, args: readonly string[]): string {
  return args.reduce((result, argument) => {
    const equalsIndex = argument.startsWith('-') ? argument.indexOf('=') : -1;
    return equalsIndex === -1 ? result : result.replaceAll(argument, () => argument.slice(0, equalsIndex));
  }, text);
}

function formatUsageHint(program: Command, args: readonly string[]): string {
  const commandPath = [program];
  for (const commandName of args.filter((argument) => !argument.startsWith('-'))) {
    const subcommand = commandPath.at(-1)?.commands.find((command) => command.name() === commandName);
    if (subcommand === undefined) break;
    commandPath.push(subcommand);
  }
  return `\`${commandPath.map((command) => command.name()).join(' ')} --help\` shows the usage`;
}

type AddCommands = (program: Command, context: Context) => void;

/** The files of the commands, in the order of the help. A file is loaded only for its own commands. */
const COMMAND_FILES: readonly { readonly names: readonly string[]; readonly load: () => Promise<AddCommands> }[] = [
  { names: ['serve'], load: async () => (await import('./serve.ts')).addServeCommand },
  { names: ['send'], load: async () => (await import('./send.ts')).addSendCommand },
  { names: ['overview'], load: async () => (await import('./overview.ts')).addOverviewCommand },
  { names: ['setup'], load: async () => (await import('./installation.ts')).addSetupCommand },
  { names: ['account'], load: async () => (await import('./account.ts')).addAccountCommands },
  { names: ['key'], load: async () => (await import('./account.ts')).addKeyCommands },
  { names: ['domain'], load: async () => (await import('./domain.ts')).addDomainCommands },
  { names: ['sender'], load: async () => (await import('./sender.ts')).addSenderCommands },
  { names: ['suppression'], load: async () => (await import('./suppression.ts')).addSuppressionCommands },
  { names: ['message'], load: async () => (await import('./message.ts')).addMessageCommands },
  { names: ['hold'], load: async () => (await import('./hold.ts')).addHoldCommands },
  { names: ['route'], load: async () => (await import('./route.ts')).addRouteCommands },
  { names: ['routing'], load: async () => (await import('./route.ts')).addRoutingCommands },
  { names: ['inbox'], load: async () => (await import('./inbox.ts')).addInboxCommands },
  { names: ['webhook'], load: async () => (await import('./webhook.ts')).addWebhookCommands },
  { names: ['feedback'], load: async () => (await import('./inbox.ts')).addFeedbackCommands },
  { names: ['provider'], load: async () => (await import('./installation.ts')).addProviderCommands },
  { names: ['token', 'audit'], load: async () => (await import('./operator.ts')).addOperatorCommands },
  { names: ['backup', 'restore'], load: async () => (await import('./backup.ts')).addBackupCommands },
  { names: ['migrate-store'], load: async () => (await import('./migrate-store.ts')).addMigrateStoreCommand },
  { names: ['doctor'], load: async () => (await import('./installation.ts')).addDoctorCommand },
  { names: ['config'], load: async () => (await import('./installation.ts')).addConfigCommand },
  { names: ['completion'], load: async () => (await import('./completion.ts')).addCompletionCommand },
  { names: ['openapi'], load: async () => (await import('./completion.ts')).addOpenApiCommand },
];

/** If `firstArgument` is a command, only its file is loaded, and none for the version. */
export async function buildProgram(
  context: Context,
  onError: (text: string) => void,
  firstArgument?: string,
): Promise<Command> {
  const program = new Command('postrider');
  program
    .description('The transactional email sending service that teams run themselves.')
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ writeOut: context.writeText, writeErr: onError });
  if (firstArgument === '--version' || firstArgument === '-V') return program;
  const mayLoadOneFile = firstArgument !== undefined && firstArgument !== 'completion';
  const selectedFile = COMMAND_FILES.find(({ names }) => mayLoadOneFile && names.includes(firstArgument));
  for (const { load } of selectedFile === undefined ? COMMAND_FILES : [selectedFile]) (await load())(program, context);
  return program;
}

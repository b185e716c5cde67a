/**
 * `postrider completion SHELL`: prints a script that completes commands, flags, values of flags and file names in a shell. The
 * script is generated from the definitions of the commands, so it is always complete.
 */
import { Argument, type Command } from 'commander';
import { choicesOf } from './choices.ts';
import { bashScript, type CommandNode, fishScript, zshScript } from './completion-scripts.ts';
import type { Context } from './context.ts';

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;
type Shell = keyof typeof SCRIPTS;

const HELP = `
Load the script in each new shell:
  bash  source <(postrider completion bash)       in ~/.bashrc
  zsh   source <(postrider completion zsh)        in ~/.zshrc, after compinit
  fish  postrider completion fish | source        in ~/.config/fish/config.fish
`;

/** Adds the command. The script completes the commands of `program` that exist when the command runs. */
export function addCompletionCommand(program: Command, context: Context): void {
  const completion = program.command('completion').description('print the completion script of a shell');
  completion.addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)));
  completion.option('--json', 'print JSON: {"shell","script"}').addHelpText('after', HELP);
  completion.action((shell: Shell, { json }: { json?: boolean }) => {
    const script = SCRIPTS[shell](commandNodes(program));
    if (json === true) context.json({ shell, script });
    else context.data(script);
  });
}

/** Returns the program and all its commands, each after its parent. */
export function commandNodes(program: Command): readonly CommandNode[] {
  const toNodes = (command: Command, path: string): readonly CommandNode[] => {
    const help = command.createHelp();
    const subcommands = help.visibleCommands(command);
    const node: CommandNode = {
      path,
      commands: subcommands.map((subcommand) => ({ name: subcommand.name(), description: subcommand.description() })),
      options: help.visibleOptions(command).map((option) => ({
        name: option.long ?? option.flags,
        description: option.description,
        takesValue: option.required || option.optional,
        choices: choicesOf(option),
      })),
      choices: command.registeredArguments.flatMap(choicesOf),
      takesFile: command.registeredArguments.some((argument) => argument.name() === 'file'),
    };
    return [node, ...subcommands.flatMap((subcommand) => toNodes(subcommand, `${path} ${subcommand.name()}`.trim()))];
  };
  return toNodes(program, '');
}

/**
 * `postrider completion SHELL`: prints a script that completes commands, flags, values of flags and file names in a
 * shell. The script is generated from the definitions of the commands, so that it contains every command.
 */
import { Argument, type Command } from 'commander';
import { getChoices } from './choices.ts';
import { type CommandNode, createBashScript, createFishScript, createZshScript } from './completion-scripts.ts';
import type { Context } from './context.ts';

const SCRIPTS = { bash: createBashScript, zsh: createZshScript, fish: createFishScript } as const;
type Shell = keyof typeof SCRIPTS;

const HELP_TEXT = `
Load the script in each new shell:
  bash  source <(postrider completion bash)       in ~/.bashrc
  zsh   source <(postrider completion zsh)        in ~/.zshrc, after compinit
  fish  postrider completion fish | source        in ~/.config/fish/config.fish
`;

/** Adds `completion` to `program`. The script completes all commands that `program` has when `completion` runs. */
export function addCompletionCommand(program: Command, context: Context): void {
  const completion = program.command('completion').description('print the completion script for a shell');
  completion.addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)));
  completion.option('--json', 'print JSON: {"shell","script"}').addHelpText('after', HELP_TEXT);
  completion.action((shell: Shell, { json }: { json?: boolean }) => {
    const script = SCRIPTS[shell](listCommandNodes(program));
    if (json === true) context.writeJson({ shell, script });
    else context.writeData(script);
  });
}

/** Returns the program and all its commands, each after its parent. */
export function listCommandNodes(program: Command): readonly CommandNode[] {
  const listNodes = (command: Command, path: string): readonly CommandNode[] => {
    const help = command.createHelp();
    const subcommands = help.visibleCommands(command);
    const node: CommandNode = {
      path,
      commands: subcommands.map((subcommand) => ({ name: subcommand.name(), description: subcommand.description() })),
      options: help.visibleOptions(command).map((option) => ({
        name: option.long ?? option.flags,
        description: option.description,
        takesValue: option.required || option.optional,
        choices: getChoices(option),
      })),
      choices: command.registeredArguments.flatMap(getChoices),
      takesFile: command.registeredArguments.some((argument) => argument.name() === 'file'),
    };
    return [node, ...subcommands.flatMap((subcommand) => listNodes(subcommand, `${path} ${subcommand.name()}`.trim()))];
  };
  return listNodes(program, '');
}

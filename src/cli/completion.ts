/** `postrider completion SHELL` and `postrider openapi`: text that is generated from the definitions of the commands and routes. */
import { Argument, type Command } from 'commander';
import type { Context } from './context.ts';
import { getChoices } from './operation-command.ts';

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

interface DescribedName {
  readonly name: string;
  readonly description: string;
}

/** The program or one of its commands. */
export interface CommandNode {
  /** The words of the command, separated by spaces, such as `key create`. Empty for the program. */
  readonly path: string;
  readonly commands: readonly DescribedName[];
  readonly options: readonly (DescribedName & { readonly takesValue: boolean; readonly choices: readonly string[] })[];
  /** The values that the arguments of the command accept. Empty if every value is accepted. */
  readonly choices: readonly string[];
  readonly takesFile: boolean;
}

/** Returns every flag that takes a value, with the path of its command, such as `key create --name`. */
function listValueFlags(nodes: readonly CommandNode[]) {
  return nodes.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ name, choices }) => ({ path, flag: name, key: `${path} ${name}`, choices })),
  );
}

/** Returns a word in single quotes. Quotes in the word are escaped in a form that is valid in all three shells. */
function quoteWord(text: string): string {
  return `'${text.replaceAll("'", () => "'\\''")}'`;
}

/** Returns a `case` pattern for bash and zsh that matches every key. */
function createCasePattern(keys: readonly string[]): string {
  return keys.map(quoteWord).join('|');
}

/**
 * Returns the loop body that bash and zsh share. The loop body reads one word before the cursor. It sets `command` to
 * the path of the command that the words read so far select. It sets `flag` to the flag whose value is the next word,
 * or to the empty string.
 */
function createWordLoopBody(nodes: readonly CommandNode[]): string {
  const commands = nodes.filter(({ path }) => path !== '').map(({ path }) => path);
  return `    if [[ -n $flag && $word == '=' ]]; then continue; fi
    if [[ -n $flag ]]; then flag=; continue; fi
    case "\${command:+$command }$word" in
      ${createCasePattern(commands)}) command="\${command:+$command }$word" ;;
      ${createCasePattern(listValueFlags(nodes).map(({ key }) => key))}) flag=$word ;;
    esac`;
}

/** Returns the script for bash 3.2 and later. */
export function createBashScript(nodes: readonly CommandNode[]): string {
  const valueFlags = listValueFlags(nodes).filter(({ choices }) => choices.length > 0);
  return `# Completion of postrider for bash. Load it: source <(postrider completion bash)
_postrider() {
  local IFS=$' \\t\\n' current=\${COMP_WORDS[COMP_CWORD]} command= flag= word i
  local flags= values= files=
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
${createWordLoopBody(nodes)}
  done
  if [[ $current == '=' ]]; then current=; fi
  COMPREPLY=()
  if [[ -n $flag ]]; then
    case "\${command:+$command }$flag" in
${valueFlags.map(({ key, choices }) => `      ${quoteWord(key)}) values=${quoteWord(choices.join(' '))} ;;`).join('\n')}
    esac
    COMPREPLY=($(compgen -W "$values" -- "$current"))
    return
  fi
  case $command in
${nodes
  .map(({ path, commands, options, choices, takesFile }) => {
    const completionWords = [...commands.map(({ name }) => name), ...choices].join(' ');
    const completionFlags = options.map(({ name }) => name).join(' ');
    return `    ${quoteWord(path)}) values=${quoteWord(completionWords)} flags=${quoteWord(completionFlags)}${takesFile ? ' files=yes' : ''} ;;`;
  })
  .join('\n')}
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  elif [[ -n $files ]]; then
    IFS=$'\\n'
    COMPREPLY=($(compgen -f -- "$current"))
    compopt -o filenames 2>/dev/null
  else
    COMPREPLY=($(compgen -W "$values" -- "$current"))
  fi
}
complete -F _postrider postrider
`;
}

/**
 * Returns the script for zsh. The script can be sourced, or installed as the file `_postrider` in a folder of `fpath`.
 */
export function createZshScript(nodes: readonly CommandNode[]): string {
  // Formats an entry for `_describe`, which separates a name from its description at the first colon.
  const formatEntry = ({ name, description }: DescribedName) =>
    quoteWord(`${name.replaceAll(':', '\\:')}:${description.replaceAll('`', '')}`);
  const valueFlags = listValueFlags(nodes).filter(({ choices }) => choices.length > 0);
  return `#compdef postrider
# Completion of postrider for zsh. Load it after compinit: source <(postrider completion zsh)
_postrider() {
  local command= flag= word files=
  local -i i
  local -a entries flags
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
${createWordLoopBody(nodes)}
  done
  if [[ -z $flag && $PREFIX == --*=* ]]; then
    flag=\${PREFIX%%=*}
    compset -P '*='
  fi
  if [[ -n $flag ]]; then
    case "\${command:+$command }$flag" in
${valueFlags.map(({ key, choices }) => `      ${quoteWord(key)}) entries=(${choices.map(quoteWord).join(' ')}) ;;`).join('\n')}
    esac
    (( $#entries )) && compadd -a entries
    return
  fi
  case $command in
${nodes
  .map(({ path, commands, options, choices, takesFile }) => {
    const names = [...commands.map(formatEntry), ...choices.map(quoteWord)].join(' ');
    return `    ${quoteWord(path)}) entries=(${names}) flags=(${options.map(formatEntry).join(' ')})${takesFile ? ' files=yes' : ''} ;;`;
  })
  .join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then
    _describe flag flags
  elif [[ -n $files ]]; then
    _files
  elif (( $#entries )); then
    _describe command entries
  fi
}
if [[ \${funcstack[1]} == _postrider ]]; then
  _postrider "$@"
else
  compdef _postrider postrider
fi
`;
}

/** Returns the script for fish 3 and later. */
export function createFishScript(nodes: readonly CommandNode[]): string {
  // Quotes a text for fish. In single quotes, fish requires an escape only for the quote and the backslash.
  const quoteForFish = (value: string) => `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const commands = nodes.filter(({ path }) => path !== '').map(({ path }) => quoteForFish(path));
  const completionLines = nodes.flatMap(({ path, commands: subcommands, options, choices, takesFile }) => {
    const linePrefix = `complete -c postrider -n ${quoteForFish(`__postrider_command ${quoteForFish(path)}`)}`;
    return [
      ...subcommands.map(({ name, description }) => `${linePrefix} -a ${name} -d ${quoteForFish(description)}`),
      ...(choices.length > 0 ? [`${linePrefix} -a ${quoteForFish(choices.join(' '))}`] : []),
      ...(takesFile ? [`${linePrefix} -F`] : []),
      ...options.map(({ name, description, takesValue, choices: values }) => {
        const value = takesValue ? ` -x${values.length > 0 ? ` -a ${quoteForFish(values.join(' '))}` : ''}` : '';
        return `${linePrefix} -l ${name.slice(2)}${value} -d ${quoteForFish(description)}`;
      }),
    ];
  });
  return `# Completion of postrider for fish. Load it: postrider completion fish | source
function __postrider_command -d 'True if the words before the cursor select the given command'
    set -l words (commandline -opc)
    set -e words[1]
    set -l path
    for word in $words
        if contains -- (string join ' ' -- $path $word) ${commands.join(' ')}
            set -a path $word
        end
    end
    test "$path" = "$argv[1]"
end
complete -c postrider -e
complete -c postrider -f
${completionLines.join('\n')}
`;
}

/** Adds `openapi` to `program`. */
export function addOpenApiCommand(program: Command, context: Context): void {
  const openapi = program.command('openapi').description('print the OpenAPI document of the public interface');
  // The document is always JSON. The flag exists because every command accepts `--json`.
  openapi.option('--json', 'no effect: the document is JSON');
  openapi.action(async () => {
    const { createOpenApiDocument } = await import('../http/openapi.ts');
    context.writeText(`${JSON.stringify(createOpenApiDocument(), null, 2)}\n`);
  });
}

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

export interface CommandNode {
  /** The words of the command, such as `key create`. Empty for the program. */
  readonly path: string;
  readonly commands: readonly DescribedName[];
  readonly options: readonly (DescribedName & { readonly takesValue: boolean; readonly choices: readonly string[] })[];
  readonly choices: readonly string[];
  readonly takesFile: boolean;
}

function listValueFlags(nodes: readonly CommandNode[]) {
  return nodes.flatMap(({ path, options }) =>
    options.filter(({ takesValue }) => takesValue).map(({ name, choices }) => ({ key: `${path} ${name}`, choices })),
  );
}

function quoteWord(text: string): string {
  return `'${text.replaceAll("'", () => "'\\''")}'`;
}

function createValueCases(nodes: readonly CommandNode[], assign: (choices: readonly string[]) => string): string {
  return listValueFlags(nodes)
    .filter(({ choices }) => choices.length > 0)
    .map(({ key, choices }) => `      ${quoteWord(key)}) ${assign(choices)} ;;`)
    .join('\n');
}

function createCommandCases(nodes: readonly CommandNode[], assign: (node: CommandNode) => string): string {
  return nodes
    .map((node) => `    ${quoteWord(node.path)}) ${assign(node)}${node.takesFile ? ' files=yes' : ''} ;;`)
    .join('\n');
}

/** Bash and zsh share it. Sets `command` to the path, and `flag` to the flag whose value is the next word, or empty. */
function createWordLoopBody(nodes: readonly CommandNode[]): string {
  const commands = nodes.filter(({ path }) => path !== '').map(({ path }) => path);
  return `    if [[ -n $flag && $word == '=' ]]; then continue; fi
    if [[ -n $flag ]]; then flag=; continue; fi
    case "\${command:+$command }$word" in
      ${commands.map(quoteWord).join('|')}) command="\${command:+$command }$word" ;;
      ${listValueFlags(nodes)
        .map(({ key }) => quoteWord(key))
        .join('|')}) flag=$word ;;
    esac`;
}

export function createBashScript(nodes: readonly CommandNode[]): string {
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
${createValueCases(nodes, (choices) => `values=${quoteWord(choices.join(' '))}`)}
    esac
    COMPREPLY=($(compgen -W "$values" -- "$current"))
    return
  fi
  case $command in
${createCommandCases(nodes, ({ commands, options, choices }) => {
  const completionWords = [...commands.map(({ name }) => name), ...choices].join(' ');
  return `values=${quoteWord(completionWords)} flags=${quoteWord(options.map(({ name }) => name).join(' '))}`;
})}
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

/** The script can be sourced, or installed as the file `_postrider` in a folder of `fpath`. */
export function createZshScript(nodes: readonly CommandNode[]): string {
  // `_describe` separates a name from its description at the first colon.
  const formatEntry = ({ name, description }: DescribedName) =>
    quoteWord(`${name.replaceAll(':', '\\:')}:${description.replaceAll('`', '')}`);
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
${createValueCases(nodes, (choices) => `entries=(${choices.map(quoteWord).join(' ')})`)}
    esac
    (( $#entries )) && compadd -a entries
    return
  fi
  case $command in
${createCommandCases(nodes, ({ commands, options, choices }) => {
  const names = [...commands.map(formatEntry), ...choices.map(quoteWord)].join(' ');
  return `entries=(${names}) flags=(${options.map(formatEntry).join(' ')})`;
})}
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

export function createFishScript(nodes: readonly CommandNode[]): string {
  // In single quotes, fish requires an escape only for the quote and the backslash.
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

export function addOpenApiCommand(program: Command, context: Context): void {
  const openapi = program.command('openapi').description('print the OpenAPI document of the public interface');
  // The document is always JSON. The flag exists because every command accepts `--json`.
  openapi.option('--json', 'no effect: the document is JSON');
  openapi.action(async () => {
    const { createOpenApiDocument } = await import('../http/openapi.ts');
    context.writeText(`${JSON.stringify(createOpenApiDocument(), null, 2)}\n`);
  });
}

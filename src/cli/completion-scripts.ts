/**
 * The completion scripts of the shells. Pure. A script determines the command from the words of the line. It completes
 * a word after a flag with a value as a value of this flag, a word that begins with a dash as a flag, and any other
 * word as a subcommand, a value or a file. Descriptions are shown by zsh and fish.
 */

interface Entry {
  readonly name: string;
  readonly description: string;
}

/** The program or one of its commands. */
export interface CommandNode {
  /** The words of the command, separated by spaces: `key create`; empty for the program. */
  readonly path: string;
  readonly commands: readonly Entry[];
  readonly options: readonly (Entry & { readonly takesValue: boolean; readonly choices: readonly string[] })[];
  /** The values that its arguments accept; empty if every value is accepted. */
  readonly choices: readonly string[];
  readonly takesFile: boolean;
}

/** Returns every flag that is followed by a value, with its command: `key create --name`. */
function valueFlags(nodes: readonly CommandNode[]) {
  return nodes.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ name, choices }) => ({ path, flag: name, key: `${path} ${name}`, choices })),
  );
}

/** Returns a word in single quotes. Quotes in the word are escaped in a form that is valid in all three shells. */
function quote(text: string): string {
  return `'${text.replaceAll("'", () => "'\\''")}'`;
}

/** Returns the pattern of a `case` in bash and zsh. */
function pattern(keys: readonly string[]): string {
  return keys.map(quote).join('|');
}

/**
 * Returns the part that bash and zsh share: the loop body that reads one word before the cursor. `command` becomes the
 * path of the command, and `flag` the flag whose value is next.
 */
function wordCases(nodes: readonly CommandNode[]): string {
  const commands = nodes.filter(({ path }) => path !== '').map(({ path }) => path);
  return `    if [[ -n $flag && $word == '=' ]]; then continue; fi
    if [[ -n $flag ]]; then flag=; continue; fi
    case "\${command:+$command }$word" in
      ${pattern(commands)}) command="\${command:+$command }$word" ;;
      ${pattern(valueFlags(nodes).map(({ key }) => key))}) flag=$word ;;
    esac`;
}

/** Returns the script for bash 3.2 and later. */
export function bashScript(nodes: readonly CommandNode[]): string {
  const values = valueFlags(nodes).filter(({ choices }) => choices.length > 0);
  return `# Completion of postrider for bash. Load it: source <(postrider completion bash)
_postrider() {
  local IFS=$' \\t\\n' current=\${COMP_WORDS[COMP_CWORD]} command= flag= word i
  local flags= values= files=
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
${wordCases(nodes)}
  done
  if [[ $current == '=' ]]; then current=; fi
  COMPREPLY=()
  if [[ -n $flag ]]; then
    case "\${command:+$command }$flag" in
${values.map(({ key, choices }) => `      ${quote(key)}) values=${quote(choices.join(' '))} ;;`).join('\n')}
    esac
    COMPREPLY=($(compgen -W "$values" -- "$current"))
    return
  fi
  case $command in
${nodes
  .map(({ path, commands, options, choices, takesFile }) => {
    const words = [...commands.map(({ name }) => name), ...choices].join(' ');
    const flags = options.map(({ name }) => name).join(' ');
    return `    ${quote(path)}) values=${quote(words)} flags=${quote(flags)}${takesFile ? ' files=yes' : ''} ;;`;
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

/** Returns the script for zsh. It works as the file `_postrider` in a folder of `fpath`, and when it is sourced. */
export function zshScript(nodes: readonly CommandNode[]): string {
  // Formats an entry for `_describe`, which separates a name from its description by the first colon.
  const entry = ({ name, description }: Entry) =>
    quote(`${name.replaceAll(':', '\\:')}:${description.replaceAll('`', '')}`);
  const values = valueFlags(nodes).filter(({ choices }) => choices.length > 0);
  return `#compdef postrider
# Completion of postrider for zsh. Load it after compinit: source <(postrider completion zsh)
_postrider() {
  local command= flag= word files=
  local -i i
  local -a entries flags
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
${wordCases(nodes)}
  done
  if [[ -z $flag && $PREFIX == --*=* ]]; then
    flag=\${PREFIX%%=*}
    compset -P '*='
  fi
  if [[ -n $flag ]]; then
    case "\${command:+$command }$flag" in
${values.map(({ key, choices }) => `      ${quote(key)}) entries=(${choices.map(quote).join(' ')}) ;;`).join('\n')}
    esac
    (( $#entries )) && compadd -a entries
    return
  fi
  case $command in
${nodes
  .map(({ path, commands, options, choices, takesFile }) => {
    const names = [...commands.map(entry), ...choices.map(quote)].join(' ');
    return `    ${quote(path)}) entries=(${names}) flags=(${options.map(entry).join(' ')})${takesFile ? ' files=yes' : ''} ;;`;
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
export function fishScript(nodes: readonly CommandNode[]): string {
  // Quotes a text for fish, which escapes only the quote and the backslash in single quotes.
  const text = (value: string) => `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const commands = nodes.filter(({ path }) => path !== '').map(({ path }) => text(path));
  const lines = nodes.flatMap(({ path, commands: subcommands, options, choices, takesFile }) => {
    const start = `complete -c postrider -n ${text(`__postrider_command ${text(path)}`)}`;
    return [
      ...subcommands.map(({ name, description }) => `${start} -a ${name} -d ${text(description)}`),
      ...(choices.length > 0 ? [`${start} -a ${text(choices.join(' '))}`] : []),
      ...(takesFile ? [`${start} -F`] : []),
      ...options.map(({ name, description, takesValue, choices: values }) => {
        const value = takesValue ? ` -x${values.length > 0 ? ` -a ${text(values.join(' '))}` : ''}` : '';
        return `${start} -l ${name.slice(2)}${value} -d ${text(description)}`;
      }),
    ];
  });
  return `# Completion of postrider for fish. Load it: postrider completion fish | source
function __postrider_command -d 'True if the words before the cursor are this command'
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
${lines.join('\n')}
`;
}

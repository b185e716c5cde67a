import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { createBashScript, createFishScript, createZshScript, listCommandNodes } from '../../../src/cli/completion.ts';
import { createContext } from '../../../src/cli/context.ts';
import { buildProgram } from '../../../src/cli/main.ts';
import { STATES } from '../../../src/model/message.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createCommandRig } from './command-rig.ts';

const PROGRAM = await buildProgram(createContext(process), () => undefined);
const COMMAND_NODES = listCommandNodes(PROGRAM);

/**
 * For each shell, its completion script and its options. `program` sources the script `$1` and prints the completions
 * of the words `$2`…, one per line.
 */
const SHELLS = {
  bash: {
    script: createBashScript(COMMAND_NODES),
    options: ['--norc', '--noprofile'],
    program: `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _postrider; printf '%s\\n' "\${COMPREPLY[@]}"`,
  },
  // The completion system of zsh needs a terminal, so its functions are replaced by functions that print.
  zsh: {
    script: createZshScript(COMMAND_NODES),
    options: ['-f'],
    program: `compdef() { }; compset() { }; compadd() { print -l -- \${(P)2}; }
      _describe() { print -l -- \${\${(P)2}%%:*}; }; _files() { print -l -- $PREFIX*; }
      source "$1"; shift; words=("$@"); CURRENT=$#; PREFIX=$words[-1]; _postrider | { [[ $PREFIX == --*=* || -z $PREFIX ]] && cat || grep -e "^$PREFIX"; }`,
  },
  fish: {
    script: createFishScript(COMMAND_NODES),
    options: ['--no-config'],
    program: `source $argv[2]; complete -C (string join ' ' -- $argv[3..]) | string replace -r '\\t.*' ''`,
  },
} as const;
type Shell = keyof typeof SHELLS;

const isInstalled = (shell: Shell) => spawnSync(shell, ['-c', 'exit 0']).status === 0;
const INSTALLED_SHELLS = (Object.keys(SHELLS) as Shell[]).filter(isInstalled);

function listCompletions(shell: Shell, folder: string, words: readonly string[]): readonly string[] {
  const { script, options, program } = SHELLS[shell];
  const path = join(folder, 'script');
  writeFileSync(path, script);
  const shellResult = spawnSync(shell, [...options, '-c', program, 'test', path, ...words], {
    cwd: folder,
    env: { ...process.env, HOME: folder },
    encoding: 'utf8',
  });
  expect(shellResult.stderr).toBe('');
  return shellResult.stdout
    .split('\n')
    .map((line) => line.replace(/^--\w+=/, '').replace(/\/$/, ''))
    .filter((line) => line !== '')
    .sort();
}

test('bash is among the shells of this machine', () => {
  expect(INSTALLED_SHELLS).toContain('bash');
});

describe.each(INSTALLED_SHELLS)('%s', (shell) => {
  const listNames = (command: Command) => command.commands.map((subcommand) => subcommand.name()).sort();
  const keyCommand = PROGRAM.commands.find((command) => command.name() === 'key');

  test.each([
    ['every command', ['postrider', ''], listNames(PROGRAM)],
    ['the beginning of a command', ['./postrider', 'migr'], ['migrate-store']],
    ['every command of a group', ['postrider', 'key', ''], keyCommand === undefined ? [] : listNames(keyCommand)],
    ['the flags of a command', ['postrider', 'key', 'rotate', '--'], ['--grace', '--help', '--json']],
    ['the values of a flag', ['postrider', 'message', 'list', '--state', ''], [...STATES, 'deferred'].sort()],
    ['yes and no for a flag with these values', ['postrider', 'domain', 'set', '--subdomains', ''], ['no', 'yes']],
    ['a flag after a value', ['postrider', 'message', 'list', '--state', 'sending', '--si'], ['--since']],
    ['a value that is also a command', ['postrider', 'send', '--account', 'key', '--sub'], ['--subject']],
    ['no word for the value of a flag that has no list of values', ['postrider', 'key', 'create', '--name', ''], []],
    ['no word for an argument that has no list of values', ['postrider', 'key', 'revoke', ''], []],
    ['the values of an argument', ['postrider', 'completion', ''], ['bash', 'fish', 'zsh']],
    ['the names of files', ['postrider', 'restore', 'data'], ['data', 'data of May']],
  ])('completes %s', (_name, words, expected) => {
    const folder = createTemporaryFolder();
    for (const name of ['data', 'data of May']) mkdirSync(join(folder, name));
    expect(listCompletions(shell, folder, words)).toEqual(expected);
  });

  test('completes the value after an equals sign', () => {
    // bash passes the equals sign as a separate word.
    const words = shell === 'bash' ? ['--state', '=', 'de'] : ['--state=de'];
    const values = listCompletions(shell, createTemporaryFolder(), ['postrider', 'message', 'list', ...words]);
    expect(values).toContain('delivered');
  });
});

test('every script contains every command with all its flags', () => {
  const listCommands = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(listCommands)];
  const flags = listCommands(PROGRAM).flatMap((command) => command.options.map(({ long }) => long ?? ''));
  expect(COMMAND_NODES.map(({ path }) => path.split(' ').at(-1) || 'postrider')).toEqual(
    listCommands(PROGRAM).map((command) => command.name()),
  );
  for (const { script } of Object.values(SHELLS))
    for (const flag of flags) expect(script).toMatch(new RegExp(`\\b${flag.slice(2)}\\b`));
});

test('`completion` prints the script of each supported shell, and refuses the name of any other shell', async () => {
  const rig = await createCommandRig();
  for (const [shell, { script }] of Object.entries(SHELLS)) {
    expect(await rig.run('completion', shell)).toEqual({ code: 0, stdout: script, stderr: '' });
    expect(await rig.runJson('completion', shell)).toEqual({ shell, script });
  }
  expect(await rig.run('completion', 'nu')).toMatchObject({ code: 2, stdout: '' });
  expect(await rig.run('completion')).toMatchObject({ code: 2, stdout: '' });
});

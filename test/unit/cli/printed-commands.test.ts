/** Every command in an error, a finding, a page or the documentation runs as printed. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it, test } from 'vitest';
import { processContext } from '../../../src/cli/context.ts';
import { buildProgram } from '../../../src/cli/main.ts';
import { formatCommandLine, replaceCommandName } from '../../../src/printing/command-line.ts';
import { filesUnder, ROOT } from '../../house/source.ts';

const PROGRAM = await buildProgram(processContext(), () => undefined);

interface PrintedCommand {
  readonly path: string;
  /** The text after `postrider `. */
  readonly commandText: string;
}

/** `postrider …` between backticks, also escaped ones in templates, without a comment on the same line. */
function commandsInBackticks(text: string): readonly string[] {
  return [...text.matchAll(/`(?:npx )?postrider ([^`\n]*?)\\?`/g)].map((match) => match[1] ?? '');
}

/** The commands in code blocks of Markdown, indented or fenced, without prompt and environment. */
function commandsInBlocks(text: string): readonly string[] {
  const fenced = [...text.matchAll(/^ *```(?:sh|console)\n([\s\S]*?)^ *```$/gm)].map((match) => match[1] ?? '');
  const indented = [...text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '').matchAll(/^(?: {4,}|\t).*$/gm)].map(
    ([line]) => line,
  );
  return [...fenced, ...indented]
    .flatMap((block) => block.replaceAll(/\\\n/g, ' ').split('\n'))
    .flatMap((line) => [...ownCommand(line).matchAll(/(?:^|[ (])(?:npx )?postrider ([a-z].*)$/g)])
    .map((match) => (match[1] ?? '').split(/\s+[#<>|&]|\)/)[0] ?? '');
}

/** The part of a line that runs Postrider: `kubectl --namespace postrider exec … -- postrider key list` names it more than once. */
function ownCommand(line: string): string {
  const isContainer = /^\s*(?:kubectl|docker|sudo|cd) /.test(line);
  const at = line.lastIndexOf(' postrider ');
  if (!isContainer || at < 0) return line;
  return / (?:--|exec postrider|exec first|-u postrider)$/.test(line.slice(0, at)) ? line.slice(at) : '';
}

/** The arguments of `commandLine([…])`, and indented lines of explanations. */
function commandsInCode(text: string): readonly string[] {
  const made = [...text.matchAll(/commandLine\(\[([^\]]*)\]/g)].map((match) =>
    (match[1] ?? '')
      .split(',')
      .map((part) => (part.includes("'") ? part.replaceAll("'", '').trim() : 'X'))
      .join(' '),
  );
  const indented = [...text.matchAll(/['`] {2}postrider (.*?)(?: {2,}|['`])/g)].map((match) => match[1] ?? '');
  const shown = [...text.matchAll(/<(?:Code|code)>postrider ([^<]*)</g)].map((match) => match[1] ?? '');
  return [...made, ...indented, ...shown];
}

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

function findPrintedCommands(): readonly PrintedCommand[] {
  const code = [
    ...filesUnder('src', '.ts'),
    ...filesUnder('dashboard/src', '.ts'),
    ...filesUnder('dashboard/src', '.tsx'),
    ...filesUnder('demo', '.ts'),
  ];
  const documents = [
    ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
    ...filesUnder('docs', '.md'),
    ...filesUnder('monitoring', '.yml'),
  ];
  return [
    ...code.flatMap((path) => {
      // Comments are not printed. A template that begins with a variable is a name, not a command.
      const text = read(path).replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
      const all = [...commandsInBackticks(text), ...commandsInCode(text)].filter(
        (commandText) => !commandText.startsWith('${'),
      );
      return all.map((commandText) => ({ path, commandText }));
    }),
    ...documents.flatMap((path) => {
      const blocks = path.endsWith('.md') ? commandsInBlocks(read(path)) : [];
      // A sentence may name a command without its arguments.
      const named = commandsInBackticks(read(path)).filter((commandText) => !isCommandName(commandText));
      return [...named, ...blocks].map((commandText) => ({ path, commandText }));
    }),
  ];
}

/** True for the name of a command without arguments, such as `message cancel`. */
function isCommandName(commandText: string): boolean {
  const [first, second, ...rest] = commandText.split(' ');
  const command = PROGRAM.commands.find((candidate) => candidate.name() === first);
  return (
    command !== undefined &&
    rest.length === 0 &&
    command.commands.some((candidate) => candidate.name() === second) === (second !== undefined)
  );
}

/** Why the command does not run as printed, or null. Placeholders (`NAME`, `${name}`) stand for any value. */
function findCommandFault(commandText: string): string | null {
  const text = commandText.replaceAll(/\$\{[^}]*\}/g, 'X').trim();
  const commandWords = [...text.matchAll(/'[^']*'|"[^"]*"|\S+/g)].map(([word]) =>
    word.replaceAll(/^\[|\]$|^['"]|['"]$/g, ''),
  );
  let command: Command = PROGRAM;
  let rest = commandWords;
  for (;;) {
    const next = command.commands.find((candidate) => candidate.name() === rest[0]);
    if (next === undefined) break;
    command = next;
    rest = rest.slice(1);
  }
  if (command === PROGRAM)
    return commandWords[0]?.startsWith('-') || commandWords[0] === 'COMMAND'
      ? null
      : `there is no command ${commandWords[0]}`;
  if (rest.includes('--help') || rest[0] === '…') return null;
  if (command.commands.length > 0) return `${command.name()} has no command ${rest[0] ?? '(none given)'}`;
  let count = 0;
  for (let at = 0; at < rest.length; at += 1) {
    const word = rest[at] ?? '';
    if (word === '--' || word === '…') continue;
    if (!word.startsWith('--')) {
      count += 1;
      continue;
    }
    const [name] = word.split('=');
    const option = command.options.find(({ long }) => long === name);
    if (option === undefined) return `${command.name()} has no flag ${name}`;
    if (option.required && !word.includes('=')) at += 1;
  }
  const required = command.registeredArguments.filter((argument) => argument.required).length;
  const maxArguments = command.registeredArguments.some(({ variadic }) => variadic)
    ? Infinity
    : command.registeredArguments.length;
  if (count < required) return `${command.name()} needs ${required} arguments`;
  if (count > maxArguments) return `${command.name()} accepts at most ${maxArguments} arguments`;
  for (const option of command.options) {
    if (option.mandatory && !rest.some((word) => word === option.long)) return `${command.name()} needs ${option.long}`;
  }
  return null;
}

test('every printed command exists and has its flags and required arguments', () => {
  const all = findPrintedCommands();
  // The test fails if the search finds no commands at all.
  expect(all.length).toBeGreaterThan(60);
  expect(
    all.flatMap(({ path, commandText }) =>
      findCommandFault(commandText) === null
        ? []
        : [`${path}: postrider ${commandText}: ${findCommandFault(commandText)}`],
    ),
  ).toEqual([]);
});

/** Every command that performs an action, with its full name. */
function listActionCommands(command: Command, path: readonly string[] = []): readonly (readonly [string, Command])[] {
  if (command.commands.length === 0) return [[path.join(' '), command]];
  return command.commands.flatMap((candidate) => listActionCommands(candidate, [...path, candidate.name()]));
}

test('docs/commands.md has one row for every command, with each of its options', () => {
  const page = read('docs/commands.md');
  const rows = [...page.matchAll(/^\| `([a-z][^`]*)` \| /gm)].map((match) => match[1] ?? '');
  const all = listActionCommands(PROGRAM);
  const findRows = (name: string) => rows.filter((row) => row === name || row.startsWith(`${name} `));
  const faults = all.flatMap(([name, { options }]) => {
    const [row, ...more] = findRows(name);
    if (row === undefined || more.length > 0) return [`docs/commands.md has ${1 + more.length} rows for ${name}`];
    const [group = ''] = name.split(' ');
    const common = group === 'domain' ? ['--json', '--details'] : ['--json'];
    return options
      .map(({ long }) => long ?? '')
      .filter((long) => !common.includes(long) && !row.split(/[\s\]]+/).some((word) => word.replace('[', '') === long))
      .map((long) => `docs/commands.md does not name ${long} of ${name}`);
  });
  expect(faults).toEqual([]);
  expect(rows).toHaveLength(all.length);
});

test('an error in a printed command is found', () => {
  for (const commandText of [
    'acount list',
    'account',
    'account set',
    'account set x --volum 3',
    'key list',
    'doctor now',
    'account lock x',
  ])
    expect([commandText, findCommandFault(commandText)]).not.toEqual([commandText, null]);
  for (const commandText of [
    'account list',
    'account set X --volume 3',
    'doctor --loop',
    'suppression remove X -- -x@example.com',
  ])
    expect([commandText, findCommandFault(commandText)]).toEqual([commandText, null]);
});

describe('a printed command', () => {
  it('has the same arguments in a shell', () => {
    expect(formatCommandLine(['suppression', 'remove', '*', 'ada@example.com'])).toBe(
      "postrider suppression remove '*' ada@example.com",
    );
    expect(formatCommandLine(['suppression', 'remove', 'shop', '"a b$c`d\'e"@example.com'])).toBe(
      `postrider suppression remove shop '"a b$c\`d'\\''e"@example.com'`,
    );
    expect(formatCommandLine(['suppression', 'remove', 'shop', '-x@example.com'])).toBe(
      'postrider suppression remove -- shop -x@example.com',
    );
  });

  it('is printed with the name under which it can be called', () => {
    const text = 'run `postrider doctor` or\n  postrider message retry X\nnot postrider itself, nor `npx postrider x`';
    const calledAs = (name: string) =>
      `run \`${name} doctor\` or\n  ${name} message retry X\nnot postrider itself, nor \`npx postrider x\``;
    for (const npm_lifecycle_event of ['start', 'demo', 'postrider'])
      expect(replaceCommandName(text, { npm_lifecycle_event })).toBe(calledAs('./postrider'));
    expect(replaceCommandName(text, { npm_lifecycle_event: 'npx' })).toBe(calledAs('npx postrider'));
    expect(replaceCommandName(text, {})).toBe(text);
    expect(replaceCommandName(text, { npm_lifecycle_event: 'test' })).toBe(text);
  });

  it('is printed in a checkout as `./postrider`, and as `postrider` if the checkout is in the path', () => {
    const { npm_lifecycle_event: _, ...environment } = process.env;
    const run = (command: string) =>
      spawnSync(command, ['nothing'], {
        cwd: ROOT,
        env: { ...environment, PATH: `${ROOT}:${environment.PATH}` },
        encoding: 'utf8',
      }).stderr;
    expect(run('./postrider')).toContain('`./postrider --help`');
    expect(run('postrider')).toContain('`postrider --help`');
  });
});

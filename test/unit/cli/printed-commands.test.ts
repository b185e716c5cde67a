import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it, test } from 'vitest';
import { createContext } from '../../../src/cli/context.ts';
import { buildProgram } from '../../../src/cli/main.ts';
import { formatCommandLine, replaceCommandName } from '../../../src/printing/text.ts';
import { listFiles, ROOT } from '../../house/source.ts';

const PROGRAM = await buildProgram(createContext(process), () => undefined);

interface PrintedCommand {
  readonly path: string;
  readonly commandText: string;
}

function findCommandsInBackticks(text: string): readonly string[] {
  return [...text.matchAll(/`(?:npx )?postrider ([^`\n]*?)\\?`/g)].map((match) => match[1] ?? '');
}

function findCommandsInBlocks(text: string): readonly string[] {
  const fencedBlocks = [...text.matchAll(/^ *```(?:sh|console)\n([\s\S]*?)^ *```$/gm)].map((match) => match[1] ?? '');
  const indentedLines = [...text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '').matchAll(/^(?: {4,}|\t).*$/gm)].map(
    ([line]) => line,
  );
  return [...fencedBlocks, ...indentedLines]
    .flatMap((block) => block.replaceAll(/\\\n/g, ' ').split('\n'))
    .flatMap((line) => [...extractOwnCommand(line).matchAll(/(?:^|[ (])(?:npx )?postrider ([a-z].*)$/g)])
    .map((match) => (match[1] ?? '').split(/\s+[#<>|&]|\)/)[0] ?? '');
}

/**
 * Returns the part of a line that runs Postrider. `kubectl --namespace postrider exec … -- postrider key list` contains
 * the word `postrider` twice.
 */
function extractOwnCommand(line: string): string {
  const isWrappedCommand = /^\s*(?:kubectl|docker|sudo|cd) /.test(line);
  const commandIndex = line.lastIndexOf(' postrider ');
  if (!isWrappedCommand || commandIndex < 0) return line;
  return / (?:--|exec postrider|exec first|-u postrider)$/.test(line.slice(0, commandIndex))
    ? line.slice(commandIndex)
    : '';
}

function findCommandsInCode(text: string): readonly string[] {
  const commandLineTexts = [...text.matchAll(/commandLine\(\[([^\]]*)\]/g)].map((match) =>
    (match[1] ?? '')
      .split(',')
      .map((part) => (part.includes("'") ? part.replaceAll("'", '').trim() : 'X'))
      .join(' '),
  );
  const indentedCommands = [...text.matchAll(/['`] {2}postrider (.*?)(?: {2,}|['`])/g)].map((match) => match[1] ?? '');
  const shownCommands = [...text.matchAll(/<(?:Code|code)>postrider ([^<]*)</g)].map((match) => match[1] ?? '');
  return [...commandLineTexts, ...indentedCommands, ...shownCommands];
}

const readText = (path: string) => readFileSync(join(ROOT, path), 'utf8');

function findPrintedCommands(): readonly PrintedCommand[] {
  const codePaths = [
    ...listFiles('src', '.ts'),
    ...listFiles('dashboard/src', '.ts'),
    ...listFiles('dashboard/src', '.tsx'),
    ...listFiles('demo', '.ts'),
  ];
  const documentPaths = [
    ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
    ...listFiles('docs', '.md'),
    ...listFiles('monitoring', '.yml'),
  ];
  return [
    ...codePaths.flatMap((path) => {
      // Comments are not printed. A template that begins with a variable is a name, not a command.
      const text = readText(path).replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
      const printedTexts = [...findCommandsInBackticks(text), ...findCommandsInCode(text)].filter(
        (commandText) => !commandText.startsWith('${'),
      );
      return printedTexts.map((commandText) => ({ path, commandText }));
    }),
    ...documentPaths.flatMap((path) => {
      const blocks = path.endsWith('.md') ? findCommandsInBlocks(readText(path)) : [];
      // A sentence may name a command without its arguments.
      const namedCommands = findCommandsInBackticks(readText(path)).filter(
        (commandText) => !isCommandName(commandText),
      );
      return [...namedCommands, ...blocks].map((commandText) => ({ path, commandText }));
    }),
  ];
}

function isCommandName(commandText: string): boolean {
  const [firstWord, secondWord, ...furtherWords] = commandText.split(' ');
  const command = PROGRAM.commands.find((candidate) => candidate.name() === firstWord);
  return (
    command !== undefined &&
    furtherWords.length === 0 &&
    command.commands.some((candidate) => candidate.name() === secondWord) === (secondWord !== undefined)
  );
}

/**
 * Returns the reason why the command does not run as printed, or null. A placeholder (`NAME`, `${name}`) represents any
 * value.
 */
function findCommandFault(commandText: string): string | null {
  const text = commandText.replaceAll(/\$\{[^}]*\}/g, 'X').trim();
  const commandWords = [...text.matchAll(/'[^']*'|"[^"]*"|\S+/g)].map(([word]) =>
    word.replaceAll(/^\[|\]$|^['"]|['"]$/g, ''),
  );
  let command: Command = PROGRAM;
  let remainingWords = commandWords;
  for (;;) {
    const subcommand = command.commands.find((candidate) => candidate.name() === remainingWords[0]);
    if (subcommand === undefined) break;
    command = subcommand;
    remainingWords = remainingWords.slice(1);
  }
  if (command === PROGRAM)
    return commandWords[0]?.startsWith('-') || commandWords[0] === 'COMMAND'
      ? null
      : `there is no command ${commandWords[0]}`;
  if (remainingWords.includes('--help') || remainingWords[0] === '…') return null;
  if (command.commands.length > 0) return `${command.name()} has no command ${remainingWords[0] ?? '(none given)'}`;
  let argumentCount = 0;
  for (let index = 0; index < remainingWords.length; index += 1) {
    const word = remainingWords[index] ?? '';
    if (word === '--' || word === '…') continue;
    if (!word.startsWith('--')) {
      argumentCount += 1;
      continue;
    }
    const [name] = word.split('=');
    const option = command.options.find(({ long }) => long === name);
    if (option === undefined) return `${command.name()} has no flag ${name}`;
    if (option.required && !word.includes('=')) index += 1;
  }
  const requiredCount = command.registeredArguments.filter((argument) => argument.required).length;
  const maxArguments = command.registeredArguments.some(({ variadic }) => variadic)
    ? Infinity
    : command.registeredArguments.length;
  if (argumentCount < requiredCount) return `${command.name()} needs ${requiredCount} arguments`;
  if (argumentCount > maxArguments) return `${command.name()} accepts at most ${maxArguments} arguments`;
  for (const option of command.options) {
    if (option.mandatory && !remainingWords.some((word) => word === option.long))
      return `${command.name()} needs ${option.long}`;
  }
  return null;
}

test('every printed command exists, and is printed with existing flags and all required arguments', () => {
  const printedCommands = findPrintedCommands();
  // The test must fail if the search does not find the commands.
  expect(printedCommands.length).toBeGreaterThan(60);
  expect(
    printedCommands.flatMap(({ path, commandText }) =>
      findCommandFault(commandText) === null
        ? []
        : [`${path}: postrider ${commandText}: ${findCommandFault(commandText)}`],
    ),
  ).toEqual([]);
});

function listActionCommands(command: Command, path: readonly string[] = []): readonly (readonly [string, Command])[] {
  if (command.commands.length === 0) return [[path.join(' '), command]];
  return command.commands.flatMap((candidate) => listActionCommands(candidate, [...path, candidate.name()]));
}

test('docs/commands.md contains one row for every command, with each option of the command', () => {
  const page = readText('docs/commands.md');
  const filters = /^`FILTERS` are\s+`([^`]*)`/m.exec(page)?.[1] ?? '';
  const rows = [...page.matchAll(/^\| `([a-z][^`]*)` \| /gm)].map((match) =>
    (match[1] ?? '').replace('[FILTERS]', filters),
  );
  const actionCommands = listActionCommands(PROGRAM);
  const findRows = (name: string) => rows.filter((row) => row === name || row.startsWith(`${name} `));
  const faults = actionCommands.flatMap(([name, { options }]) => {
    const [row, ...furtherRows] = findRows(name);
    if (row === undefined || furtherRows.length > 0)
      return [`docs/commands.md has ${1 + furtherRows.length} rows for ${name}`];
    const [group = ''] = name.split(' ');
    const commonOptions = group === 'domain' ? ['--json', '--details'] : ['--json'];
    return options
      .map(({ long }) => long ?? '')
      .filter(
        (long) => !commonOptions.includes(long) && !row.split(/[\s\]]+/).some((word) => word.replace('[', '') === long),
      )
      .map((long) => `docs/commands.md does not name ${long} of ${name}`);
  });
  expect(faults).toEqual([]);
  expect(rows).toHaveLength(actionCommands.length);
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
    const printWithName = (name: string) =>
      `run \`${name} doctor\` or\n  ${name} message retry X\nnot postrider itself, nor \`npx postrider x\``;
    for (const npm_lifecycle_event of ['start', 'demo', 'postrider'])
      expect(replaceCommandName(text, { npm_lifecycle_event })).toBe(printWithName('./postrider'));
    expect(replaceCommandName(text, { npm_lifecycle_event: 'npx' })).toBe(printWithName('npx postrider'));
    expect(replaceCommandName(text, {})).toBe(text);
    expect(replaceCommandName(text, { npm_lifecycle_event: 'test' })).toBe(text);
  });

  it('is printed in a checkout as `./postrider`, and as `postrider` if the folder of the checkout is in PATH', () => {
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

/**
 * `postrider suppression …`: the suppression lists, one for each account and `*` for the whole service.
 * Lists of any length are read and written in pages (operations/suppression-files.ts).
 */
import { createWriteStream } from 'node:fs';
import { stat, writeFile } from 'node:fs/promises';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Command, Option } from 'commander';
import { quote } from '../config/units.ts';
import { performDownload } from '../operations/file-operation.ts';
import { SUPPRESSION_REASONS } from '../operations/schemas.ts';
import { exportSuppressions, importSuppressions } from '../operations/suppression-files.ts';
import type { SuppressionEntry } from '../operations/suppressions/schemas.ts';
import {
  addSuppression,
  listLabel,
  listSuppressions,
  removeSuppression,
  showSuppression,
} from '../operations/suppressions.ts';
import { escapeJson, printable } from '../printing/escape.ts';
import { formatCount } from '../printing/text.ts';
import { declareChoices } from './choices.ts';
import type { Context } from './context.ts';
import { CommandFailure } from './failure.ts';
import { writeNewFile } from './new-file.ts';
import { declareOperations, operationCommand, unwrapResult } from './operation-command.ts';
import { type ProgressStream, RowProgress, StatusLine } from './progress.ts';
import { formatPairs, isoText, styled } from './text.ts';

type Pages = AsyncIterable<readonly SuppressionEntry[]>;

/** Adds the commands. `terminal` shows the progress. */
export function addSuppressionCommands(
  program: Command,
  context: Context,
  terminal: ProgressStream = process.stderr,
): void {
  const group = program
    .command('suppression')
    .description('suppression lists; ACCOUNT * is the list of the whole service')
    .helpCommand(false);

  operationCommand(group, context, 'add <account> <address>', addSuppression, {
    text: ({ address, added }, { account }) =>
      added
        ? `${address} is on the suppression list of ${listLabel(String(account))}.\n`
        : `${address} was already on the suppression list of ${listLabel(String(account))}.\n`,
  });
  operationCommand(group, context, 'remove <account> <address>', removeSuppression, {
    text: ({ address }, { account }) => `${address} can receive messages from ${listLabel(String(account))} again.\n`,
  });

  const listCommand = group.command('list <account>').description('list the addresses in alphabetical order');
  listCommand.option('--json', 'print JSON: [{"address","reason","source","at"}]');
  declareOperations(listCommand, [exportSuppressions]);
  listCommand.action((account: string, flags: { json?: boolean }) =>
    withPages(context, account, (pages) => (flags.json ? listJson(context, pages) : listText(context, pages, account))),
  );

  operationCommand(group, context, 'search <account> [text]', listSuppressions, {
    arguments: { text: 'search' },
    jsonHelp: 'print JSON: {"suppressions","next"}',
    text: ({ suppressions, next }) =>
      suppressions.length === 0
        ? 'No address matches.\n'
        : `${headingLine()}${suppressions.map(entryLine).join('')}${next === null ? '' : `\nmore addresses: --after ${next}\n`}`,
  });
  operationCommand(group, context, 'show <address>', showSuppression, {
    jsonHelp: 'print JSON: {"address","suppressed","lists":[{"list","reason","source","at"}]}',
    text: ({ address, lists }) =>
      lists.length === 0
        ? `${address} is on no suppression list.\n`
        : lists.map((entry) => `${entryText(address, entry)}\n`).join(''),
  });

  const importCommand = group
    .command('import <account> <file>')
    .description(
      'add the addresses of a CSV file (- for standard input) to a list; the whole file is checked first, and an unreadable file adds nothing',
    );
  importCommand
    .addOption(
      declareChoices(
        new Option('--reason <reason>', 'reason for rows without one').default('manual'),
        SUPPRESSION_REASONS,
      ),
    )
    .option('--json', 'print JSON: {"read","added","known","skipped"}');
  declareOperations(importCommand, [importSuppressions]);
  importCommand.action(async (account: string, file: string, flags: { reason: string; json?: boolean }) => {
    const { importFile } = await import('./suppression-import.ts');
    const {
      read,
      added,
      known,
      skippedCount: skipped,
    } = await importFile(context, account, file, flags.reason, terminal);
    if (flags.json) context.json({ read, added, known, skipped });
    else {
      const counts = `${formatCount(added)} added, ${formatCount(known)} already listed, ${formatCount(skipped)} skipped`;
      context.out(`read ${formatCount(read)} ${read === 1 ? 'row' : 'rows'} for ${listLabel(account)}: ${counts}\n`);
    }
  });

  const exportCommand = group
    .command('export <account> [file]')
    .description('write a list as CSV, the format of import');
  exportCommand.option(
    '--json',
    'print JSON: the number of addresses in the file; without a file the list, as `suppression list` prints it',
  );
  declareOperations(exportCommand, [exportSuppressions]);
  exportCommand.action((account: string, file: string | undefined, flags: { json?: boolean }) =>
    withPages(context, account, async (pages) => {
      if (flags.json && (file ?? '-') === '-') return listJson(context, pages);
      const rows = await exportList(context, pages, file ?? '-', terminal);
      if (flags.json) context.json({ file, addresses: rows });
      else if (file !== undefined && file !== '-')
        context.out(`wrote ${formatCount(rows)} ${rows === 1 ? 'address' : 'addresses'} to ${file}\n`);
    }),
  );
}

/** Passes a whole list to `work` in pages. @throws CommandFailure before `work`, so that no output precedes an error */
function withPages(context: Context, account: string, work: (pages: Pages) => Promise<void>): Promise<void> {
  return context.operate(async (operationContext) => {
    const operationResult = await performDownload(exportSuppressions, { account }, operationContext);
    return work(unwrapResult(context, operationResult, (member) => member.toUpperCase()));
  });
}

function entryLine({ address, reason, source, at }: SuppressionEntry): string {
  return `${alignColumns(reason, isoText(at), source ?? '-', address)}\n`;
}

function entryText(
  address: string,
  { list, reason, source, at }: Omit<SuppressionEntry, 'address'> & { list: string },
): string {
  return formatPairs([
    ['address', address],
    ['list of', list === '*' ? 'the whole service (*): no account can send to the address' : `account ${list}`],
    ['reason', reason],
    ['since', isoText(at)],
    ['caused by', source === null ? 'no message: an operator or an import' : `message ${source}`],
  ]);
}

async function listJson(context: Context, pages: Pages): Promise<void> {
  let text = '[';
  let first = true;
  for await (const page of pages) {
    for (const entry of page) {
      text += `${first ? '' : ',\n'}${escapeJson(JSON.stringify(entry))}`;
      first = false;
    }
    context.out(text);
    text = '';
    await waitForDrain(process.stdout);
  }
  context.out(`${text}]\n`);
}

/** Prints columns of fixed width, with the address last, so that the list is never in memory as a whole. */
async function listText(context: Context, pages: Pages, account: string): Promise<void> {
  let lines = 0;
  for await (const page of pages) {
    if (lines === 0 && page.length > 0) context.out(headingLine());
    lines += page.length;
    context.out(page.map(entryLine).join(''));
    await waitForDrain(process.stdout);
  }
  if (lines === 0) context.out(`the list of ${listLabel(account)} is empty\n`);
}

function headingLine(): string {
  return `${styled('heading', alignColumns('REASON', 'SINCE', 'CAUSED BY', 'ADDRESS'))}\n`;
}

function alignColumns(reason: string, since: string, source: string, address: string): string {
  return `${reason.padEnd(11)}${since.padEnd(22)}${source.padEnd(38)}${printable(address)}`;
}

/** Waits for a slow reader, so that a long list is not buffered in memory. */
async function waitForDrain(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableNeedDrain) await new Promise<void>((resolve) => stream.once('drain', resolve));
}

async function exportList(context: Context, pages: Pages, file: string, terminal: ProgressStream): Promise<number> {
  const line = new StatusLine(terminal);
  const progress = new RowProgress(line, context.clock.now);
  let rows = 0;
  async function* text(): AsyncGenerator<string> {
    yield exportSuppressions.header;
    for await (const page of pages) {
      yield exportSuppressions.formatPage([...page]);
      rows += page.length;
      progress.update(rows, null);
    }
  }
  try {
    if (file === '-') await writeToOutput(context, text());
    else await writeToFile(file, text());
  } finally {
    line.clear();
  }
  return rows;
}

async function writeToOutput(context: Context, text: AsyncIterable<string>): Promise<void> {
  const out = new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, next) {
      context.data(chunk);
      waitForDrain(process.stdout).then(() => next(), next);
    },
  });
  await pipeline(text, out);
}

/** Writes the text to a new file, or to a terminal or pipe of this user or of root. It never overwrites a file. */
async function writeToFile(file: string, text: AsyncIterable<string>): Promise<void> {
  const fileStatus = await stat(file).catch(() => null);
  if (fileStatus?.isDirectory()) throw new CommandFailure(`${quote(file)} is a folder; give the name of a file`);
  if (fileStatus !== null && !fileStatus.isFile()) {
    // Another user's pipe would disclose the list to that user.
    const user = process.getuid?.();
    if (user !== undefined && fileStatus.uid !== user && fileStatus.uid !== 0)
      throw new CommandFailure(`${quote(file)} belongs to another user; give the name of a new file`);
    return pipeline(text, createWriteStream(file));
  }
  await writeNewFile(file, (draft) => writeFile(draft, text));
}

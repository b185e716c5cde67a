/** `postrider suppression …`. Lists of any length are read and written in pages. */
import { constants, createWriteStream } from 'node:fs';
import { open, stat, writeFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { type Command, Option } from 'commander';
import { quote } from '../config/units.ts';
import { SUPPRESSION_REASONS } from '../model/suppression.ts';
import { type OpenedFile, performDownload, performUpload } from '../operations/operation.ts';
import { readFileBytes } from '../operations/rereadable-content.ts';
import {
  createImportScheduler,
  exportSuppressions,
  formatLines,
  importSuppressions,
} from '../operations/suppression-files.ts';
import type { Exclusion } from '../operations/suppression-formats.ts';
import {
  addSuppression,
  formatListLabel,
  type ImportResult,
  listSuppressions,
  type RemovedSuppression,
  removeSuppression,
  type SuppressionEntry,
  showSuppression,
} from '../operations/suppressions.ts';
import { escapeJson, toPrintable } from '../printing/escape.ts';
import { formatCount } from '../printing/text.ts';
import { CommandFailure, type Context } from './context.ts';
import { writeNewFile } from './new-file.ts';
import { addOperationCommand, declareChoices, declareOperations, unwrapResult } from './operation-command.ts';
import {
  applyStyle,
  formatPairs,
  formatTimeText,
  type ProgressStream,
  RowProgress,
  StatusLine,
  waitForDrain,
} from './terminal.ts';

type EntryPages = AsyncIterable<readonly SuppressionEntry[]>;

export function addSuppressionCommands(
  program: Command,
  context: Context,
  terminal: ProgressStream = process.stderr,
): void {
  const group = program
    .command('suppression')
    .description('suppression lists; * as ACCOUNT is the list of the whole service')
    .helpCommand(false);

  addOperationCommand(group, context, 'add <account> <address>', addSuppression, {
    formatResult: ({ address, added }, { account }) =>
      added
        ? `${address} is on the suppression list of ${formatListLabel(String(account))}.\n`
        : `${address} was already on the suppression list of ${formatListLabel(String(account))}.\n`,
  });
  addOperationCommand(group, context, 'remove <account> <address>', removeSuppression, {
    jsonHelp: 'print JSON: {"address","removed","provider"}',
    formatResult: (result, { account }) => formatRemoval(result, String(account)),
  });

  const listCommand = group.command('list <account>').description('list all addresses of a list in alphabetical order');
  listCommand.option('--json', 'print JSON: [{"address","reason","source","at","expires"}]');
  declareOperations(listCommand, [exportSuppressions]);
  listCommand.action((account: string, flags: { json?: boolean }) =>
    withPages(context, account, (pages) =>
      flags.json ? writeListAsJson(context, pages) : writeListAsTable(context, pages, account),
    ),
  );

  addOperationCommand(group, context, 'search <account> [text]', listSuppressions, {
    argumentMembers: { text: 'search' },
    jsonHelp: 'print JSON: {"suppressions","next"}',
    formatResult: ({ suppressions, next }) =>
      suppressions.length === 0
        ? next === null
          ? 'No address matches.\n'
          : `No address up to ${next} matches; to continue, add --after ${next}\n`
        : `${formatHeadingLine()}${suppressions.map(formatEntryLine).join('')}${next === null ? '' : `\nfor more addresses, add --after ${next}\n`}`,
  });
  addOperationCommand(group, context, 'show <address>', showSuppression, {
    jsonHelp: 'print JSON: {"address","suppressed","lists":[{"list","address","reason","source","at","expires"}]}',
    formatResult: ({ address, lists }) =>
      lists.length === 0
        ? `${address} is on no suppression list.\n`
        : lists.map((entry) => `${formatEntry(address, entry)}\n`).join(''),
  });

  const importCommand = group
    .command('import <account> <file>')
    .description(
      'add the addresses of a CSV or JSON file (- for standard input) to a list; exports of Postmark, SendGrid, Mailgun, Amazon SES, Brevo, Resend and Mailjet are recognized; an unreadable file adds no address',
    );
  importCommand
    .addOption(
      declareChoices(
        new Option(
          '--reason <reason>',
          'reason for rows without a reason (default: manual, or the reason from the export)',
        ),
        SUPPRESSION_REASONS,
      ),
    )
    .option('--dry-run', 'read and count the rows, and add nothing')
    .option('--json', 'print JSON: {"read","added","known","skipped","format","excluded","reasons","dryRun"}');
  declareOperations(importCommand, [importSuppressions]);
  importCommand.action(async (account: string, file: string, { json, ...flags }: ImportFlags) => {
    const result = await importFile(context, { account, ...flags }, file, terminal);
    if (json) context.writeJson(toImportSummary(result));
    else context.writeText(formatImport(account, result));
  });

  const exportCommand = group
    .command('export <account> [file]')
    .description('write a list as CSV, in the format that import reads');
  exportCommand.option(
    '--json',
    'print JSON: the number of addresses in the file; without a file the list, as `suppression list` prints it',
  );
  declareOperations(exportCommand, [exportSuppressions]);
  exportCommand.action((account: string, file: string | undefined, flags: { json?: boolean }) =>
    withPages(context, account, async (pages) => {
      if (flags.json && (file ?? '-') === '-') return writeListAsJson(context, pages);
      const rowCount = await exportList(context, pages, file ?? '-', terminal);
      if (flags.json) context.writeJson({ file, addresses: rowCount });
      else if (file !== undefined && file !== '-')
        context.writeText(`wrote ${formatCount(rowCount)} ${rowCount === 1 ? 'address' : 'addresses'} to ${file}\n`);
    }),
  );
}

function formatRemoval({ address, removed, provider }: RemovedSuppression, account: string): string {
  const label = formatListLabel(account);
  const ownListLine = removed
    ? `${address} can receive messages from ${label} again.\n`
    : `${address} was not on the suppression list of ${label}.\n`;
  switch (provider) {
    case null:
      return ownListLine;
    case 'removed':
      return `${ownListLine}${address} is no longer on the suppression list of Amazon SES.\n`;
    case 'absent':
      return `${ownListLine}${address} was not on the suppression list of Amazon SES.\n`;
  }
}

interface ImportFlags {
  readonly reason?: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

function toImportSummary({
  format,
  read,
  added,
  known,
  skippedCount,
  excluded,
  reasons,
  dryRun,
}: ImportResult): object {
  return { read, added, known, skipped: skippedCount, format, excluded, reasons, dryRun };
}

const EXCLUSION_NOUNS: Readonly<Record<Exclusion, readonly [string, string]>> = {
  block: ['block', 'blocks'],
  'soft-bounce': ['soft bounce', 'soft bounces'],
  reactivated: ['reactivated address', 'reactivated addresses'],
  'one-category': ['unsubscribe from one category', 'unsubscribes from one category'],
  'not-suppressed': ['address that is not suppressed', 'addresses that are not suppressed'],
};

function formatImport(account: string, result: ImportResult): string {
  const { format, read, added, known, skippedCount, excluded, reasons, dryRun } = result;
  const readText = `read ${formatCount(read)} ${read === 1 ? 'row' : 'rows'}${format === null ? '' : ` (${format})`} for ${formatListLabel(account)}`;
  const reasonCounts = reasons.map(({ reason, count }) => `${formatCount(count)} ${reason}`);
  const counts = dryRun
    ? [...reasonCounts, `${formatCount(skippedCount)} skipped; nothing was added (--dry-run)`]
    : [`${formatCount(added)} added`, `${formatCount(known)} already listed`, `${formatCount(skippedCount)} skipped`];
  const exclusions = excluded.map(
    ({ kind, count }) => `${formatCount(count)} ${EXCLUSION_NOUNS[kind][count === 1 ? 0 : 1]}`,
  );
  const skippedLine =
    exclusions.length === 0 ? '' : `skipped because they suppress no recipient: ${exclusions.join(', ')}\n`;
  return `${readText}: ${counts.join(', ')}\n${skippedLine}`;
}

/** @throws CommandFailure before it calls `processPages`, so that no output precedes the error */
function withPages(
  context: Context,
  account: string,
  processPages: (pages: EntryPages) => Promise<void>,
): Promise<void> {
  return context.withOperationContext(async (operationContext) => {
    const operationResult = await performDownload(exportSuppressions, { account }, operationContext);
    return processPages(unwrapResult(context, operationResult, (member) => member.toUpperCase()));
  });
}

function formatEntryLine({ address, reason, source, at }: SuppressionEntry): string {
  return `${alignColumns(reason, formatTimeText(at), source ?? '-', address)}\n`;
}

function formatEntry(
  address: string,
  { list, address: listed, reason, source, at, expires }: SuppressionEntry & { list: string },
): string {
  return formatPairs([
    ['address', address],
    ...(listed === address ? [] : [['suppressed as', listed] as const]),
    ['list of', list === '*' ? 'the whole service (*): no account can send to the address' : `account ${list}`],
    ['reason', reason],
    ['since', formatTimeText(at)],
    ...(expires === null ? [] : [['until', formatTimeText(expires)] as const]),
    ['caused by', source === null ? 'no message: an operator or an import' : `message ${source}`],
  ]);
}

async function writeListAsJson(context: Context, pages: EntryPages): Promise<void> {
  let bufferedText = '[';
  let isFirst = true;
  for await (const page of pages) {
    for (const entry of page) {
      bufferedText += `${isFirst ? '' : ',\n'}${escapeJson(JSON.stringify(entry))}`;
      isFirst = false;
    }
    context.writeText(bufferedText);
    bufferedText = '';
    await waitForDrain();
  }
  context.writeText(`${bufferedText}]\n`);
}

/** Columns of fixed width, with the address last, so that the whole list is never in memory. */
async function writeListAsTable(context: Context, pages: EntryPages, account: string): Promise<void> {
  let lineCount = 0;
  for await (const page of pages) {
    if (lineCount === 0 && page.length > 0) context.writeText(formatHeadingLine());
    lineCount += page.length;
    context.writeText(page.map(formatEntryLine).join(''));
    await waitForDrain();
  }
  if (lineCount === 0) context.writeText(`the list of ${formatListLabel(account)} is empty\n`);
}

function formatHeadingLine(): string {
  return `${applyStyle('heading', alignColumns('REASON', 'SINCE', 'CAUSED BY', 'ADDRESS'))}\n`;
}

function alignColumns(reason: string, since: string, source: string, address: string): string {
  return `${reason.padEnd(14)}${since.padEnd(22)}${source.padEnd(38)}${toPrintable(address)}`;
}

async function exportList(
  context: Context,
  pages: EntryPages,
  file: string,
  terminal: ProgressStream,
): Promise<number> {
  const line = new StatusLine(terminal);
  const progress = new RowProgress(line, context.clock.now);
  let rowCount = 0;
  async function* formatPages(): AsyncGenerator<string> {
    yield exportSuppressions.header;
    for await (const page of pages) {
      yield exportSuppressions.formatPage([...page]);
      rowCount += page.length;
      progress.update(rowCount, null);
    }
  }
  try {
    if (file !== '-') await writeToFile(file, formatPages());
    else
      for await (const text of formatPages()) {
        context.writeData(text);
        await waitForDrain();
      }
  } finally {
    line.clear();
  }
  return rowCount;
}

/** Writes a new file, or to a terminal or pipe of this user or of root. Never overwrites a file. */
async function writeToFile(file: string, text: AsyncIterable<string>): Promise<void> {
  const fileStatus = await stat(file).catch(() => null);
  if (fileStatus?.isDirectory()) throw new CommandFailure(`${quote(file)} is a folder; give the name of a file`);
  if (fileStatus !== null && !fileStatus.isFile()) {
    // Another user's pipe would disclose the list to that user.
    const userId = process.getuid?.();
    if (userId !== undefined && fileStatus.uid !== userId && fileStatus.uid !== 0)
      throw new CommandFailure(`${quote(file)} belongs to another user; give the name of a new file`);
    return pipeline(text, createWriteStream(file));
  }
  await writeNewFile(file, (draft) => writeFile(draft, text));
}

export function importFile(
  { withOperationContext, clock, warn }: Pick<Context, 'withOperationContext' | 'clock' | 'warn'>,
  input: { readonly account: string; readonly reason?: string | undefined; readonly dryRun?: boolean | undefined },
  file: string,
  terminal: ProgressStream,
): Promise<ImportResult> {
  const name = file === '-' ? 'standard input' : quote(file);
  const line = new StatusLine(terminal);
  let progress: RowProgress | null = null;
  return withOperationContext(async (operationContext) => {
    const context = { ...operationContext, imports: createImportScheduler(operationContext.store, clock) };
    const operationResult = await performUpload(
      importSuppressions,
      input,
      { name, open: () => openInput(file, name) },
      context,
      {
        onRowsRead: (rows) => line.show(`reading ${name}: ${formatCount(rows)} rows`),
        onProgress({ read, bytes, total }) {
          progress ??= new RowProgress(line, clock.now);
          progress.update(read, total === 0 ? null : bytes / total);
        },
      },
    ).finally(() => line.clear());
    // The exit code is 1, because the fault is in the file and not in the command line.
    if (!operationResult.ok && operationResult.error.code === 'invalid' && operationResult.error.field === null) {
      throw new CommandFailure(toPrintable(operationResult.error.message));
    }
    const result = unwrapResult({ warn }, operationResult, (member) =>
      member === 'account' ? 'ACCOUNT' : member === 'dryRun' ? '--dry-run' : `--${member}`,
    );
    printSkipped(result, line);
    return result;
    // The store runs in its own thread, so that this thread reads rows while earlier rows are written.
  }, false);
}

function printSkipped({ skipped, skippedCount, excluded }: ImportResult, line: StatusLine): void {
  for (const skippedRow of skipped)
    line.writeLine(toPrintable(`${formatLines(skippedRow)}: ${skippedRow.reason}; skipped`));
  const excludedCount = excluded.reduce((sum, { count }) => sum + count, 0);
  const unlistedCount = skippedCount - excludedCount - skipped.length;
  if (unlistedCount > 0)
    line.writeLine(`and ${formatCount(unlistedCount)} more invalid ${unlistedCount === 1 ? 'row' : 'rows'}, skipped`);
}

/** @throws CommandFailure */
async function openInput(file: string, name: string): Promise<OpenedFile> {
  if (file === '-') {
    if (process.stdin.isTTY) {
      throw new CommandFailure('standard input is a terminal; pipe a file into it, or give the name of a file', 2);
    }
    return { bytes: process.stdin, reread: null, close: () => Promise.resolve() };
  }
  try {
    const handle = await open(file, constants.O_RDONLY);
    const status = await handle.stat();
    if (status.isDirectory()) {
      await handle.close();
      throw new CommandFailure(`${name} is a folder; give the name of a file`);
    }
    const close = () => handle.close();
    // A named pipe, such as `<(…)` in a shell, can be read only once.
    if (!status.isFile()) return { bytes: handle.createReadStream({ autoClose: false }), reread: null, close };
    return { bytes: readFileBytes(handle), reread: (size) => readFileBytes(handle, size), close };
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
    throw new CommandFailure(
      code === 'ENOENT'
        ? `there is no file ${name}; give the name of a file, or - for standard input`
        : `${name} cannot be read (${code}); make it readable for this user`,
    );
  }
}

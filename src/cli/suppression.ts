/**
 * `postrider suppression …`: the addresses that get no mail, one list for each account and `*` for the whole service.
 * Lists of any length pass through a page or a batch at a time. A file that cannot be read to its end imports nothing;
 * what an import has put on a list stays, so that one that the store failed halfway is simply run again.
 */
import { createWriteStream } from 'node:fs';
import { stat, writeFile } from 'node:fs/promises';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { didYouMean } from '../config/nearest.ts';
import { quote } from '../config/units.ts';
import type { Suppression, SuppressionReason } from '../model/suppression.ts';
import type { SuppressionEntry } from '../operations/suppressions/schemas.ts';
import {
  addSuppression,
  entryOf,
  listLabel,
  listSuppressions,
  removeSuppression,
  showSuppression,
} from '../operations/suppressions.ts';
import { escapeJson, printable } from '../printing/escape.ts';
import { time } from '../printing/text.ts';
import type { Context } from './context.ts';
import { CommandFailure } from './failure.ts';
import { PAGE } from './gentle-add.ts';
import { writeNewFile } from './new-file.ts';
import { operationCommand } from './operation-command.ts';
import { grouped, type ProgressStream, RowProgress, StatusLine } from './progress.ts';
import { done, type Lists, pages } from './suppression-pages.ts';
import { isoText, pairs, styled } from './text.ts';

const REASONS: readonly SuppressionReason[] = ['bounce', 'complaint', 'manual'];

/** Adds the commands. `terminal` is where progress goes. */
export function addSuppressionCommands(
  program: Command,
  context: Context,
  terminal: ProgressStream = process.stderr,
): void {
  const group = program
    .command('suppression')
    .description('addresses that get no mail; ACCOUNT * is the list of the whole service')
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

  const list = group.command('list <account>').description('list the addresses in their order');
  list.option('--json', 'for machines: [{"address","reason","source","at"}]');
  list.action((account: string, flags: { json?: boolean }) =>
    context.withStore(
      (store) => (flags.json ? listJson(context, store, account) : listText(context, store, account)),
      true,
    ),
  );

  operationCommand(group, context, 'search <account> [text]', listSuppressions, {
    arguments: { text: 'search' },
    jsonHelp: 'for machines: {"suppressions","next"}',
    text: ({ suppressions, next }) =>
      suppressions.length === 0
        ? 'No address matches.\n'
        : `${headLine()}${suppressions.map(searchLine).join('')}${next === null ? '' : `\nmore: --after ${next}\n`}`,
  });
  operationCommand(group, context, 'show <address>', showSuppression, {
    jsonHelp: 'for machines: {"address","suppressed","lists":[{"list","reason","source","at"}]}',
    text: ({ address, lists }) =>
      lists.length === 0
        ? `${address} is on no suppression list.\n`
        : lists.map((entry) => `${entryText(address, entry)}\n`).join(''),
  });

  const load = group
    .command('import <account> <file>')
    .description(
      'put the addresses of a CSV file (- for standard input) on a list; the whole file is read first, and one that cannot be read to its end adds nothing',
    );
  load
    .option('--reason <reason>', 'of rows that name none', 'manual')
    .option('--json', 'for machines: {"read","added","known","skipped"}');
  load.action(async (account: string, file: string, flags: { reason: string; json?: boolean }) => {
    const reason = parseReason(flags.reason);
    const { importFile } = await import('./suppression-import.ts');
    const summary = await context.withStore(async (store) => {
      done(account, await store.listSuppressions(account, null, 1));
      const add = async (entries: readonly Suppression[]) =>
        done(account, await store.addSuppressions(account, entries));
      return importFile({ file, reason, batchSize: PAGE, add, terminal, now: context.clock.now });
    });
    if (flags.json) context.json(summary);
    else {
      const { read, added, known, skipped } = summary;
      const counts = `${grouped(added)} added, ${grouped(known)} known before, ${grouped(skipped)} skipped`;
      context.out(`read ${grouped(read)} ${read === 1 ? 'row' : 'rows'} for ${listLabel(account)}: ${counts}\n`);
    }
  });

  const save = group.command('export <account> [file]').description('write a list as CSV, which import reads');
  save.option(
    '--json',
    'for machines: how many went into the file; without a file the list, as `suppression list` has it',
  );
  save.action((account: string, file: string | undefined, flags: { json?: boolean }) =>
    context.withStore(async (store) => {
      if (flags.json && (file ?? '-') === '-') return listJson(context, store, account);
      const rows = await exportList(context, store, account, file ?? '-', terminal);
      if (flags.json) context.json({ file, addresses: rows });
      else if (file !== undefined && file !== '-')
        context.out(`wrote ${grouped(rows)} ${rows === 1 ? 'address' : 'addresses'} to ${file}\n`);
    }),
  );
}

function searchLine({ address, reason, source, at }: SuppressionEntry): string {
  return `${listLine(reason, isoText(at), source ?? '-', address)}\n`;
}

function entryText(
  address: string,
  { list, reason, source, at }: Omit<SuppressionEntry, 'address'> & { list: string },
): string {
  return pairs([
    ['address', address],
    ['list of', list === '*' ? 'the whole service (*): no account can send to it' : `account ${list}`],
    ['reason', reason],
    ['since', isoText(at)],
    ['caused by', source === null ? 'no message: an operator or an import' : `message ${source}`],
  ]);
}

async function listJson(context: Context, store: Lists, account: string): Promise<void> {
  let text = '[';
  let first = true;
  for await (const page of pages(store, account)) {
    for (const entry of page) {
      text += `${first ? '' : ',\n'}${escapeJson(JSON.stringify(entryOf(entry)))}`;
      first = false;
    }
    context.out(text);
    text = '';
    await drained(process.stdout);
  }
  context.out(`${text}]\n`);
}

/** Fixed columns, the address last: the widths of a list that is never in memory as a whole. */
async function listText(context: Context, store: Lists, account: string): Promise<void> {
  let lines = 0;
  for await (const page of pages(store, account)) {
    if (lines === 0 && page.length > 0) context.out(headLine());
    lines += page.length;
    context.out(page.map(entryLine).join(''));
    await drained(process.stdout);
  }
  if (lines === 0) context.out(`the list of ${listLabel(account)} is empty\n`);
}

function headLine(): string {
  return `${styled('head', listLine('REASON', 'SINCE', 'CAUSED BY', 'ADDRESS'))}\n`;
}

function entryLine({ address, reason, source, at }: Suppression): string {
  return `${listLine(reason, time(at), source ?? '-', address)}\n`;
}

function listLine(reason: string, since: string, source: string, address: string): string {
  return `${reason.padEnd(11)}${since.padEnd(22)}${source.padEnd(38)}${printable(address)}`;
}

/** A reader slower than the store must not leave a list of a million rows waiting in memory. */
async function drained(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableNeedDrain) await new Promise<void>((resolve) => stream.once('drain', resolve));
}

async function exportList(
  context: Context,
  store: Lists,
  account: string,
  file: string,
  terminal: ProgressStream,
): Promise<number> {
  const { CSV_HEADER, csvRow } = await import('./suppression-csv.ts');
  const line = new StatusLine(terminal);
  const progress = new RowProgress(line, context.clock.now);
  let rows = 0;
  async function* text(): AsyncGenerator<string> {
    yield CSV_HEADER;
    for await (const page of pages(store, account)) {
      yield page.map(csvRow).join('');
      rows += page.length;
      progress.update(rows, null);
    }
  }
  try {
    if (file === '-') await writeOut(context, text());
    else await writeWhole(file, text());
  } finally {
    line.end();
  }
  return rows;
}

async function writeOut(context: Context, text: AsyncIterable<string>): Promise<void> {
  const out = new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, next) {
      context.data(chunk);
      drained(process.stdout).then(() => next(), next);
    },
  });
  // The first page before the header: no output at all where there is no such account.
  const parts = text[Symbol.asyncIterator]();
  const [header, first] = [await parts.next(), await parts.next()];
  out.write(`${header.value ?? ''}${first.value ?? ''}`);
  await pipeline(rest(parts), out);
}

async function* rest(parts: AsyncIterator<string>): AsyncGenerator<string> {
  for (let next = await parts.next(); next.done !== true; next = await parts.next()) yield next.value;
}

/** Never over a file that is there. A terminal or a pipe of this user's own is written to. */
async function writeWhole(file: string, text: AsyncIterable<string>): Promise<void> {
  const found = await stat(file).catch(() => null);
  if (found?.isDirectory()) throw new CommandFailure(`${quote(file)} is a folder; give the name of a file`);
  if (found !== null && !found.isFile()) {
    // What another user has put there would hand the list to them.
    const user = process.getuid?.();
    if (user !== undefined && found.uid !== user && found.uid !== 0)
      throw new CommandFailure(`${quote(file)} belongs to another user; give the name of a file that is not there`);
    return pipeline(text, createWriteStream(file));
  }
  await writeNewFile(file, (draft) => writeFile(draft, text));
}

/** @throws CommandFailure naming the flag. */
export function parseReason(text: string): SuppressionReason {
  const reason = REASONS.find((known) => known === text);
  if (reason === undefined) {
    throw new CommandFailure(
      `--reason: ${quote(text)} is not one of ${REASONS.join(', ')}${didYouMean(text, REASONS)}`,
      2,
    );
  }
  return reason;
}

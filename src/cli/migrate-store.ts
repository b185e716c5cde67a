/** Compares count and checksum of the rows of every table. After an interruption, a second run continues the copy. */
import { createHash } from 'node:crypto';
import type { Command } from 'commander';
import { parseDatabase } from '../config/table.ts';
import { formatCount } from '../printing/text.ts';
import type { Row } from '../store/transaction.ts';
import {
  openTransferSource,
  openTransferTarget,
  type TransferredMessage,
  type TransferSource,
  type TransferTarget,
} from '../store/transfer.ts';
import { CommandFailure, type Context } from './context.ts';
import { type ProgressStream, StatusLine } from './terminal.ts';

const PAGE_ROWS = 1_000;
const BAR_WIDTH = 24;

interface ComparedTable {
  readonly table: string;
  readonly rows: number;
  readonly checksum: string;
}

export function addMigrateStoreCommand(
  program: Command,
  context: Context,
  terminal: ProgressStream = process.stderr,
): void {
  program
    .command('migrate-store')
    .description('copy the embedded database to PostgreSQL, while no service runs')
    .requiredOption('--from <url>', 'sqlite:FILE')
    .requiredOption(
      '--to <url>',
      'postgres://USER:PASSWORD@HOST/DATABASE; - reads it from standard input, because other users of this machine can see a command line',
    )
    .option('--json', 'print JSON')
    .action(async (flags: { from: string; to: string; json?: boolean }) => {
      const from = parseDatabaseOption('--from', flags.from);
      const to = parseDatabaseOption('--to', flags.to === '-' ? await context.readInputLine('--to -') : flags.to);
      if (from.kind !== 'sqlite' || to.kind !== 'postgres')
        throw new CommandFailure(
          '--from must be sqlite:FILE and --to must be postgres://…; no other direction is supported',
          2,
        );
      const source = openTransferSource(from.path);
      const line = new StatusLine(terminal);
      try {
        const target = await openTransferTarget(to);
        try {
          await target.begin(source.name);
          await copyTables(source, target, line);
          const comparedTables = await compareTables(source, target, line);
          await target.completeTransfer();
          line.clear();
          if (flags.json) context.writeJson({ tables: comparedTables });
          else {
            const width = Math.max(...comparedTables.map(({ table }) => table.length));
            for (const { table, rows } of comparedTables)
              context.writeText(
                `${table.padEnd(width)} ${formatCount(rows).padStart(12)} rows, equal in both databases\n`,
              );
            context.writeText(
              'The copy is complete. Set POSTRIDER_DATABASE to the new database, and POSTRIDER_SECRET to the content of the file `secret`\n',
            );
          }
        } finally {
          line.clear();
          await target.close();
        }
      } finally {
        source.close();
      }
    });
}

function parseDatabaseOption(option: string, url: string) {
  const parsedSetting = parseDatabase(url);
  if (!parsedSetting.ok) throw new CommandFailure(`${option}: ${parsedSetting.fault}`, 2);
  return parsedSetting.value;
}

async function copyTables(source: TransferSource, target: TransferTarget, line: StatusLine): Promise<void> {
  for (const table of source.tables) {
    line.show(`copying ${table.name} …`);
    let page: Row[] = [];
    for (const row of source.readRows(table)) {
      page.push(row);
      if (page.length < PAGE_ROWS) continue;
      await target.writeRows(table, page);
      page = [];
    }
    if (page.length > 0) await target.writeRows(table, page);
  }
  const messageCount = source.countMessages();
  let copiedCount = 0;
  for (let lastId = await target.findLastMessageId(); ; ) {
    const page = source.readMessages(lastId, PAGE_ROWS);
    const lastMessage = page.at(-1);
    if (lastMessage === undefined) return;
    await target.writeMessages(page, source.messageColumns);
    lastId = lastMessage.id;
    copiedCount += page.length;
    line.show(
      `${formatBar(copiedCount, messageCount)} ${formatCount(copiedCount)} of ${formatCount(messageCount)} messages copied`,
    );
  }
}

/** @throws CommandFailure if a table differs; the migration is then not complete */
async function compareTables(
  source: TransferSource,
  target: TransferTarget,
  line: StatusLine,
): Promise<ComparedTable[]> {
  const comparedTables: ComparedTable[] = [];
  const requireEqual = (table: string, sourceDigest: RowDigest, targetDigest: RowDigest) => {
    if (
      sourceDigest.rowCount !== targetDigest.rowCount ||
      sourceDigest.computeChecksum() !== targetDigest.computeChecksum()
    ) {
      throw new CommandFailure(
        `${table} differs: ${sourceDigest.rowCount} rows in the source, ${targetDigest.rowCount} in the target. Nothing was removed; empty the target database and run the command again`,
      );
    }
    comparedTables.push({ table, rows: sourceDigest.rowCount, checksum: sourceDigest.computeChecksum() });
  };
  for (const table of source.tables) {
    line.show(`comparing ${table.name} …`);
    const [sourceDigest, targetDigest] = [new RowDigest(), new RowDigest()];
    const listColumnValues = (row: Row) => table.columns.map((name) => toComparable(row[name]));
    for (const row of source.readRows(table)) sourceDigest.add(listColumnValues(row));
    for (const row of await target.readRows(table)) targetDigest.add(listColumnValues(row));
    requireEqual(table.name, sourceDigest, targetDigest);
  }
  const messageCount = source.countMessages();
  const [sourceDigest, targetDigest] = [new RowDigest(), new RowDigest()];
  for (let lastId: string | null = null; ; ) {
    const page: readonly TransferredMessage[] = source.readMessages(lastId, PAGE_ROWS);
    for (const message of page) sourceDigest.add(selectComparedColumns(message));
    const targetPage: readonly TransferredMessage[] = await target.readMessages(
      lastId,
      PAGE_ROWS,
      source.messageColumns,
    );
    for (const message of targetPage) targetDigest.add(selectComparedColumns(message));
    const lastMessage = page.at(-1) ?? targetPage.at(-1);
    if (lastMessage === undefined) break;
    lastId = lastMessage.id;
    line.show(
      `${formatBar(sourceDigest.rowCount, messageCount)} ${formatCount(sourceDigest.rowCount)} of ${formatCount(messageCount)} messages compared`,
    );
  }
  requireEqual('mail_request', sourceDigest, targetDigest);
  return comparedTables;
}

/** `lane`, `due_at`, `handing_over` and `held_ms` are compared only if the message is not in a terminal state. */
function selectComparedColumns({
  lane,
  handing_over,
  due_at,
  held_ms,
  events,
  ...message
}: TransferredMessage): unknown[] {
  const isOpen = message.ended_at === null;
  return [
    Object.entries(message).sort(([leftName], [rightName]) => (leftName < rightName ? -1 : 1)),
    events.map((event) => Object.entries(event)),
    isOpen ? [lane, toComparable(handing_over), due_at, held_ms] : null,
  ];
}

/** SQLite stores booleans as 0 and 1. */
function toComparable(value: unknown): unknown {
  return typeof value === 'boolean' ? Number(value) : (value ?? null);
}

class RowDigest {
  rowCount = 0;
  readonly #sum = new Uint8Array(32);

  add(row: unknown): void {
    this.rowCount += 1;
    // The sum of the hashes does not depend on the order of the rows, in which the two databases differ by their
    // collations.
    let carry = 0;
    const hash = createHash('sha256').update(JSON.stringify(row)).digest();
    for (let index = 0; index < 32; index += 1) {
      carry += (this.#sum[index] ?? 0) + (hash[index] ?? 0);
      this.#sum[index] = carry & 0xff;
      carry >>= 8;
    }
  }

  computeChecksum(): string {
    return Buffer.from(this.#sum).toString('hex');
  }
}

function formatBar(completedCount: number, totalCount: number): string {
  const filledWidth =
    totalCount === 0 ? BAR_WIDTH : Math.min(BAR_WIDTH, Math.round((completedCount / totalCount) * BAR_WIDTH));
  return `[${'#'.repeat(filledWidth)}${' '.repeat(BAR_WIDTH - filledWidth)}]`;
}

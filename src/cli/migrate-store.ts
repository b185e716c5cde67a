/**
 * `postrider migrate-store --from sqlite:FILE --to postgres://…`: copies the embedded database into an empty PostgreSQL
 * database. After an interruption a second run continues. At the end every table is compared row by row.
 */
import { createHash } from 'node:crypto';
import type { Command } from 'commander';
import { parseDatabase } from '../config/table.ts';
import { formatCount } from '../printing/text.ts';
import { openPostgresTarget } from '../store/postgres/transfer.ts';
import { openSqliteSource } from '../store/sqlite/transfer.ts';
import type { TransferredMessage, TransferredRow, TransferSource, TransferTarget } from '../store/transfer.ts';
import { TRANSFER_TABLES } from '../store/transfer.ts';
import type { Context } from './context.ts';
import { CommandFailure } from './failure.ts';
import { type ProgressStream, StatusLine } from './progress.ts';

const PAGE_ROWS = 1_000;
const BAR_WIDTH = 24;

/** A table that is equal in both databases. */
interface ComparedTable {
  readonly table: string;
  readonly rows: number;
  readonly checksum: string;
}

/** Adds the command. `terminal` shows the progress. */
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
      const to = parseDatabaseOption('--to', flags.to === '-' ? await context.inputLine('--to -') : flags.to);
      if (from.kind !== 'sqlite' || to.kind !== 'postgres')
        throw new CommandFailure(
          '--from must be sqlite:FILE and --to must be postgres://…; no other direction is supported',
          2,
        );
      const source = openSqliteSource(from.path);
      const line = new StatusLine(terminal);
      try {
        const target = await openPostgresTarget(to);
        try {
          await target.begin(source.name);
          await copy(source, target, line);
          const compared = await compare(source, target, line);
          await target.finish();
          line.clear();
          if (flags.json) context.json({ tables: compared });
          else {
            const width = Math.max(...compared.map(({ table }) => table.length));
            for (const { table, rows } of compared)
              context.out(`${table.padEnd(width)} ${formatCount(rows).padStart(12)} rows, equal in both databases\n`);
            context.out(
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
  const parsed = parseDatabase(url);
  if (!parsed.ok) throw new CommandFailure(`${option}: ${parsed.fault}`, 2);
  return parsed.value;
}

async function copy(source: TransferSource, target: TransferTarget, line: StatusLine): Promise<void> {
  for (const table of TRANSFER_TABLES) {
    line.show(`copying ${table.name} …`);
    let page: TransferredRow[] = [];
    for (const row of source.readRows(table)) {
      page.push(row);
      if (page.length < PAGE_ROWS) continue;
      await target.writeRows(table, page);
      page = [];
    }
    if (page.length > 0) await target.writeRows(table, page);
  }
  const { messages: messageCount } = source.count();
  let done = 0;
  for (let after = await target.lastMessageId(); ; ) {
    const page = source.readMessages(after, PAGE_ROWS);
    const last = page.at(-1);
    if (last === undefined) return;
    await target.writeMessages(page);
    after = last.id;
    done += page.length;
    line.show(`${bar(done, messageCount)} ${formatCount(done)} of ${formatCount(messageCount)} messages copied`);
  }
}

/** Reads every table of both databases. @throws CommandFailure if a table differs; the migration is then not complete */
async function compare(source: TransferSource, target: TransferTarget, line: StatusLine): Promise<ComparedTable[]> {
  const compared: ComparedTable[] = [];
  const requireEqual = (table: string, sourceRows: Digest, targetRows: Digest) => {
    if (sourceRows.rows !== targetRows.rows || sourceRows.checksum() !== targetRows.checksum()) {
      throw new CommandFailure(
        `${table} differs: ${sourceRows.rows} rows in the source, ${targetRows.rows} in the target. Nothing was removed; empty the target database and run the command again`,
      );
    }
    compared.push({ table, rows: sourceRows.rows, checksum: sourceRows.checksum() });
  };
  for (const table of TRANSFER_TABLES) {
    line.show(`comparing ${table.name} …`);
    const [sourceDigest, targetDigest] = [new Digest(), new Digest()];
    const orderedValues = (row: TransferredRow) => table.columns.map((name) => row[name] ?? null);
    for (const row of source.readRows(table)) sourceDigest.add(orderedValues(row));
    for (const row of await target.readRows(table)) targetDigest.add(orderedValues(row));
    requireEqual(table.name, sourceDigest, targetDigest);
  }
  const { messages: messageCount } = source.count();
  const [sourceDigest, targetDigest] = [new Digest(), new Digest()];
  for (let after: string | null = null; ; ) {
    const page: readonly TransferredMessage[] = source.readMessages(after, PAGE_ROWS);
    for (const message of page) sourceDigest.add(comparedColumns(message));
    const targetPage: readonly TransferredMessage[] = await target.readMessages(after, PAGE_ROWS);
    for (const message of targetPage) targetDigest.add(comparedColumns(message));
    const last = page.at(-1) ?? targetPage.at(-1);
    if (last === undefined) break;
    after = last.id;
    line.show(
      `${bar(sourceDigest.rows, messageCount)} ${formatCount(sourceDigest.rows)} of ${formatCount(messageCount)} messages compared`,
    );
  }
  requireEqual('mail_request', sourceDigest, targetDigest);
  return compared;
}

/**
 * Returns the columns of a message that must be equal. Lane, due time and `handing_over` are compared only while the
 * message has not ended.
 */
function comparedColumns({ lane, handing_over, ended_at, due_at, ...message }: TransferredMessage): unknown[] {
  const isOpen = ended_at === null;
  return [
    Object.entries(message).sort(([a], [b]) => (a < b ? -1 : 1)),
    ended_at,
    isOpen ? [lane, handing_over, due_at] : null,
  ];
}

/** Counts and hashes any number of rows. The order of the rows does not matter. */
class Digest {
  rows = 0;
  readonly #sum = new Uint8Array(32);

  add(row: unknown): void {
    this.rows += 1;
    // The hashes are summed, so that the order of the rows has no effect: the databases sort by different collations.
    let carry = 0;
    const hash = createHash('sha256').update(JSON.stringify(row)).digest();
    for (let index = 0; index < 32; index += 1) {
      carry += (this.#sum[index] ?? 0) + (hash[index] ?? 0);
      this.#sum[index] = carry & 0xff;
      carry >>= 8;
    }
  }

  checksum(): string {
    return Buffer.from(this.#sum).toString('hex');
  }
}

function bar(done: number, total: number): string {
  const filledWidth = total === 0 ? BAR_WIDTH : Math.min(BAR_WIDTH, Math.round((done / total) * BAR_WIDTH));
  return `[${'#'.repeat(filledWidth)}${' '.repeat(BAR_WIDTH - filledWidth)}]`;
}

/**
 * `postrider migrate-store --from sqlite:FILE --to postgres://…`: everything of the embedded store into an empty PostgreSQL
 * database. Interrupted, it is simply run again and goes on; at the end every table is compared, row for row.
 */
import { createHash } from 'node:crypto';
import type { Command } from 'commander';
import { parseDatabase } from '../config/table.ts';
import { openPostgresTarget } from '../store/postgres/transfer.ts';
import { openSqliteSource } from '../store/sqlite/transfer.ts';
import type { TransferredMessage, TransferredRow, TransferSource, TransferTarget } from '../store/transfer.ts';
import { TRANSFER_TABLES } from '../store/transfer.ts';
import type { Context } from './context.ts';
import { CommandFailure } from './failure.ts';
import { formatCount, type ProgressStream, StatusLine } from './progress.ts';

const PAGE = 1_000;
const BAR = 24;

/** What was compared on both sides. */
interface Compared {
  readonly table: string;
  readonly rows: number;
  readonly checksum: string;
}

/** Adds the command. `terminal` is where progress goes. */
export function addMigrateStoreCommand(
  program: Command,
  context: Context,
  terminal: ProgressStream = process.stderr,
): void {
  program
    .command('migrate-store')
    .description('move everything from the embedded database to PostgreSQL, while no service runs')
    .requiredOption('--from <url>', 'sqlite:FILE')
    .requiredOption(
      '--to <url>',
      'postgres://USER:PASSWORD@HOST/DATABASE; - reads it from standard input, because other users of this machine see a command line',
    )
    .option('--json', 'for machines')
    .action(async (flags: { from: string; to: string; json?: boolean }) => {
      const from = setting('--from', flags.from);
      const to = setting('--to', flags.to === '-' ? await context.inputLine('--to') : flags.to);
      if (from.kind !== 'sqlite' || to.kind !== 'postgres')
        throw new CommandFailure('migrate-store moves --from sqlite:FILE --to postgres://…, and no other way', 2);
      const source = openSqliteSource(from.path);
      const line = new StatusLine(terminal);
      try {
        const target = await openPostgresTarget(to);
        try {
          await target.begin(source.name);
          await move(source, target, line);
          const compared = await compare(source, target, line);
          await target.finish();
          line.clear();
          if (flags.json) context.json({ tables: compared });
          else {
            const width = Math.max(...compared.map(({ table }) => table.length));
            for (const { table, rows } of compared)
              context.out(`${table.padEnd(width)} ${formatCount(rows).padStart(12)} rows, the same on both sides\n`);
            context.out(
              'Everything is there. Set POSTRIDER_DATABASE to the new one, and POSTRIDER_SECRET to what the secret file holds\n',
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

function setting(option: string, url: string) {
  const parsed = parseDatabase(url);
  if (!parsed.ok) throw new CommandFailure(`${option}: ${parsed.fault}`, 2);
  return parsed.value;
}

async function move(source: TransferSource, target: TransferTarget, line: StatusLine): Promise<void> {
  for (const table of TRANSFER_TABLES) {
    line.show(`moving ${table.name} …`);
    let page: TransferredRow[] = [];
    for (const row of source.rows(table)) {
      page.push(row);
      if (page.length < PAGE) continue;
      await target.write(table, page);
      page = [];
    }
    if (page.length > 0) await target.write(table, page);
  }
  const { messages: mails } = source.count();
  let done = 0;
  for (let after = await target.lastMessageId(); ; ) {
    const page = source.mails(after, PAGE);
    const last = page.at(-1);
    if (last === undefined) return;
    await target.writeMessages(page);
    after = last.id;
    done += page.length;
    line.show(`${bar(done, mails)} ${formatCount(done)} of ${formatCount(mails)} mail requests moved`);
  }
}

/** Reads everything once more on both sides; throws where anything differs, and then the move is not done. */
async function compare(source: TransferSource, target: TransferTarget, line: StatusLine): Promise<Compared[]> {
  const compared: Compared[] = [];
  const same = (table: string, a: Digest, b: Digest) => {
    if (a.rows !== b.rows || a.checksum() !== b.checksum()) {
      throw new CommandFailure(
        `${table} differs: ${a.rows} rows before, ${b.rows} after. Nothing was removed; empty the new database and move again`,
      );
    }
    compared.push({ table, rows: a.rows, checksum: a.checksum() });
  };
  for (const table of TRANSFER_TABLES) {
    line.show(`comparing ${table.name} …`);
    const [ours, theirs] = [new Digest(), new Digest()];
    const inOrder = (row: TransferredRow) => table.columns.map((name) => row[name] ?? null);
    for (const row of source.rows(table)) ours.add(inOrder(row));
    for (const row of await target.rows(table)) theirs.add(inOrder(row));
    same(table.name, ours, theirs);
  }
  const { messages: mails } = source.count();
  const [ours, theirs] = [new Digest(), new Digest()];
  for (let after: string | null = null; ; ) {
    const page: readonly TransferredMessage[] = source.mails(after, PAGE);
    for (const mail of page) ours.add(known(mail));
    const there: readonly TransferredMessage[] = await target.mails(after, PAGE);
    for (const mail of there) theirs.add(known(mail));
    const last = page.at(-1) ?? there.at(-1);
    if (last === undefined) break;
    after = last.id;
    line.show(`${bar(ours.rows, mails)} ${formatCount(ours.rows)} of ${formatCount(mails)} mail requests compared`);
  }
  same('mail_request', ours, theirs);
  return compared;
}

/** What both sides keep of a mail request: its lane matters only while it is open, and so does a mark. */
function known({ lane, handing_over, ended_at, due_at, ...mail }: TransferredMessage): unknown[] {
  const open = ended_at === null;
  return [
    Object.entries(mail).sort(([a], [b]) => (a < b ? -1 : 1)),
    ended_at,
    open ? [lane, handing_over, due_at] : null,
  ];
}

/** Rows in one order, counted and hashed, in any number. Rows of one table may come in the order of either database. */
class Digest {
  rows = 0;
  readonly #sum = new Uint8Array(32);

  add(row: unknown): void {
    this.rows += 1;
    // Added up, so that the collation by which a database sorts does not matter.
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

function bar(done: number, of: number): string {
  const full = of === 0 ? BAR : Math.min(BAR, Math.round((done / of) * BAR));
  return `[${'#'.repeat(full)}${' '.repeat(BAR - full)}]`;
}

/** `postrider backup FILE` and `postrider restore FILE`: the embedded database, whole, while the service runs or stands. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { isoTime } from '../config/units.ts';
import { secretPath } from '../domains/setup.ts';
import { backupDatabase, countUnsentMessages } from '../store/sqlite/backup.ts';
import { DATABASE_FILES } from '../store/sqlite/files.ts';
import { restoreDatabase } from '../store/sqlite/restore.ts';
import type { Context } from './context.ts';
import { CommandFailure } from './failure.ts';
import { writeNewFile } from './new-file.ts';
import { type ProgressStream, StatusLine } from './progress.ts';

/** Adds the commands. `terminal` is where progress goes. */
export function addBackupCommands(program: Command, context: Context, terminal: ProgressStream = process.stderr): void {
  program
    .command('backup <file>')
    .description('copy the embedded database to a file, while the service runs')
    .option('--json', 'for machines')
    .action(async (file: string, flags: { json?: boolean }) => {
      const path = embedded(context, 'backup', 'pg_dump or pg_basebackup');
      const line = new StatusLine(terminal);
      const progress = (share: number) => line.show(`${Math.round(share * 100)} % copied`);
      const bytes = await writeNewFile(file, (draft) => backupDatabase(path, draft, file, progress)).finally(() =>
        line.clear(),
      );
      const secret = context.settings().secret === null ? secretPath(context.settings()) : null;
      if (flags.json) context.json({ file: resolve(file), bytes, secret });
      else {
        context.out(`${resolve(file)} holds the whole database, ${bytes} bytes, checked\n`);
        if (secret !== null)
          context.out(
            `The secret is not in it: keep a copy of ${secret} too, in another place; domains' keys open only with it\n`,
          );
      }
    });
  program
    .command('restore <file>')
    .description('put a backup in the place of the embedded database, while no service runs')
    .option('--json', 'for machines')
    .action((file: string, flags: { json?: boolean }) => {
      const path = embedded(context, 'restore', 'pg_restore');
      const aside = restoreDatabase(file, path, new Date(context.clock.now()));
      const { count, oldestAt } = countUnsentMessages(path);
      const oldest = oldestAt === null ? null : isoTime(oldestAt);
      if (flags.json) context.json({ database: path, before: aside, queued: count, oldestQueuedAt: oldest });
      else {
        context.out(`${path} is the backup's now\n`);
        if (aside !== null) context.out(`What was there is ${keptFiles(aside)}; remove it once nothing is missed\n`);
        if (oldest !== null)
          context.out(
            `${count} ${count === 1 ? 'message was' : 'messages were'} queued when the backup was taken, the oldest accepted ${oldest}. \`postrider serve\` sends what is queued, also what was sent after the backup. \`postrider message list --state queued\` lists it and \`postrider message cancel ID\` withdraws a message\n`,
          );
      }
    });
}

function embedded(context: Context, what: string, instead: string): string {
  const { database } = context.settings();
  if (database.kind === 'sqlite') return database.path;
  throw new CommandFailure(`${what} is for the embedded database; with PostgreSQL use ${instead}`, 2);
}

/** The names of the files that a restore has kept under `aside`: of an incomplete database, its log may be all there is. */
function keptFiles(aside: string): string {
  const names = DATABASE_FILES.map((end) => aside + end);
  return names.filter((name) => existsSync(name)).join(' and ');
}

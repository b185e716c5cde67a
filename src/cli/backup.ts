/**
 * `postrider backup FILE` copies the embedded database while the service runs. `postrider restore FILE` replaces the database
 * while no service runs, and keeps the replaced files.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { isoTime } from '../config/units.ts';
import { secretPath } from '../domains/setup.ts';
import { backupDatabase, countUnsentMessages } from '../store/sqlite/backup.ts';
import { DATABASE_FILE_SUFFIXES } from '../store/sqlite/files.ts';
import { restoreDatabase } from '../store/sqlite/restore.ts';
import type { Context } from './context.ts';
import { CommandFailure } from './failure.ts';
import { writeNewFile } from './new-file.ts';
import { type ProgressStream, StatusLine } from './progress.ts';

/** Adds the commands. `terminal` shows the progress. */
export function addBackupCommands(program: Command, context: Context, terminal: ProgressStream = process.stderr): void {
  program
    .command('backup <file>')
    .description('copy the embedded database to a file, while the service runs')
    .option('--json', 'print JSON')
    .action(async (file: string, flags: { json?: boolean }) => {
      const path = requireEmbeddedDatabase(context, 'backup', 'pg_dump or pg_basebackup');
      const line = new StatusLine(terminal);
      const progress = (fraction: number) => line.show(`${Math.round(fraction * 100)} % copied`);
      const bytes = await writeNewFile(file, (draft) => backupDatabase(path, draft, file, progress)).finally(() =>
        line.clear(),
      );
      const secret = context.settings().secret === null ? secretPath(context.settings()) : null;
      if (flags.json) context.json({ file: resolve(file), bytes, secret });
      else {
        context.out(`wrote the database to ${resolve(file)}: ${bytes} bytes, integrity verified\n`);
        if (secret !== null)
          context.out(
            `The backup does not contain the secret. Keep a copy of ${secret} in another place: the keys of the domains cannot be decrypted without it\n`,
          );
      }
    });
  program
    .command('restore <file>')
    .description('replace the embedded database with a backup, while no service runs')
    .option('--json', 'print JSON')
    .action((file: string, flags: { json?: boolean }) => {
      const path = requireEmbeddedDatabase(context, 'restore', 'pg_restore');
      const replacedPath = restoreDatabase(file, path, new Date(context.clock.now()));
      const { count, oldestAt } = countUnsentMessages(path);
      const oldest = oldestAt === null ? null : isoTime(oldestAt);
      if (flags.json) context.json({ database: path, before: replacedPath, queued: count, oldestQueuedAt: oldest });
      else {
        context.out(`restored the backup to ${path}\n`);
        if (replacedPath !== null)
          context.out(
            `The replaced database is ${replacedFiles(replacedPath)}; remove it when you do not need it any more\n`,
          );
        if (oldest !== null)
          context.out(
            `${count} ${count === 1 ? 'message was' : 'messages were'} queued when the backup was taken, the oldest accepted ${oldest}. \`postrider serve\` sends all queued messages, including those that were already sent after the backup. \`postrider message list --state queued\` lists them; \`postrider message cancel ID\` cancels one\n`,
          );
      }
    });
}

function requireEmbeddedDatabase(context: Context, command: string, alternative: string): string {
  const { database } = context.settings();
  if (database.kind === 'sqlite') return database.path;
  throw new CommandFailure(`${command} works on the embedded database only; with PostgreSQL use ${alternative}`, 2);
}

/**
 * Returns the existing files of the replaced database, joined as text. An incomplete database may consist of its log
 * only.
 */
function replacedFiles(replacedPath: string): string {
  const names = DATABASE_FILE_SUFFIXES.map((suffix) => replacedPath + suffix);
  return names.filter((name) => existsSync(name)).join(' and ');
}

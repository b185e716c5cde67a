/** `postrider backup FILE`, while the service runs, and `postrider restore FILE`, while no service runs. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { getSecretPath } from '../domains/setup.ts';
import { formatIsoTime } from '../printing/text.ts';
import { backupDatabase, countUnsentMessages } from '../store/sqlite/backup.ts';
import { DATABASE_FILE_SUFFIXES } from '../store/sqlite/files.ts';
import { restoreDatabase } from '../store/sqlite/restore.ts';
import { CommandFailure, type Context } from './context.ts';
import { writeNewFile } from './new-file.ts';
import { type ProgressStream, StatusLine } from './terminal.ts';

export function addBackupCommands(program: Command, context: Context, terminal: ProgressStream = process.stderr): void {
  program
    .command('backup <file>')
    .description('copy the embedded database to a file, while the service runs')
    .option('--json', 'print JSON')
    .action(async (file: string, flags: { json?: boolean }) => {
      const path = requireEmbeddedDatabase(context, 'backup', 'pg_dump or pg_basebackup');
      const statusLine = new StatusLine(terminal);
      const showProgress = (fraction: number) => statusLine.show(`${Math.round(fraction * 100)} % copied`);
      const bytes = await writeNewFile(file, (draft) => backupDatabase(path, draft, file, showProgress)).finally(() =>
        statusLine.clear(),
      );
      const secretPath = context.getSettings().secret === null ? getSecretPath(context.getSettings()) : null;
      if (flags.json) context.writeJson({ file: resolve(file), bytes, secret: secretPath });
      else {
        context.writeText(`wrote the database to ${resolve(file)}: ${bytes} bytes, integrity verified\n`);
        if (secretPath !== null)
          context.writeText(
            `The backup does not contain the secret. Store a copy of ${secretPath} separately: without the secret, the keys of the domains cannot be decrypted\n`,
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
      const { queuedCount, oldestAt } = countUnsentMessages(path);
      const oldestText = oldestAt === null ? null : formatIsoTime(oldestAt);
      if (flags.json)
        context.writeJson({ database: path, before: replacedPath, queued: queuedCount, oldestQueuedAt: oldestText });
      else {
        context.writeText(`restored the backup to ${path}\n`);
        if (replacedPath !== null)
          context.writeText(
            `The replaced database is ${listReplacedFiles(replacedPath)}; remove these files when you no longer need them\n`,
          );
        if (oldestText !== null)
          context.writeText(
            `${queuedCount} ${queuedCount === 1 ? 'message was' : 'messages were'} queued when the backup was taken, the oldest accepted ${oldestText}. \`postrider serve\` sends all queued messages, including those that were already sent after the backup. \`postrider message list --state queued\` lists them; \`postrider message cancel ID\` cancels one\n`,
          );
      }
    });
}

function requireEmbeddedDatabase(context: Context, command: string, alternative: string): string {
  const { database } = context.getSettings();
  if (database.kind === 'sqlite') return database.path;
  throw new CommandFailure(`${command} works on the embedded database only; with PostgreSQL use ${alternative}`, 2);
}

/** An incomplete database may consist only of its write-ahead log. */
function listReplacedFiles(replacedPath: string): string {
  const paths = DATABASE_FILE_SUFFIXES.map((suffix) => replacedPath + suffix);
  return paths.filter((path) => existsSync(path)).join(' and ');
}

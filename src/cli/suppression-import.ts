/**
 * `postrider suppression import`: opens a file or standard input for the import operation and shows the progress on
 * the terminal. At the end it prints the line numbers of invalid rows. Fails with a CommandFailure of one line.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { quote } from '../config/units.ts';
import { type OpenedFile, performUpload } from '../operations/file-operation.ts';
import { formatLines, importSuppressions } from '../operations/suppression-files.ts';
import { createImportScheduler } from '../operations/suppressions/import-scheduler.ts';
import { readFileBytes } from '../operations/suppressions/rereadable-content.ts';
import type { ImportResult } from '../operations/suppressions/schemas.ts';
import { toPrintable } from '../printing/escape.ts';
import { formatCount } from '../printing/text.ts';
import type { Context } from './context.ts';
import { CommandFailure } from './failure.ts';
import { unwrapResult } from './operation-command.ts';
import { type ProgressStream, RowProgress, StatusLine } from './progress.ts';

/** Imports the rows of the file, or only counts them with `dryRun`. `file` is a path, or `-` for standard input. */
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

/**
 * Opens the file at a path, or standard input for `-`. `name` is the name of the input in error messages. @throws
 * CommandFailure
 */
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

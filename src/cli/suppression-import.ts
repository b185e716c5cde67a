/**
 * `postrider suppression import`: one CSV file into a suppression list, with its progress on the terminal. What can be read
 * only once is kept in a temporary file between the two passes. Bad rows are told by their line and skipped.
 */
import { quote } from '../config/units.ts';
import type { Suppression, SuppressionReason } from '../model/suppression.ts';
import { printable } from '../printing/escape.ts';
import { grouped, type ProgressStream, RowProgress, StatusLine } from './progress.ts';
import { openInput } from './suppression-input.ts';
import { addRows, BadRows, checkRows, type ImportSummary, place } from './suppression-load.ts';

export interface ImportParts {
  /** A path, or `-` for standard input. */
  readonly file: string;
  /** For rows that name none. */
  readonly reason: SuppressionReason;
  readonly batchSize: number;
  /** Resolves to how many were new. */
  readonly add: (entries: readonly Suppression[]) => Promise<number>;
  /** Where bad rows are told and progress is shown. */
  readonly terminal: ProgressStream;
  readonly now: () => number;
}

/** Runs the import to its end. */
export async function importFile(parts: ImportParts): Promise<ImportSummary> {
  const { file, reason, batchSize, add, terminal, now } = parts;
  const name = file === '-' ? 'standard input' : quote(file);
  const line = new StatusLine(terminal);
  const options = { reason, now: now() };
  const input = await openInput(file, name);
  const bad = new BadRows();
  try {
    const size = await checkRows(input.first, name, options, (rows) =>
      line.show(`reading ${name}: ${grouped(rows)} rows`),
    );
    const progress = new RowProgress(line, now);
    const passed = ({ rows, bytes }: { readonly rows: number; readonly bytes: number }) =>
      progress.update(rows, size === 0 ? null : bytes / size);
    return await addRows({ batchSize: () => batchSize, add, passed }, input.again(size), name, options, bad);
  } finally {
    line.end();
    // After the end of all, so that what is wrong with the whole is told alone.
    tell(bad, line);
    await input.close();
  }
}

function tell(bad: BadRows, line: StatusLine): void {
  for (const row of bad.told) line.note(printable(`${place(row)}: ${row.fault}; skipped`));
  const more = bad.count - bad.told.length;
  if (more > 0) line.note(`and ${grouped(more)} more bad ${more === 1 ? 'row' : 'rows'}, skipped`);
}

/** Writes suppression lists as CSV. Pure. */
import { formatCsvCell } from '../../printing/csv.ts';
import type { SuppressionEntry } from './schemas.ts';

export const CSV_HEADER = 'address,reason,at,source\n';

/**
 * Formats one row of an export. The row ends with a line feed, which every CSV reader accepts, and which programs that
 * read lines, such as `grep`, need.
 */
export function formatCsvRow({ address, reason, at, source }: SuppressionEntry): string {
  return `${formatCsvCell(address)},${reason},${at},${formatCsvCell(source ?? '')}\n`;
}

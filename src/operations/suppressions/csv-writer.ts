/** Writes suppression lists as CSV (RFC 4180). Pure. */
import type { SuppressionEntry } from './schemas.ts';

export const CSV_HEADER = 'address,reason,at,source\n';

/**
 * Formats one row of an export. The row ends with a line feed, which every CSV reader accepts, and which programs that
 * read lines, such as `grep`, need.
 */
export function formatCsvRow({ address, reason, at, source }: SuppressionEntry): string {
  return `${formatCsvCell(address)},${reason},${at},${source ?? ''}\n`;
}

/** Quotes a cell if necessary (RFC 4180 section 2, rules 5 to 7). */
function formatCsvCell(text: string): string {
  const isPlain = !(text.includes(',') || text.includes('"') || text.includes('\n') || text.includes('\r'));
  return isPlain ? text : `"${text.replaceAll('"', '""')}"`;
}

/**
 * Writes found messages as CSV (RFC 4180). Pure. A spreadsheet evaluates a cell that begins with `=`, `+`, `-`, `@`, a
 * tab or a carriage return as a formula. Such a cell is written with a leading apostrophe, so that a spreadsheet does
 * not evaluate it (OWASP, CSV injection).
 */
import type { FoundMessage } from './schemas.ts';

const COLUMNS = [
  'id',
  'state',
  'deferred',
  'accepted',
  'updated',
  'account',
  'to',
  'from',
  'subject',
  'attempts',
  'class',
  'category',
  'status',
  'reply',
] as const;

export const MESSAGE_CSV_HEADER = `${COLUMNS.join(',')}\n`;

/** Formats one message as a row that ends with a line feed. */
export function formatMessageRow(message: FoundMessage): string {
  const { id, state, deferred, at, updated, account, to, from, subject, attempts, reason } = message;
  const values: Readonly<Record<(typeof COLUMNS)[number], string>> = {
    id,
    state,
    deferred: deferred ? 'yes' : 'no',
    accepted: at,
    updated,
    account: account ?? '',
    to,
    from,
    subject,
    attempts: String(attempts),
    class: reason?.class ?? '',
    category: reason?.category ?? '',
    status: reason?.status ?? '',
    reply: reason?.text ?? '',
  };
  return `${COLUMNS.map((column) => formatCell(values[column])).join(',')}\n`;
}

/** Formats a row that contains only a notice, in the first column. */
export function formatNoticeRow(notice: string): string {
  return `${formatCell(notice)}\n`;
}

const FORMULA_STARTS = ['=', '+', '-', '@', '\t', '\r'];

/** Puts an apostrophe before a formula, and quotes the cell if necessary (RFC 4180 section 2, rules 5 to 7). */
function formatCell(text: string): string {
  const safeText = FORMULA_STARTS.some((start) => text.startsWith(start)) ? `'${text}` : text;
  const isPlain = !(
    safeText.includes(',') ||
    safeText.includes('"') ||
    safeText.includes('\n') ||
    safeText.includes('\r')
  );
  return isPlain ? safeText : `"${safeText.replaceAll('"', '""')}"`;
}

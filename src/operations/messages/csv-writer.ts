/** Writes found messages as CSV. Pure. */
import { formatCsvCell } from '../../printing/csv.ts';
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
  return `${COLUMNS.map((column) => formatCsvCell(values[column])).join(',')}\n`;
}

/** Formats a row that contains only a notice, in the first column. */
export function formatNoticeRow(notice: string): string {
  return `${formatCsvCell(notice)}\n`;
}

import type { FeedbackReport } from '../../model/feedback.ts';
import * as rows from '../rules/rows.ts';
import { type Transaction, toColumns } from './session.ts';

const SELECT_DIGESTS = 'SELECT digest FROM feedback WHERE digest = ANY($1::text[])';
const SELECT_SUPPRESSED = `SELECT r.recipient, r.account_id FROM unnest($1::text[], $2::int[]) AS r(recipient, account_id)
    WHERE EXISTS (SELECT 1 FROM suppression s WHERE s.recipient = r.recipient AND s.account_id = r.account_id AND s.expires_at IS NULL)`;
const INSERT_REPORT = `INSERT INTO feedback (digest, at, source, mail_id, reason, summary, raw) VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (digest) DO NOTHING RETURNING id`;
const INSERT_DIGESTS = `INSERT INTO feedback (digest, at, source, mail_id)
    SELECT d.digest, d.at, d.source, d.mail_id
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY AS d(digest, at, source, mail_id, o) ORDER BY d.o
    ON CONFLICT (digest) DO NOTHING RETURNING digest`;

export async function findDigests(transaction: Transaction, digests: readonly string[]): Promise<ReadonlySet<string>> {
  if (digests.length === 0) return new Set();
  const digestRows = await transaction.query(SELECT_DIGESTS, [digests]);
  return new Set(digestRows.map((row) => rows.readText(row, 'digest')));
}

export interface IdentifiedReport {
  readonly report: FeedbackReport;
  readonly position: number;
  readonly id: string | null;
}

export interface AccountRecipient {
  readonly accountId: number;
  readonly recipient: string;
}

export function toRecipientKey({ accountId, recipient }: AccountRecipient): string {
  return `${accountId} ${recipient}`;
}

export async function findSuppressed(
  transaction: Transaction,
  recipients: readonly AccountRecipient[],
): Promise<ReadonlySet<string>> {
  if (recipients.length === 0) return new Set();
  const suppressedRows = await transaction.query(
    SELECT_SUPPRESSED,
    toColumns(recipients, ({ recipient, accountId }) => [recipient, accountId]),
  );
  return new Set(
    suppressedRows.map((row) =>
      toRecipientKey({ accountId: rows.readInteger(row, 'account_id'), recipient: rows.readText(row, 'recipient') }),
    ),
  );
}

export interface RecordedReport {
  readonly report: FeedbackReport;
  readonly messageId: string;
}

/** Resolves to the digests that were not stored before. */
export async function insertDigests(
  transaction: Transaction,
  recordedReports: readonly RecordedReport[],
): Promise<ReadonlySet<string>> {
  if (recordedReports.length === 0) return new Set();
  const insertedRows = await transaction.query(
    INSERT_DIGESTS,
    toColumns(recordedReports, ({ report, messageId }) => [report.digest, report.at, report.source, messageId]),
  );
  return new Set(insertedRows.map((row) => rows.readText(row, 'digest')));
}

/** Null if the digest is already stored. Summary and bytes are stored only with a `reason`. */
export async function insertReport(
  transaction: Transaction,
  { digest, at, source, summary, raw }: FeedbackReport,
  messageId: string | null,
  reason: string | null,
): Promise<number | null> {
  const content = reason === null ? [null, null] : [summary, Buffer.from(raw).toString('base64')];
  const [row] = await transaction.query(INSERT_REPORT, [digest, at, source, messageId, reason, ...content]);
  return row === undefined ? null : rows.readInteger(row, 'id');
}

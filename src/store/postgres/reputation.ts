/**
 * The counts of an account are in hourly buckets of each connection slot, so that nodes do not wait for each other. A
 * batch that may change the status of an account locks its row, so that the evaluated sum is exact.
 */
import { REPUTATION_BUCKET_MS, REPUTATION_WINDOW_HOURS } from '../../model/account.ts';
import { type EvidenceKind, toComplainant, toEvidenceSource } from '../../model/address.ts';
import { buildAccountData } from '../../model/webhook-payload.ts';
import { readWindow } from '../accounts.ts';
import { recordResourceEvent } from '../outbox.ts';
import { incrementRevision } from '../revision.ts';
import {
  evaluateReputation,
  getEvidenceWindowStart,
  getLastExpiredHour,
  needsEvaluation,
  type ReputationDeltas,
  toHourSinceEpoch,
} from '../rules/reputation.ts';
import * as rows from '../rules/rows.ts';
import type { Row, Transaction } from './session.ts';

const ADD_COUNTS = `INSERT INTO reputation AS r (account_id, hour, slot, emails, bounces, complaints, proven_bounces, proven_complaints)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (account_id, hour, slot) DO UPDATE SET emails = r.emails + excluded.emails,
      bounces = r.bounces + excluded.bounces, complaints = r.complaints + excluded.complaints,
      proven_bounces = r.proven_bounces + excluded.proven_bounces,
      proven_complaints = r.proven_complaints + excluded.proven_complaints`;
const DELETE_OLD_COUNTS = 'DELETE FROM reputation WHERE account_id = $1 AND hour <= $2';
const RECORD_COMPLAINT = `INSERT INTO complainant AS c (account_id, recipient, at) VALUES ($1, $2, $3)
    ON CONFLICT (account_id, recipient) DO UPDATE SET at = excluded.at WHERE c.at <= $4 RETURNING 1 AS one`;
const RECORD_EVIDENCE = `INSERT INTO evidence AS e (account_id, kind, source, at)
    SELECT v.account_id, v.kind, v.source, v.at
    FROM unnest($1::int[], $2::text[], $3::text[], $4::bigint[]) AS v(account_id, kind, source, at)
    ORDER BY v.account_id, v.kind COLLATE "C", v.source COLLATE "C"
    ON CONFLICT (account_id, kind, source) DO UPDATE SET at = excluded.at WHERE e.at <= excluded.at - $5::bigint
    RETURNING account_id, kind, source`;
/** Locks the accounts whose status the batch can change. `$2` contains the accounts to evaluate without a warning. */
const LOCK_EVALUATED_ACCOUNTS = `SELECT id, name, bounce_rate, complaint_rate, on_reputation, warning FROM account
    WHERE id = ANY($1::int[]) AND locked_at IS NULL AND (warning IS NOT NULL OR id = ANY($2::int[]))
    ORDER BY id FOR NO KEY UPDATE`;
const MARK_ACCOUNT_LOCKED =
  'UPDATE account SET locked_reason = $1, locked_at = $2, warning = NULL, revision = $3 WHERE id = $4';
const WRITE_WARNING = 'UPDATE account SET warning = $1, revision = $2 WHERE id = $3';

/** Rows are locked as by changes of accounts: accounts by id, their counts, the revision. */
export async function addReputation(transaction: Transaction, deltas: ReputationDeltas): Promise<void> {
  const batch = deltas.listByAccount();
  if (batch.length === 0) return;
  const evaluatedIds = batch.filter(([, delta]) => needsEvaluation(delta, false)).map(([accountId]) => accountId);
  const [lockedRows] = await Promise.all([
    transaction.query(LOCK_EVALUATED_ACCOUNTS, [batch.map(([accountId]) => accountId), evaluatedIds]),
    ...batch.map(([accountId, { emails, bounces, complaints, provenBounces, provenComplaints }, now]) => {
      const counts = [emails, bounces, complaints, provenBounces, provenComplaints];
      return transaction.query(ADD_COUNTS, [accountId, toHourSinceEpoch(now), transaction.slot, ...counts]);
    }),
  ]);
  const times = new Map(batch.map(([accountId, , now]) => [accountId, now]));
  const evaluations = await Promise.all(
    lockedRows.map((row) => evaluateAccount(transaction, row, times.get(rows.readInteger(row, 'id')) ?? 0)),
  );
  const changes = evaluations.flatMap(({ decision, ...evaluation }) =>
    decision.kind === 'none' ? [] : [{ decision, ...evaluation }],
  );
  if (changes.length === 0) return;
  const revision = await incrementRevision(transaction);
  for (const { accountId, now, decision, describe } of changes)
    if (decision.kind === 'lock') {
      await transaction.query(MARK_ACCOUNT_LOCKED, [decision.reason, now, revision, accountId]);
      await recordResourceEvent(transaction, 'account.locked', accountId, now, describe(decision.reason));
    } else {
      const { warning } = decision;
      await transaction.query(WRITE_WARNING, [warning, revision, accountId]);
      if (warning !== null) await recordResourceEvent(transaction, 'account.warned', accountId, now, describe(warning));
    }
}

async function evaluateAccount(transaction: Transaction, row: Row, now: number) {
  const accountId = rows.readInteger(row, 'id');
  const [, window] = await Promise.all([
    transaction.query(DELETE_OLD_COUNTS, [accountId, getLastExpiredHour(now)]),
    readWindow(transaction, accountId, now),
  ]);
  const thresholds = rows.toThresholds(row);
  const describe = (reason: string) => buildAccountData(rows.readText(row, 'name'), reason, window, thresholds);
  const decision = evaluateReputation(window, thresholds, rows.readOnReputation(row), row.warning !== null);
  return { accountId, now, decision, describe };
}

/** Resolves to true if the canonical recipient has no earlier complaint in the window. */
export async function recordComplaint(
  transaction: Transaction,
  accountId: number,
  recipient: string,
  at: number,
): Promise<boolean> {
  const windowStart = getEvidenceWindowStart(at);
  return (await transaction.query(RECORD_COMPLAINT, [accountId, toComplainant(recipient), at, windowStart])).length > 0;
}

export interface Evidence {
  readonly accountId: number;
  readonly kind: EvidenceKind;
  readonly recipient: string;
  readonly at: number;
}

/** Resolves to those of the items that are the first evidence of their source and kind in the window. */
export async function recordEvidence<Item extends Evidence>(
  transaction: Transaction,
  items: readonly Item[],
): Promise<ReadonlySet<Item>> {
  const itemsByKey = new Map<string, Item>();
  for (const item of items) {
    const key = formatEvidenceKey(item.accountId, item.kind, toEvidenceSource(item.recipient));
    if (!itemsByKey.has(key)) itemsByKey.set(key, item);
  }
  if (itemsByKey.size === 0) return new Set();
  const values = [...itemsByKey.values()];
  const insertedRows = await transaction.query(RECORD_EVIDENCE, [
    values.map(({ accountId }) => accountId),
    values.map(({ kind }) => kind),
    values.map(({ recipient }) => toEvidenceSource(recipient)),
    values.map(({ at }) => at),
    REPUTATION_WINDOW_HOURS * REPUTATION_BUCKET_MS,
  ]);
  return new Set(
    insertedRows.flatMap((row) => {
      const [kind, source] = [rows.readText(row, 'kind'), rows.readText(row, 'source')];
      return itemsByKey.get(formatEvidenceKey(rows.readInteger(row, 'account_id'), kind, source)) ?? [];
    }),
  );
}

function formatEvidenceKey(accountId: number, kind: string, source: string): string {
  return `${accountId} ${kind} ${source}`;
}

/**
 * Counts messages, hard bounces and complaints of accounts in hourly buckets, on PostgreSQL in those of each connection
 * slot, so that nodes do not wait for each other. The transaction that changes a message also counts it. A batch that may
 * change the status of an account locks its row, so that the evaluated sum is exact.
 */
import { REPUTATION_BUCKET_MS, REPUTATION_WINDOW_HOURS } from '../model/account.ts';
import { toComplainant, toEvidenceSource } from '../model/address.ts';
import { buildAccountData } from '../model/webhook-payload.ts';
import { readWindow } from './accounts.ts';
import { recordResourceEvent } from './outbox.ts';
import { countsTowardReputation, type RecordDecision } from './rules/feedback.ts';
import {
  type CountedChange,
  evaluateReputation,
  getEvidenceWindowStart,
  getLastExpiredHour,
  needsEvaluation,
  ReputationDeltas,
  toHourSinceEpoch,
} from './rules/reputation.ts';
import * as rows from './rules/rows.ts';
import { incrementRevision, type Row, type Transaction } from './transaction.ts';

const formatAddCounts = (slotColumn: string, slotValue: string) =>
  `INSERT INTO reputation AS r (account_id, hour, emails, bounces, complaints, proven_bounces, proven_complaints${slotColumn})
   VALUES ($1, $2, $3, $4, $5, $6, $7${slotValue})
   ON CONFLICT (account_id, hour${slotColumn}) DO UPDATE SET emails = r.emails + excluded.emails,
     bounces = r.bounces + excluded.bounces, complaints = r.complaints + excluded.complaints,
     proven_bounces = r.proven_bounces + excluded.proven_bounces,
     proven_complaints = r.proven_complaints + excluded.proven_complaints`;
const ADD_COUNTS = { sqlite: formatAddCounts('', ''), postgres: formatAddCounts(', slot', ', $8') };

/** Rows are locked as by changes of accounts: accounts by id, their counts, the revision. */
export async function countChanges(tx: Transaction, changes: readonly CountedChange[]): Promise<void> {
  const proven = await recordEvidence(tx, changes);
  const deltas = new ReputationDeltas();
  for (const change of changes) deltas.add(change, proven.has(change));
  const batch = deltas.listByAccount();
  if (batch.length === 0) return;
  const evaluatedIds = batch.filter(([, delta]) => needsEvaluation(delta, false)).map(([accountId]) => accountId);
  const [lockedRows] = await Promise.all([
    // Only the accounts whose status the batch can change; the second list needs no warning.
    tx.query(
      `SELECT id, name, bounce_rate, complaint_rate, on_reputation, warning FROM account
       WHERE id = ANY($1::int[]) AND locked_at IS NULL AND (warning IS NOT NULL OR id = ANY($2::int[]))
       ORDER BY id FOR NO KEY UPDATE`,
      [batch.map(([accountId]) => accountId), evaluatedIds],
    ),
    ...batch.map(([accountId, { emails, bounces, complaints, provenBounces, provenComplaints }, now]) => {
      const counts = [emails, bounces, complaints, provenBounces, provenComplaints];
      const slot = tx.dialect === 'sqlite' ? [] : [tx.slot];
      return tx.query(ADD_COUNTS[tx.dialect], [accountId, toHourSinceEpoch(now), ...counts, ...slot]);
    }),
  ]);
  const times = new Map(batch.map(([accountId, , now]) => [accountId, now]));
  const evaluations = await Promise.all(
    lockedRows.map((row) => evaluateAccount(tx, row, times.get(rows.readInteger(row, 'id')) ?? 0)),
  );
  const decided = evaluations.flatMap(({ decision, ...evaluation }) =>
    decision.kind === 'none' ? [] : [{ decision, ...evaluation }],
  );
  if (decided.length === 0) return;
  const revision = await incrementRevision(tx);
  for (const { accountId, now, decision, describe } of decided)
    if (decision.kind === 'lock') {
      await tx.query(
        'UPDATE account SET locked_reason = $1, locked_at = $2, warning = NULL, revision = $3 WHERE id = $4',
        [decision.reason, now, revision, accountId],
      );
      await recordResourceEvent(tx, 'account.locked', accountId, now, describe(decision.reason));
    } else {
      const { warning } = decision;
      await tx.query('UPDATE account SET warning = $1, revision = $2 WHERE id = $3', [warning, revision, accountId]);
      if (warning !== null) await recordResourceEvent(tx, 'account.warned', accountId, now, describe(warning));
    }
}

async function evaluateAccount(tx: Transaction, row: Row, now: number) {
  const accountId = rows.readInteger(row, 'id');
  const [, window] = await Promise.all([
    tx.query('DELETE FROM reputation WHERE account_id = $1 AND hour <= $2', [accountId, getLastExpiredHour(now)]),
    readWindow(tx, accountId, now),
  ]);
  const thresholds = rows.toThresholds(row);
  const describe = (reason: string) => buildAccountData(rows.readText(row, 'name'), reason, window, thresholds);
  const decision = evaluateReputation(window, thresholds, rows.readOnReputation(row), row.warning !== null);
  return { accountId, now, decision, describe };
}

/** Resolves to true if the canonical recipient has no earlier complaint in the window. */
async function recordComplaint(tx: Transaction, accountId: number, recipient: string, at: number): Promise<boolean> {
  const recorded = await tx.query(
    `INSERT INTO complainant AS c (account_id, recipient, at) VALUES ($1, $2, $3)
     ON CONFLICT (account_id, recipient) DO UPDATE SET at = excluded.at WHERE c.at <= $4 RETURNING 1 AS one`,
    [accountId, toComplainant(recipient), at, getEvidenceWindowStart(at)],
  );
  return recorded.length > 0;
}

/** Resolves to the changes with the first evidence of a source and kind in the window. */
async function recordEvidence(tx: Transaction, changes: readonly CountedChange[]): Promise<ReadonlySet<CountedChange>> {
  const changesByKey = new Map<string, CountedChange>();
  for (const change of changes) {
    if (change.evidence === null) continue;
    const key = formatEvidenceKey(change.accountId, change.evidence.kind, toEvidenceSource(change.evidence.recipient));
    if (!changesByKey.has(key)) changesByKey.set(key, change);
  }
  if (changesByKey.size === 0) return new Set();
  const recorded = await tx.query(
    `INSERT INTO evidence AS e (account_id, kind, source, at)
     SELECT (v.value->>0)::int, v.value->>1, v.value->>2, (v.value->>3)::bigint FROM json_array_elements($1::json) AS v(value)
     ORDER BY (v.value->>0)::int, (v.value->>1) COLLATE "C", (v.value->>2) COLLATE "C"
     ON CONFLICT (account_id, kind, source) DO UPDATE SET at = excluded.at WHERE e.at <= excluded.at - $2::bigint
     RETURNING account_id, kind, source`,
    [
      JSON.stringify(
        Array.from(changesByKey.values(), ({ accountId, evidence, at }) =>
          evidence === null ? [] : [accountId, evidence.kind, toEvidenceSource(evidence.recipient), at],
        ),
      ),
      REPUTATION_WINDOW_HOURS * REPUTATION_BUCKET_MS,
    ],
  );
  return new Set(
    recorded.flatMap((row) => {
      const [kind, source] = [rows.readText(row, 'kind'), rows.readText(row, 'source')];
      return changesByKey.get(formatEvidenceKey(rows.readInteger(row, 'account_id'), kind, source)) ?? [];
    }),
  );
}

function formatEvidenceKey(accountId: number, kind: string, source: string): string {
  return `${accountId} ${kind} ${source}`;
}

/** What a recorded report may change beyond its message. */
export interface ReportEffect {
  readonly decision: RecordDecision;
  readonly recipient: string;
  readonly at: number;
}

/** `suppressing` contains the effects that added a suppression. */
export async function countReports(
  tx: Transaction,
  effects: readonly ReportEffect[],
  suppressing: ReadonlySet<ReportEffect>,
): Promise<void> {
  const counted = effects.flatMap((effect) => {
    const { decision, recipient } = effect;
    const isCounted = countsTowardReputation(decision, suppressing.has(effect));
    if (!isCounted && decision.evidence === null) return [];
    return [{ effect, isCounted, key: `${decision.accountId} ${toComplainant(recipient)}` }];
  });
  // Complainants are locked in the same order on every node.
  counted.sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0));
  const changes: CountedChange[] = [];
  for (const { effect, isCounted } of counted) {
    const { recipient, at } = effect;
    const { accountId, from, reputationState: to, evidence: kind } = effect.decision;
    const isNew =
      to === 'complained'
        ? isCounted && (await recordComplaint(tx, accountId, recipient, at))
        : suppressing.has(effect);
    changes.push({ accountId, from, to, at, isNew, isCounted, evidence: kind === null ? null : { kind, recipient } });
  }
  await countChanges(tx, changes);
}

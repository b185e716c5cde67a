/** Reads what requires attention (accounts, keys, domains, endpoints), and the position in the change feed. */
import {
  type ChangeFeedPosition,
  EXPIRY_WARNING_MS,
  MAX_OVERVIEW_ITEMS,
  MAX_SCANNED_ACCOUNTS,
  type OverviewData,
  RECENT_USE_MS,
  VOLUME_WARNING_FRACTION,
} from '../model/attention.ts';
import { findParking } from '../model/message.ts';
import { computeRunningAgeMs } from '../model/running-time.ts';
import { HOUR_MS } from '../model/traffic.ts';
import { selectAccounts } from './directory.ts';
import { findNewestId } from './messages.ts';
import { findOldestEnd } from './retention.ts';
import * as rows from './rules/rows.ts';
import { SELECT_WEBHOOKS, toWebhook } from './rules/webhooks.ts';
import type { Transaction } from './transaction.ts';

const DIALECTS = {
  sqlite: { queue: 'mail_request q INDEXED BY mail_request_due', volumeUsed: 'volume_used' },
  postgres: {
    queue: 'queue q',
    volumeUsed: `a.volume_used + coalesce((SELECT sum(u.emails) FROM account_usage u WHERE u.account_id = a.id), 0)`,
  },
} as const;

export async function readOverviewData(
  tx: Transaction,
  now: number,
  maxItems = MAX_OVERVIEW_ITEMS,
): Promise<OverviewData> {
  const until = now + EXPIRY_WARNING_MS;
  const [newestId, nextDueAt, accounts, keys, [counts = {}], problems, [reports = {}], webhooks, endAgeMs, [counted]] =
    await Promise.all([
      findNewestId(tx),
      findNextDueAt(tx),
      selectAccounts(
        tx,
        `WHERE a.locked_at IS NOT NULL OR a.warning IS NOT NULL OR a.volume_expires_at BETWEEN $1 AND $2
         OR (a.volume IS NOT NULL AND ${DIALECTS[tx.dialect].volumeUsed} >= a.volume * ${VOLUME_WARNING_FRACTION})
       ORDER BY a.name LIMIT $3`,
        [now - EXPIRY_WARNING_MS, until, maxItems],
      ),
      // A key whose successor is in use, or beside which another key of the account remains, needs no attention unless it
      // was used recently.
      tx.query(
        `SELECT k.*, a.name AS account, n.id AS successor FROM api_key k JOIN account a ON a.id = k.account_id
         LEFT JOIN api_key n ON n.id = (SELECT max(s.id) FROM api_key s WHERE s.account_id = k.account_id AND s.name = k.name
           AND s.id > k.id AND s.revoked_at IS NULL AND (s.expires_at IS NULL OR s.expires_at > k.expires_at))
       WHERE k.revoked_at IS NULL AND k.expires_at > $1 AND k.expires_at <= $2 AND a.locked_at IS NULL
         AND (k.last_used_at > $3 OR NOT EXISTS (SELECT 1 FROM api_key o WHERE o.account_id = k.account_id AND o.id <> k.id
           AND o.revoked_at IS NULL AND (o.expires_at IS NULL OR o.expires_at > $2)))
         AND (n.id IS NULL OR k.last_used_at > n.created_at)
       ORDER BY k.expires_at LIMIT $4`,
        [now, until, now - RECENT_USE_MS, maxItems],
      ),
      tx.query(
        `SELECT count(*)::int AS "all", (count(*) FILTER (WHERE status = 'authenticated'))::int AS authenticated
       FROM domain WHERE NOT removed`,
      ),
      tx.query(
        `SELECT name, status, checked_at, failing_since, checks FROM domain
       WHERE NOT removed AND (status <> 'authenticated' OR checks LIKE '%"found":"missing"%' OR checks LIKE '%"found":"wrong"%')
       ORDER BY name LIMIT $1`,
        [maxItems],
      ),
      tx.query(
        `SELECT count(*)::int AS n FROM (SELECT at FROM feedback WHERE reason IS NOT NULL
         ORDER BY id DESC LIMIT ${MAX_OVERVIEW_ITEMS}) f WHERE at > $1`,
        [now - RECENT_USE_MS],
      ),
      tx.query(
        `${SELECT_WEBHOOKS}
       WHERE NOT w.removed AND w.disabled_reason <> 'operator' ORDER BY w.id LIMIT $1`,
        [maxItems],
      ),
      findOldestEndAge(tx),
      // The figures stay when all messages are purged.
      tx.query('SELECT 1 AS one FROM traffic WHERE accepted > 0 LIMIT 1'),
    ]);
  return {
    everAccepted: newestId !== null || counted !== undefined,
    nextDueAt,
    accounts,
    keys: keys.map(rows.toExpiringKey),
    domains: {
      all: rows.readInteger(counts, 'all'),
      authenticated: rows.readInteger(counts, 'authenticated'),
      problems: problems.map(rows.toDomainProblem),
    },
    oldestEndAgeMs: endAgeMs,
    notUnderstoodCount: rows.readInteger(reports, 'n'),
    disabledWebhooks: webhooks.map(toWebhook),
  };
}

async function findOldestEndAge(tx: Transaction): Promise<number | null> {
  const [endedAt, [row]] = await Promise.all([
    findOldestEnd(tx),
    tx.query('SELECT ran_ms, seen_at, stretches FROM running_time'),
  ]);
  return endedAt === null || row === undefined ? null : computeRunningAgeMs(rows.toRunningTime(row), endedAt);
}

/** Finds the earliest due time with two index lookups for each account with queued messages. */
async function findNextDueAt(tx: Transaction): Promise<number | null> {
  const queued = `FROM ${DIALECTS[tx.dialect].queue} WHERE q.state = 'queued' AND q.lane`;
  const [row = { due_at: null }] = await tx.query(
    `WITH RECURSIVE seen AS (
       SELECT l.lane, (SELECT min(q.account_id) ${queued} = l.lane) AS account_id FROM (SELECT 0 AS lane UNION ALL SELECT 1) l
       UNION ALL
       SELECT s.lane, (SELECT min(q.account_id) ${queued} = s.lane AND q.account_id > s.account_id)
       FROM seen s WHERE s.account_id IS NOT NULL
     ), scanned AS (SELECT * FROM seen WHERE account_id IS NOT NULL LIMIT ${MAX_SCANNED_ACCOUNTS})
     SELECT min((SELECT min(q.due_at) ${queued} = s.lane AND q.account_id = s.account_id)) AS due_at
     FROM scanned s JOIN account a ON a.id = s.account_id WHERE a.locked_at IS NULL`,
  );
  const dueAt = rows.readIntegerOrNull(row, 'due_at');
  return findParking(dueAt) === null ? dueAt : null;
}

export async function readChangeFeedPosition(tx: Transaction, now: number): Promise<ChangeFeedPosition> {
  const [newestId, [row = {}]] = await Promise.all([
    findNewestId(tx),
    tx.query(
      `SELECT coalesce((SELECT max(id) FROM audit), 0)::bigint AS audit,
         coalesce(sum(accepted + deferred + ended + bounced + complained + alarmed), 0)::bigint AS counted,
         coalesce(sum(bounced + complained), 0)::bigint AS refused
       FROM traffic WHERE span = ${HOUR_MS} AND at > $1`,
      [now - 2 * HOUR_MS],
    ),
  ]);
  return {
    newestId,
    newestAuditId: rows.readInteger(row, 'audit'),
    recentCounts: rows.readInteger(row, 'counted'),
    suppressingCounts: rows.readInteger(row, 'refused'),
  };
}

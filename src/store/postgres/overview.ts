/**
 * Reads the data of the overview: accounts, keys and domains that need attention, and the position in the change feed.
 */
import {
  EXPIRY_WARNING_MS,
  MAX_OVERVIEW_ITEMS,
  MAX_SCANNED_ACCOUNTS,
  RECENT_USE_MS,
  VOLUME_WARNING_FRACTION,
} from '../../model/overview.ts';
import { HOUR_MS } from '../../model/traffic.ts';
import type { OverviewStore } from '../contract.ts';
import { SELECT_ACCOUNTS } from '../directory.ts';
import * as rows from '../rules/rows.ts';
import { toWebhook } from '../rules/webhooks.ts';
import type { Database, Statement } from './session.ts';
import { SELECT_WEBHOOKS } from './webhooks.ts';

const SELECT_NEWEST_ID: Statement = {
  name: 'overview_newest',
  text: 'SELECT id FROM mail_request ORDER BY id DESC LIMIT 1',
};
// This query needs one index lookup for each account with queued messages, in order of lane and account.
const SELECT_NEXT_DUE_TIME: Statement = {
  name: 'overview_next_due',
  text: `WITH RECURSIVE seen AS (
      (SELECT lane, account_id, due_at FROM queue WHERE state = 'queued' ORDER BY lane, account_id, due_at LIMIT 1)
      UNION ALL
      SELECT n.lane, n.account_id, n.due_at FROM seen s CROSS JOIN LATERAL (
        SELECT q.lane, q.account_id, q.due_at FROM queue q WHERE q.state = 'queued' AND (q.lane, q.account_id) > (s.lane, s.account_id)
        ORDER BY q.lane, q.account_id, q.due_at LIMIT 1) n
    ), scanned AS (SELECT * FROM seen LIMIT ${MAX_SCANNED_ACCOUNTS})
    SELECT min(s.due_at) AS due_at FROM scanned s JOIN account a ON a.id = s.account_id WHERE a.locked_at IS NULL`,
};
const ACCOUNTS_WITH_PROBLEMS: Statement = {
  name: 'overview_accounts',
  text: `${SELECT_ACCOUNTS.postgres} WHERE a.locked_at IS NOT NULL OR a.warning IS NOT NULL OR a.volume_expires_at BETWEEN $1 AND $2
    OR (a.volume IS NOT NULL AND ${VOLUME_WARNING_FRACTION} * a.volume
      <= a.volume_used + coalesce((SELECT sum(u.emails) FROM account_usage u WHERE u.account_id = a.id), 0))
    ORDER BY a.name LIMIT $3`,
};
const EXPIRING_KEYS: Statement = {
  name: 'overview_keys',
  text: `SELECT k.*, a.name AS account, n.id AS successor FROM api_key k JOIN account a ON a.id = k.account_id
      LEFT JOIN api_key n ON n.id = (SELECT max(s.id) FROM api_key s WHERE s.account_id = k.account_id AND s.name = k.name
        AND s.id > k.id AND s.revoked_at IS NULL AND (s.expires_at IS NULL OR s.expires_at > k.expires_at))
    WHERE k.revoked_at IS NULL AND k.expires_at > $1 AND k.expires_at <= $2 AND a.locked_at IS NULL
      AND (k.last_used_at > $3 OR NOT EXISTS (SELECT 1 FROM api_key o WHERE o.account_id = k.account_id AND o.id <> k.id
        AND o.revoked_at IS NULL AND (o.expires_at IS NULL OR o.expires_at > $2)))
      AND (n.id IS NULL OR k.last_used_at > n.created_at)
    ORDER BY k.expires_at LIMIT $4`,
};
const DOMAIN_COUNTS: Statement = {
  name: 'overview_domain_counts',
  text: `SELECT count(*)::int AS "all", (count(*) FILTER (WHERE status = 'authenticated'))::int AS authenticated FROM domain WHERE NOT removed`,
};
const DOMAINS_WITH_PROBLEMS: Statement = {
  name: 'overview_domains',
  text: `SELECT name, status, checked_at, failing_since, checks FROM domain
    WHERE NOT removed AND (status <> 'authenticated' OR checks LIKE '%"found":"missing"%' OR checks LIKE '%"found":"wrong"%')
    ORDER BY name LIMIT $1`,
};
const COUNT_REPORTS: Statement = {
  name: 'overview_reports',
  text: `SELECT count(*)::int AS n FROM (SELECT at FROM feedback WHERE reason IS NOT NULL ORDER BY id DESC LIMIT ${MAX_OVERVIEW_ITEMS}) f WHERE at > $1`,
};
const DISABLED_WEBHOOKS: Statement = {
  name: 'overview_webhooks',
  text: `${SELECT_WEBHOOKS} WHERE NOT w.removed AND w.disabled_reason <> 'operator' ORDER BY w.id LIMIT $1`,
};
const READ_POSITION: Statement = {
  name: 'overview_position',
  text: `SELECT (SELECT id FROM mail_request ORDER BY id DESC LIMIT 1) AS newest, coalesce((SELECT max(id) FROM audit), 0)::bigint AS audit,
      coalesce(sum(accepted + deferred + ended + bounced + complained + alarmed), 0)::bigint AS counted,
      coalesce(sum(bounced + complained), 0)::bigint AS refused
    FROM traffic WHERE span = ${HOUR_MS} AND at > $1`,
};

export function prepareOverview(
  database: Database,
): Pick<OverviewStore, 'readOverviewData' | 'readChangeFeedPosition'> {
  return {
    async readOverviewData(now, maxItems = MAX_OVERVIEW_ITEMS) {
      const warnUntil = now + EXPIRY_WARNING_MS;
      const [newest, due, accounts, keys, counts, domainsWithProblems, reports, webhooks] = await Promise.all([
        database.query(SELECT_NEWEST_ID, []),
        database.query(SELECT_NEXT_DUE_TIME, []),
        database.query(ACCOUNTS_WITH_PROBLEMS, [now - EXPIRY_WARNING_MS, warnUntil, maxItems]),
        database.query(EXPIRING_KEYS, [now, warnUntil, now - RECENT_USE_MS, maxItems]),
        database.query(DOMAIN_COUNTS, []),
        database.query(DOMAINS_WITH_PROBLEMS, [maxItems]),
        database.query(COUNT_REPORTS, [now - RECENT_USE_MS]),
        database.query(DISABLED_WEBHOOKS, [maxItems]),
      ]);
      return {
        everAccepted: newest.length > 0,
        nextDueAt: rows.readIntegerOrNull(due[0] ?? { due_at: null }, 'due_at'),
        accounts: accounts.map(rows.toAccount),
        keys: keys.map(rows.toExpiringKey),
        domains: {
          all: rows.readInteger(counts[0] ?? {}, 'all'),
          authenticated: rows.readInteger(counts[0] ?? {}, 'authenticated'),
          problems: domainsWithProblems.map(rows.toDomainProblem),
        },
        notUnderstoodCount: rows.readInteger(reports[0] ?? {}, 'n'),
        disabledWebhooks: webhooks.map(toWebhook),
      };
    },
    async readChangeFeedPosition(now) {
      const [row = {}] = await database.query(READ_POSITION, [now - 2 * HOUR_MS]);
      return {
        newestId: rows.readTextOrNull(row, 'newest'),
        newestAuditId: rows.readInteger(row, 'audit'),
        recentCounts: rows.readInteger(row, 'counted'),
        suppressingCounts: rows.readInteger(row, 'refused'),
      };
    },
  };
}

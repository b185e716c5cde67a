/** Reads the overview of the conditions that require attention, and reads the position in the change feed. */
import type { DatabaseSync } from 'node:sqlite';
import {
  type ChangeFeedPosition,
  EXPIRY_WARNING_MS,
  MAX_OVERVIEW_ITEMS,
  MAX_SCANNED_ACCOUNTS,
  type OverviewData,
  RECENT_USE_MS,
  VOLUME_WARNING_FRACTION,
} from '../../model/overview.ts';
import { HOUR_MS } from '../../model/traffic.ts';
import * as rows from '../rules/rows.ts';
import { toWebhook } from '../rules/webhooks.ts';
import { SELECT_WEBHOOKS } from './webhooks.ts';

const FAILED_CHECK = `(checks LIKE '%"found":"missing"%' OR checks LIKE '%"found":"wrong"%')`;

export function prepareOverview(database: DatabaseSync) {
  const selectNewest = database.prepare('SELECT id FROM mail_request ORDER BY seq DESC LIMIT 1');
  // For each account with queued messages, this query needs one index seek, and `selectFirstDue` needs another one for
  // the first message of the account.
  const selectNextAccount = database.prepare(
    `SELECT lane, account_id FROM mail_request INDEXED BY mail_request_due
     WHERE state = 'queued' AND (lane, account_id) > (?, ?) ORDER BY lane, account_id LIMIT 1`,
  );
  const selectFirstDue = database.prepare(
    `SELECT due_at FROM mail_request INDEXED BY mail_request_due
     WHERE state = 'queued' AND lane = ? AND account_id = ? AND (SELECT locked_at IS NULL FROM account WHERE id = account_id)
     ORDER BY due_at LIMIT 1`,
  );
  const selectAccounts = database.prepare(
    `SELECT * FROM account WHERE locked_at IS NOT NULL OR warning IS NOT NULL OR volume_expires_at BETWEEN :from AND :until
       OR volume_used >= volume * ${VOLUME_WARNING_FRACTION} ORDER BY name LIMIT :max`,
  );
  const selectExpiringKeys = database.prepare(
    `SELECT k.*, a.name AS account, n.id AS successor FROM api_key k JOIN account a ON a.id = k.account_id
       LEFT JOIN api_key n ON n.id = (SELECT max(s.id) FROM api_key s WHERE s.account_id = k.account_id AND s.name = k.name
         AND s.id > k.id AND s.revoked_at IS NULL AND (s.expires_at IS NULL OR s.expires_at > k.expires_at))
     WHERE k.revoked_at IS NULL AND k.expires_at > :now AND k.expires_at <= :until AND a.locked_at IS NULL
       AND (k.last_used_at > :recent OR NOT EXISTS (SELECT 1 FROM api_key o WHERE o.account_id = k.account_id AND o.id <> k.id
         AND o.revoked_at IS NULL AND (o.expires_at IS NULL OR o.expires_at > :until)))
       AND (n.id IS NULL OR k.last_used_at > n.created_at)
     ORDER BY k.expires_at LIMIT :max`,
  );
  const countDomains = database.prepare(
    `SELECT count(*) AS "all", coalesce(sum(status = 'authenticated'), 0) AS authenticated FROM domain WHERE removed = 0`,
  );
  const selectProblemDomains = database.prepare(
    `SELECT name, status, checked_at, failing_since, checks FROM domain
     WHERE removed = 0 AND (status <> 'authenticated' OR ${FAILED_CHECK}) ORDER BY name LIMIT ?`,
  );
  const countNotUnderstood = database.prepare(
    `SELECT count(*) AS n FROM (SELECT at FROM feedback WHERE reason IS NOT NULL ORDER BY id DESC LIMIT ${MAX_OVERVIEW_ITEMS}) WHERE at > ?`,
  );
  const selectDisabledWebhooks = database.prepare(
    `${SELECT_WEBHOOKS} WHERE w.removed = 0 AND w.disabled_reason <> 'operator' ORDER BY w.id LIMIT ?`,
  );
  const selectLastAuditId = database.prepare('SELECT coalesce(max(id), 0) AS id FROM audit');
  const sumCounts = database.prepare(
    `SELECT coalesce(sum(accepted + deferred + ended + bounced + complained + alarmed), 0) AS counted,
       coalesce(sum(bounced + complained), 0) AS refused FROM traffic WHERE span = ${HOUR_MS} AND at > ?`,
  );

  function findNextDueAt(now: number): number | null {
    let earliestDueAt: number | null = null;
    let position = selectNextAccount.get(-1, 0);
    for (
      let scannedAccountCount = 0;
      position !== undefined && scannedAccountCount < MAX_SCANNED_ACCOUNTS;
      scannedAccountCount += 1
    ) {
      const [lane, account] = [rows.readInteger(position, 'lane'), rows.readInteger(position, 'account_id')];
      const firstRow = selectFirstDue.get(lane, account);
      if (firstRow !== undefined)
        earliestDueAt = Math.min(earliestDueAt ?? Number.POSITIVE_INFINITY, rows.readInteger(firstRow, 'due_at'));
      // If a message is already due, later accounts need no check.
      if (earliestDueAt !== null && earliestDueAt <= now) return earliestDueAt;
      position = selectNextAccount.get(lane, account);
    }
    return earliestDueAt;
  }

  return {
    readOverviewData(now: number, maxItems = MAX_OVERVIEW_ITEMS): OverviewData {
      const until = now + EXPIRY_WARNING_MS;
      const counts = countDomains.get() ?? {};
      return {
        everAccepted: selectNewest.get() !== undefined,
        nextDueAt: findNextDueAt(now),
        accounts: selectAccounts.all({ from: now - EXPIRY_WARNING_MS, until, max: maxItems }).map(rows.toAccount),
        keys: selectExpiringKeys
          .all({ now, until, recent: now - RECENT_USE_MS, max: maxItems })
          .map(rows.toExpiringKey),
        domains: {
          all: rows.readInteger(counts, 'all'),
          authenticated: rows.readInteger(counts, 'authenticated'),
          problems: selectProblemDomains.all(maxItems).map(rows.toDomainProblem),
        },
        notUnderstoodCount: rows.readInteger(countNotUnderstood.get(now - RECENT_USE_MS) ?? {}, 'n'),
        disabledWebhooks: selectDisabledWebhooks.all(maxItems).map(toWebhook),
      };
    },
    readChangeFeedPosition(now: number): ChangeFeedPosition {
      const sums = sumCounts.get(now - 2 * HOUR_MS) ?? {};
      const newestRow = selectNewest.get();
      return {
        newestId: newestRow === undefined ? null : rows.readText(newestRow, 'id'),
        newestAuditId: rows.readInteger(selectLastAuditId.get() ?? {}, 'id'),
        recentCounts: rows.readInteger(sums, 'counted'),
        suppressingCounts: rows.readInteger(sums, 'refused'),
      };
    },
  };
}

/**
 * Recovers the leases of deliveries whose node has ended without releasing the leases. After the recovery, these
 * deliveries are due immediately.
 */
import type { ServerTimeOverride } from '../environment.ts';
import type { WebhookWorkerStore } from '../webhook-store.ts';
import type { Database, Statement } from './session.ts';

// Finding the endpoints with pending deliveries takes one index lookup per endpoint. The range of due times ($1 to $2)
// contains the due times of all leased deliveries. The range excludes deliveries that are already due, and deliveries
// whose next attempt is due after the latest lease expiry.
const RECOVER_LEASES: Statement = {
  name: 'webhook_recover_leases',
  text: `WITH RECURSIVE seen AS (
      (SELECT webhook_id FROM webhook_delivery WHERE status = 'pending' ORDER BY webhook_id LIMIT 1)
      UNION ALL
      SELECT n.webhook_id FROM seen s CROSS JOIN LATERAL (
        SELECT d.webhook_id FROM webhook_delivery d WHERE d.status = 'pending' AND d.webhook_id > s.webhook_id
        ORDER BY d.webhook_id LIMIT 1) n
    ), dead AS MATERIALIZED (
      SELECT l.row FROM seen s CROSS JOIN LATERAL (
        SELECT p.ctid AS row FROM webhook_delivery p
        WHERE p.status = 'pending' AND p.webhook_id = s.webhook_id AND p.due_at > $1 AND p.due_at <= $2
          AND CASE WHEN $6::uuid[] IS NOT NULL THEN p.owner = $3 AND p.id <> ALL($6::uuid[])
            ELSE p.owner <> $3 AND ($4 OR NOT EXISTS (SELECT 1 FROM node n WHERE n.name = p.owner
              AND n.alive_until > coalesce($5::bigint, extract(epoch FROM clock_timestamp()) * 1000))) END
        FOR UPDATE SKIP LOCKED) l
    )
    UPDATE webhook_delivery d SET due_at = $1, owner = NULL WHERE d.ctid = ANY(ARRAY(SELECT row FROM dead)) RETURNING 1 AS one`,
};

export function prepareDeliveryRecovery(
  database: Database,
  serverTime: ServerTimeOverride,
): Pick<WebhookWorkerStore, 'recoverDeliveries'> {
  return {
    async recoverDeliveries({ now, until, node, includeAllLeases, ownLeasesExcept = null }) {
      const values = [now, until, node, includeAllLeases, serverTime(), ownLeasesExcept];
      return (await database.query(RECOVER_LEASES, values)).length;
    },
  };
}

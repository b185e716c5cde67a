/**
 * Recovers the leases of deliveries whose node has ended without releasing the leases. These deliveries are then due at
 * once.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { DeliveryRecovery } from '../webhook-store.ts';

export function prepareDeliveryRecovery(database: DatabaseSync) {
  // The range of due times contains all leases. It excludes due deliveries and deliveries whose next attempt is due
  // later than the latest end of a lease.
  const recoverLeases = database.prepare(
    `UPDATE webhook_delivery SET due_at = :now, owner = NULL WHERE rowid IN (
       SELECT rowid FROM webhook_delivery INDEXED BY webhook_delivery_due
       WHERE status = 'pending' AND webhook_id IN (SELECT id FROM webhook) AND due_at > :now AND due_at <= :until
         AND CASE WHEN :except IS NOT NULL THEN owner = :node AND id NOT IN (SELECT value FROM json_each(:except))
           ELSE owner <> :node
             AND (:every OR NOT EXISTS (SELECT 1 FROM node WHERE name = webhook_delivery.owner AND alive_until > :now)) END)`,
  );
  return {
    recoverDeliveries: ({ now, until, node, includeAllLeases, ownLeasesExcept }: DeliveryRecovery): number => {
      const excludedIds = ownLeasesExcept === undefined ? null : JSON.stringify(ownLeasesExcept);
      return Number(
        recoverLeases.run({ now, until, node, every: includeAllLeases ? 1 : 0, except: excludedIds }).changes,
      );
    },
  };
}

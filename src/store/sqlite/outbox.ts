/**
 * Writes events in the transaction of the change that each reports. One writer at a time: the order of positions is the
 * order of commits.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { State } from '../../model/message.ts';
import type { Suppression } from '../../model/suppression.ts';
import { getEventBit, type MessageEventType, type WebhookEventType } from '../../model/webhook.ts';
import { buildSuppressionData } from '../../model/webhook-payload.ts';
import * as rows from '../rules/rows.ts';
import { SERVICE_ACCOUNT_ID } from '../rules/webhooks.ts';

export type Outbox = ReturnType<typeof prepareOutbox>;

export function prepareOutbox(database: DatabaseSync) {
  const selectTypes = database.prepare('SELECT events FROM webhook_subscription');
  const insertAccepted = database.prepare(
    `INSERT INTO outbox (type, account_id, message_id, sequence, state) VALUES ('message.accepted', ?, ?, 0, ?)`,
  );
  const insertEntry = database.prepare(
    `INSERT INTO outbox (type, account_id, message_id, sequence, state, suppressed)
     SELECT ?, account_id, id, (SELECT max(n) FROM event WHERE seq = ?2), ?3, ?4 FROM mail_request WHERE seq = ?2`,
  );
  const insertResource = database.prepare('INSERT INTO outbox (type, account_id, at, data) VALUES (?, ?, ?, ?)');
  const selectAccountName = database.prepare('SELECT name FROM account WHERE id = ?');
  /** Read once per operation, because another operation or process may change them. */
  let subscribedTypes: number | null = null;

  function isSubscribed(type: WebhookEventType): boolean {
    subscribedTypes ??= rows.readInteger(selectTypes.get() ?? {}, 'events');
    return (subscribedTypes & getEventBit(type)) !== 0;
  }

  return {
    reset(): void {
      subscribedTypes = null;
    },
    recordAcceptance(messageId: string, accountId: number, state: State): void {
      if (isSubscribed('message.accepted')) insertAccepted.run(accountId, messageId, state);
    },
    recordEntry(type: MessageEventType, seq: number, state: State, suppressed: boolean): void {
      if (isSubscribed(type)) insertEntry.run(type, seq, state, suppressed ? 1 : 0);
    },
    recordSuppression(
      type: 'suppression.added' | 'suppression.removed',
      accountId: number,
      at: number,
      entry: Pick<Suppression, 'address' | 'reason' | 'source'>,
    ): void {
      if (!isSubscribed(type)) return;
      const row = accountId === SERVICE_ACCOUNT_ID ? { name: '*' } : (selectAccountName.get(accountId) ?? {});
      const data = buildSuppressionData(rows.readText(row, 'name'), entry);
      insertResource.run(type, accountId, at, JSON.stringify(data));
    },
  };
}

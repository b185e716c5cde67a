/**
 * Writes events in the transaction of the change that each reports. A transaction that reads the subscribed types keeps
 * a lock on their table until its end, for which a change of the subscriptions waits, so the new subscriptions apply to
 * every later event.
 */
import type { State } from '../../model/message.ts';
import { formatWebhookId, getEventBit, type WebhookEventType } from '../../model/webhook.ts';
import type { Store } from '../contract.ts';
import { StoreError } from '../error.ts';
import * as rows from '../rules/rows.ts';
import type { Session } from './session.ts';

export const SELECT_SUBSCRIBED = 'SELECT events FROM webhook_subscription';

const INSERT_ACCEPTED = `INSERT INTO outbox (type, account_id, message_id, sequence, state)
    SELECT 'message.accepted', account_id, id, 0, state
    FROM unnest($1::int[], $2::uuid[], $3::text[]) WITH ORDINALITY AS m(account_id, id, state, o) ORDER BY o`;
export function isSubscribed(subscribedTypes: number, type: WebhookEventType): boolean {
  return (subscribedTypes & getEventBit(type)) !== 0;
}

/** An endpoint must subscribe to `message.accepted`. */
export async function recordAcceptances(
  session: Session,
  acceptedMessages: readonly { readonly id: string; readonly accountId: number; readonly state: State }[],
): Promise<void> {
  if (acceptedMessages.length === 0) return;
  await session.query(INSERT_ACCEPTED, [
    acceptedMessages.map(({ accountId }) => accountId),
    acceptedMessages.map(({ id }) => id),
    acceptedMessages.map(({ state }) => state),
  ]);
}

/**
 * Returns the SQL of an insertion that records one event for each row of the table expression `source` if an endpoint
 * subscribes to the type. `source` has the columns recipient, account_id, reason, source and `at`. `at` is an SQL
 * expression for the time of the change. The data of an event is equal to the result of `buildSuppressionData`.
 */
export function insertSuppressionEvents(
  type: 'suppression.added' | 'suppression.removed',
  source: string,
  at: string,
): string {
  return `INSERT INTO outbox (type, account_id, at, data)
    SELECT '${type}', s.account_id, ${at}, json_build_object('account', coalesce(a.name, '*'), 'address', s.recipient,
      'reason', s.reason, 'source', s.source)::text
    FROM webhook_subscription w CROSS JOIN ${source} s LEFT JOIN account a ON a.id = s.account_id
    WHERE w.events & ${getEventBit(type)} <> 0 ORDER BY s.recipient COLLATE "C"`;
}

// A transaction that has read the subscribed types or an endpoint, and has written or may write, has a transaction id
// and a lock on the table that it has read.
const EARLIER_TRANSACTIONS = `SELECT l.virtualtransaction AS transaction FROM pg_locks l
  WHERE l.locktype = 'relation' AND l.relation IN ('webhook_subscription'::regclass, 'webhook'::regclass) AND l.granted
    AND l.pid <> pg_backend_pid() AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND EXISTS (SELECT 1 FROM pg_locks x WHERE x.virtualtransaction = l.virtualtransaction AND x.locktype = 'transactionid' AND x.granted)`;
const LIST_REMAINING_TRANSACTIONS = `SELECT r.transaction FROM pg_sleep(0.02) CROSS JOIN LATERAL (${EARLIER_TRANSACTIONS} AND l.virtualtransaction = ANY($1::text[])) r`;
/**
 * The maximum number of polls for the end of earlier transactions. A poll takes 20 ms. If the client of a transaction
 * is suspended, the server ends the transaction after 15 s (`idle_in_transaction_session_timeout`).
 */
const MAX_POLLS = 1_500;

/**
 * Waits until all transactions that may have read the subscribed types or the endpoint before a change have ended.
 * Waits for at most about 30 seconds. The caller must call the function after the commit of the change. The error
 * message contains `change`, which describes the committed change, such as `the update of endpoint wh_1`, and `remedy`,
 * a clause that tells the operator what to do next.
 *
 * @throws StoreError if such a transaction is still running after this time
 */
export async function waitForEarlierTransactions(database: Session, change: string, remedy: string): Promise<void> {
  let transactions = (await database.query(EARLIER_TRANSACTIONS)).map((row) => rows.readText(row, 'transaction'));
  for (let poll = 0; transactions.length > 0 && poll < MAX_POLLS; poll += 1)
    transactions = (await database.query(LIST_REMAINING_TRANSACTIONS, [transactions])).map((row) =>
      rows.readText(row, 'transaction'),
    );
  if (transactions.length === 0) return;
  throw new StoreError(
    `${change} is recorded, but an earlier transaction of the database is still running after 30 s. Its events and delivery attempts may not reflect the change. End the transaction (pg_stat_activity lists it), ${remedy}.`,
  );
}

const CHANGES = {
  createWebhook: [null, 'then rotate the signing secret of the endpoint, because the secret was not shown'],
  updateWebhook: ['update', 'then repeat the command'],
  enableWebhook: ['enable', 'then repeat the command'],
  disableWebhook: ['disable', 'then repeat the command'],
  rotateWebhookSecret: ['rotate', 'then rotate the signing secret again, because the new secret was not shown'],
  deleteWebhook: ['delete', 'which completes the change'],
} as const;
type EndpointChange = keyof typeof CHANGES;

export function waitAfterChanges(session: Session, store: Pick<Store, EndpointChange>): Pick<Store, EndpointChange> {
  const changes = (Object.keys(CHANGES) as EndpointChange[]).map((name) => {
    const change = store[name] as (...args: readonly unknown[]) => ReturnType<Store[EndpointChange]>;
    const [verb, remedy] = CHANGES[name];
    return [
      name,
      async (...args: readonly unknown[]) => {
        const result = await change(...args);
        if (result.kind !== 'done') return result;
        const id = formatWebhookId(result.value.id);
        const text = verb === null ? `the creation of endpoint ${id}` : `the change of endpoint ${id} (${verb})`;
        await waitForEarlierTransactions(session, text, remedy);
        return result;
      },
    ] as const;
  });
  return Object.fromEntries(changes) as unknown as Pick<Store, EndpointChange>;
}

/**
 * Accepts messages: checks idempotency keys, volume, rate and suppression, and writes the rows, in one transaction with
 * two round trips and one synced commit. The check of a message takes the earlier messages of the same batch into
 * account.
 *
 * Accounts with a limit are locked in order of their id, so that the counts of all nodes together are exact and batches
 * cannot deadlock. Accounts without a limit are not locked: their usage is counted per connection slot. Each statement
 * processes a whole batch. Each of its array parameters contains the values of one column. All arrays have the same
 * length.
 */

import { type Account, getRemainingLimits, type LimitUsage, toLimitUsage } from '../../model/account.ts';
import {
  type AcceptResult,
  createResendOfEntry,
  createSuppressedEntry,
  getIdempotencyExpiryCutoff,
  type NewMessage,
  NOTIFICATION_KEY_ID,
  toParkedDueTime,
} from '../../model/message.ts';
import type { Store } from '../contract.ts';
import { SELECT_ACCOUNTS } from '../directory.ts';
import { SYSTEM_ENVIRONMENT } from '../environment.ts';
import { type Acceptance, type AcceptanceLookups, decideAcceptance } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { readSuppressions } from '../suppressions.ts';
import { appendEvents } from './history.ts';
import { isSubscribed, recordAcceptances, SELECT_SUBSCRIBED } from './outbox.ts';
import { type Database, forceDurableCommit, type Row, type Session, type Transaction, toColumns } from './session.ts';

/**
 * No other accepting transaction then reads or changes their remaining volume and rate. Accounts without a limit are
 * not locked.
 */
const LOCK_ACCOUNTS = `SELECT id FROM account WHERE id = ANY($1::int[]) AND (volume IS NOT NULL OR rate_limit IS NOT NULL)
    ORDER BY id FOR NO KEY UPDATE`;
// This statement runs after the locks are acquired, so it reads the rows that were committed during the wait for the
// locks.
const READ_ACCOUNTS = `SELECT s.*, (${SELECT_SUBSCRIBED}) AS subscribed FROM (${SELECT_ACCOUNTS.postgres} WHERE a.id = ANY($1::int[])) s`;
const READ_KEYS = `SELECT i.account_id, i.key, i.fingerprint, i.id, i.at FROM idempotency i
    JOIN unnest($1::int[], $2::text[]) AS k(account_id, key) ON i.account_id = k.account_id AND i.key = k.key`;
const READ_IDS = `SELECT m.id, coalesce(q.state, m.state) AS state, m.expires_at, m.sender FROM mail_request m
    LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id WHERE m.id = ANY($1::uuid[])`;
// Keys are written in order of account and key, so that batches cannot deadlock. A key stored at or before
// `expired_before` has expired and is replaced.
const WRITE_KEYS = `INSERT INTO idempotency AS i (account_id, key, fingerprint, id, at)
    SELECT account_id, key, fingerprint, id, at
    FROM unnest($1::int[], $2::text[], $3::text[], $4::uuid[], $5::bigint[]) AS k(account_id, key, fingerprint, id, at)
    ORDER BY account_id, key
    ON CONFLICT (account_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, id = excluded.id, at = excluded.at
      WHERE i.at <= (SELECT o.expired_before FROM unnest($1::int[], $2::text[], $6::bigint[]) AS o(account_id, key, expired_before)
        WHERE o.account_id = excluded.account_id AND o.key = excluded.key)
    RETURNING 1 AS one`;
const WRITE_MESSAGES = `INSERT INTO mail_request (id, account_id, key_id, state, accepted_at, ended_at, attempts, expires_at, sender, "to", recipient, "from", subject)
    SELECT * FROM unnest($1::uuid[], $2::int[], $3::int[], $4::text[], $5::bigint[], $6::bigint[], $7::int[], $8::bigint[],
      $9::text[], $10::text[], $11::text[], $12::text[], $13::text[])`;
const WRITE_BODIES =
  'INSERT INTO body (id, account_id, message) SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[])';
const WRITE_QUEUE = `INSERT INTO queue (id, account_id, state, lane, due_at, owner, attempts, accepted_at, bytes, expires_at)
    SELECT id, account_id, state, 0, due_at, owner, attempts, accepted_at, bytes, expires_at
    FROM unnest($1::uuid[], $2::int[], $3::text[], $4::bigint[], $5::text[], $6::int[], $7::bigint[], $8::int[], $9::bigint[])
      AS q(id, account_id, state, due_at, owner, attempts, accepted_at, bytes, expires_at)`;
const WRITE_COUNTS = `UPDATE account a SET volume_used = a.volume_used + c.added, rate_used = c.rate_used, rate_window_at = c.rate_window_at
    FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[]) AS c(id, added, rate_used, rate_window_at)
    WHERE a.id = c.id`;
const WRITE_USAGE = `INSERT INTO account_usage AS u (account_id, slot, emails)
    SELECT id, $1::smallint, emails FROM unnest($2::int[], $3::bigint[]) AS c(id, emails) ORDER BY id
    ON CONFLICT (account_id, slot) DO UPDATE SET emails = u.emails + excluded.emails`;

/**
 * For this time after a batch with an unknown result, ids are looked up, because a part of it may be submitted again.
 */
const UNKNOWN_RESULT_MS = 60_000;

/** Has the code of a serialization failure, so that the transaction is retried. */
class ConcurrentChange extends Error {
  readonly code = '40001';
}

interface AcceptContext {
  readonly accounts: ReadonlyMap<number, LimitUsage>;
  readonly volumeUsedBefore: ReadonlyMap<number, number>;
  readonly idempotencyKeys: Map<string, { readonly id: string; readonly fingerprint: string; readonly at: number }>;
  readonly isSuppressed: Awaited<ReturnType<typeof readSuppressions>>;
  readonly storedRows: ReadonlyMap<string, Row>;
  readonly subscribedTypes: number;
}

type AcceptedMessage = NewMessage & Pick<Acceptance, 'state' | 'expiresAt' | 'sender'>;

const KINDS_WITH_STORED_MESSAGE: ReadonlySet<AcceptResult['kind']> = new Set([
  'accepted',
  'replayed',
  'idempotency-conflict',
]);

/** `monotonic` measures the time since the last batch with an unknown result. */
export function prepareAccept(
  database: Database,
  monotonic = SYSTEM_ENVIRONMENT.clock.monotonic,
  requireStandby: (session: Session) => Promise<void> = async () => undefined,
): Store['accept'] {
  let mayBeStoredUntil = 0;

  return async function accept(batch) {
    try {
      return await database.transaction(
        async (transaction) => {
          const mayBeStored = monotonic() < mayBeStoredUntil;
          // `requireStandby` runs in the transaction that accepts the messages, and needs no further round trip.
          const standbyCheck = requireStandby(transaction);
          const [, answers] = await Promise.all([standbyCheck, acceptInTransaction(transaction, batch, mayBeStored)]);
          return answers;
        },
        (session, answers) => areAllMessagesStored(session, batch, answers),
      );
    } catch (error) {
      mayBeStoredUntil = monotonic() + UNKNOWN_RESULT_MS;
      throw error;
    }
  };
}

/** `mayBeStored`: an earlier transaction with an unknown result may have stored messages of the batch. */
export async function acceptInTransaction(
  transaction: Transaction,
  batch: readonly NewMessage[],
  mayBeStored: boolean,
): Promise<readonly AcceptResult[]> {
  const context = await readContext(transaction, batch, mayBeStored);
  const acceptedMessages: AcceptedMessage[] = [];
  const lookups: AcceptanceLookups = {
    findByIdempotencyKey(message) {
      const earlierMessage = context.idempotencyKeys.get(`${message.accountId} ${message.idempotency?.key}`);
      return earlierMessage === undefined || earlierMessage.at <= getIdempotencyExpiryCutoff(message)
        ? null
        : earlierMessage;
    },
    isSuppressed: ({ accountId, recipient, acceptedAt }) => context.isSuppressed(accountId, recipient, acceptedAt),
  };
  const results = batch.map((message): AcceptResult => {
    const counts = context.accounts.get(message.accountId) ?? null;
    const storedRow = context.storedRows.get(message.id);
    if (
      storedRow !== undefined &&
      counts !== null &&
      (counts.account.locked === null || message.keyId === NOTIFICATION_KEY_ID)
    )
      return toStoredResult(storedRow, getRemainingLimits(counts, message.acceptedAt));
    const decision = decideAcceptance(message, counts, lookups);
    if (decision.kind !== 'accepted') return decision;
    acceptedMessages.push({ ...message, ...decision, suppressedBy: decision.suppressedBy ?? null });
    const { accountId, idempotency, id, acceptedAt: at } = message;
    if (idempotency !== null)
      context.idempotencyKeys.set(`${accountId} ${idempotency.key}`, { id, fingerprint: idempotency.fingerprint, at });
    return decision;
  });
  // A result that depends on rows of another transaction requires a durable commit. A transaction without writes must
  // force this commit.
  const isDurable = acceptedMessages.length > 0 || !results.some(({ kind }) => KINDS_WITH_STORED_MESSAGE.has(kind));
  await Promise.all([
    writeAccepted(transaction, acceptedMessages, context),
    isDurable ? undefined : forceDurableCommit(transaction),
  ]);
  return results;
}

async function readContext(
  transaction: Transaction,
  batch: readonly NewMessage[],
  mayBeStored: boolean,
): Promise<AcceptContext> {
  const ids = [...new Set(batch.map(({ accountId }) => accountId))];
  const keyedMessages = batch.flatMap(({ accountId, idempotency }) =>
    idempotency === null ? [] : [{ accountId, ...idempotency }],
  );
  const emptyResult: readonly Row[] = [];
  const [lockedRows, accounts, keys, isSuppressed, storedRows] = await Promise.all([
    transaction.query(LOCK_ACCOUNTS, [ids]),
    transaction.query(READ_ACCOUNTS, [ids]),
    keyedMessages.length === 0
      ? emptyResult
      : transaction.query(
          READ_KEYS,
          toColumns(keyedMessages, ({ accountId, key }) => [accountId, key]),
        ),
    readSuppressions(
      transaction,
      batch.map(({ recipient }) => recipient),
    ),
    mayBeStored ? transaction.query(READ_IDS, [batch.map(({ id }) => id)]) : emptyResult,
  ]);
  const counts = accounts.map((row) => toLimitUsage(rows.toAccount(row)));
  // If this condition is true, the limit was set after `LOCK_ACCOUNTS` and before `READ_ACCOUNTS`. Other transactions
  // already count messages towards the limit, but this transaction has not locked the account.
  const lockedIds = new Set(lockedRows.map((row) => rows.readInteger(row, 'id')));
  if (counts.some(({ account }) => isLimited(account) && !lockedIds.has(account.id)))
    throw new ConcurrentChange('a limit was set on an account after the accounts were locked');
  return {
    accounts: new Map(counts.map((usage) => [usage.account.id, usage])),
    volumeUsedBefore: new Map(counts.map((usage) => [usage.account.id, usage.volumeUsed])),
    idempotencyKeys: new Map(
      keys.map((row) => [
        `${rows.readInteger(row, 'account_id')} ${rows.readText(row, 'key')}`,
        {
          id: rows.readText(row, 'id'),
          fingerprint: rows.readText(row, 'fingerprint'),
          at: rows.readInteger(row, 'at'),
        },
      ]),
    ),
    isSuppressed,
    storedRows: new Map(storedRows.map((row) => [rows.readText(row, 'id'), row])),
    subscribedTypes: accounts[0] === undefined ? 0 : rows.readInteger(accounts[0], 'subscribed'),
  };
}

async function areAllMessagesStored(
  session: Session,
  batch: readonly NewMessage[],
  answers: readonly AcceptResult[],
): Promise<boolean> {
  const acceptedIds = batch.filter((_, index) => answers[index]?.kind === 'accepted').map(({ id }) => id);
  const storedRows = await session.query(READ_IDS, [acceptedIds]);
  return storedRows.length === acceptedIds.length;
}

/** Its response was lost. */
function toStoredResult(row: Row, limits: ReturnType<typeof getRemainingLimits>): AcceptResult {
  const state = rows.readState(row);
  const acceptedState = state === 'sending' || state === 'suppressed' ? state : 'queued';
  return { kind: 'accepted', state: acceptedState, limits, ...rows.readAcceptedMembers(row) };
}

async function writeAccepted(
  transaction: Transaction,
  accepted: readonly AcceptedMessage[],
  context: AcceptContext,
): Promise<void> {
  const statements: Promise<unknown>[] = [];
  // A batch may contain an idempotency key twice if the key expires between the two messages. In this case, the key is
  // stored with the second message.
  const keyedMessages = new Map(
    accepted.flatMap((message) =>
      message.idempotency === null
        ? []
        : [[`${message.accountId} ${message.idempotency.key}`, { ...message, ...message.idempotency }]],
    ),
  );
  if (keyedMessages.size > 0) {
    const keys = [...keyedMessages.values()];
    statements.push(
      transaction
        .query(
          WRITE_KEYS,
          toColumns(keys, (message) => {
            const { accountId, key, fingerprint, id, acceptedAt } = message;
            return [accountId, key, fingerprint, id, acceptedAt, getIdempotencyExpiryCutoff(message)];
          }),
        )
        .then((writtenKeys) => {
          if (writtenKeys.length !== keys.length)
            throw new ConcurrentChange('another transaction has stored the same idempotency key');
        }),
    );
  }
  if (accepted.length > 0) {
    statements.push(
      transaction.query(
        WRITE_MESSAGES,
        toColumns(
          accepted,
          ({ id, accountId, keyId, state, acceptedAt, expiresAt = null, sender, to, recipient, from, subject }) => {
            const ended = state === 'suppressed' ? [state, acceptedAt, acceptedAt, 0] : [null, acceptedAt, null, null];
            return [
              id,
              accountId,
              keyId,
              ...ended,
              expiresAt,
              rows.toSenderColumn(sender),
              to,
              recipient === to ? null : recipient,
              from,
              subject,
            ];
          },
        ),
      ),
      transaction.query(
        WRITE_BODIES,
        toColumns(accepted, ({ id, accountId, message }) => [id, accountId, message]),
      ),
    );
  }
  const queuedMessages = accepted.filter(({ state }) => state !== 'suppressed');
  if (queuedMessages.length > 0) {
    statements.push(
      transaction.query(
        WRITE_QUEUE,
        toColumns(queuedMessages, ({ id, accountId, state, lease, acceptedAt, isHeld, message, expiresAt = null }) => {
          const queuedDueAt = isHeld === true ? toParkedDueTime('hold', acceptedAt) : acceptedAt;
          const leased = lease === null ? [queuedDueAt, null, 0] : [lease.until, lease.owner, 1];
          return [id, accountId, state, ...leased, acceptedAt, Buffer.byteLength(message), expiresAt];
        }),
      ),
    );
  }
  const suppressedMessages = accepted.filter(({ state }) => state === 'suppressed');
  // The next two statements record events. They are sent in this order, so the acceptance is recorded first.
  if (isSubscribed(context.subscribedTypes, 'message.accepted'))
    statements.push(recordAcceptances(transaction, accepted));
  const entries = [
    ...accepted.flatMap((message) =>
      message.resendOf == null ? [] : [{ message, entry: createResendOfEntry(message.resendOf, message.acceptedAt) }],
    ),
    ...suppressedMessages.map((message) => ({
      message,
      entry: createSuppressedEntry(message.acceptedAt, message.suppressedBy ?? 'store'),
    })),
  ];
  statements.push(
    appendEvents(
      transaction,
      entries.map(({ message: { id, accountId, state }, entry }) => ({
        ...entry,
        id,
        accountId,
        state,
      })),
    ),
    writeCounts(transaction, context),
  );
  await Promise.all(statements);
}

async function writeCounts(transaction: Transaction, { accounts, volumeUsedBefore }: AcceptContext): Promise<void> {
  const countAddedMessages = (id: number, { volumeUsed }: LimitUsage) => volumeUsed - (volumeUsedBefore.get(id) ?? 0);
  // Refused messages do not change counts, so a batch of refused messages writes nothing.
  const changedUsages = [...accounts.values()].filter(
    (counts) =>
      countAddedMessages(counts.account.id, counts) > 0 || counts.rateWindowAt !== counts.account.rateWindowAt,
  );
  const limitedAccounts = changedUsages.filter(({ account }) => isLimited(account));
  const unlimitedAccounts = changedUsages.filter(({ account }) => !isLimited(account));
  const statements: Promise<unknown>[] = [];
  if (limitedAccounts.length > 0)
    statements.push(
      transaction.query(
        WRITE_COUNTS,
        toColumns(limitedAccounts, (counts) => {
          const { account, rateUsed, rateWindowAt } = counts;
          return [account.id, countAddedMessages(account.id, counts), rateUsed, rateWindowAt];
        }),
      ),
    );
  if (unlimitedAccounts.length > 0)
    statements.push(
      transaction.query(WRITE_USAGE, [
        transaction.slot,
        unlimitedAccounts.map(({ account }) => account.id),
        unlimitedAccounts.map((counts) => countAddedMessages(counts.account.id, counts)),
      ]),
    );
  await Promise.all(statements);
}

function isLimited({ limits: { volume, rate } }: Account): boolean {
  return volume !== null || rate !== null;
}

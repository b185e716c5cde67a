/** The token buckets that all nodes share. */
import type { TokenGrant, TokenRequest } from '../model/node.ts';
import type { MessageTransaction } from './messages.ts';
import * as rows from './rules/rows.ts';
import * as rules from './rules/token-bucket.ts';
import type { Transaction } from './transaction.ts';

// Rows are inserted first and then locked in order of the account id, so that nodes cannot deadlock. The bucket is
// refilled for the time since its last use, at the old rate. A full bucket stays full under a new limit.
const INSERT_BUCKETS = `INSERT INTO throttle (account_id, tokens, per_second, burst, at)
    SELECT account_id, burst, per_second, burst, coalesce($4::float8, extract(epoch FROM clock_timestamp()) * 1000)
    FROM unnest($1::int[], $2::float8[], $3::int[]) AS r(account_id, per_second, burst) ORDER BY account_id ON CONFLICT DO NOTHING`;
const TAKE_TOKENS = `WITH locked AS MATERIALIZED (
      SELECT t.account_id, r.per_second, r.burst, r.requested, t.tokens, t.per_second AS old_rate, t.burst AS old_burst, t.at,
        coalesce($5::float8, extract(epoch FROM clock_timestamp())::float8 * 1000) AS now
      FROM unnest($1::int[], $2::float8[], $3::int[], $4::int[]) AS r(account_id, per_second, burst, requested)
      JOIN throttle t ON t.account_id = r.account_id ORDER BY t.account_id FOR UPDATE OF t
    ), refilled AS (
      SELECT *, least(old_burst, tokens + greatest(0, now - at) * old_rate / 1000) AS level FROM locked
    ), adjusted AS (
      SELECT *, CASE WHEN level >= old_burst THEN burst ELSE least(level, burst) END AS available FROM refilled
    ), decided AS (
      SELECT *, least(floor(available + 1e-9)::int, requested) AS granted FROM adjusted
    )
    UPDATE throttle t SET tokens = d.available - d.granted, per_second = d.per_second, burst = d.burst, at = d.now
    FROM decided d WHERE t.account_id = d.account_id
    RETURNING t.account_id, d.granted, floor(d.available - d.granted + 1e-9)::int AS left,
      CASE WHEN d.available - d.granted >= 1 THEN 0 ELSE ceil((1 - (d.available - d.granted)) * 1000 / d.per_second)::bigint END AS next_ms`;
/** The commit does not wait for the sync of the WAL, because the loss of recent token counts in a crash is acceptable. */
const DISABLE_SYNC = `SELECT set_config('synchronous_commit', 'off', true)`;

/**
 * The store's time refills the buckets. A new bucket is full. After a change of the limit, a full bucket stays full, and
 * any other keeps its tokens up to the new burst.
 */
export async function takeTokens(
  tx: MessageTransaction,
  batch: readonly TokenRequest[],
  now: number,
): Promise<readonly TokenGrant[]> {
  if (tx.dialect === 'postgres') return takeTokensInOneStatement(tx, batch, tx.getStoreTime(now));
  const grants: TokenGrant[] = [];
  for (const request of batch) {
    const [row] = await tx.query('SELECT * FROM throttle WHERE account_id = $1', [request.accountId]);
    const { bucket, answer } = rules.takeTokens(row === undefined ? null : rows.toTokenBucket(row), request, now);
    await tx.query(
      'INSERT OR REPLACE INTO throttle (account_id, tokens, per_second, burst, at) VALUES ($1, $2, $3, $4, $5)',
      [request.accountId, bucket.tokens, bucket.perSecond, bucket.burst, bucket.at],
    );
    grants.push(answer);
  }
  return grants;
}

/**
 * The statement processes one row per account. Requests of the same account are added up, and the granted tokens are
 * distributed in the order of the requests.
 */
async function takeTokensInOneStatement(
  tx: Transaction,
  batch: readonly TokenRequest[],
  storeTime: number | null,
): Promise<readonly TokenGrant[]> {
  const requestsByAccount = new Map<number, TokenRequest>();
  for (const request of batch)
    requestsByAccount.set(request.accountId, {
      ...request,
      requested: request.requested + (requestsByAccount.get(request.accountId)?.requested ?? 0),
    });
  const requests = [...requestsByAccount.values()];
  const [ids, rates, bursts, counts] = [
    requests.map(({ accountId }) => accountId),
    requests.map(({ perSecond }) => perSecond),
    requests.map(({ burst }) => Math.floor(burst)),
    requests.map(({ requested }) => requested),
  ];
  const [, , grantedRows] = await Promise.all([
    tx.query(DISABLE_SYNC),
    tx.query(INSERT_BUCKETS, [ids, rates, bursts, storeTime]),
    tx.query(TAKE_TOKENS, [ids, rates, bursts, counts, storeTime]),
  ]);
  const grantsByAccount = new Map(
    grantedRows.map((row) => [
      rows.readInteger(row, 'account_id'),
      {
        granted: rows.readInteger(row, 'granted'),
        remaining: rows.readInteger(row, 'left'),
        nextTokenMs: rows.readInteger(row, 'next_ms'),
      },
    ]),
  );
  return batch.map((request): TokenGrant => {
    const grant = grantsByAccount.get(request.accountId);
    if (grant === undefined) return { granted: 0, remaining: 0, nextTokenMs: 1_000 };
    const grantedTokens = Math.min(grant.granted, request.requested);
    grant.granted -= grantedTokens;
    return { ...grant, granted: grantedTokens };
  });
}

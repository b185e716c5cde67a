/** The statements of accepting, each for a whole batch. Arrays of one length are its columns. */
import { ACCOUNTS } from './revision.ts';
import type { Statement } from './session.ts';

/** Only those with a limit: what they have left is then read, and written, by nobody else. */
export const HOLD: Statement = {
  name: 'accept_hold',
  text: `SELECT id FROM account WHERE id = ANY($1::int[]) AND (volume IS NOT NULL OR rate_limit IS NOT NULL)
    ORDER BY id FOR NO KEY UPDATE`,
};
// A statement of its own after the locks: it sees what was committed while they were waited for.
export const READ: Statement = { name: 'accept_read', text: `${ACCOUNTS} WHERE a.id = ANY($1::int[])` };
export const READ_KEYS: Statement = {
  name: 'accept_read_keys',
  text: `SELECT i.account_id, i.key, i.fingerprint, i.id, i.at FROM idempotency i
    JOIN unnest($1::int[], $2::text[]) AS k(account_id, key) ON i.account_id = k.account_id AND i.key = k.key`,
};
export const READ_SUPPRESSIONS: Statement = {
  name: 'accept_suppressions',
  text: 'SELECT recipient, account_id FROM suppression WHERE recipient = ANY($1::text[])',
};
export const READ_IDS: Statement = {
  name: 'accept_read_ids',
  text: `SELECT m.id, coalesce(q.state, m.state) AS state FROM mail_request m
    LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id WHERE m.id = ANY($1::uuid[])`,
};
// In order of the keys, so that no two batches wait for each other in a circle. What was stored up to `over_at` is free again.
export const WRITE_KEYS: Statement = {
  name: 'accept_write_keys',
  text: `INSERT INTO idempotency AS i (account_id, key, fingerprint, id, at)
    SELECT account_id, key, fingerprint, id, at
    FROM unnest($1::int[], $2::text[], $3::text[], $4::uuid[], $5::bigint[]) AS k(account_id, key, fingerprint, id, at)
    ORDER BY account_id, key
    ON CONFLICT (account_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, id = excluded.id, at = excluded.at
      WHERE i.at <= (SELECT o.over_at FROM unnest($1::int[], $2::text[], $6::bigint[]) AS o(account_id, key, over_at)
        WHERE o.account_id = excluded.account_id AND o.key = excluded.key)
    RETURNING 1 AS one`,
};
export const WRITE_MAIL: Statement = {
  name: 'accept_write_mail',
  text: `INSERT INTO mail_request (id, account_id, key_id, state, accepted_at, ended_at, attempts, "to", recipient, "from", subject)
    SELECT * FROM unnest($1::uuid[], $2::int[], $3::int[], $4::text[], $5::bigint[], $6::bigint[], $7::int[], $8::text[],
      $9::text[], $10::text[], $11::text[])`,
};
export const WRITE_BODIES: Statement = {
  name: 'accept_write_bodies',
  text: 'INSERT INTO body (id, account_id, message) SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[])',
};
export const WRITE_QUEUE: Statement = {
  name: 'accept_write_queue',
  text: `INSERT INTO queue (id, account_id, state, lane, due_at, owner, attempts, accepted_at, bytes)
    SELECT id, account_id, state, 0, due_at, owner, attempts, accepted_at, bytes
    FROM unnest($1::uuid[], $2::int[], $3::text[], $4::bigint[], $5::text[], $6::int[], $7::bigint[], $8::int[])
      AS q(id, account_id, state, due_at, owner, attempts, accepted_at, bytes)`,
};
export const WRITE_COUNTS: Statement = {
  name: 'accept_write_counts',
  text: `UPDATE account a SET volume_used = a.volume_used + c.added, rate_used = c.rate_used, rate_window_at = c.rate_window_at
    FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[]) AS c(id, added, rate_used, rate_window_at)
    WHERE a.id = c.id`,
};
export const WRITE_USAGE: Statement = {
  name: 'accept_write_usage',
  text: `INSERT INTO account_usage AS u (account_id, slot, emails)
    SELECT id, $1::smallint, emails FROM unnest($2::int[], $3::bigint[]) AS c(id, emails) ORDER BY id
    ON CONFLICT (account_id, slot) DO UPDATE SET emails = u.emails + excluded.emails`,
};

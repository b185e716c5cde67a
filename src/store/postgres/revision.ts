/**
 * The directory's counter: it grows with every change of an account, a key or a domain, in the order of the commits, since its
 * row stays locked until each is committed.
 */
import * as rows from '../rules/rows.ts';
import type { Session, Statement } from './session.ts';

/** Notified with each change, once it is committed. */
export const CHANNEL = 'postrider_directory';

const BUMP: Statement = {
  name: 'directory_bump',
  text: 'UPDATE postrider SET revision = revision + 1 RETURNING revision',
};
const NOTIFY: Statement = { name: 'directory_notify', text: `SELECT pg_notify('${CHANNEL}', '')` };
/** Accounts with all that was counted for them. */
export const ACCOUNTS = `SELECT a.*, (a.volume_used + coalesce((SELECT sum(u.emails) FROM account_usage u WHERE u.account_id = a.id), 0))::bigint AS volume_used FROM account a`;

/** The next revision, for the rows of this transaction; every node is told once it is committed. */
export async function nextRevision(session: Session): Promise<number> {
  const [[row = {}]] = await Promise.all([session.query(BUMP, []), session.query(NOTIFY, [])]);
  return rows.int(row, 'revision');
}

/** Stores the names of the senders of an account, in the row of the account. */
import type { Account, ChangeResult } from '../model/account.ts';
import type { Actor } from '../model/audit.ts';
import { MAX_SENDERS, type SenderEntry, type SenderName } from '../model/sender.ts';
import { writeAudit } from './audit.ts';
import { selectAccounts } from './directory.ts';
import type { Transaction } from './transaction.ts';
import { incrementRevision } from './transaction.ts';

/** Changes the given members of the entry of the pattern, or adds the entry. `full`: the account has `MAX_SENDERS`. */
export async function setSender(
  tx: Transaction,
  account: string,
  pattern: string,
  change: Partial<SenderName>,
  actor?: Actor,
): Promise<Exclude<ChangeResult<SenderEntry>, { kind: 'exists' }> | { readonly kind: 'full' }> {
  const found = await lockAccount(tx, account);
  if (found === null) return { kind: 'missing' };
  const before = found.senders.find((entry) => entry.pattern === pattern) ?? null;
  if (before === null && found.senders.length >= MAX_SENDERS) return { kind: 'full' };
  const value = { name: null, replyTo: null, ...before, ...change, pattern };
  await writeSenders(tx, found, [...found.senders.filter((entry) => entry !== before), value]);
  await writeAudit(tx, actor, 'sender.set', `${account} ${pattern}`, before, value);
  return { kind: 'done', value };
}

/** Resolves to false if the account has no entry of the pattern. */
export async function removeSender(
  tx: Transaction,
  account: string,
  pattern: string,
  actor?: Actor,
): Promise<Exclude<ChangeResult<boolean>, { kind: 'exists' }>> {
  const found = await lockAccount(tx, account);
  if (found === null) return { kind: 'missing' };
  const before = found.senders.find((entry) => entry.pattern === pattern);
  if (before === undefined) return { kind: 'done', value: false };
  await writeSenders(
    tx,
    found,
    found.senders.filter((entry) => entry !== before),
  );
  await writeAudit(tx, actor, 'sender.remove', `${account} ${pattern}`, before, null);
  return { kind: 'done', value: true };
}

async function lockAccount(tx: Transaction, name: string): Promise<Account | null> {
  await tx.query('SELECT id FROM account WHERE name = $1 FOR NO KEY UPDATE', [name]);
  return (await selectAccounts(tx, 'WHERE a.name = $1', [name]))[0] ?? null;
}

async function writeSenders(tx: Transaction, { id }: Account, senders: readonly SenderEntry[]): Promise<void> {
  const sorted = senders.toSorted((one, other) => (one.pattern < other.pattern ? -1 : 1));
  await tx.query('UPDATE account SET senders = $1, revision = $2 WHERE id = $3', [
    sorted.length === 0 ? null : JSON.stringify(sorted),
    await incrementRevision(tx),
    id,
  ]);
}

/** Formats accounts for the terminal: a table, or one line for each value. Pure. */
import { formatPercent } from '../model/account.ts';
import type { AccountDetails, AccountEntry } from '../operations/accounts/schemas.ts';
import { formatSpan, formatTime } from '../printing/text.ts';
import { type Cell, formatPairs, formatTable } from './text.ts';

/** Returns a table with one row for each account. */
export function accountTable(accounts: readonly AccountEntry[], now: number): string {
  const rows = accounts.map((account) => [
    account.name,
    accountStateCell(account),
    volumeText(account, now),
    rateText(account),
    account.throttle ?? 'none',
  ]);
  return formatTable(['NAME', 'STATE', 'VOLUME', 'RATE', 'THROTTLE'], rows, { truncated: ['VOLUME'] });
}

/** Returns `name value` lines of one account, with the counts of the last 7 days if `account` has them. */
export function accountPairs(account: AccountEntry | AccountDetails, now: number): string {
  const { maxBounces, maxComplaints, warning, reason, lockedAt } = account;
  const locked =
    lockedAt === null ? [] : [['locked', `${formatSpan(now - Date.parse(lockedAt))} ago: ${reason}`] as const];
  return formatPairs([
    ['name', account.name],
    ['state', accountStateCell(account)],
    ...locked,
    ['created', formatTime(Date.parse(account.created))],
    ['volume', volumeText(account, now)],
    ['rate', rateText(account)],
    ['throttle', account.throttle ?? 'none'],
    ['locks at', `${formatPercent(maxBounces)} hard bounces or ${formatPercent(maxComplaints)} complaints`],
    ...('reputation' in account ? [['last 7 days', reputationText(account.reputation)] as const] : []),
    ...(warning === null ? [] : [['warning', { text: warning, style: 'warning' }] as const]),
  ]);
}

function accountStateCell({ state }: AccountEntry): Cell {
  return { text: state, style: state === 'active' ? 'success' : 'error' };
}

function volumeText({ volume, volumeUsed, volumeLeft, volumeExpires }: AccountEntry, now: number): string {
  const count = volume === null ? `unlimited (${volumeUsed} used)` : `${volumeLeft} of ${volume} left`;
  if (volumeExpires === null) return count;
  const at = Date.parse(volumeExpires);
  return at <= now ? `${count}, expired ${formatTime(at)}` : `${count}, until ${formatTime(at)}`;
}

function rateText({ rate, rateLeft }: AccountEntry): string {
  return rate === null ? 'none' : `${rate} (${rateLeft} left)`;
}

function reputationText({ emails, bounces, complaints }: AccountDetails['reputation']): string {
  const countText = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;
  return [countText(emails, 'message'), countText(bounces, 'hard bounce'), countText(complaints, 'complaint')].join(
    ', ',
  );
}

/** Formats accounts for the terminal: a table, or one line for each value. The functions are pure. */
import { formatPercent } from '../model/account.ts';
import type { AccountDetails, AccountEntry } from '../operations/accounts/schemas.ts';
import { formatSpan, formatTime } from '../printing/text.ts';
import { type Cell, formatPairs, formatTable } from './text.ts';

/** Returns a table with one row for each account. */
export function formatAccountTable(accounts: readonly AccountEntry[], now: number): string {
  const rows = accounts.map((account) => [
    account.name,
    createAccountStateCell(account),
    formatVolume(account, now),
    formatRate(account),
    account.throttle ?? 'none',
  ]);
  return formatTable(['NAME', 'STATE', 'VOLUME', 'RATE', 'THROTTLE'], rows, { truncatedHeadings: ['VOLUME'] });
}

/**
 * Returns one line with name and value for each property of the account. If `account` contains the counts of the last 7
 * days, the lines include them.
 */
export function formatAccount(account: AccountEntry | AccountDetails, now: number): string {
  const { maxBounces, maxComplaints, onReputation, warning, reason, lockedAt } = account;
  const lockPairs =
    lockedAt === null ? [] : [['locked', `${formatSpan(now - Date.parse(lockedAt))} ago: ${reason}`] as const];
  return formatPairs([
    ['name', account.name],
    ['state', createAccountStateCell(account)],
    ...lockPairs,
    ['created', formatTime(Date.parse(account.created))],
    ['volume', formatVolume(account, now)],
    ['rate', formatRate(account)],
    ['throttle', account.throttle ?? 'none'],
    [
      onReputation === 'lock' ? 'locks at' : 'warns at',
      `${formatPercent(maxBounces)} hard bounces or ${formatPercent(maxComplaints)} complaints`,
    ],
    ...(account.sesConfigurationSet === null ? [] : [['configuration set', account.sesConfigurationSet] as const]),
    ...('reputation' in account ? [['last 7 days', formatReputation(account.reputation)] as const] : []),
    ...(warning === null ? [] : [['warning', { text: warning, style: 'warning' }] as const]),
  ]);
}

function createAccountStateCell({ state }: AccountEntry): Cell {
  return { text: state, style: state === 'active' ? 'success' : 'error' };
}

function formatVolume({ volume, volumeUsed, volumeLeft, volumeExpires }: AccountEntry, now: number): string {
  const remainingText = volume === null ? `unlimited (${volumeUsed} used)` : `${volumeLeft} of ${volume} left`;
  if (volumeExpires === null) return remainingText;
  const expiresAt = Date.parse(volumeExpires);
  return expiresAt <= now
    ? `${remainingText}, expired ${formatTime(expiresAt)}`
    : `${remainingText}, until ${formatTime(expiresAt)}`;
}

function formatRate({ rate, rateLeft }: AccountEntry): string {
  return rate === null ? 'none' : `${rate} (${rateLeft} left)`;
}

function formatReputation({ emails, bounces, complaints }: AccountDetails['reputation']): string {
  const formatNounCount = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;
  return [
    formatNounCount(emails, 'message'),
    formatNounCount(bounces, 'hard bounce'),
    formatNounCount(complaints, 'complaint'),
  ].join(', ');
}

import type { Command } from 'commander';
import { formatPercent } from '../model/account.ts';
import {
  type AccountDetails,
  type AccountEntry,
  createAccount,
  listAccounts,
  lockAccount,
  setAccount,
  showAccount,
  unlockAccount,
} from '../operations/accounts.ts';
import { createKey, importKey, listKeys, revokeKey, rotateKey } from '../operations/keys.ts';
import { formatSpan, formatTime } from '../printing/text.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { type Cell, formatList, formatPairs, formatTimeText } from './terminal.ts';

const NO_VOLUME = { '--no-volume': { member: 'volume', value: 'unlimited' } } as const;

export function addAccountCommands(program: Command, context: Context): void {
  const group = program.command('account').description('accounts and their limits').helpCommand(false);
  addOperationCommand(group, context, 'create <name>', createAccount, {
    customFlags: LIMIT_FLAGS,
    shorthands: NO_VOLUME,
    formatResult: createChangeFormatter('created'),
  });
  addOperationCommand(group, context, 'set <name>', setAccount, {
    argumentMembers: { name: 'account' },
    customFlags: {
      ...LIMIT_FLAGS,
      maxBounces: '--max-bounces <percent>',
      maxComplaints: '--max-complaints <percent>',
      onReputation: '--on-reputation <lock|warn>',
      sesConfigurationSet: '--ses-configuration-set <set>',
      maxAge: '--max-age <duration>',
      onlyTo: '--only-to <recipients>',
      unknownFields: '--unknown-fields <ignore|refuse>',
      ...EXPECTED_FLAG,
    },
    shorthands: NO_VOLUME,
    formatResult: createChangeFormatter('changed'),
  });
  addOperationCommand(group, context, 'list', listAccounts, {
    formatResult: (accounts, _input, now) =>
      formatList(
        accounts,
        'there are no accounts; create one with `postrider account create NAME`\n',
        {
          NAME: ({ name }) => name,
          STATE: createAccountStateCell,
          VOLUME: (account) => formatVolume(account, now),
          RATE: formatRateLeft,
          THROTTLE: ({ throttle }) => throttle ?? 'none',
        },
        ['VOLUME'],
      ),
  });
  addOperationCommand(group, context, 'show <name>', showAccount, {
    argumentMembers: { name: 'account' },
    formatResult: (account, _input, now) => formatAccount(account, now),
  });
  addOperationCommand(group, context, 'lock <name>', lockAccount, {
    argumentMembers: { name: 'account' },
    customFlags: { reason: '--reason <text>', ...EXPECTED_FLAG },
    formatResult: createChangeFormatter('locked'),
  });
  addOperationCommand(group, context, 'unlock <name>', unlockAccount, {
    argumentMembers: { name: 'account' },
    customFlags: EXPECTED_FLAG,
    formatResult: createChangeFormatter('unlocked'),
  });
}

const LIMIT_FLAGS = {
  volume: '--volume <n>',
  volumeExpires: '--volume-expires <when>',
  rate: '--rate <n/period>',
  throttle: '--throttle <n/s>',
};
const EXPECTED_FLAG = { expected: '--expected <version>' };

function createChangeFormatter(pastParticiple: string) {
  return (account: AccountEntry, _input: unknown, now: number) =>
    `${pastParticiple} account ${account.name}\n\n${formatAccount(account, now)}`;
}

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
    ['rate', formatRateLeft(account)],
    ['throttle', account.throttle ?? 'none'],
    [
      onReputation === 'lock' ? 'locks at' : 'warns at',
      `${formatPercent(maxBounces)} hard bounces or ${formatPercent(maxComplaints)} complaints`,
    ],
    ...(account.sesConfigurationSet === null ? [] : [['configuration set', account.sesConfigurationSet] as const]),
    ...(account.maxAge === null ? [] : [['maximum age', account.maxAge] as const]),
    ...(account.onlyTo === null ? [] : [['only to', account.onlyTo.join(', ')] as const]),
    ...(account.unknownFields === 'ignore' ? [] : [['unknown fields', 'refused'] as const]),
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

function formatRateLeft({ rate, rateLeft }: AccountEntry): string {
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

export function addKeyCommands(program: Command, context: Context): void {
  const group = program.command('key').description('API keys').helpCommand(false);
  addOperationCommand(group, context, 'create <account>', createKey, {
    customFlags: { expires: '--expires <when>' },
    jsonHelp: 'print JSON: {"id","key"}',
    toJsonValue: ({ id, key }) => ({ id, key }),
    formatResult: ({ id, key, expires }, { account }) =>
      `${key}\n\nThis is ${id} of account ${account}. It is shown only once. Expires: ${formatTimeText(expires, 'never')}.\n`,
  });
  addOperationCommand(group, context, 'import <account>', importKey, {
    help: 'import a key that was generated elsewhere; standard input contains the key',
    standardInputMember: 'key',
    customFlags: { expires: '--expires <when>' },
    formatResult: ({ id, prefix, expires }, { account }) =>
      `imported ${id} (${prefix}…) of account ${account}. Expires: ${formatTimeText(expires, 'never')}.\n`,
  });
  addOperationCommand(group, context, 'list <account>', listKeys, {
    formatResult: (keys, { account }) =>
      formatList(
        keys,
        `account ${account} has no keys; create one with \`postrider key create ${account}\`\n`,
        {
          ID: ({ id }) => id,
          NAME: ({ name }) => name,
          KEY: ({ prefix }) => `${prefix}…`,
          STATE: ({ state }) => ({ text: state, style: state === 'active' ? 'success' : 'dimmed' }),
          CREATED: ({ created }) => formatTimeText(created),
          EXPIRES: ({ expires }) => formatTimeText(expires, 'never'),
          'LAST USED': ({ lastUsed }) => formatTimeText(lastUsed, 'never'),
        },
        ['NAME'],
      ),
  });
  addOperationCommand(group, context, 'revoke <id>', revokeKey, {
    argumentMembers: { id: 'key' },
    formatResult: ({ id, prefix }) => `revoked ${id} (${prefix}…)\n`,
  });
  addOperationCommand(group, context, 'rotate <id>', rotateKey, {
    argumentMembers: { id: 'key' },
    customFlags: { grace: '--grace <duration>' },
    jsonHelp: 'print JSON: {"id","key","replaces","until"}',
    formatResult: ({ id, key, replaces, until }) =>
      `${key}\n\nThis is ${id}. It is shown only once. ${replaces} is valid until ${formatTime(Date.parse(until))}.\n`,
  });
}

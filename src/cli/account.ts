/** `postrider account …`: creates, changes, shows, locks and unlocks accounts. */
import type { Command } from 'commander';
import type { AccountEntry } from '../operations/accounts/schemas.ts';
import {
  createAccount,
  listAccounts,
  lockAccount,
  setAccount,
  showAccount,
  unlockAccount,
} from '../operations/accounts.ts';
import { accountPairs, accountTable } from './account-text.ts';
import type { Context } from './context.ts';
import { operationCommand } from './operation-command.ts';

const NO_VOLUME = { '--no-volume': { member: 'volume', value: 'unlimited' } } as const;

/** Adds the commands. */
export function addAccountCommands(program: Command, context: Context): void {
  const group = program.command('account').description('accounts and their limits').helpCommand(false);
  operationCommand(group, context, 'create <name>', createAccount, {
    flags: LIMIT_FLAGS,
    shorthands: NO_VOLUME,
    text: changeText('created'),
  });
  operationCommand(group, context, 'set <name>', setAccount, {
    arguments: { name: 'account' },
    flags: {
      ...LIMIT_FLAGS,
      maxBounces: '--max-bounces <percent>',
      maxComplaints: '--max-complaints <percent>',
      ...EXPECTED_FLAG_HELP,
    },
    shorthands: NO_VOLUME,
    text: changeText('changed'),
  });
  operationCommand(group, context, 'list', listAccounts, {
    text: (accounts, _given, now) =>
      accounts.length === 0
        ? 'there are no accounts; create one with `postrider account create NAME`\n'
        : accountTable(accounts, now),
  });
  operationCommand(group, context, 'show <name>', showAccount, {
    arguments: { name: 'account' },
    text: (account, _given, now) => accountPairs(account, now),
  });
  operationCommand(group, context, 'lock <name>', lockAccount, {
    arguments: { name: 'account' },
    flags: { reason: '--reason <text>', ...EXPECTED_FLAG_HELP },
    text: changeText('locked'),
  });
  operationCommand(group, context, 'unlock <name>', unlockAccount, {
    arguments: { name: 'account' },
    flags: EXPECTED_FLAG_HELP,
    text: changeText('unlocked'),
  });
}

const LIMIT_FLAGS = {
  volume: '--volume <n>',
  volumeExpires: '--volume-expires <when>',
  rate: '--rate <n/period>',
  throttle: '--throttle <n/s>',
};
const EXPECTED_FLAG_HELP = { expected: '--expected <version>' };

function changeText(participle: string) {
  return (account: AccountEntry, _given: unknown, now: number) =>
    `${participle} account ${account.name}\n\n${accountPairs(account, now)}`;
}

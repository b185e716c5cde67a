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
import { formatAccount, formatAccountTable } from './account-text.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';

const NO_VOLUME = { '--no-volume': { member: 'volume', value: 'unlimited' } } as const;

/** Adds `account` and its subcommands to `program`. */
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
      ...EXPECTED_FLAG,
    },
    shorthands: NO_VOLUME,
    formatResult: createChangeFormatter('changed'),
  });
  addOperationCommand(group, context, 'list', listAccounts, {
    formatResult: (accounts, _input, now) =>
      accounts.length === 0
        ? 'there are no accounts; create one with `postrider account create NAME`\n'
        : formatAccountTable(accounts, now),
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

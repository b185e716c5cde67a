import type { Command } from 'commander';
import { listSenders, removeSender, type SenderEntry, setSender } from '../operations/senders.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { formatList } from './terminal.ts';

export function addSenderCommands(program: Command, context: Context): void {
  const group = program.command('sender').description('names of senders and their Reply-To').helpCommand(false);
  addOperationCommand(group, context, 'set <account> <sender>', setSender, {
    customFlags: { name: '--name <text>', replyTo: '--reply-to <address>' },
    formatResult: (entry) => formatSenders([entry]),
  });
  addOperationCommand(group, context, 'list [account]', listSenders, { formatResult: formatSenders });
  addOperationCommand(group, context, 'remove <account> <sender>', removeSender, {
    formatResult: ({ account, sender }) => `removed ${sender} of account ${account}\n`,
  });
}

function formatSenders(entries: readonly SenderEntry[]): string {
  return formatList(
    entries,
    'there are no names of senders; add one with `postrider sender set ACCOUNT ADDRESS --name TEXT`\n',
    {
      ACCOUNT: ({ account }) => account,
      SENDER: ({ sender }) => sender,
      NAME: ({ name }) => name ?? '-',
      'REPLY-TO': ({ replyTo }) => replyTo ?? '-',
    },
    ['NAME'],
  );
}

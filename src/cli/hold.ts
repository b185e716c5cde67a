import type { Command } from 'commander';
import { addHold, type HoldEntry, listHolds, releaseHolds } from '../operations/holds.ts';
import { formatCount } from '../printing/text.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { formatList, formatTimeText } from './terminal.ts';

export function addHoldCommands(program: Command, context: Context): void {
  const group = program
    .command('hold')
    .description('holds, which stop messages without losing them')
    .helpCommand(false);
  addOperationCommand(group, context, 'add', addHold, {
    customFlags: {
      from: '--from <address>',
      to: '--to <address>',
      mailboxProvider: '--mailbox-provider <provider>',
      for: '--for <duration>',
      reason: '--reason <text>',
    },
    formatResult: (hold) =>
      `Hold ${hold.id} stops ${describeMessages(hold)} ${hold.until === null ? `until \`postrider hold release ${hold.id}\`` : `until ${formatTimeText(hold.until)}`}.\n`,
  });
  addOperationCommand(group, context, 'list', listHolds, {
    formatResult: (holds) =>
      formatList(
        holds,
        'There are no holds.\n',
        {
          ID: ({ id }) => String(id),
          STATE: ({ state }) => ({ text: state, style: state === 'active' ? 'warning' : 'dimmed' }),
          HOLDS: describeMessages,
          HELD: ({ held }) => formatCount(held),
          REASON: ({ reason }) => reason,
          CREATED: ({ created }) => formatTimeText(created),
          ENDS: ({ ended, until }) => formatTimeText(ended ?? until, 'at its release'),
        },
        ['HOLDS', 'REASON'],
      ),
  });
  addOperationCommand(group, context, 'release <ids...>', releaseHolds, {
    formatResult: (holds) => holds.map(({ id }) => `Released hold ${id}.\n`).join(''),
  });
}

function describeMessages({ account, from, to, mailboxProvider }: HoldEntry): string {
  const filters = [
    account === null ? null : `of account ${account}`,
    from === null ? null : `from ${from}`,
    to === null ? null : `to ${to}`,
    mailboxProvider === null ? null : `to the mailbox provider ${mailboxProvider}`,
  ].filter((filter) => filter !== null);
  return filters.length === 0 ? 'every message' : `messages ${filters.join(' ')}`;
}

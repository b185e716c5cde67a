/** `postrider key …`. A key is printed only once, by the command that creates it. */
import type { Command } from 'commander';
import { createKey, importKey, listKeys, revokeKey, rotateKey } from '../operations/keys.ts';
import { formatTime } from '../printing/text.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { formatIsoTime, formatList } from './terminal.ts';

export function addKeyCommands(program: Command, context: Context): void {
  const group = program.command('key').description('API keys').helpCommand(false);
  addOperationCommand(group, context, 'create <account>', createKey, {
    customFlags: { expires: '--expires <when>' },
    jsonHelp: 'print JSON: {"id","key"}',
    toJsonValue: ({ id, key }) => ({ id, key }),
    formatResult: ({ id, key, expires }, { account }) =>
      `${key}\n\nThis is ${id} of account ${account}. It is shown only once. Expires: ${formatIsoTime(expires, 'never')}.\n`,
  });
  addOperationCommand(group, context, 'import <account>', importKey, {
    help: 'import a key that was generated elsewhere; standard input contains the key',
    standardInputMember: 'key',
    customFlags: { expires: '--expires <when>' },
    formatResult: ({ id, prefix, expires }, { account }) =>
      `imported ${id} (${prefix}…) of account ${account}. Expires: ${formatIsoTime(expires, 'never')}.\n`,
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
          CREATED: ({ created }) => formatIsoTime(created),
          EXPIRES: ({ expires }) => formatIsoTime(expires, 'never'),
          'LAST USED': ({ lastUsed }) => formatIsoTime(lastUsed, 'never'),
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

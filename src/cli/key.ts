/** `postrider key …`: creates, imports, lists, revokes and rotates API keys. Only the command that creates a key prints it. */
import type { Command } from 'commander';
import type { KeyEntry } from '../operations/keys/schemas.ts';
import { createKey, importKey, listKeys, revokeKey, rotateKey } from '../operations/keys.ts';
import { formatTime } from '../printing/text.ts';
import type { Context } from './context.ts';
import { operationCommand } from './operation-command.ts';
import { type Cell, formatTable, isoText } from './text.ts';

/** Adds the commands. */
export function addKeyCommands(program: Command, context: Context): void {
  const group = program.command('key').description('API keys').helpCommand(false);
  operationCommand(group, context, 'create <account>', createKey, {
    flags: { expires: '--expires <when>' },
    jsonHelp: 'print JSON: {"id","key"}',
    json: ({ id, key }) => ({ id, key }),
    text: ({ id, key, expires }, { account }) =>
      `${key}\n\nThis is ${id} of account ${account}. It is shown only once. Expires: ${isoText(expires, 'never')}.\n`,
  });
  operationCommand(group, context, 'import <account>', importKey, {
    help: 'import a key that was generated elsewhere; standard input contains the key',
    standardInput: 'key',
    flags: { expires: '--expires <when>' },
    text: ({ id, prefix, expires }, { account }) =>
      `imported ${id} (${prefix}…) of account ${account}. Expires: ${isoText(expires, 'never')}.\n`,
  });
  operationCommand(group, context, 'list <account>', listKeys, {
    text: (keys, { account }) =>
      keys.length === 0
        ? `account ${account} has no keys; create one with \`postrider key create ${account}\`\n`
        : keyTable(keys),
  });
  operationCommand(group, context, 'revoke <id>', revokeKey, {
    arguments: { id: 'key' },
    text: ({ id, prefix }) => `revoked ${id} (${prefix}…)\n`,
  });
  operationCommand(group, context, 'rotate <id>', rotateKey, {
    arguments: { id: 'key' },
    flags: { grace: '--grace <duration>' },
    jsonHelp: 'print JSON: {"id","key","replaces","until"}',
    text: ({ id, key, replaces, until }) =>
      `${key}\n\nThis is ${id}. It is shown only once. ${replaces} is valid until ${formatTime(Date.parse(until))}.\n`,
  });
}

function keyTable(keys: readonly KeyEntry[]): string {
  const rows = keys.map(({ id, name, prefix, state, created, expires, lastUsed }): Cell[] => [
    id,
    name,
    `${prefix}…`,
    { text: state, style: state === 'active' ? 'success' : 'dimmed' },
    isoText(created),
    isoText(expires, 'never'),
    isoText(lastUsed, 'never'),
  ]);
  return formatTable(['ID', 'NAME', 'KEY', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED'], rows, { truncated: ['NAME'] });
}

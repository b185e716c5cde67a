import type { Command } from 'commander';
import { listDifferences } from '../model/audit.ts';
import { type AuditRecord, listAudit } from '../operations/audit.ts';
import { createToken, listTokens, revokeToken } from '../operations/tokens.ts';
import { formatSpan, formatTime } from '../printing/text.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { formatList, formatTimeText } from './terminal.ts';

export function addOperatorCommands(program: Command, context: Context): void {
  const group = program.command('token').description('tokens of the operator API').helpCommand(false);
  addOperationCommand(group, context, 'create <name>', createToken, {
    customFlags: { expires: '--expires <when>' },
    jsonHelp: 'print JSON: {"id","token"}',
    toJsonValue: ({ id, token }) => ({ id, token }),
    formatResult: ({ token, expires }, { name }) =>
      `${token}\n\nThis is the token ${name}. It is shown only once. Expires: ${formatTimeText(expires, 'never')}.\n`,
  });
  addOperationCommand(group, context, 'list', listTokens, {
    formatResult: (tokens) =>
      formatList(
        tokens,
        'there are no tokens; create one with `postrider token create NAME`\n',
        {
          ID: ({ id }) => String(id),
          NAME: ({ name }) => name,
          TOKEN: ({ prefix }) => `${prefix}…`,
          STATUS: ({ status }) => ({ text: status, style: status === 'works' ? 'success' : 'dimmed' }),
          SCOPE: ({ scope }) => scope,
          CREATED: ({ created }) => formatTimeText(created),
          EXPIRES: ({ expires }) => formatTimeText(expires, 'never'),
          'LAST USED': ({ lastUsed }) => formatTimeText(lastUsed, 'never'),
        },
        ['NAME'],
      ),
  });
  addOperationCommand(group, context, 'revoke <id>', revokeToken, {
    formatResult: ({ name }) => `revoked the token ${name}\n`,
  });
  addOperationCommand(program, context, 'audit', listAudit, {
    customFlags: { limit: '--limit <n>', before: '--before <id>' },
    formatResult: (entries) =>
      formatList(
        entries,
        'the audit log is empty\n',
        {
          ID: ({ id }) => String(id),
          AT: ({ at }) => formatTimeText(at),
          ACTOR: ({ actor }) => actor,
          ACTION: ({ action }) => action,
          TARGET: ({ target }) => target,
          'BEFORE → AFTER': formatChange,
        },
        ['TARGET', 'BEFORE → AFTER'],
      ),
  });
}

function formatChange({ before, after }: AuditRecord): string {
  const differences = listDifferences(before, after, { formatTime, formatDuration: formatSpan });
  const changeText = differences.map((difference) => {
    const afterText = difference.after ?? 'none';
    return `${difference.member}: ${before === null ? afterText : `${difference.before ?? 'none'} → ${afterText}`}`;
  });
  return changeText.join('; ');
}

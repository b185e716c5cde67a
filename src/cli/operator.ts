/** `postrider token …` and `postrider audit` */
import type { Command } from 'commander';
import { listDifferences } from '../model/audit.ts';
import { type AuditRecord, listAudit } from '../operations/audit.ts';
import { createToken, listTokens, revokeToken, type TokenEntry } from '../operations/tokens.ts';
import { formatSpan, formatTime } from '../printing/text.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { type Cell, formatIsoTime, formatTable } from './terminal.ts';

export function addOperatorCommands(program: Command, context: Context): void {
  const group = program.command('token').description('tokens of the operator API').helpCommand(false);
  addOperationCommand(group, context, 'create <name>', createToken, {
    customFlags: { expires: '--expires <when>' },
    jsonHelp: 'print JSON: {"id","token"}',
    toJsonValue: ({ id, token }) => ({ id, token }),
    formatResult: ({ token, expires }, { name }) =>
      `${token}\n\nThis is the token ${name}. It is shown only once. Expires: ${formatIsoTime(expires, 'never')}.\n`,
  });
  addOperationCommand(group, context, 'list', listTokens, {
    formatResult: (tokens) =>
      tokens.length === 0
        ? 'there are no tokens; create one with `postrider token create NAME`\n'
        : formatTokenTable(tokens),
  });
  addOperationCommand(group, context, 'revoke <id>', revokeToken, {
    formatResult: ({ name }) => `revoked the token ${name}\n`,
  });
  addOperationCommand(program, context, 'audit', listAudit, {
    customFlags: { limit: '--limit <n>', before: '--before <id>' },
    formatResult: (entries) =>
      entries.length === 0
        ? 'the audit log is empty\n'
        : formatTable(['ID', 'AT', 'ACTOR', 'ACTION', 'TARGET', 'BEFORE → AFTER'], entries.map(formatAuditRow), {
            truncatedHeadings: ['TARGET', 'BEFORE → AFTER'],
          }),
  });
}

function formatTokenTable(tokens: readonly TokenEntry[]): string {
  const rows = tokens.map(({ id, name, prefix, status, scope, created, expires, lastUsed }): Cell[] => [
    String(id),
    name,
    `${prefix}…`,
    { text: status, style: status === 'works' ? 'success' : 'dimmed' },
    scope,
    formatIsoTime(created),
    formatIsoTime(expires, 'never'),
    formatIsoTime(lastUsed, 'never'),
  ]);
  return formatTable(['ID', 'NAME', 'TOKEN', 'STATUS', 'SCOPE', 'CREATED', 'EXPIRES', 'LAST USED'], rows, {
    truncatedHeadings: ['NAME'],
  });
}

function formatAuditRow({ id, at, actor, action, target, before, after }: AuditRecord): Cell[] {
  const differences = listDifferences(before, after, { formatTime, formatDuration: formatSpan });
  const changeText = differences.map((difference) => {
    const afterText = difference.after ?? 'none';
    return `${difference.member}: ${before === null ? afterText : `${difference.before ?? 'none'} → ${afterText}`}`;
  });
  return [String(id), formatIsoTime(at), actor, action, target, changeText.join('; ')];
}

/** `postrider token …` and `postrider audit`: tokens of the operator API, and the audit log. */
import type { Command } from 'commander';
import { listDifferences } from '../model/audit.ts';
import type { AuditRecord } from '../operations/audit/schemas.ts';
import { listAudit } from '../operations/audit.ts';
import { createToken, listTokens, revokeToken, type TokenEntry } from '../operations/tokens.ts';
import { formatSpan, formatTime } from '../printing/text.ts';
import type { Context } from './context.ts';
import { operationCommand } from './operation-command.ts';
import { type Cell, formatTable, isoText } from './text.ts';

/** Adds the commands. */
export function addOperatorCommands(program: Command, context: Context): void {
  const group = program.command('token').description('tokens for the operator API').helpCommand(false);
  operationCommand(group, context, 'create <name>', createToken, {
    flags: { readOnly: '--read-only', expires: '--expires <when>' },
    jsonHelp: 'print JSON: {"id","token"}',
    json: ({ id, token }) => ({ id, token }),
    text: ({ token, expires }, { name }) =>
      `${token}\n\nThis is the token ${name}. It is shown only once. Expires: ${isoText(expires, 'never')}.\n`,
  });
  operationCommand(group, context, 'list', listTokens, {
    text: (tokens) =>
      tokens.length === 0 ? 'there are no tokens; create one with `postrider token create NAME`\n' : tokenTable(tokens),
  });
  operationCommand(group, context, 'revoke <id>', revokeToken, { text: ({ name }) => `revoked the token ${name}\n` });
  operationCommand(program, context, 'audit', listAudit, {
    flags: { limit: '--limit <n>', before: '--before <id>' },
    text: (entries) =>
      entries.length === 0
        ? 'the audit log is empty\n'
        : formatTable(['ID', 'AT', 'ACTOR', 'ACTION', 'TARGET', 'BEFORE → AFTER'], entries.map(auditRow), {
            truncated: ['TARGET', 'BEFORE → AFTER'],
          }),
  });
}

function tokenTable(tokens: readonly TokenEntry[]): string {
  const rows = tokens.map(({ id, name, prefix, status, readOnly, created, expires, lastUsed }): Cell[] => [
    String(id),
    name,
    `${prefix}…`,
    { text: status, style: status === 'works' ? 'success' : 'dimmed' },
    readOnly ? 'read' : 'all',
    isoText(created),
    isoText(expires, 'never'),
    isoText(lastUsed, 'never'),
  ]);
  return formatTable(['ID', 'NAME', 'TOKEN', 'STATUS', 'ACCESS', 'CREATED', 'EXPIRES', 'LAST USED'], rows, {
    truncated: ['NAME'],
  });
}

function auditRow({ id, at, actor, action, target, before, after }: AuditRecord): Cell[] {
  const lines = listDifferences(before, after, { time: formatTime, duration: formatSpan });
  const change = lines.map((line) => {
    const now = line.after ?? 'none';
    return `${line.member}: ${before === null ? now : `${line.before ?? 'none'} → ${now}`}`;
  });
  return [String(id), isoText(at), actor, action, target, change.join('; ')];
}

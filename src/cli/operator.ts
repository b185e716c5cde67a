/** `postrider token …` and `postrider audit`: tokens of operators' scripts, and who changed what. */
import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { isoTime, MOST_INT, parseCount, parseMoment, quote } from '../config/units.ts';
import type { OperatorToken } from '../model/account.ts';
import type { AuditEntry } from '../model/audit.ts';
import { difference } from '../model/audit-difference.ts';
import { newToken } from '../model/operator-token.ts';
import { span, time, timeOr } from '../printing/text.ts';
import { checkText } from './account.ts';
import type { Context } from './context.ts';
import { CommandFailure, flagValue } from './failure.ts';
import { type Cell, table } from './text.ts';

const MOST_LISTED = 100_000;

/** Adds the commands. */
export function addOperatorCommands(program: Command, context: Context): void {
  const group = program.command('token').description('tokens for scripts of operators').helpCommand(false);
  const create = group
    .command('create <name>')
    .description('make a token for the operator API and print it, this once');
  create
    .option('--expires <when>', 'date (UTC) or 90d; never unless given')
    .option('--json', 'for machines: {"id","token"}');
  create.action(async (name: string, flags: { expires?: string; json?: boolean }) => {
    checkText('the name', name, 64);
    const now = context.clock.now();
    const expiresAt =
      flags.expires === undefined ? null : flagValue('--expires', parseMoment(flags.expires, now, 'ahead'));
    const { token, prefix, hash } = newToken(randomBytes);
    const made = await context.withStore((store) => store.createToken({ name, prefix, hash, expiresAt }, now));
    if (made.kind !== 'done') {
      throw new CommandFailure(`there is a token ${quote(name)} already; revoke it first, or choose another name`);
    }
    if (flags.json) context.json({ id: made.value.id, token });
    else
      context.out(
        `${token}\n\nThis is the token ${name}. It is shown only now; expires: ${timeOr(expiresAt, 'never')}.\n`,
      );
  });

  const list = group.command('list').description('list them').option('--json', 'for machines');
  list.action(async (flags: { json?: boolean }) => {
    const tokens = await context.withStore((store) => store.listTokens());
    const now = context.clock.now();
    if (flags.json) context.json(tokens.map((token) => tokenJson(token, now)));
    else if (tokens.length === 0) context.out('there are no tokens; make one with `postrider token create NAME`\n');
    else
      context.out(
        table(
          ['ID', 'NAME', 'TOKEN', 'STATUS', 'MADE', 'EXPIRES', 'LAST USED'],
          tokens.map((one) => tokenRow(one, now)),
        ),
      );
  });

  const revoke = group
    .command('revoke <id>')
    .description('refuse a token from now on')
    .option('--json', 'for machines');
  revoke.action(async (text: string, flags: { json?: boolean }) => {
    const id = parseCount(text, 1, MOST_INT);
    if (!id.ok)
      throw new CommandFailure(`${quote(text)} is not the number of a token; \`postrider token list\` shows them`, 2);
    const now = context.clock.now();
    const revoked = await context.withStore((store) => store.revokeToken(id.value, now));
    if (revoked.kind !== 'done')
      throw new CommandFailure(`there is no token ${id.value}; \`postrider token list\` shows them`);
    const { name, revokedAt } = revoked.value;
    if (flags.json) context.json({ id: id.value, name, revoked: isoTime(revokedAt ?? now) });
    else context.out(`revoked the token ${name}\n`);
  });

  const audit = program.command('audit').description('who changed what, the newest first');
  audit
    .option('--limit <n>', 'at most so many', '50')
    .option('--before <id>', 'older than this one')
    .option('--json', 'for machines');
  audit.action(async (flags: { limit: string; before?: string; json?: boolean }) => {
    const limit = flagValue('--limit', parseCount(flags.limit, 1, MOST_LISTED));
    const before =
      flags.before === undefined ? null : flagValue('--before', parseCount(flags.before, 1, Number.MAX_SAFE_INTEGER));
    const entries = await context.withStore((store) => store.listAudit(before, limit));
    if (flags.json) context.json(entries.map(auditJson));
    else if (entries.length === 0) context.out('nothing has been changed by an operator\n');
    else context.out(table(['ID', 'AT', 'WHO', 'WHAT', 'OF', 'BEFORE → AFTER'], entries.map(auditRow)));
  });
}

function statusOf({ revokedAt, expiresAt }: OperatorToken, now: number): 'works' | 'revoked' | 'expired' {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'works';
}

function tokenRow(token: OperatorToken, now: number): Cell[] {
  const { id, name, prefix, createdAt, expiresAt, lastUsedAt } = token;
  const status = statusOf(token, now);
  const shown: Cell = { text: status, style: status === 'works' ? 'good' : 'quiet' };
  return [
    String(id),
    name,
    `${prefix}…`,
    shown,
    time(createdAt),
    timeOr(expiresAt, 'never'),
    timeOr(lastUsedAt, 'never'),
  ];
}

function tokenJson(token: OperatorToken, now: number) {
  const { id, name, prefix, createdAt, expiresAt, lastUsedAt } = token;
  const maybe = (at: number | null) => (at === null ? null : isoTime(at));
  return {
    id,
    name,
    prefix,
    status: statusOf(token, now),
    created: isoTime(createdAt),
    expires: maybe(expiresAt),
    lastUsed: maybe(lastUsedAt),
  };
}

function auditRow({ id, at, who, action, subject, before, after }: AuditEntry): Cell[] {
  const lines = difference(parsed(before), parsed(after), { time, span });
  const change = lines.map((line) => {
    const now = line.after ?? 'none';
    return `${line.member}: ${before === null ? now : `${line.before ?? 'none'} → ${now}`}`;
  });
  return [String(id), time(at), who, action, subject, change.join('; ')];
}

function parsed(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
}

function auditJson({ id, at, who, action, subject, before, after }: AuditEntry) {
  return { id, at: isoTime(at), who, action, subject, before: parsed(before), after: parsed(after) };
}

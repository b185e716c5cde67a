import type { Static } from 'typebox';
import type { AuditEntry } from '../model/audit.ts';
import { formatIsoTime } from '../printing/text.ts';
import { ok } from './errors.ts';
import { readMatches, splitList } from './input.ts';
import { defineOperation, reads } from './operation.ts';
import { createPageSizeMember, Time, Type } from './schemas.ts';

export const AuditRecord = Type.Object({
  id: Type.Integer(),
  at: Time,
  actor: Type.String('`cli:NAME` for a command, `page` for the dashboard, `token:NAME` for a token.'),
  action: Type.String('The operation, such as `account.lock`.'),
  target: Type.String('The changed object: an account, a key, a domain, an address.'),
  before: Type.Unknown('The state before the change; null for a new object.'),
  after: Type.Unknown('The state after the change; null for a removed object.'),
});
export type AuditRecord = Static<typeof AuditRecord>;

/** With a filter, the operation examines the newest 20,000 entries that are older than `before`. */
export const listAudit = defineOperation({
  name: 'audit.list',
  id: 'listAudit',
  summary: 'List the audit log, newest entry first; a filter examines the newest 20,000 entries',
  ...reads('operator'),
  input: Type.Object({
    limit: createPageSizeMember(100_000),
    before: Type.Optional(
      Type.Integer({ minimum: 1, description: 'The last id of the previous page; lists older entries.' }),
    ),
    action: Type.OptionalString(
      'Entries of this action, such as `account.lock`, or of all actions on one type of object, such as `account`. Commas separate several actions.',
    ),
    actor: Type.OptionalString('Entries of this actor, such as `page` or `token:ci`. Commas separate several actors.'),
    target: Type.OptionalString('Entries whose target contains this text, without regard to case.'),
  }),
  result: Type.Array(AuditRecord),
  async run({ limit: pageSize, before, action, actor, target = '' }, { store }) {
    const [actions, actors, text] = [splitList(action), splitList(actor), target.trim().toLowerCase()];
    if (actions.length + actors.length === 0 && text === '')
      return ok((await store.listAudit(before ?? null, pageSize)).map(toAuditRecord));
    const { rows } = await readMatches<AuditEntry>(
      (last, limit) => store.listAudit(last?.id ?? before ?? null, limit),
      (entry) =>
        (actions.length === 0 || actions.some((name) => isActionOf(entry.action, name))) &&
        (actors.length === 0 || actors.includes(entry.actor)) &&
        entry.target.toLowerCase().includes(text),
      pageSize,
    );
    return ok(rows.slice(0, pageSize).map(toAuditRecord));
  },
});

function isActionOf(action: string, name: string): boolean {
  return action === name || action.startsWith(`${name}.`);
}

function toAuditRecord({ id, at, actor, action, target, before, after }: AuditEntry): AuditRecord {
  return {
    id,
    at: formatIsoTime(at),
    actor,
    action,
    target,
    before: parseJson(before),
    after: parseJson(after),
  };
}

function parseJson(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
}

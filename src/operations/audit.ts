/**
 * The operation on the audit log, which lists the actor, the action, the target, and the values before and after each
 * change.
 */

import { formatIsoTime } from '../config/units.ts';
import type { AuditEntry } from '../model/audit.ts';
import { Type } from '../model/schema.ts';
import { AuditRecord } from './audit/schemas.ts';
import { ok } from './errors.ts';
import { operation } from './operation.ts';
import { createPageSizeMember } from './schemas.ts';

/** Lists one page of the audit log, newest entry first. */
export const listAudit = operation({
  name: 'audit.list',
  id: 'listAudit',
  summary: 'List the audit log, newest entry first',
  changes: false,
  input: Type.Object({
    limit: createPageSizeMember(100_000),
    before: Type.Optional(
      Type.Integer({ minimum: 1, description: 'The last id of the previous page; lists older entries.' }),
    ),
  }),
  result: Type.Array(AuditRecord),
  errors: [],
  async run({ limit: pageSize, before }, { store }) {
    const entries = await store.listAudit(before ?? null, pageSize);
    return ok(entries.map(toAuditRecord));
  },
});

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

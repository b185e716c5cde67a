/** The audit log: who changed what, and how it was before and after. */

import { isoTime } from '../config/units.ts';
import type { AuditEntry } from '../model/audit.ts';
import { Type } from '../model/schema.ts';
import { AuditRecord } from './audit/schemas.ts';
import { ok } from './errors.ts';
import { operation } from './operation.ts';
import { limit } from './schemas.ts';

/** One page of the audit log, the newest entry first. */
export const listAudit = operation({
  name: 'audit.list',
  id: 'listAudit',
  summary: 'Show who changed what, the newest first',
  changes: false,
  input: Type.Object({
    limit: limit(100_000),
    before: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Older than this one: the last id of the page before.' }),
    ),
  }),
  result: Type.Array(AuditRecord),
  errors: [],
  async run({ limit: size, before }, { store }) {
    const entries = await store.listAudit(before ?? null, size);
    return ok(entries.map(auditRecord));
  },
});

function auditRecord({ id, at, who, action, subject, before, after }: AuditEntry): AuditRecord {
  return { id, at: isoTime(at), actor: who, action, target: subject, before: parsed(before), after: parsed(after) };
}

function parsed(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
}

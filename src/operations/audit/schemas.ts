/**
 * The schema of an audit log entry in commands and the API. The file imports no module of Node, because the dashboard
 * imports the type.
 */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { Time } from '../schemas.ts';

export const AuditRecord = Type.Object({
  id: Type.Integer(),
  at: Time,
  actor: Type.String({ description: '`cli:NAME` for a command, `page` for the dashboard, `token:NAME` for a token.' }),
  action: Type.String({ description: 'The operation, such as `account.lock`.' }),
  target: Type.String({ description: 'The changed object: an account, a key, a domain, an address.' }),
  before: Type.Unknown({ description: 'The state before the change; null for a new object.' }),
  after: Type.Unknown({ description: 'The state after the change; null for a removed object.' }),
});
export type AuditRecord = Static<typeof AuditRecord>;

/** An entry of the audit log as commands and API show it. Free of Node, so that the dashboard takes its type from here. */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { Time } from '../schemas.ts';

export const AuditRecord = Type.Object({
  id: Type.Integer(),
  at: Time,
  actor: Type.String({ description: '`cli:NAME` of a command, `page` of the dashboard, `token:NAME` of a script.' }),
  action: Type.String({ description: 'The operation, such as `account.lock`.' }),
  target: Type.String({ description: 'What was changed: an account, a key, a domain, an address.' }),
  before: Type.Unknown({ description: 'As it was; null where there was nothing.' }),
  after: Type.Unknown({ description: 'As it is; null where there is nothing left.' }),
});
export type AuditRecord = Static<typeof AuditRecord>;

/**
 * The schemas that commands and the API use for feedback reports that were not understood. The file imports no module
 * of Node, because the dashboard imports the types.
 */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { createNullable, Time } from '../schemas.ts';

const reportMembers = {
  id: Type.Integer(),
  at: Time,
  source: Type.String({ description: 'The source of the report: `smtp`, `sns`, `sqs` or the name of a provider.' }),
  message: createNullable(Type.String({ format: 'uuid', description: 'The id of the message that the report names.' })),
  reason: Type.String({ description: 'The reason why the report was stored.' }),
  summary: Type.String(),
};
export const ReportSummary = Type.Object(reportMembers);
export type ReportSummary = Static<typeof ReportSummary>;

export const ReportDetails = Type.Object({
  ...reportMembers,
  raw: Type.String({ description: 'The report, decoded as UTF-8. Untrusted.' }),
});
export type ReportDetails = Static<typeof ReportDetails>;

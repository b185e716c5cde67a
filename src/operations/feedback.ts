import type { Static } from 'typebox';
import type { UnprocessedReport } from '../model/feedback.ts';
import { formatIsoTime } from '../printing/text.ts';
import { createNotFound, ok } from './errors.ts';
import { defineOperation, reads, readsContent } from './operation.ts';
import { createPageSizeMember, createRowNumber, Time, Type } from './schemas.ts';

const reportMembers = {
  id: Type.Integer(),
  at: Time,
  source: Type.String('The source of the report: `smtp`, `sns`, `sqs` or the name of a provider.'),
  message: Type.NullableUuid('The id of the message that the report names.'),
  reason: Type.String('The reason why the report was stored.'),
  summary: Type.String(),
};
export const ReportSummary = Type.Object(reportMembers);
export type ReportSummary = Static<typeof ReportSummary>;

export const ReportDetails = Type.Object({
  ...reportMembers,
  raw: Type.String('The report, decoded as UTF-8. Untrusted.'),
});
export type ReportDetails = Static<typeof ReportDetails>;

const MAX_PAGE_SIZE = 10_000;
const INVALID_ID_FAULT = 'is not the number of a report; `postrider feedback list` lists reports';

export const listFeedback = defineOperation({
  name: 'feedback.list',
  id: 'listFeedback',
  summary: 'List the reports that were not understood, newest first',
  ...reads('viewer'),
  input: Type.Object({
    before: Type.Optional(
      createRowNumber(
        'The last id of the previous page. The list contains only older reports.',
        INVALID_ID_FAULT,
        Number.MAX_SAFE_INTEGER,
      ),
    ),
    limit: createPageSizeMember(MAX_PAGE_SIZE),
  }),
  result: Type.Array(ReportSummary),
  run: async ({ before, limit: pageSize }, { store }) =>
    ok((await store.listFeedback(before ?? null, pageSize)).map(toReportSummary)),
});

export const showFeedback = defineOperation({
  name: 'feedback.show',
  id: 'findFeedback',
  summary: 'Show a report as it was received',
  ...readsContent('support'),
  input: Type.Object({ id: createRowNumber('The number of the report.', INVALID_ID_FAULT, Number.MAX_SAFE_INTEGER) }),
  result: ReportDetails,
  errors: ['not-found'],
  async run({ id }, { store }) {
    const report = await store.findFeedback(id);
    if (report === null)
      return createNotFound('id', `there is no report ${id}; \`postrider feedback list\` lists reports`);
    return ok({ ...toReportSummary(report), raw: Buffer.from(report.raw).toString('utf8') });
  },
});

function toReportSummary({ id, at, source, messageId, reason, summary }: UnprocessedReport): ReportSummary {
  return { id, at: formatIsoTime(at), source, message: messageId, reason, summary };
}

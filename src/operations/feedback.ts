/** The operations on stored feedback reports: those that were not understood and those that name no known message. */
import { formatIsoTime } from '../config/units.ts';
import type { UnprocessedReport } from '../model/feedback.ts';
import { Type } from '../model/schema.ts';
import { createNotFound, ok } from './errors.ts';
import { ReportDetails, ReportSummary } from './feedback/schemas.ts';
import { defineOperation } from './operation.ts';
import { createPageSizeMember, createRowNumber } from './schemas.ts';

const MAX_PAGE_SIZE = 10_000;
const INVALID_ID_FAULT = 'is not the number of a report; `postrider feedback list` lists reports';

export const listFeedback = defineOperation({
  name: 'feedback.list',
  id: 'listFeedback',
  summary: 'List the reports that were not understood, newest first',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
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
  errors: [],
  run: async ({ before, limit: pageSize }, { store }) =>
    ok((await store.listFeedback(before ?? null, pageSize)).map(toReportSummary)),
});

export const showFeedback = defineOperation({
  name: 'feedback.show',
  id: 'findFeedback',
  summary: 'Show a report as it was received',
  makesChange: false,
  role: 'support',
  readsContent: true,
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

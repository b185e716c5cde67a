/** Feedback reports that were kept: those that were not understood, or are about no known message. */
import type { Static } from 'typebox';
import { isoTime } from '../config/units.ts';
import type { UnprocessedReport } from '../model/feedback.ts';
import { Type } from '../model/schema.ts';
import { notFound, ok } from './errors.ts';
import { operation } from './operation.ts';
import { limit, nullable, rowNumber, Time } from './schemas.ts';

const MAX_LISTED = 10_000;
const NO_NUMBER = 'is not the number of a report; `postrider feedback list` shows them';

const reportMembers = {
  id: Type.Integer(),
  at: Time,
  source: Type.String({ description: 'The listener that received it: `smtp`, `sns`, `sqs`.' }),
  message: nullable(Type.String({ format: 'uuid', description: 'The id of the message that it names.' })),
  reason: Type.String({ description: 'Why it was kept.' }),
  summary: Type.String(),
};
export const ReportSummary = Type.Object(reportMembers);
export type ReportSummary = Static<typeof ReportSummary>;

export const listFeedback = operation({
  name: 'feedback.list',
  id: 'listFeedback',
  summary: 'List the reports that were not understood, newest first',
  changes: false,
  input: Type.Object({
    before: Type.Optional(
      rowNumber('Older than this one: the last id of the previous page.', NO_NUMBER, Number.MAX_SAFE_INTEGER),
    ),
    limit: limit(MAX_LISTED),
  }),
  result: Type.Array(ReportSummary),
  errors: [],
  run: async ({ before, limit: size }, { store }) =>
    ok((await store.listFeedback(before ?? null, size)).map(summaryOf)),
});

export const showFeedback = operation({
  name: 'feedback.show',
  id: 'findFeedback',
  summary: 'Show a report as it was received',
  changes: false,
  input: Type.Object({ id: rowNumber('The report’s number.', NO_NUMBER, Number.MAX_SAFE_INTEGER) }),
  result: Type.Object({ ...reportMembers, raw: Type.String({ description: 'The report, read as UTF-8. Untrusted.' }) }),
  errors: ['not-found'],
  async run({ id }, { store }) {
    const found = await store.findFeedback(id);
    if (found === null) return notFound('id', `there is no kept report ${id}; \`postrider feedback list\` shows them`);
    return ok({ ...summaryOf(found), raw: Buffer.from(found.raw).toString('utf8') });
  },
});

export type FeedbackReport = Static<typeof showFeedback.result>;

function summaryOf({ id, at, source, messageId: mailId, reason, summary }: UnprocessedReport): ReportSummary {
  return { id, at: isoTime(at), source, message: mailId, reason, summary };
}

/**
 * The reports of provider events as one text: copying a text between threads takes a fraction of the time of copying
 * objects (docs/decisions/provider-events.md). Pure.
 */
import type { FeedbackReport } from './feedback.ts';

export interface PackedReports {
  readonly count: number;
  readonly text: string;
}

const COMMON_MEMBERS = { raw: new Uint8Array(), isFinal: false, isProviderEvent: true } as const;

export function packReports(reports: readonly FeedbackReport[]): PackedReports {
  const text = JSON.stringify(
    reports.map(({ messageRef, events, source, digest, at, summary, recordsDigestAlways }) => {
      return { messageRef, events, source, digest, at, summary, recordsDigestAlways };
    }),
  );
  return { count: reports.length, text };
}

export function unpackReports({ text }: PackedReports): readonly FeedbackReport[] {
  const reports = JSON.parse(text) as readonly Omit<FeedbackReport, keyof typeof COMMON_MEMBERS>[];
  return reports.map((report) => ({ ...report, ...COMMON_MEMBERS }));
}

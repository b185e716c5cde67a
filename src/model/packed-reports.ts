/**
 * Packs the reports of provider events as one text. Copying a text from one thread to another takes a fraction of the
 * time of copying the objects (docs/decisions/provider-events.md). The functions are pure.
 */
import type { FeedbackReport } from './feedback.ts';

/** The reports of provider events as one text, in the order of the events. */
export interface PackedReports {
  readonly count: number;
  readonly text: string;
}

/** The members that all reports of provider events have in common. */
const COMMON_MEMBERS = { raw: new Uint8Array(), isFinal: false, isProviderEvent: true } as const;

/** Packs reports of provider events, whose `isProviderEvent` is true. Such reports have no received content (`raw`). */
export function packReports(reports: readonly FeedbackReport[]): PackedReports {
  const text = JSON.stringify(
    reports.map(({ messageRef, events, source, digest, at, summary, recordsDigestAlways }) => {
      return { messageRef, events, source, digest, at, summary, recordsDigestAlways };
    }),
  );
  return { count: reports.length, text };
}

/** Returns the reports that `packReports` packed. */
export function unpackReports({ text }: PackedReports): readonly FeedbackReport[] {
  const reports = JSON.parse(text) as readonly Omit<FeedbackReport, keyof typeof COMMON_MEMBERS>[];
  return reports.map((report) => ({ ...report, ...COMMON_MEMBERS }));
}

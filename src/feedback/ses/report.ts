/** An event of Amazon SES as the report that goes into the store, and the way there that SNS and SQS share. */
import { createHash } from 'node:crypto';
import type { FeedbackReport, FeedbackSource } from '../../model/feedback.ts';
import type { RecordResult } from '../intake.ts';
import { readSesEvent } from './events.ts';

const KEPT_BYTES = 65_536;

/** Null where there is nothing to record. `isFinal`: the sender will not ask again. */
export function createSesReport(
  text: string,
  { source, now, isFinal }: { readonly source: FeedbackSource; readonly now: number; readonly isFinal: boolean },
): FeedbackReport | null {
  const event = readSesEvent(text);
  switch (event.kind) {
    case 'nothing':
      return null;
    case 'notice': {
      const { reference, messageId: mailId, unrelated: foreign, key, notices } = event;
      const summary = `Amazon SES about ${reference}`;
      // The tag is there also where the provider's answer, and with it its id, was lost.
      const about = mailId === null ? { reference } : { id: mailId };
      const report = { about, notices, source, digest: digestOf(key), at: now, summary, raw: kept(text), isFinal };
      return foreign ? { ...report, mayBeOtherProgram: foreign } : report;
    }
    case 'unknown':
      return createUnknownReport(text, event.reason, { source, now });
  }
}

/** What is no event of ours, for the operator; `reason` is one line. */
export function createUnknownReport(
  text: string,
  reason: string,
  { source, now }: { readonly source: FeedbackSource; readonly now: number },
): FeedbackReport {
  return {
    about: null,
    notices: [{ kind: 'unknown', reason }],
    source,
    digest: digestOf(text),
    at: now,
    summary: 'not an event of Amazon SES',
    raw: kept(text),
    isFinal: true,
  };
}

/**
 * Takes an event to the store. Where its sender will not come again (`isFinal`), what cannot be applied is kept for the
 * operator, but only after it has had the same time to become applicable as any other: a store that is just back gets the
 * settlement and the notice in any order. Rejects where the store fails.
 */
export async function recordSesEvent(
  text: string,
  { source, now, isFinal }: { readonly source: FeedbackSource; readonly now: number; readonly isFinal: boolean },
  take: (report: FeedbackReport) => Promise<RecordResult>,
): Promise<RecordResult> {
  const report = createSesReport(text, { source, now, isFinal: false });
  if (report === null) return 'recorded';
  const taken = await take(report);
  return taken === 'not-yet' && isFinal ? take({ ...report, isFinal }) : taken;
}

function digestOf(key: string): string {
  return createHash('sha256').update(`ses\n${key}`).digest('hex');
}

function kept(text: string): Uint8Array {
  return Buffer.from(text).subarray(0, KEPT_BYTES);
}

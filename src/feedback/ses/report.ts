/** Creates reports from events of Amazon SES and records the reports, for SNS and for SQS. */
import { createHash } from 'node:crypto';
import type { FeedbackReport, FeedbackSource } from '../../model/feedback.ts';
import type { RecordResult } from '../intake.ts';
import { readSesEvent } from './events.ts';

const MAX_STORED_BYTES = 65_536;

/**
 * Creates the report of an event. Returns null if the event is ignored. `isFinal` is true if the sender will not send
 * the event again.
 */
export function createSesReport(
  text: string,
  { source, now, isFinal }: { readonly source: FeedbackSource; readonly now: number; readonly isFinal: boolean },
): FeedbackReport | null {
  const event = readSesEvent(text);
  switch (event.kind) {
    case 'ignored':
      return null;
    case 'feedback': {
      const { reference, messageId, mayBeOtherProgram, key, events } = event;
      const summary = `Amazon SES about ${reference}`;
      // The tag identifies the message even if the provider's reply with the message id was lost.
      const messageRef = messageId === null ? { reference } : { id: messageId };
      const report: FeedbackReport = {
        messageRef,
        events,
        source,
        digest: computeDigest(key),
        at: now,
        summary,
        raw: truncateForStorage(text),
        isFinal,
      };
      return mayBeOtherProgram ? { ...report, mayBeOtherProgram: true } : report;
    }
    case 'unknown':
      return createUnknownReport(text, event.reason, { source, now });
  }
}

/** Creates a report for the operator from content that is not a known event. `reason` is one line. */
export function createUnknownReport(
  text: string,
  reason: string,
  { source, now }: { readonly source: FeedbackSource; readonly now: number },
): FeedbackReport {
  return {
    messageRef: null,
    events: [{ kind: 'unknown', reason }],
    source,
    digest: computeDigest(text),
    at: now,
    summary: 'not an event of Amazon SES',
    raw: truncateForStorage(text),
    isFinal: true,
  };
}

/**
 * Records an event in the store. The intake first waits for the outcome of the message, because after an outage of the
 * store the event can arrive before the outcome. If the event cannot be applied after this wait and `isFinal` is true,
 * the event is stored for the operator. Rejects if the store fails.
 */
export async function recordSesEvent(
  text: string,
  { source, now, isFinal }: { readonly source: FeedbackSource; readonly now: number; readonly isFinal: boolean },
  recordReport: (report: FeedbackReport) => Promise<RecordResult>,
): Promise<RecordResult> {
  const report = createSesReport(text, { source, now, isFinal: false });
  if (report === null) return 'recorded';
  const result = await recordReport(report);
  return result === 'not-yet' && isFinal ? recordReport({ ...report, isFinal }) : result;
}

function computeDigest(key: string): string {
  return createHash('sha256').update(`ses\n${key}`).digest('hex');
}

function truncateForStorage(text: string): Uint8Array {
  return Buffer.from(text).subarray(0, MAX_STORED_BYTES);
}

import { randomBytes } from 'node:crypto';
import type { FeedbackEvent, FeedbackReport } from '../../src/model/feedback.ts';

export const HARD_BOUNCE = {
  ...{ kind: 'bounce', permanent: true, failure: { class: 'hard', category: 'mailbox-unknown' } },
  ...{ recipient: null, alias: null },
  evidence: { status: '5.1.1', diagnostic: 'no such user', reportingHost: 'mx.example.com' },
} as const satisfies FeedbackEvent;
export const COMPLAINT = { ...HARD_BOUNCE, kind: 'complaint', feedbackType: 'abuse' } as const satisfies FeedbackEvent;

export function createReport(
  messageRef: FeedbackReport['messageRef'],
  event: FeedbackEvent,
  changes: Partial<FeedbackReport> = {},
): FeedbackReport {
  return {
    ...{ messageRef, events: [event], source: 'smtp', digest: randomBytes(32).toString('hex'), at: Date.now() },
    ...{ summary: 'from <>: Undelivered mail', raw: new Uint8Array([0, 255, 10]), isFinal: false },
    ...changes,
  };
}

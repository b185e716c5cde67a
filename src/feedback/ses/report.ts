/** An event of Amazon SES as the report that goes into the store. */
import { createHash } from 'node:crypto';
import type { FeedbackReport, FeedbackSource } from '../../store/feedback.ts';
import { readSesEvent } from './events.ts';

const KEPT_BYTES = 65_536;

/** Null where there is nothing to record. `last`: the sender will not ask again. */
export function reportOfEvent(
  text: string,
  { source, now, last }: { readonly source: FeedbackSource; readonly now: number; readonly last: boolean },
): FeedbackReport | null {
  const event = readSesEvent(text);
  if (event.kind === 'nothing') return null;
  const key = event.kind === 'notice' ? event.key : text;
  return {
    about: event.kind === 'notice' ? { reference: event.reference } : null,
    notices: event.kind === 'notice' ? event.notices : [event],
    source,
    digest: createHash('sha256').update(`ses\n${key}`).digest('hex'),
    at: now,
    summary: event.kind === 'notice' ? `Amazon SES about ${event.reference}` : 'not an event of Amazon SES',
    raw: Buffer.from(text.slice(0, KEPT_BYTES)),
    last,
  };
}

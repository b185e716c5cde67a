/**
 * Reads the body of a provider's request and creates a report for each event. The functions are pure.
 * body-reader-thread.ts calls them for bodies larger than `MAX_INLINE_BYTES`.
 */
import type { FeedbackReport } from '../../model/feedback.ts';
import type { PackedReports } from '../../model/packed-reports.ts';
import type { ProviderRequest } from '../../providers/event-reader.ts';
import type { EventFormat, EventProviderName } from '../../providers/provider.ts';
import { createEventReports, createKeyReport } from './report.ts';

/** The values that a report needs and the request does not contain. */
export interface BodyContext {
  readonly provider: EventProviderName;
  /** The time when the request was received, in milliseconds since the epoch. */
  readonly now: number;
  /** True if an event can identify its message by the provider's id of the message. */
  readonly usesReferences: boolean;
}

/** The counts of the batch members for which no report is created, as in `ReadResult` of src/providers. */
interface MemberCounts {
  readonly ignored: number;
  readonly broken: number;
}

export type ReadBody =
  | (MemberCounts & {
      readonly kind: 'reports';
      readonly reports: readonly FeedbackReport[];
      /** The reports that only record the key of a request without events. */
      readonly keyReports: readonly FeedbackReport[];
    })
  /** The body is not in the provider's format. `reason` is one line. */
  | { readonly kind: 'broken'; readonly reason: string };

/** Uses `format` to read the events of an authenticated request, and creates their reports. Never throws. */
export function readBody(
  format: Pick<EventFormat, 'read' | 'signsKeyOnly'>,
  request: ProviderRequest,
  { provider, now, usesReferences }: BodyContext,
): ReadBody {
  const result = format.read(request);
  if (result.kind === 'broken') return result;
  const { ignored, broken } = result;
  const signsKeyOnly = format.signsKeyOnly === true;
  const reports = createEventReports(provider, result.events, { now, usesReferences, signsKeyOnly });
  const keyReports = (result.recordedKeys ?? []).map((key) => createKeyReport(provider, key, now));
  return { kind: 'reports', reports, keyReports, ignored, broken };
}

/** A body that a thread has read. */
export type PackedBody =
  | (MemberCounts & {
      readonly kind: 'reports';
      readonly parts: readonly PackedReports[];
      readonly keyReports: readonly FeedbackReport[];
    })
  | { readonly kind: 'broken'; readonly reason: string }
  /** The request is not authenticated. `reason` is one line without secrets. */
  | { readonly kind: 'unauthenticated'; readonly reason: string }
  /** The thread threw an exception because of a defect in Postrider. */
  | { readonly kind: 'failed' };

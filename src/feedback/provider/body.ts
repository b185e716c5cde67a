/**
 * Reads the body of a provider's request: its events become reports. The functions are pure. body-reader-thread.ts calls them
 * for large bodies.
 */
import type { FeedbackReport } from '../../model/feedback.ts';
import type { ProviderRequest } from '../../providers/event.ts';
import type { EventFormat, EventProviderName } from '../../providers/provider.ts';
import { createEventReports, createKeyReport } from './report.ts';

/** The parameters of the reports that are not in the request. */
export interface BodyContext {
  readonly provider: EventProviderName;
  /** The time of the request in milliseconds since the epoch. */
  readonly now: number;
  /** True if an event can identify its message by the provider's id. */
  readonly usesReferences: boolean;
}

/** The counts of members that are not events of Postrider, as in `ReadResult` of src/providers. */
interface MemberCounts {
  readonly ignored: number;
  readonly broken: number;
}

export type ReadBody =
  | (MemberCounts & { readonly kind: 'reports'; readonly reports: readonly FeedbackReport[] })
  /** The body is not in the provider's format. `reason` is one line. */
  | { readonly kind: 'broken'; readonly reason: string };

/** Reads the events of an authenticated request with `format`, and creates their reports. Never throws. */
export function readBody(
  format: Pick<EventFormat, 'read' | 'signsKeyOnly'>,
  request: ProviderRequest,
  { provider, now, usesReferences }: BodyContext,
): ReadBody {
  const result = format.read(request);
  if (result.kind === 'broken') return result;
  const { ignored, broken } = result;
  const signsKeyOnly = format.signsKeyOnly === true;
  const reports = [
    ...createEventReports(provider, result.events, { now, usesReferences, signsKeyOnly }),
    ...(result.recordedKeys ?? []).map((key) => createKeyReport(provider, key, now)),
  ];
  return { kind: 'reports', reports, ignored, broken };
}

/** A body that the thread has read. Each part contains a list of reports in the format of `node:v8`. */
export type SerializedBody =
  | (MemberCounts & { readonly kind: 'reports'; readonly parts: readonly Uint8Array[] })
  | { readonly kind: 'broken'; readonly reason: string }
  /** The thread threw, because of a defect in Postrider. */
  | { readonly kind: 'failed' };

import { hash } from 'node:crypto';
import type { Failure } from '../../model/failure.ts';
import type { FeedbackEvent, FeedbackReport, PackedReports } from '../../model/feedback.ts';
import type { ProviderEvent, ProviderRequest } from '../../providers/event-reader.ts';
import type { EventFormat, EventProviderName } from '../../providers/provider.ts';
import {
  createDiagnose,
  type Diagnose,
  decideProviderFailure,
  isFaultless,
  namesProviderList,
  parseEnhancedStatus,
  toTemporaryFailure,
} from '../read/diagnosis.ts';
import { createEvidence, parseFieldAddress, toOneLine } from '../read/evidence.ts';

export interface BodyContext {
  readonly provider: EventProviderName;
  readonly now: number;
  /** If an event can name its message by the provider’s id. */
  readonly usesReferences: boolean;
}

interface BodyReports {
  readonly kind: 'reports';
  readonly reports: readonly FeedbackReport[];
  readonly keyReports: readonly FeedbackReport[];
  readonly ignored: number;
  readonly broken: number;
}

interface BrokenBody {
  readonly kind: 'broken';
  readonly reason: string;
}

export type PackedBody =
  | (Omit<BodyReports, 'reports'> & { readonly parts: readonly PackedReports[] })
  | BrokenBody
  | { readonly kind: 'unauthenticated'; readonly reason: string }
  | { readonly kind: 'failed' };

export function readBody(
  format: Pick<EventFormat, 'read' | 'signsKeyOnly'>,
  request: ProviderRequest,
  context: BodyContext,
): BodyReports | BrokenBody {
  const result = format.read(request);
  if (result.kind === 'broken') return result;
  const { events, recordedKeys = [], ignored, broken } = result;
  const { provider } = context;
  return {
    kind: 'reports',
    reports: createEventReports(events, { ...context, signsKeyOnly: format.signsKeyOnly === true }),
    keyReports: recordedKeys.map((key) => ({
      ...createReport(context, 'key', computeKeyDigest(provider, key)),
      messageRef: null,
      events: [],
    })),
    ...{ ignored, broken },
  };
}

const MAX_TYPE_LENGTH = 80;
const EVENT_DIGEST_LENGTH = 32;
/** RFC 5321 section 4.5.3.1. */
const MAX_ADDRESS_LENGTH = 320;

export function createEventReports(
  events: readonly ProviderEvent[],
  { signsKeyOnly, ...context }: BodyContext & { readonly signsKeyOnly: boolean },
): readonly FeedbackReport[] {
  const { provider, usesReferences } = context;
  const diagnose = createDiagnose();
  return events.map((event) => {
    const { key, messageId, reference } = event;
    const type = toOneLine(event.type, MAX_TYPE_LENGTH) ?? 'event';
    const keyDigest = computeKeyDigest(provider, key);
    // Random digests would change one page of the index per event.
    const eventDigest = messageId === null ? keyDigest : `${messageId}:${keyDigest.slice(0, EVENT_DIGEST_LENGTH)}`;
    // Two providers can use the same id.
    const reportReference = reference === null || !usesReferences ? null : { reference: `${provider}:${reference}` };
    return {
      ...createReport(context, type, signsKeyOnly ? keyDigest : eventDigest),
      messageRef: messageId === null ? reportReference : { id: messageId },
      events: [toFeedbackEvent(event, type, diagnose)],
      recordsDigestAlways: signsKeyOnly,
    };
  });
}

function createReport({ provider, now }: BodyContext, type: string, digest: string) {
  return {
    ...{ source: provider, digest, at: now, summary: `${provider} ${type}` },
    ...{ raw: new Uint8Array(), isFinal: false, isProviderEvent: true },
  };
}

function computeKeyDigest(provider: EventProviderName, key: string): string {
  return hash('sha256', `${provider}\n${key}`);
}

/** What the diagnostic says takes precedence over the meaning of the event's type. */
function toFeedbackEvent(event: ProviderEvent, type: string, diagnose: Diagnose): FeedbackEvent {
  const { meaning, hasListReason, recipient: address, diagnosis } = event;
  const text = diagnosis.diagnostic ?? '';
  const status = parseEnhancedStatus(diagnosis.status ?? '');
  const evidence = createEvidence(status, text === '' ? type : `${type}: ${text}`, diagnosis.host);
  // A text that is not an address equals no recipient of a message.
  const recipient =
    address === null ? null : (parseFieldAddress(address, true) ?? toOneLine(address, MAX_ADDRESS_LENGTH) ?? '?');
  const members = { recipient, alias: null, evidence };
  const toBounce = (failure: Failure): FeedbackEvent => ({ ...members, kind: 'bounce', permanent: true, failure });
  switch (meaning) {
    case 'hard':
    case 'soft':
    case 'block':
    case 'by-text': {
      if (namesProviderList(text)) return { ...members, kind: 'provider-suppressed' };
      const diagnosed = diagnose(text, status);
      return toBounce(meaning === 'by-text' ? diagnosed.failure : decideProviderFailure(meaning, diagnosed));
    }
    case 'provider-suppressed': {
      const diagnosed = diagnose(text, status);
      const isListed = hasListReason || namesProviderList(text) || !isFaultless(diagnosed);
      return isListed ? { ...members, kind: meaning } : toBounce(diagnosed.failure);
    }
    case 'deferred':
      return { ...members, kind: 'delayed', failure: toTemporaryFailure(diagnose(text, status).failure) };
    case 'complaint':
      return { ...members, kind: meaning, feedbackType: 'abuse' };
    case 'delivered':
      return { ...members, kind: 'confirmed' };
    case 'unsubscribed':
    case 'reactivated':
      return { ...members, kind: meaning };
  }
}

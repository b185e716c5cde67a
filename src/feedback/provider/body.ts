/** Reads the body of a provider's request and creates a report for each event. Pure; never throws. */
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

/** The values that a report needs and the request does not contain. */
export interface BodyContext {
  readonly provider: EventProviderName;
  /** The time when the request was received, in milliseconds since the epoch. */
  readonly now: number;
  /** True if an event can identify its message by the provider's id of the message. */
  readonly usesReferences: boolean;
}

interface BodyReports {
  readonly kind: 'reports';
  readonly reports: readonly FeedbackReport[];
  /** The reports that only record the key of a request without events. */
  readonly keyReports: readonly FeedbackReport[];
  /** As in `ReadResult` (providers/event-reader.ts). */
  readonly ignored: number;
  readonly broken: number;
}

interface BrokenBody {
  readonly kind: 'broken';
  /** One line. */
  readonly reason: string;
}

/** A body that a thread has read (body-reader-thread.ts). */
export type PackedBody =
  | (Omit<BodyReports, 'reports'> & { readonly parts: readonly PackedReports[] })
  | BrokenBody
  /** The request is not authenticated. `reason` is one line without secrets. */
  | { readonly kind: 'unauthenticated'; readonly reason: string }
  /** The thread threw an exception because of a defect in Postrider. */
  | { readonly kind: 'failed' };

/** Reads the events of an authenticated request. */
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
/** The number of hexadecimal digits that follow the message id in the digest of an event: 128 bits. */
const EVENT_DIGEST_LENGTH = 32;
/** The maximum length of a local part, an at sign and a domain (RFC 5321 section 4.5.3.1). */
const MAX_ADDRESS_LENGTH = 320;

/**
 * Returns the reports of the events in their order. `signsKeyOnly` is true if the signature of the request covers the
 * key and not the event. A text that occurs in several events is classified once.
 */
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
    // A digest that begins with the id of the message is adjacent in the index to those of messages that were accepted
    // at about the same time. With random digests, each event would change a different page of the index.
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
  // The operator finds the type in the provider's documentation.
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

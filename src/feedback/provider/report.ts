/** Builds feedback reports from events of managed providers. The functions are pure. */
import { hash } from 'node:crypto';
import type { Failure } from '../../model/failure.ts';
import type { Evidence, FeedbackEvent, FeedbackReport } from '../../model/feedback.ts';
import type { Diagnosis, ProviderEvent } from '../../providers/event-reader.ts';
import type { EventProviderName } from '../../providers/provider.ts';
import { parseEnhancedStatus } from '../read/codes.ts';
import {
  createDiagnose,
  type Diagnose,
  decideProviderFailure,
  isFaultless,
  namesProviderList,
  toTemporaryFailure,
} from '../read/diagnosis.ts';
import { createEvidence, parseFieldAddress, toOneLine } from '../read/evidence.ts';

const MAX_TYPE_LENGTH = 80;
/** The number of hexadecimal digits that follow the message id in the digest of an event: 128 bits. */
const EVENT_DIGEST_LENGTH = 32;
/** The maximum length of a local part, an at sign and a domain (RFC 5321 section 4.5.3.1). */
const MAX_ADDRESS_LENGTH = 320;

/**
 * Builds the reports of the events of one request, in the order of the events. `now` is milliseconds since the epoch.
 * `usesReferences` is true if an event can identify its message by the provider's id of the message. `signsKeyOnly` is
 * true if the signature of the request covers the key and not the event. A text that occurs in several events is
 * classified once.
 */
export function createEventReports(
  provider: EventProviderName,
  events: readonly ProviderEvent[],
  {
    now,
    usesReferences,
    signsKeyOnly,
  }: { readonly now: number; readonly usesReferences: boolean; readonly signsKeyOnly: boolean },
): readonly FeedbackReport[] {
  const diagnose = createDiagnose();
  return events.map((event) => {
    const type = toOneLine(event.type, MAX_TYPE_LENGTH) ?? 'event';
    return {
      messageRef: createMessageRef(provider, event, usesReferences),
      events: [toFeedbackEvent(event, type, diagnose)],
      source: provider,
      digest: signsKeyOnly ? computeKeyDigest(provider, event.key) : computeEventDigest(provider, event),
      at: now,
      summary: `${provider} ${type}`,
      raw: new Uint8Array(),
      isFinal: false,
      isProviderEvent: true,
      recordsDigestAlways: signsKeyOnly,
    };
  });
}

/** Builds the report that records a key without an event (`recordedKeys` of `ReadResult`). */
export function createKeyReport(provider: EventProviderName, key: string, now: number): FeedbackReport {
  return {
    messageRef: null,
    events: [],
    source: provider,
    digest: computeKeyDigest(provider, key),
    at: now,
    summary: `${provider} key`,
    raw: new Uint8Array(),
    isFinal: false,
    isProviderEvent: true,
  };
}

/**
 * Returns the reference to the message, or null. A reference begins with the name of the provider, because two
 * providers can use the same id.
 */
function createMessageRef(
  provider: EventProviderName,
  { messageId, reference }: ProviderEvent,
  usesReferences: boolean,
): FeedbackReport['messageRef'] {
  if (messageId !== null) return { id: messageId };
  return reference === null || !usesReferences ? null : { reference: `${provider}:${reference}` };
}

function toFeedbackEvent(event: ProviderEvent, type: string, diagnose: Diagnose): FeedbackEvent {
  const { meaning, hasListReason, diagnosis } = event;
  const evidence = createEventEvidence(diagnosis, type);
  const members = { recipient: readRecipient(event), alias: null, evidence };
  const text = diagnosis.diagnostic ?? '';
  const diagnosed = () => diagnose(text, parseEnhancedStatus(diagnosis.status ?? ''));
  const toBounce = (failure: Failure): FeedbackEvent => ({ ...members, kind: 'bounce', permanent: true, failure });
  switch (meaning) {
    case 'by-text':
      return namesProviderList(text) ? { ...members, kind: 'provider-suppressed' } : toBounce(diagnosed().failure);
    case 'hard':
    case 'soft':
    case 'block':
      return namesProviderList(text)
        ? { ...members, kind: 'provider-suppressed' }
        : toBounce(decideProviderFailure(meaning, diagnosed()));
    case 'provider-suppressed':
      return hasListReason || namesProviderList(text) || !isFaultless(diagnosed())
        ? { ...members, kind: meaning }
        : toBounce(diagnosed().failure);
    case 'deferred':
      return { ...members, kind: 'delayed', failure: toTemporaryFailure(diagnosed().failure) };
    case 'complaint':
      return { ...members, kind: meaning, feedbackType: 'abuse' };
    case 'delivered':
      return { ...members, kind: 'confirmed' };
    case 'unsubscribed':
    case 'reactivated':
      return { ...members, kind: meaning };
  }
}

/**
 * Creates the evidence. The text begins with the type of the event, which an operator finds in the provider's
 * documentation.
 */
function createEventEvidence({ status, diagnostic, host }: Diagnosis, type: string): Evidence {
  const text = diagnostic === null ? type : `${type}: ${diagnostic}`;
  return createEvidence(parseEnhancedStatus(status ?? ''), text, host);
}

/**
 * Returns the recipient of the event. A text that is not an address is returned as one line, and equals no recipient of
 * a message.
 */
function readRecipient({ recipient }: ProviderEvent): string | null {
  if (recipient === null) return null;
  return parseFieldAddress(recipient, true) ?? toOneLine(recipient, MAX_ADDRESS_LENGTH) ?? '?';
}

function computeKeyDigest(provider: EventProviderName, key: string): string {
  return hash('sha256', `${provider}\n${key}`);
}

/**
 * Returns the digest of an event whose signature covers the whole event. The digest begins with the id of the message,
 * so that the digests for messages that were accepted at about the same time are adjacent in the index of digests. With
 * random digests, each event would change a different page of the index.
 */
function computeEventDigest(provider: EventProviderName, { messageId, key }: ProviderEvent): string {
  const digest = computeKeyDigest(provider, key);
  return messageId === null ? digest : `${messageId}:${digest.slice(0, EVENT_DIGEST_LENGTH)}`;
}

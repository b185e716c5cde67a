/** Notifications of an identity (`notificationType`) and events of a configuration set (`eventType`). Never throws. */
import { createHash } from 'node:crypto';
import type { Failure } from '../../model/failure.ts';
import {
  type Evidence,
  type FeedbackEvent,
  type FeedbackReport,
  type FeedbackSource,
  MESSAGE_ID_TAG,
} from '../../model/feedback.ts';
import { isMessageId } from '../../model/submission.ts';
import { findRow, type Json, parseJson, toList, toObject, toText } from '../../providers/json.ts';
import type { RecordResult } from '../intake.ts';
import {
  createDiagnose,
  type Diagnose,
  decideProviderFailure,
  parseEnhancedStatus,
  toTemporaryFailure,
  withFailureClass,
} from '../read/diagnosis.ts';
import { createEvidence, parseFieldAddress, stripType, toOneLine } from '../read/evidence.ts';

type SesEvent =
  /** `key` is equal for all copies of the event. */
  | {
      readonly kind: 'feedback';
      readonly reference: string;
      readonly messageId: string | null;
      /** It has tags, but not that of Postrider: of another program, unless its `reference` is stored here. */
      readonly mayBeOtherProgram: boolean;
      readonly key: string;
      readonly events: readonly FeedbackEvent[];
    }
  | { readonly kind: 'ignored' }
  | { readonly kind: 'unknown'; readonly reason: string };

const MAX_RECIPIENTS = 100;
const MAX_ID_LENGTH = 200;
const IGNORED_TYPES: readonly string[] = ['Send', 'Open', 'Click', 'Subscription', 'AmazonSnsSubscriptionSucceeded'];
/** What Amazon publishes when a topic becomes the event destination of a configuration set. */
const TOPIC_VALIDATED = 'Successfully validated SNS topic for Amazon SES';
/** The address is on a suppression list of the provider. */
const SUPPRESSED_SUB_TYPES: readonly string[] = ['Suppressed', 'OnAccountSuppressionList'];

export function readSesEvent(text: string): SesEvent {
  if (text.startsWith(TOPIC_VALIDATED)) return { kind: 'ignored' };
  const event = toObject(parseJson(Buffer.from(text)));
  if (event === null) return createUnknownEvent('the event is not a JSON object');
  const type = toText(event.eventType) ?? toText(event.notificationType);
  if (type === null)
    return createUnknownEvent(
      'the event contains neither eventType nor notificationType, so it is not from Amazon SES',
    );
  if (IGNORED_TYPES.includes(type)) return { kind: 'ignored' };
  const reference = toText(toObject(event.mail)?.messageId);
  if (reference === null || !isProviderId(reference))
    return createUnknownEvent(`the ${toPrintableType(type)} event contains no valid mail.messageId`);
  const tag = readTag(toObject(event.mail)?.tags);
  const events = readEvents(type, event);
  if (events === null) return createUnknownEvent(`the event type ${toPrintableType(type)} is unknown`);
  const key = `${type}\n${reference}\n${computeEventIdentity(type, event)}`;
  const mayBeOtherProgram = tag === 'other';
  return { kind: 'feedback', reference, messageId: mayBeOtherProgram ? null : tag, mayBeOtherProgram, key, events };
}

/** `other`: probably another program of the account. Null: a notification of an identity, without tags. */
function readTag(tags: unknown): string | 'other' | null {
  const tagMembers = toObject(tags);
  if (tagMembers === null || Object.keys(tagMembers).length === 0) return null;
  const tagValues = tagMembers[MESSAGE_ID_TAG];
  const id: unknown = Array.isArray(tagValues) ? tagValues[0] : undefined;
  return typeof id === 'string' && isMessageId(id) ? id : 'other';
}

function readEvents(type: string, event: Json): readonly FeedbackEvent[] | null {
  switch (type) {
    case 'Bounce':
      return readBounce(toObject(event.bounce) ?? {});
    case 'Complaint':
      return readComplaint(toObject(event.complaint) ?? {});
    case 'Delivery':
      return readDelivery(toObject(event.delivery) ?? {});
    case 'DeliveryDelay':
      return readDelay(toObject(event.deliveryDelay) ?? {});
    case 'Reject':
      return [createRejection(toText(toObject(event.reject)?.reason) ?? 'rejected by the provider')];
    case 'Rendering Failure':
    case 'RenderingFailure':
      return [
        createRejection(toText(toObject(event.failure)?.errorMessage) ?? 'the provider could not render the message'),
      ];
    default:
      return null;
  }
}

function mapRecipients(list: unknown, toEvent: (recipient: Json) => FeedbackEvent): readonly FeedbackEvent[] {
  const recipients = toObjects(list);
  return (recipients.length === 0 ? [{}] : recipients).map(toEvent);
}

function readBounce(bounce: Json): readonly FeedbackEvent[] {
  const [type, subType] = [toText(bounce.bounceType) ?? '', toText(bounce.bounceSubType) ?? ''];
  const recipients = toObjects(bounce.bouncedRecipients);
  if (type === 'Transient' && subType === 'General' && recipients.length > 0 && recipients.every(lacksStatus)) {
    // The provider uses the sub-type `General` for out-of-office replies too.
    return [{ kind: 'auto-reply', evidence: readEvidence({}, bounce, `${type} ${subType}`) }];
  }
  const diagnose = createDiagnose();
  const isSuppressed = type === 'Permanent' && SUPPRESSED_SUB_TYPES.includes(subType);
  return mapRecipients(bounce.bouncedRecipients, (recipient) => {
    const members = toMembers(recipient.emailAddress, readEvidence(recipient, bounce, `${type} ${subType}`));
    return isSuppressed
      ? { ...members, kind: 'provider-suppressed' }
      : { ...members, kind: 'bounce', ...classifyBounce(type, subType, recipient, diagnose) };
  });
}

function lacksStatus({ action, status, diagnosticCode }: Json): boolean {
  return [action, status, diagnosticCode].every((value) => toText(value) === null);
}

const TRANSIENT_FAILURES: Readonly<Record<string, Failure>> = {
  MailboxFull: { class: 'soft', category: 'mailbox-full' },
  MessageTooLarge: { class: 'block', category: 'size' },
  ContentRejected: { class: 'block', category: 'content' },
  AttachmentRejected: { class: 'block', category: 'content' },
};

/** Amazon SES sends the event after its last attempt. A transient or undetermined one suppresses nobody. */
function classifyBounce(
  type: string,
  subType: string,
  recipient: Json,
  diagnose: Diagnose,
): { readonly permanent: boolean; readonly failure: Failure } {
  const [diagnostic, status] = [toText(recipient.diagnosticCode), readStatus(recipient)];
  const diagnosis = diagnose(diagnostic ?? '', status);
  if (type !== 'Permanent') {
    const failure = findRow(TRANSIENT_FAILURES, subType) ?? withFailureClass('soft', diagnosis.failure);
    return { permanent: type === 'Transient' || type === 'Undetermined', failure };
  }
  // `NoEmail`: the address does not exist, unless diagnostic or status say otherwise. Without both, so does `General`.
  const isMailboxMissing =
    diagnostic === null && status === null
      ? subType === 'General' || subType === 'NoEmail'
      : subType === 'NoEmail' && diagnosis.permanent;
  const failureClass = isMailboxMissing ? 'hard' : diagnosis.failure.class;
  return { permanent: true, failure: decideProviderFailure(failureClass, diagnosis) };
}

function readComplaint(complaint: Json): readonly FeedbackEvent[] {
  const feedbackType = toOneLine(toText(complaint.complaintFeedbackType) ?? 'abuse', 40)?.toLowerCase() ?? 'abuse';
  const subType = toText(complaint.complaintSubType);
  // An earlier complaint has put the address on the list of the account.
  const isSuppressed = subType !== null && SUPPRESSED_SUB_TYPES.includes(subType);
  const details = [subType, toText(complaint.userAgent)].filter((part) => part !== null);
  const evidence = createEvidence(null, details.join(' '), null);
  return mapRecipients(complaint.complainedRecipients, ({ emailAddress }) => {
    const members = toMembers(emailAddress, evidence);
    return isSuppressed ? { ...members, kind: 'provider-suppressed' } : { ...members, kind: 'complaint', feedbackType };
  });
}

function readDelivery(delivery: Json): readonly FeedbackEvent[] {
  const evidence: Evidence = { ...readEvidence({}, delivery, ''), diagnostic: toDiagnosticLine(delivery.smtpResponse) };
  const recipients = toList(delivery.recipients).slice(0, MAX_RECIPIENTS);
  return (recipients.length === 0 ? [null] : recipients).map((address) => ({
    ...toMembers(address, evidence),
    kind: 'confirmed',
  }));
}

/**
 * https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html#event-publishing-retrieving-sns-contents-delivery-delay-object
 */
const DELAY_FAILURES: Readonly<Record<string, Failure>> = {
  InternalFailure: { class: 'soft', category: 'network' },
  MailboxFull: { class: 'soft', category: 'mailbox-full' },
  SpamDetected: { class: 'block', category: 'reputation' },
  RecipientServerError: { class: 'soft', category: 'network' },
  IPFailure: { class: 'block', category: 'reputation' },
  TransientCommunicationFailure: { class: 'soft', category: 'network' },
  BYOIPHostNameLookupUnavailable: { class: 'block', category: 'auth' },
  SendingDeferral: { class: 'soft', category: 'throttled' },
};

function readDelay(delay: Json): readonly FeedbackEvent[] {
  const diagnose = createDiagnose();
  const type = toText(delay.delayType) ?? '';
  return mapRecipients(delay.delayedRecipients, (recipient) => {
    const { failure } = diagnose(toText(recipient.diagnosticCode) ?? '', readStatus(recipient));
    const members = toMembers(recipient.emailAddress, readEvidence(recipient, delay, type));
    return { ...members, kind: 'delayed', failure: findRow(DELAY_FAILURES, type) ?? toTemporaryFailure(failure) };
  });
}

/** Because of a virus, or because the template cannot be rendered: the failure concerns the message. */
function createRejection(reason: string): FeedbackEvent {
  const failure: Failure = { class: 'block', category: 'content' };
  return { ...toMembers(null, createEvidence(null, reason, null)), kind: 'bounce', permanent: true, failure };
}

function toMembers(address: unknown, evidence: Evidence) {
  const text = toText(address);
  return { recipient: text === null ? null : parseFieldAddress(text, true), alias: null, evidence };
}

function readEvidence(recipient: Json, report: Json, fallback: string): Evidence {
  const host = toText(report.reportingMTA);
  const diagnostic = toDiagnosticLine(recipient.diagnosticCode) ?? fallback;
  return createEvidence(readStatus(recipient), diagnostic, host === null ? null : stripType(host));
}

/** Equal for a notification of an identity and an event of a configuration set about the same bounce. */
function computeEventIdentity(type: string, event: Json): string {
  const detail = toObject(event[findRow(DETAIL_MEMBERS, type) ?? '']) ?? {};
  const feedbackId = toText(detail.feedbackId);
  if (feedbackId !== null) return feedbackId.slice(0, MAX_ID_LENGTH);
  const { recipients, bouncedRecipients, complainedRecipients, delayedRecipients, timestamp } = detail;
  const names = toList(recipients ?? bouncedRecipients ?? complainedRecipients ?? delayedRecipients)
    .slice(0, MAX_RECIPIENTS)
    .map((item) => (toText(item) ?? toText(toObject(item)?.emailAddress) ?? '').slice(0, MAX_ID_LENGTH))
    .sort();
  return [toText(timestamp)?.slice(0, MAX_ID_LENGTH) ?? '', ...names].join('\n');
}

const DETAIL_MEMBERS = {
  Bounce: 'bounce',
  Complaint: 'complaint',
  Delivery: 'delivery',
  DeliveryDelay: 'deliveryDelay',
};

function createUnknownEvent(reason: string): SesEvent {
  return { kind: 'unknown', reason };
}

function toPrintableType(type: string): string {
  return toOneLine(type, 40) ?? 'an event';
}

function toObjects(value: unknown): readonly Json[] {
  return toList(value)
    .slice(0, MAX_RECIPIENTS)
    .map(toObject)
    .filter((item) => item !== null);
}

function toDiagnosticLine(value: unknown): string | null {
  const text = toText(value);
  return text === null ? null : toOneLine(stripType(text));
}

function readStatus(recipient: Json): string | null {
  return parseEnhancedStatus(toText(recipient.status) ?? '');
}

function isProviderId(text: string): boolean {
  return text.length <= MAX_ID_LENGTH && [...text].every((character) => character > ' ' && character <= '~');
}

const MAX_STORED_BYTES = 65_536;

interface Arrival {
  readonly source: FeedbackSource;
  readonly now: number;
}

function createReport(text: string, key: string, { source, now }: Arrival) {
  const digest = createHash('sha256').update(`ses\n${key}`).digest('hex');
  return { source, digest, at: now, raw: Buffer.from(text).subarray(0, MAX_STORED_BYTES) };
}

function createSesReport(text: string, arrival: Arrival): FeedbackReport | null {
  const event = readSesEvent(text);
  switch (event.kind) {
    case 'ignored':
      return null;
    case 'feedback': {
      const { reference, messageId, mayBeOtherProgram, key, events } = event;
      return {
        ...createReport(text, key, arrival),
        // The tag identifies the message even if the provider's reply with the message id was lost.
        messageRef: messageId === null ? { reference } : { id: messageId },
        events,
        summary: `Amazon SES about ${reference}`,
        isFinal: false,
        ...(mayBeOtherProgram ? { mayBeOtherProgram } : {}),
      };
    }
    case 'unknown':
      return createUnknownReport(text, event.reason, arrival);
  }
}

export function createUnknownReport(text: string, reason: string, arrival: Arrival): FeedbackReport {
  const events: readonly FeedbackEvent[] = [{ kind: 'unknown', reason }];
  const summary = 'not an event of Amazon SES';
  return { ...createReport(text, text, arrival), messageRef: null, events, summary, isFinal: true };
}

/** After an outage, the event can precede the outcome. A final one is then stored for the operator. */
export async function recordSesEvent(
  text: string,
  { isFinal, ...arrival }: Arrival & { readonly isFinal: boolean },
  recordReport: (report: FeedbackReport) => Promise<RecordResult>,
): Promise<RecordResult> {
  const report = createSesReport(text, arrival);
  if (report === null) return 'recorded';
  const result = await recordReport(report);
  return result === 'not-yet' && isFinal ? recordReport({ ...report, isFinal }) : result;
}

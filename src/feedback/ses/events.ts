/**
 * Reads provider events of Amazon SES in both formats: notifications of an identity (`notificationType`) and events of a
 * configuration set (`eventType`). Pure; never throws, whatever the JSON contains.
 */

import { type Evidence, MESSAGE_ID_TAG, type Notice } from '../../model/feedback.ts';
import { isMessageId } from '../../model/submission.ts';
import { findEnhancedStatus, parseEnhancedStatus } from '../read/codes.ts';
import { createEvidence, parseFieldAddress, stripType, toOneLine } from '../read/evidence.ts';
import { createFailureClassifier, type FailureClassifier } from '../read/failure-classifier.ts';

export type SesEvent =
  /** `reference` is the provider's id of the message. `key` identifies the event and is equal for every copy of it. */
  | {
      readonly kind: 'notice';
      readonly reference: string;
      /** The id of the message, when the event carries the tag of Postrider. */
      readonly messageId: string | null;
      /** The event carries tags, but not the one of Postrider: unless the provider's id is known, another program sent the message. */
      readonly mayBeOtherProgram: boolean;
      readonly key: string;
      readonly notices: readonly Notice[];
    }
  /** The event changes no message: sent, opened, clicked, or a topic was set up. */
  | { readonly kind: 'nothing' }
  | { readonly kind: 'unknown'; readonly reason: string };

type Json = Readonly<Record<string, unknown>>;

const MAX_RECIPIENTS = 100;
const MAX_ID_LENGTH = 200;
/** Types that are ignored; the last is the test notification of a topic. */
const IGNORED_TYPES: readonly string[] = ['Send', 'Open', 'Click', 'Subscription', 'AmazonSnsSubscriptionSucceeded'];
/** Plain text that Amazon publishes when a topic becomes the event destination of a configuration set. */
const TOPIC_VALIDATED = 'Successfully validated SNS topic for Amazon SES';
/** Sub-types of a permanent bounce for an address on a suppression list of the provider. */
const SUPPRESSED_SUB_TYPES: readonly string[] = ['Suppressed', 'OnAccountSuppressionList'];

/** Reads one event from the text of an SNS message or of a queue message. */
export function readSesEvent(text: string): SesEvent {
  if (text.startsWith(TOPIC_VALIDATED)) return { kind: 'nothing' };
  const event = objectOf(parse(text));
  if (event === null) return unknown('the event is not a JSON object');
  const type = textOf(event.eventType) ?? textOf(event.notificationType);
  if (type === null) return unknown('the event has neither eventType nor notificationType; it is not from Amazon SES');
  if (IGNORED_TYPES.includes(type)) return { kind: 'nothing' };
  const reference = textOf(objectOf(event.mail)?.messageId);
  if (reference === null || !isId(reference)) return unknown(`the ${shown(type)} event has no valid mail.messageId`);
  const tagged = tagOf(objectOf(event.mail)?.tags);
  const notices = noticesOf(type, event);
  if (notices === null) return unknown(`the event type ${shown(type)} is unknown`);
  const key = `${type}\n${reference}\n${identityOf(type, event)}`;
  const mayBeOtherProgram = tagged === 'other';
  return { kind: 'notice', reference, messageId: mayBeOtherProgram ? null : tagged, mayBeOtherProgram, key, notices };
}

/**
 * Reads the tag of Postrider. An event of a configuration set carries all tags of its message. Without the tag of Postrider,
 * another program of the same account probably sent the message. Null for notifications of identities, which carry no tags.
 */
function tagOf(tags: unknown): string | 'other' | null {
  const found = objectOf(tags);
  if (found === null || Object.keys(found).length === 0) return null;
  const values = found[MESSAGE_ID_TAG];
  const id: unknown = Array.isArray(values) ? values[0] : undefined;
  return typeof id === 'string' && isMessageId(id) ? id : 'other';
}

function noticesOf(type: string, event: Json): readonly Notice[] | null {
  switch (type) {
    case 'Bounce':
      return bounceNotices(objectOf(event.bounce) ?? {});
    case 'Complaint':
      return complaintNotices(objectOf(event.complaint) ?? {});
    case 'Delivery':
      return deliveryNotices(objectOf(event.delivery) ?? {});
    case 'DeliveryDelay':
      return delayNotices(objectOf(event.deliveryDelay) ?? {});
    case 'Reject':
      return [rejection(textOf(objectOf(event.reject)?.reason) ?? 'rejected by the provider')];
    case 'Rendering Failure':
    case 'RenderingFailure':
      return [rejection(textOf(objectOf(event.failure)?.errorMessage) ?? 'the provider could not render the message')];
    default:
      return null;
  }
}

function bounceNotices(bounce: Json): readonly Notice[] {
  const [type, subType] = [textOf(bounce.bounceType) ?? '', textOf(bounce.bounceSubType) ?? ''];
  const recipients = listOf(bounce.bouncedRecipients);
  if (type === 'Transient' && subType === 'General' && recipients.length > 0 && recipients.every(lacksStatus)) {
    // The bounce has no delivery status. The provider uses this sub-type for out-of-office replies too.
    return [{ kind: 'auto-reply', evidence: evidenceIn({}, bounce, `${type} ${subType}`) }];
  }
  const classifier = createFailureClassifier();
  return (recipients.length === 0 ? [{}] : recipients).map((one) => {
    const evidence = evidenceIn(one, bounce, `${type} ${subType}`);
    return { ...about(one.emailAddress, evidence), kind: 'bounce', ...classifyBounce(type, subType, one, classifier) };
  });
}

function lacksStatus({ action, status, diagnosticCode }: Json): boolean {
  return textOf(action) === null && textOf(status) === null && textOf(diagnosticCode) === null;
}

/** Transient and undetermined bounces are soft. For a permanent one, the sub-type and the server's diagnostic decide. */
function classifyBounce(
  type: string,
  subType: string,
  recipient: Json,
  classifier: FailureClassifier,
): { permanent: boolean; mailboxMissing: boolean } {
  if (type !== 'Permanent') return { permanent: false, mailboxMissing: false };
  if (SUPPRESSED_SUB_TYPES.includes(subType)) return { permanent: true, mailboxMissing: true };
  const [diagnostic, status] = [textOf(recipient.diagnosticCode), statusIn(recipient)];
  if (diagnostic === null && status === null) {
    return { permanent: true, mailboxMissing: subType === 'General' || subType === 'NoEmail' };
  }
  const classified = classifier.classify(diagnostic ?? '', status);
  // NoEmail means that the address does not exist, except when the diagnostic reports a policy or a temporary failure.
  const isMissing =
    subType === 'NoEmail' &&
    classified.permanent &&
    !isPolicy(status) &&
    !isPolicy(findEnhancedStatus(diagnostic ?? ''));
  return { permanent: true, mailboxMissing: isMissing || classified.mailboxMissing };
}

/** RFC 3463 section 3.8: security or policy. */
function isPolicy(status: string | null): boolean {
  return status?.startsWith('5.7.') === true;
}

function complaintNotices(complaint: Json): readonly Notice[] {
  const feedbackType = toOneLine(textOf(complaint.complaintFeedbackType) ?? 'abuse', 40)?.toLowerCase() ?? 'abuse';
  const recipients = listOf(complaint.complainedRecipients);
  const details = [textOf(complaint.complaintSubType), textOf(complaint.userAgent)].filter((part) => part !== null);
  const evidence = { status: null, diagnostic: toOneLine(details.join(' ')), reportingHost: null };
  return (recipients.length === 0 ? [{}] : recipients).map((one) => {
    return { ...about(one.emailAddress, evidence), kind: 'complaint', feedbackType };
  });
}

function deliveryNotices(delivery: Json): readonly Notice[] {
  const evidence: Evidence = { ...evidenceIn({}, delivery, ''), diagnostic: line(delivery.smtpResponse) };
  const recipients = Array.isArray(delivery.recipients) ? delivery.recipients.slice(0, MAX_RECIPIENTS) : [];
  return (recipients.length === 0 ? [null] : recipients).map((one) => ({ ...about(one, evidence), kind: 'delivered' }));
}

function delayNotices(delay: Json): readonly Notice[] {
  const recipients = listOf(delay.delayedRecipients);
  return (recipients.length === 0 ? [{}] : recipients).map((one) => ({
    ...about(one.emailAddress, evidenceIn(one, delay, textOf(delay.delayType) ?? '')),
    kind: 'delayed',
  }));
}

/** The provider refused a message that it had accepted: the failure concerns the message, never the mailbox. */
function rejection(reason: string): Notice {
  const evidence = { status: null, diagnostic: toOneLine(reason), reportingHost: null };
  return { ...about(null, evidence), kind: 'bounce', permanent: true, mailboxMissing: false };
}

function about(address: unknown, evidence: Evidence) {
  const text = textOf(address);
  return { recipient: text === null ? null : parseFieldAddress(text, true), alias: null, evidence };
}

function evidenceIn(recipient: Json, report: Json, fallback: string): Evidence {
  const host = textOf(report.reportingMTA);
  return createEvidence(
    statusIn(recipient),
    line(recipient.diagnosticCode) ?? fallback,
    host === null ? null : stripType(host),
  );
}

/**
 * Identifies the event among the events of its message: by the provider's feedback id, or by its time and recipients. Both
 * formats of one event have the same identity.
 */
function identityOf(type: string, event: Json): string {
  const detail = objectOf(event[DETAILS[type] ?? '']) ?? {};
  const feedbackId = textOf(detail.feedbackId);
  if (feedbackId !== null) return feedbackId.slice(0, MAX_ID_LENGTH);
  const named =
    detail.recipients ?? detail.bouncedRecipients ?? detail.complainedRecipients ?? detail.delayedRecipients;
  const recipients = (Array.isArray(named) ? named.slice(0, MAX_RECIPIENTS) : [])
    .map((one) => (textOf(one) ?? textOf(objectOf(one)?.emailAddress) ?? '').slice(0, MAX_ID_LENGTH))
    .sort();
  return [textOf(detail.timestamp)?.slice(0, MAX_ID_LENGTH) ?? '', ...recipients].join('\n');
}

const DETAILS: Readonly<Record<string, string>> = {
  Bounce: 'bounce',
  Complaint: 'complaint',
  Delivery: 'delivery',
  DeliveryDelay: 'deliveryDelay',
};

function unknown(reason: string): SesEvent {
  return { kind: 'unknown', reason };
}

function shown(type: string): string {
  return toOneLine(type, 40) ?? 'an event';
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function objectOf(value: unknown): Json | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : null;
}

function listOf(value: unknown): readonly Json[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MAX_RECIPIENTS).flatMap((one) => {
    const found = objectOf(one);
    return found === null ? [] : [found];
  });
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

function line(value: unknown): string | null {
  const text = textOf(value);
  return text === null ? null : toOneLine(stripType(text));
}

function statusIn(recipient: Json): string | null {
  return parseEnhancedStatus(textOf(recipient.status) ?? '');
}

/** Printable ASCII of bounded length. */
function isId(text: string): boolean {
  return text.length <= MAX_ID_LENGTH && [...text].every((character) => character > ' ' && character <= '~');
}

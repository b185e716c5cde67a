/**
 * What Amazon SES tells about a message, in both of its forms: notifications of an identity (`notificationType`) and events
 * of a configuration set (`eventType`). Pure; whatever the JSON holds, nothing here throws.
 */

import { type Evidence, MESSAGE_ID_TAG, type Notice } from '../../model/feedback.ts';
import { isMessageId } from '../../model/submission.ts';
import { findEnhancedStatus, parseEnhancedStatus } from '../read/codes.ts';
import { createEvidence, parseFieldAddress, stripType, toOneLine } from '../read/evidence.ts';
import { createFailureClassifier, type FailureClassifier } from '../read/failure-classifier.ts';

export type SesEvent =
  /** `reference` is the provider's id of the message; `key` is the same for the same event, however often it is sent. */
  | {
      readonly kind: 'notice';
      readonly reference: string;
      /** The mail request's id, where the message was tagged with it and the event carries tags. */
      readonly messageId: string | null;
      /** It carries tags and not ours: if its message is not known by the provider's id, another program sent it. */
      readonly unrelated: boolean;
      readonly key: string;
      readonly notices: readonly Notice[];
    }
  /** Nothing that changes a mail request: it was sent, opened, clicked; a topic was set up. */
  | { readonly kind: 'nothing' }
  | { readonly kind: 'unknown'; readonly reason: string };

type Json = Readonly<Record<string, unknown>>;

const MOST_RECIPIENTS = 100;
const LONGEST_ID = 200;
/** Types that say nothing new of a message; the last is the test notification of a topic. */
const NOTHING: readonly string[] = ['Send', 'Open', 'Click', 'Subscription', 'AmazonSnsSubscriptionSucceeded'];
/** What is published, as plain words, when a topic becomes the destination of a configuration set's events. */
const TOPIC_TRIED = 'Successfully validated SNS topic for Amazon SES';
/** Sub-types of a permanent bounce by which the provider itself has the address on a list of dead ones. */
const LISTED: readonly string[] = ['Suppressed', 'OnAccountSuppressionList'];

/** One event, as the text of an SNS message or of a queue's. */
export function readSesEvent(text: string): SesEvent {
  if (text.startsWith(TOPIC_TRIED)) return { kind: 'nothing' };
  const event = objectOf(parse(text));
  if (event === null) return unknown('it is no JSON object');
  const type = textOf(event.eventType) ?? textOf(event.notificationType);
  if (type === null) return unknown('it has neither eventType nor notificationType, so that it is not from Amazon SES');
  if (NOTHING.includes(type)) return { kind: 'nothing' };
  const reference = textOf(objectOf(event.mail)?.messageId);
  if (reference === null || !isId(reference)) return unknown(`${shown(type)}: it names no message (mail.messageId)`);
  const tagged = tagOf(objectOf(event.mail)?.tags);
  const notices = noticesOf(type, event);
  if (notices === null) return unknown(`${shown(type)} is no event that is known`);
  const key = `${type}\n${reference}\n${identityOf(type, event)}`;
  const foreign = tagged === 'foreign';
  return { kind: 'notice', reference, messageId: foreign ? null : tagged, unrelated: foreign, key, notices };
}

/**
 * Our tag in an event of a configuration set, which carries all tags of its message: without ours it is about what another
 * program of the same account has sent, as far as can be told. Null for notifications of identities, which have no tags.
 */
function tagOf(tags: unknown): string | 'foreign' | null {
  const found = objectOf(tags);
  if (found === null || Object.keys(found).length === 0) return null;
  const values = found[MESSAGE_ID_TAG];
  const id: unknown = Array.isArray(values) ? values[0] : undefined;
  return typeof id === 'string' && isMessageId(id) ? id : 'foreign';
}

function noticesOf(type: string, event: Json): readonly Notice[] | null {
  switch (type) {
    case 'Bounce':
      return bounces(objectOf(event.bounce) ?? {});
    case 'Complaint':
      return complaints(objectOf(event.complaint) ?? {});
    case 'Delivery':
      return deliveries(objectOf(event.delivery) ?? {});
    case 'DeliveryDelay':
      return delays(objectOf(event.deliveryDelay) ?? {});
    case 'Reject':
      return [refused(textOf(objectOf(event.reject)?.reason) ?? 'rejected by the provider')];
    case 'Rendering Failure':
    case 'RenderingFailure':
      return [refused(textOf(objectOf(event.failure)?.errorMessage) ?? 'the provider could not make the message')];
    default:
      return null;
  }
}

function bounces(bounce: Json): readonly Notice[] {
  const [type, subType] = [textOf(bounce.bounceType) ?? '', textOf(bounce.bounceSubType) ?? ''];
  const recipients = listOf(bounce.bouncedRecipients);
  if (type === 'Transient' && subType === 'General' && recipients.length > 0 && recipients.every(saysNothing)) {
    // No status notification was in what came back: under this sub-type the provider also files out-of-office replies.
    return [{ kind: 'auto-reply', evidence: told({}, bounce, `${type} ${subType}`) }];
  }
  const judgements = createFailureClassifier();
  return (recipients.length === 0 ? [{}] : recipients).map((one) => {
    const evidence = told(one, bounce, `${type} ${subType}`);
    return { ...about(one.emailAddress, evidence), kind: 'bounce', ...verdict(type, subType, one, judgements) };
  });
}

function saysNothing({ action, status, diagnosticCode }: Json): boolean {
  return textOf(action) === null && textOf(status) === null && textOf(diagnosticCode) === null;
}

/** Transient and undetermined bounces may pass; a permanent one says of the mailbox what its sub-type and the server's words say. */
function verdict(
  type: string,
  subType: string,
  recipient: Json,
  judgements: FailureClassifier,
): { permanent: boolean; mailboxMissing: boolean } {
  if (type !== 'Permanent') return { permanent: false, mailboxMissing: false };
  if (LISTED.includes(subType)) return { permanent: true, mailboxMissing: true };
  const [said, status] = [textOf(recipient.diagnosticCode), statusIn(recipient)];
  if (said === null && status === null) {
    return { permanent: true, mailboxMissing: subType === 'General' || subType === 'NoEmail' };
  }
  const judged = judgements.classify(said ?? '', status);
  // The provider says that there is no such address, and is believed but where the server speaks of policy or of another day.
  const believed =
    subType === 'NoEmail' && judged.permanent && !isPolicy(status) && !isPolicy(findEnhancedStatus(said ?? ''));
  return { permanent: true, mailboxMissing: believed || judged.mailboxMissing };
}

/** RFC 3463 section 3.8: security or policy. */
function isPolicy(status: string | null): boolean {
  return status?.startsWith('5.7.') === true;
}

function complaints(complaint: Json): readonly Notice[] {
  const feedbackType = toOneLine(textOf(complaint.complaintFeedbackType) ?? 'abuse', 40)?.toLowerCase() ?? 'abuse';
  const recipients = listOf(complaint.complainedRecipients);
  const words = [textOf(complaint.complaintSubType), textOf(complaint.userAgent)].filter((part) => part !== null);
  const evidence = { status: null, diagnostic: toOneLine(words.join(' ')), reportingHost: null };
  return (recipients.length === 0 ? [{}] : recipients).map((one) => {
    return { ...about(one.emailAddress, evidence), kind: 'complaint', feedbackType };
  });
}

function deliveries(delivery: Json): readonly Notice[] {
  const evidence: Evidence = { ...told({}, delivery, ''), diagnostic: line(delivery.smtpResponse) };
  const recipients = Array.isArray(delivery.recipients) ? delivery.recipients.slice(0, MOST_RECIPIENTS) : [];
  return (recipients.length === 0 ? [null] : recipients).map((one) => ({ ...about(one, evidence), kind: 'delivered' }));
}

function delays(delay: Json): readonly Notice[] {
  const recipients = listOf(delay.delayedRecipients);
  return (recipients.length === 0 ? [{}] : recipients).map((one) => ({
    ...about(one.emailAddress, told(one, delay, textOf(delay.delayType) ?? '')),
    kind: 'delayed',
  }));
}

/** The provider itself refused what it had taken: about the message, never about the mailbox. */
function refused(reason: string): Notice {
  const evidence = { status: null, diagnostic: toOneLine(reason), reportingHost: null };
  return { ...about(null, evidence), kind: 'bounce', permanent: true, mailboxMissing: false };
}

function about(address: unknown, evidence: Evidence) {
  const text = textOf(address);
  return { recipient: text === null ? null : parseFieldAddress(text, true), alias: null, evidence };
}

function told(recipient: Json, whole: Json, otherwise: string): Evidence {
  const host = textOf(whole.reportingMTA);
  return createEvidence(
    statusIn(recipient),
    line(recipient.diagnosticCode) ?? otherwise,
    host === null ? null : stripType(host),
  );
}

/**
 * What makes this event another one than the next of the same message: the provider's id of it, else its time and
 * recipients. Both forms of one event have the same.
 */
function identityOf(type: string, event: Json): string {
  const detail = objectOf(event[DETAILS[type] ?? '']) ?? {};
  const feedbackId = textOf(detail.feedbackId);
  if (feedbackId !== null) return feedbackId.slice(0, LONGEST_ID);
  const named =
    detail.recipients ?? detail.bouncedRecipients ?? detail.complainedRecipients ?? detail.delayedRecipients;
  const recipients = (Array.isArray(named) ? named.slice(0, MOST_RECIPIENTS) : [])
    .map((one) => (textOf(one) ?? textOf(objectOf(one)?.emailAddress) ?? '').slice(0, LONGEST_ID))
    .sort();
  return [textOf(detail.timestamp)?.slice(0, LONGEST_ID) ?? '', ...recipients].join('\n');
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
  return value.slice(0, MOST_RECIPIENTS).flatMap((one) => {
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

/** Printable ASCII, and not endless. */
function isId(text: string): boolean {
  return text.length <= LONGEST_ID && [...text].every((character) => character > ' ' && character <= '~');
}

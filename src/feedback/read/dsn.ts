/**
 * Reads delivery status notifications (RFC 3464), including common deviations: other media types, groups without a separator,
 * fields with comments, unknown actions. If the diagnostic is missing or unknown, the free text of the notification determines the result.
 */
import type { FeedbackEvent } from '../../model/feedback.ts';
import type { FailureClassification } from './classify-failure.ts';
import { findEnhancedStatus, parseEnhancedStatus } from './codes.ts';
import { decodeEncodedWords } from './decode.ts';
import { type Entity, leafParts } from './entity.ts';
import { createEvidence, parseFieldAddress, stripType } from './evidence.ts';
import type { FailureClassifier } from './failure-classifier.ts';
import { type Field, fieldValue, readFieldGroups } from './fields.ts';
import type { FreeText } from './free-text.ts';

/** Maximum number of events of one report, over all groups and parts. */
export const MAX_EVENTS = 100;

/** The content of a report outside its fields. */
export interface ReportContext {
  readonly freeText: FreeText;
  /** Failed recipients in the header of the notification, or in its free text. */
  readonly recipients: readonly string[];
  readonly classifier: FailureClassifier;
}

/** Media types of the machine-readable part; RFC 6533 section 3 defines the second. */
const REPORT_TYPES: readonly string[] = [
  'message/delivery-status',
  'message/global-delivery-status',
  'text/delivery-status',
  'application/delivery-status',
  'message/x-delivery-status',
];

/** Fields that occur once per recipient: a second one starts the next recipient. */
const SINGLE_FIELDS: readonly string[] = ['final-recipient', 'action', 'status'];
const RECIPIENT_FIELDS: readonly string[] = [...SINGLE_FIELDS, 'original-recipient'];

export function isDeliveryStatus({ type }: Entity): boolean {
  return REPORT_TYPES.includes(type);
}

/**
 * Returns one event per recipient of the first machine-readable part, or an empty list if there is no such part. The number of
 * events is bounded.
 */
export function readDsnEvents(message: Entity, context: ReportContext): readonly FeedbackEvent[] {
  for (const part of leafParts(message)) {
    if (!isDeliveryStatus(part)) continue;
    const events = readStatusEvents(part.text(), context);
    if (events.length > 0) return events;
  }
  return [];
}

/**
 * Reads at most `limit` events from the fields of a report. Returns an empty list if no field is about a recipient. The
 * function stops at the limit, because each group without a recipient gets all recipients of the header.
 */
export function readStatusEvents(
  text: string,
  context: ReportContext,
  limit: number = MAX_EVENTS,
): readonly FeedbackEvent[] {
  const { message, recipients } = sortGroups(readFieldGroups(text));
  const events: FeedbackEvent[] = [];
  for (const fields of recipients) {
    if (events.length >= limit) break;
    events.push(...readGroup(fields, message, context, limit - events.length));
  }
  return events;
}

/** Finds the reporting server of a report. */
export function findReportingHost(message: Entity): string | null {
  for (const part of leafParts(message)) {
    if (!isDeliveryStatus(part)) continue;
    for (const group of readFieldGroups(part.text())) {
      const host = fieldValue(group, 'reporting-mta');
      if (host !== null) return stripType(host);
    }
  }
  return null;
}

interface Groups {
  readonly message: readonly Field[];
  readonly recipients: readonly (readonly Field[])[];
}

/**
 * Separates message fields from recipient groups. RFC 3464 section 2.1 requires a blank line between groups, but some servers
 * omit it.
 */
function sortGroups(groups: readonly (readonly Field[])[]): Groups {
  const message: Field[] = [];
  const recipients: Field[][] = [];
  for (const group of groups) {
    let current: Field[] = [];
    let seen = new Set<string>();
    const endGroup = (): void => {
      if (RECIPIENT_FIELDS.some((name) => seen.has(name))) recipients.push(current);
      else message.push(...current);
      current = [];
      seen = new Set();
    };
    for (const field of group) {
      if (SINGLE_FIELDS.includes(field.name) && seen.has(field.name)) endGroup();
      current.push(field);
      seen.add(field.name);
    }
    endGroup();
  }
  return { message, recipients: joinSplitGroups(recipients) };
}

/** Joins a group without a recipient to the preceding group when that group has a recipient and no action. */
function joinSplitGroups(groups: readonly Field[][]): readonly (readonly Field[])[] {
  const joined: Field[][] = [];
  /** True when the last group of `joined` has a recipient and no action. */
  let isOpen = false;
  for (const group of groups) {
    const last = joined.at(-1);
    const hasAction = fieldValue(group, 'action') !== null;
    if (isOpen && last !== undefined && !hasRecipient(group)) {
      last.push(...group);
      isOpen = !hasAction;
    } else {
      joined.push([...group]);
      isOpen = hasRecipient(group) && !hasAction;
    }
  }
  return joined;
}

function hasRecipient(fields: readonly Field[]): boolean {
  return fields.some(({ name }) => name === 'final-recipient' || name === 'original-recipient');
}

function readGroup(
  fields: readonly Field[],
  message: readonly Field[],
  context: ReportContext,
  limit: number,
): readonly FeedbackEvent[] {
  const { recipient, alias } = readRecipients(fields);
  const groupRecipients =
    recipient !== null || hasRecipient(fields) || context.recipients.length === 0 ? [recipient] : context.recipients;
  return groupRecipients.slice(0, limit).map((name) => createEvent(fields, message, context, name, alias));
}

function createEvent(
  fields: readonly Field[],
  message: readonly Field[],
  context: ReportContext,
  recipient: string | null,
  alias: string | null,
): FeedbackEvent {
  const value = fieldValue(fields, 'status');
  const diagnostics = joinDiagnostics(fields);
  const status = parseEnhancedStatus(value ?? '') ?? findEnhancedStatus(diagnostics);
  const host = fieldValue(message, 'reporting-mta') ?? fieldValue(fields, 'reporting-mta');
  const diagnostic = readDiagnostic(fields);
  const evidence = createEvidence(
    status,
    diagnostic ?? (diagnostics === '' ? null : diagnostics),
    host === null ? null : stripType(host),
  );
  const recipientMembers = { recipient, alias, evidence };
  switch (determineAction(fieldValue(fields, 'action') ?? '', status, context, recipient)) {
    case 'failed': {
      const { permanent, mailboxMissing } = classifyFields(diagnostics, status, context, alias ?? recipient);
      return { ...recipientMembers, kind: 'bounce', permanent, mailboxMissing };
    }
    case 'delayed':
      return { ...recipientMembers, kind: 'delayed' };
    case 'delivered':
      return { ...recipientMembers, kind: 'delivered' };
  }
}

/**
 * RFC 3464 section 2.3.1: the original recipient is the address of the message; the final recipient is the address after
 * forwarding.
 */
function readRecipients(fields: readonly Field[]): {
  readonly recipient: string | null;
  readonly alias: string | null;
} {
  const final = readAddress(fields, 'final-recipient') ?? readAddress(fields, 'x-actual-recipient');
  const original = readAddress(fields, 'original-recipient') ?? readAddress(fields, 'x-original-recipient');
  if (original === null) return { recipient: final, alias: null };
  // If the undecoded address equals the final recipient, the address is not xtext-encoded.
  const raw = parseFieldAddress(fieldValue(fields, 'original-recipient') ?? '', true);
  if (final !== null && (isSameAddress(original, final) || (raw !== null && isSameAddress(raw, final))))
    return { recipient: final, alias: null };
  return { recipient: original, alias: final };
}

function readAddress(fields: readonly Field[], name: string): string | null {
  const value = fieldValue(fields, name);
  return value === null ? null : parseFieldAddress(decodeEncodedWords(value), name !== 'original-recipient');
}

function isSameAddress(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

type Action = 'failed' | 'delayed' | 'delivered';

/** Reads the action (RFC 3464 section 2.3.3). If the action is missing or unknown, the status and the free text determine it. */
function determineAction(
  value: string,
  status: string | null,
  context: ReportContext,
  recipient: string | null,
): Action {
  const action = value.trim().toLowerCase();
  if (action.startsWith('fail')) return 'failed';
  if (action.startsWith('delay')) return 'delayed';
  if (['deliver', 'relay', 'expand'].some((prefix) => action.startsWith(prefix))) return 'delivered';
  if (status?.startsWith('2.') === true) return 'delivered';
  const isDelayed = context.classifier.reportsDelay(context.freeText.section(recipient));
  return isDelayed || (status?.startsWith('4.') === true && action === '') ? 'delayed' : 'failed';
}

/** Fields with the diagnostic of the refusing server, in order of preference. Exchange and X.400 gateways use their own fields. */
const DIAGNOSTIC_FIELDS: readonly string[] = [
  'diagnostic-code',
  'x-supplementary-info',
  'x400-supplementary-info',
  'x-notes-diagnostic',
  'x-smtp-diagnostic',
  'x-mailer-diagnostic',
  'x-error',
  'x-reason',
  'reason',
];

function readDiagnostic(fields: readonly Field[]): string | null {
  for (const name of DIAGNOSTIC_FIELDS) {
    const value = fieldValue(fields, name);
    if (value !== null) return stripType(decodeEncodedWords(value));
  }
  return null;
}

/** Joins all diagnostics, and the comments of the status and action fields. */
function joinDiagnostics(fields: readonly Field[]): string {
  const texts = DIAGNOSTIC_FIELDS.flatMap((name) => fieldValue(fields, name) ?? []).map((value) =>
    stripType(decodeEncodedWords(value)),
  );
  const status = fieldValue(fields, 'status') ?? '';
  const statusComment = parseEnhancedStatus(status) === null ? status : status.trimStart().slice(5);
  const action = fieldValue(fields, 'action') ?? '';
  const comment = action.indexOf('(');
  return [...texts, statusComment, comment < 0 ? '' : action.slice(comment)]
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join(' ');
}

/** Classifies a failure by its diagnostics and its status. If these are unknown, the free text determines the result. */
function classifyFields(
  diagnostics: string,
  status: string | null,
  { freeText, classifier }: ReportContext,
  recipient: string | null,
): FailureClassification {
  const byFields = classifier.classify(diagnostics, status);
  if (byFields.known || freeText.text.trim() === '') return byFields;
  const byText = freeText.classify(recipient, status);
  return byText.known ? byText : byFields;
}

/** RFC 3464 with common deviations. Where the diagnostic says nothing, the free text counts. */
import { containsPhrase, normalizeText, parsePhrases } from '../../classify/phrases.ts';
import type { FeedbackEvent } from '../../model/feedback.ts';
import { decodeEncodedWords } from './decode.ts';
import {
  type Diagnose,
  type Diagnosis,
  findEnhancedStatus,
  parseEnhancedStatus,
  toTemporaryFailure,
} from './diagnosis.ts';
import { type Entity, type Field, findFieldValue, isDeliveryStatus, listLeafParts, readFieldGroups } from './entity.ts';
import { createEvidence, parseFieldAddress, stripType } from './evidence.ts';
import type { FreeText } from './free-text.ts';
import { DELAY_PHRASES } from './phrases.ts';

/** Of one report, for all groups and parts together. */
export const MAX_EVENTS = 100;

export interface ReportContext {
  readonly freeText: FreeText;
  readonly recipients: readonly string[];
  readonly diagnose: Diagnose;
}

/** A second occurrence begins the fields of the next recipient. */
const SINGLE_FIELD_NAMES: readonly string[] = ['final-recipient', 'action', 'status'];
const RECIPIENT_FIELD_NAMES: readonly string[] = [...SINGLE_FIELD_NAMES, 'original-recipient'];

export function readDsnEvents(message: Entity, context: ReportContext): readonly FeedbackEvent[] {
  for (const part of listLeafParts(message)) {
    if (!isDeliveryStatus(part)) continue;
    const events = readStatusEvents(part.decodeText(), context);
    if (events.length > 0) return events;
  }
  return [];
}

export function readStatusEvents(
  text: string,
  context: ReportContext,
  limit: number = MAX_EVENTS,
): readonly FeedbackEvent[] {
  const { messageFields, recipientGroups } = separateGroups(readFieldGroups(text));
  const events: FeedbackEvent[] = [];
  for (const fields of recipientGroups) {
    if (events.length >= limit) break;
    events.push(...readGroup(fields, messageFields, context, limit - events.length));
  }
  return events;
}

export function findReportingHost(message: Entity): string | null {
  for (const part of listLeafParts(message)) {
    if (!isDeliveryStatus(part)) continue;
    for (const group of readFieldGroups(part.decodeText())) {
      const host = findFieldValue(group, 'reporting-mta');
      if (host !== null) return stripType(host);
    }
  }
  return null;
}

interface FieldGroups {
  readonly messageFields: readonly Field[];
  readonly recipientGroups: readonly (readonly Field[])[];
}

/** RFC 3464 section 2.1 requires a blank line between groups, but some servers omit it. */
function separateGroups(groups: readonly (readonly Field[])[]): FieldGroups {
  const messageFields: Field[] = [];
  const recipientGroups: Field[][] = [];
  for (const group of groups) {
    let currentGroup: Field[] = [];
    let seenNames = new Set<string>();
    const endGroup = (): void => {
      if (RECIPIENT_FIELD_NAMES.some((name) => seenNames.has(name))) recipientGroups.push(currentGroup);
      else messageFields.push(...currentGroup);
      currentGroup = [];
      seenNames = new Set();
    };
    for (const field of group) {
      if (SINGLE_FIELD_NAMES.includes(field.name) && seenNames.has(field.name)) endGroup();
      currentGroup.push(field);
      seenNames.add(field.name);
    }
    endGroup();
  }
  return { messageFields, recipientGroups: joinSplitGroups(recipientGroups) };
}

/** A group without a recipient continues one that has a recipient and no action. */
function joinSplitGroups(groups: readonly Field[][]): readonly (readonly Field[])[] {
  const joinedGroups: Field[][] = [];
  let isOpen = false;
  for (const group of groups) {
    const lastGroup = joinedGroups.at(-1);
    const hasAction = findFieldValue(group, 'action') !== null;
    if (isOpen && lastGroup !== undefined && !hasRecipient(group)) {
      lastGroup.push(...group);
      isOpen = !hasAction;
    } else {
      joinedGroups.push([...group]);
      isOpen = hasRecipient(group) && !hasAction;
    }
  }
  return joinedGroups;
}

function hasRecipient(fields: readonly Field[]): boolean {
  return fields.some(({ name }) => name === 'final-recipient' || name === 'original-recipient');
}

function readGroup(
  fields: readonly Field[],
  messageFields: readonly Field[],
  context: ReportContext,
  limit: number,
): readonly FeedbackEvent[] {
  const { recipient, alias } = readRecipients(fields);
  const groupRecipients =
    recipient !== null || hasRecipient(fields) || context.recipients.length === 0 ? [recipient] : context.recipients;
  return groupRecipients.slice(0, limit).map((address) => createEvent(fields, messageFields, context, address, alias));
}

function createEvent(
  fields: readonly Field[],
  messageFields: readonly Field[],
  context: ReportContext,
  recipient: string | null,
  alias: string | null,
): FeedbackEvent {
  const value = findFieldValue(fields, 'status');
  const diagnostics = joinDiagnostics(fields);
  const status = parseEnhancedStatus(value ?? '') ?? findEnhancedStatus(diagnostics);
  const host = findFieldValue(messageFields, 'reporting-mta') ?? findFieldValue(fields, 'reporting-mta');
  const diagnostic = readDiagnostic(fields);
  const evidence = createEvidence(
    status,
    diagnostic ?? (diagnostics === '' ? null : diagnostics),
    host === null ? null : stripType(host),
  );
  const recipientMembers = { recipient, alias, evidence };
  switch (determineAction(findFieldValue(fields, 'action') ?? '', status, context, recipient)) {
    case 'failed': {
      const { permanent, failure } = diagnoseFields(diagnostics, status, context, alias ?? recipient);
      return { ...recipientMembers, kind: 'bounce', permanent, failure };
    }
    case 'delayed': {
      const { failure } = diagnoseFields(diagnostics, status, context, alias ?? recipient);
      return { ...recipientMembers, kind: 'delayed', failure: toTemporaryFailure(failure) };
    }
    case 'delivered':
      return { ...recipientMembers, kind: 'delivered' };
  }
}

/** RFC 3464 section 2.3: the original recipient is the address of the sender, the final one that after forwarding. */
function readRecipients(fields: readonly Field[]): {
  readonly recipient: string | null;
  readonly alias: string | null;
} {
  const finalRecipient = readAddress(fields, 'final-recipient') ?? readAddress(fields, 'x-actual-recipient');
  const originalRecipient = readAddress(fields, 'original-recipient') ?? readAddress(fields, 'x-original-recipient');
  if (originalRecipient === null) return { recipient: finalRecipient, alias: null };
  // Then the original recipient is not xtext-encoded.
  const undecodedRecipient = parseFieldAddress(findFieldValue(fields, 'original-recipient') ?? '', true);
  if (
    finalRecipient !== null &&
    (isSameAddress(originalRecipient, finalRecipient) ||
      (undecodedRecipient !== null && isSameAddress(undecodedRecipient, finalRecipient)))
  )
    return { recipient: finalRecipient, alias: null };
  return { recipient: originalRecipient, alias: finalRecipient };
}

function readAddress(fields: readonly Field[], name: string): string | null {
  const value = findFieldValue(fields, name);
  return value === null ? null : parseFieldAddress(decodeEncodedWords(value), name !== 'original-recipient');
}

function isSameAddress(leftAddress: string, rightAddress: string): boolean {
  return leftAddress.toLowerCase() === rightAddress.toLowerCase();
}

type Action = 'failed' | 'delayed' | 'delivered';

/** RFC 3464 section 2.3.3. Otherwise by status and free text. */
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
  const isDelayed = containsPhrase(normalizeText(context.freeText.getSection(recipient)), DELAY_PHRASES);
  return isDelayed || (status?.startsWith('4.') === true && action === '') ? 'delayed' : 'failed';
}

/** In order of preference. Exchange and X.400 gateways use their own fields. */
const DIAGNOSTIC_FIELD_NAMES: readonly string[] = parsePhrases(`
  diagnostic-code, x-supplementary-info, x400-supplementary-info, x-notes-diagnostic, x-smtp-diagnostic
  x-mailer-diagnostic, x-error, x-reason, reason
`);

function readDiagnostic(fields: readonly Field[]): string | null {
  for (const name of DIAGNOSTIC_FIELD_NAMES) {
    const value = findFieldValue(fields, name);
    if (value !== null) return stripType(decodeEncodedWords(value));
  }
  return null;
}

function joinDiagnostics(fields: readonly Field[]): string {
  const diagnosticTexts = DIAGNOSTIC_FIELD_NAMES.flatMap((name) => findFieldValue(fields, name) ?? []).map((value) =>
    stripType(decodeEncodedWords(value)),
  );
  const status = findFieldValue(fields, 'status') ?? '';
  const statusComment = parseEnhancedStatus(status) === null ? status : status.trimStart().slice(5);
  const action = findFieldValue(fields, 'action') ?? '';
  const commentStart = action.indexOf('(');
  return [...diagnosticTexts, statusComment, commentStart < 0 ? '' : action.slice(commentStart)]
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join(' ');
}

function diagnoseFields(
  diagnostics: string,
  status: string | null,
  { freeText, diagnose }: ReportContext,
  recipient: string | null,
): Diagnosis {
  const fieldDiagnosis = diagnose(diagnostics, status);
  if (fieldDiagnosis.isKnown || freeText.text.trim() === '') return fieldDiagnosis;
  const textDiagnosis = freeText.diagnose(recipient, status);
  return textDiagnosis.isKnown ? textDiagnosis : fieldDiagnosis;
}

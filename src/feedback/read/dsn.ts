/**
 * Delivery status notifications (RFC 3464) in the shapes that servers really send: the machine-readable part under its own
 * type or another, groups run together, fields with comments, unknown actions. Where the remote server's words are
 * missing or say nothing, the text for people is asked.
 */
import type { Notice } from '../../model/feedback.ts';
import type { FailureClassification } from './classify-failure.ts';
import { findEnhancedStatus, parseEnhancedStatus } from './codes.ts';
import { decodeEncodedWords } from './decode.ts';
import { type Entity, leafParts } from './entity.ts';
import { createEvidence, parseFieldAddress, stripType } from './evidence.ts';
import type { FailureClassifier } from './failure-classifier.ts';
import { type Field, fieldValue, readFieldGroups } from './fields.ts';
import type { FreeText } from './free-text.ts';

/** Failures and other outcomes that are read of one report, over all of its groups and parts. */
export const MAX_NOTICES = 100;

/** What a report says besides its fields. */
export interface ReportContext {
  readonly freeText: FreeText;
  /** Recipients that the notice's own header names as failed, or its text does. */
  readonly recipients: readonly string[];
  readonly classifier: FailureClassifier;
}

/** The types of the machine-readable part; RFC 6533 section 3 has the second. */
const REPORT_TYPES: readonly string[] = [
  'message/delivery-status',
  'message/global-delivery-status',
  'text/delivery-status',
  'application/delivery-status',
  'message/x-delivery-status',
];

/** Fields of which a recipient has one: a second one begins the next recipient. */
const ONCE: readonly string[] = ['final-recipient', 'action', 'status'];
const ABOUT_RECIPIENT: readonly string[] = [...ONCE, 'original-recipient'];

export function isDeliveryStatus({ type }: Entity): boolean {
  return REPORT_TYPES.includes(type);
}

/** One notice for each recipient of the report's first machine-readable part, at most MAX_NOTICES, or none where there is no such part. */
export function readDsnNotices(message: Entity, told: ReportContext): readonly Notice[] {
  for (const part of leafParts(message)) {
    if (!isDeliveryStatus(part)) continue;
    const notices = readStatusNotices(part.text(), told);
    if (notices.length > 0) return notices;
  }
  return [];
}

/**
 * Notices out of the fields of a report, wherever they stand, at most `most`; none where nothing in them is about a
 * recipient. What lies beyond is not looked at: groups without a recipient times named recipients have no bound.
 */
export function readStatusNotices(text: string, told: ReportContext, most: number = MAX_NOTICES): readonly Notice[] {
  const { message, recipients } = sortGroups(readFieldGroups(text));
  const notices: Notice[] = [];
  for (const fields of recipients) {
    if (notices.length >= most) break;
    notices.push(...noticesOf(fields, message, told, most - notices.length));
  }
  return notices;
}

/** The server that reports, out of the fields of a report that names no recipient. */
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

/** Section 2.1 puts a blank line between groups. Some put none, or one in the middle. */
function sortGroups(groups: readonly (readonly Field[])[]): Groups {
  const message: Field[] = [];
  const recipients: Field[][] = [];
  for (const group of groups) {
    let current: Field[] = [];
    let seen = new Set<string>();
    const end = (): void => {
      if (ABOUT_RECIPIENT.some((name) => seen.has(name))) recipients.push(current);
      else message.push(...current);
      current = [];
      seen = new Set();
    };
    for (const field of group) {
      if (ONCE.includes(field.name) && seen.has(field.name)) end();
      current.push(field);
      seen.add(field.name);
    }
    end();
  }
  return { message, recipients: joinTorn(recipients) };
}

/** A group with an action and no recipient belongs to the one before, where that has a recipient and no action. */
function joinTorn(groups: readonly Field[][]): readonly (readonly Field[])[] {
  const joined: Field[][] = [];
  /** Whether the last of `joined` has a recipient and no action. */
  let open = false;
  for (const group of groups) {
    const last = joined.at(-1);
    const acts = fieldValue(group, 'action') !== null;
    if (open && last !== undefined && !hasRecipient(group)) {
      last.push(...group);
      open = !acts;
    } else {
      joined.push([...group]);
      open = hasRecipient(group) && !acts;
    }
  }
  return joined;
}

function hasRecipient(fields: readonly Field[]): boolean {
  return fields.some(({ name }) => name === 'final-recipient' || name === 'original-recipient');
}

function noticesOf(
  fields: readonly Field[],
  message: readonly Field[],
  told: ReportContext,
  most: number,
): readonly Notice[] {
  const { recipient, alias } = recipientsOf(fields);
  const named =
    recipient !== null || hasRecipient(fields) || told.recipients.length === 0 ? [recipient] : told.recipients;
  return named.slice(0, most).map((name) => noticeOf(fields, message, told, name, alias));
}

function noticeOf(
  fields: readonly Field[],
  message: readonly Field[],
  told: ReportContext,
  recipient: string | null,
  alias: string | null,
): Notice {
  const written = fieldValue(fields, 'status');
  const words = wordsOf(fields);
  const status = parseEnhancedStatus(written ?? '') ?? findEnhancedStatus(words);
  const host = fieldValue(message, 'reporting-mta') ?? fieldValue(fields, 'reporting-mta');
  const diagnostic = diagnosticOf(fields);
  const evidence = createEvidence(
    status,
    diagnostic ?? (words === '' ? null : words),
    host === null ? null : stripType(host),
  );
  const about = { recipient, alias, evidence };
  switch (actionOf(fieldValue(fields, 'action') ?? '', status, told, recipient)) {
    case 'failed': {
      const { permanent, mailboxMissing } = judgeFailure(words, status, told, alias ?? recipient);
      return { ...about, kind: 'bounce', permanent, mailboxMissing };
    }
    case 'delayed':
      return { ...about, kind: 'delayed' };
    case 'delivered':
      return { ...about, kind: 'delivered' };
  }
}

/** Section 2.3.1: the original recipient is whom we sent to; the final one is who that became on the way. */
function recipientsOf(fields: readonly Field[]): { readonly recipient: string | null; readonly alias: string | null } {
  const final = addressOf(fields, 'final-recipient') ?? addressOf(fields, 'x-actual-recipient');
  const original = addressOf(fields, 'original-recipient') ?? addressOf(fields, 'x-original-recipient');
  if (original === null) return { recipient: final, alias: null };
  // As it stands, where the server gives the same as the final one: then it was never in xtext.
  const raw = parseFieldAddress(fieldValue(fields, 'original-recipient') ?? '', true);
  if (final !== null && (same(original, final) || (raw !== null && same(raw, final))))
    return { recipient: final, alias: null };
  return { recipient: original, alias: final };
}

function addressOf(fields: readonly Field[], name: string): string | null {
  const value = fieldValue(fields, name);
  return value === null ? null : parseFieldAddress(decodeEncodedWords(value), name !== 'original-recipient');
}

function same(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

type Action = 'failed' | 'delayed' | 'delivered';

/** Section 2.3.3. Where it is missing or none of these, status and text say which. */
function actionOf(written: string, status: string | null, told: ReportContext, recipient: string | null): Action {
  const word = written.trim().toLowerCase();
  if (word.startsWith('fail')) return 'failed';
  if (word.startsWith('delay')) return 'delayed';
  if (['deliver', 'relay', 'expand'].some((start) => word.startsWith(start))) return 'delivered';
  if (status?.startsWith('2.') === true) return 'delivered';
  const waits = told.classifier.reportsDelay(told.freeText.passage(recipient));
  return waits || (status?.startsWith('4.') === true && word === '') ? 'delayed' : 'failed';
}

/** Fields that hold words of the server that refused, best first. Exchange and X.400 gateways have their own. */
const DIAGNOSTICS: readonly string[] = [
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

function diagnosticOf(fields: readonly Field[]): string | null {
  for (const name of DIAGNOSTICS) {
    const value = fieldValue(fields, name);
    if (value !== null) return stripType(decodeEncodedWords(value));
  }
  return null;
}

/** Every word of the servers in it: diagnostics, then what stands behind status and action. */
function wordsOf(fields: readonly Field[]): string {
  const said = DIAGNOSTICS.flatMap((name) => fieldValue(fields, name) ?? []).map((value) =>
    stripType(decodeEncodedWords(value)),
  );
  const status = fieldValue(fields, 'status') ?? '';
  const behindStatus = parseEnhancedStatus(status) === null ? status : status.trimStart().slice(5);
  const action = fieldValue(fields, 'action') ?? '';
  const open = action.indexOf('(');
  return [...said, behindStatus, open < 0 ? '' : action.slice(open)]
    .map((piece) => piece.trim())
    .filter((piece) => piece !== '')
    .join(' ');
}

/** The server's words and the status first; the text for people where they say nothing that is known. */
function judgeFailure(
  words: string,
  status: string | null,
  { freeText: prose, classifier: judgements }: ReportContext,
  recipient: string | null,
): FailureClassification {
  const machine = judgements.classify(words, status);
  if (machine.known || prose.text.trim() === '') return machine;
  const human = prose.classify(recipient, status);
  return human.known ? human : machine;
}

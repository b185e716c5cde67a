/** Reads feedback reports (RFC 5965), by which a mailbox provider forwards complaints of its users. */
import type { FeedbackEvent } from '../../model/feedback.ts';
import { type Entity, leafParts } from './entity.ts';
import { createEvidence, parseFieldAddress, stripType } from './evidence.ts';
import { type Field, fieldValue, readFieldGroups, readFields } from './fields.ts';

const MAX_RECIPIENTS = 100;
const MAX_TYPE_LENGTH = 40;
/** Maximum number of characters that are read from a text part. */
const MAX_TEXT_LENGTH = 8_192;

/** The media type of the machine-readable part, and the types that gateways change it to. */
const REPORT_TYPES: readonly string[] = [
  'message/feedback-report',
  'text/feedback-report',
  'application/feedback-report',
];

/**
 * Returns one complaint per recipient, or one complaint without a recipient if the report names none. Returns an empty list if
 * the message is not a report.
 */
export function readArfEvents(message: Entity): readonly FeedbackEvent[] {
  for (const part of leafParts(message)) {
    const fields = findReportFields(part);
    const feedbackType = parseFeedbackType(fieldValue(fields, 'feedback-type'));
    // RFC 5965 section 3.1 requires the type.
    if (feedbackType === null) continue;
    const evidence = createEvidence(null, buildDiagnostic(fields), readReportingHost(fields, message));
    return readRecipients(fields).map((recipient) => ({
      kind: 'complaint',
      feedbackType,
      recipient,
      alias: null,
      evidence,
    }));
  }
  return readOutlookComplaints(message);
}

/**
 * Returns the fields of a report part, or of a text that begins with the three required fields of section 3.1. Returns no
 * fields for other parts.
 */
function findReportFields(part: Entity): readonly Field[] {
  if (REPORT_TYPES.includes(part.type)) return readFieldGroups(part.text()).flat();
  if (part.type !== 'text/plain') return [];
  const [first = []] = readFieldGroups(part.text().slice(0, MAX_TEXT_LENGTH));
  return ['feedback-type', 'user-agent', 'version'].every((name) => fieldValue(first, name) !== null) ? first : [];
}

/**
 * Reads the format of Outlook.com: the original message without a report. An extra field names the recipient.
 * https://sendersupport.olc.protection.outlook.com/snds/ (its "JMRP").
 */
function readOutlookComplaints(message: Entity): readonly FeedbackEvent[] {
  for (const part of leafParts(message)) {
    if (part.type !== 'message/rfc822') continue;
    const value = fieldValue(readFields(part.octets()), 'x-hmxmroriginalrecipient');
    if (value === null) continue;
    const evidence = createEvidence(null, fieldValue(message.fields, 'subject'), readReportingHost([], message));
    return [
      { kind: 'complaint', feedbackType: 'abuse', recipient: parseFieldAddress(value, true), alias: null, evidence },
    ];
  }
  return [];
}

/** Parses a token (section 3.5) and converts it to lower case. Comments and text after a space are ignored. */
function parseFeedbackType(value: string | null): string | null {
  const token = value?.trim().toLowerCase().split(' ')[0]?.split('(')[0]?.split(';')[0] ?? '';
  if (token === '' || token.length > MAX_TYPE_LENGTH) return null;
  // Some reporters write `not_spam` and `opt_out`.
  return isToken(token) ? token.replaceAll('_', '-') : null;
}

function isToken(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) if (text.charCodeAt(i) <= 0x20 || text.charCodeAt(i) >= 0x7f) return false;
  return true;
}

/** Section 3.2 defines one `Original-Rcpt-To` field per recipient. Some reporters use other fields. */
const RECIPIENT_FIELDS: readonly string[] = [
  'original-rcpt-to',
  'original-recipient',
  'x-original-to',
  'removal-recipient',
];

function readRecipients(fields: readonly Field[]): readonly (string | null)[] {
  for (const fieldName of RECIPIENT_FIELDS) {
    const found = fields
      .filter(({ name }) => name === fieldName)
      .flatMap(({ value }) => parseFieldAddress(value, true) ?? []);
    if (found.length > 0) return [...new Set(found)].slice(0, MAX_RECIPIENTS);
  }
  return [null];
}

/** Returns the names of the reporting program and the source address as the diagnostic. */
function buildDiagnostic(fields: readonly Field[]): string | null {
  const agent = fieldValue(fields, 'user-agent');
  const source = fieldValue(fields, 'source-ip');
  const parts = [agent, source === null ? null : `source ${source}`].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join(', ');
}

/** Returns the reporting host from the optional field of section 3.2, or the domain of the report's author. */
function readReportingHost(fields: readonly Field[], message: Entity): string | null {
  const reportingMta = fieldValue(fields, 'reporting-mta');
  if (reportingMta !== null) return stripType(reportingMta);
  const from = parseFieldAddress(fieldValue(message.fields, 'from') ?? '', true);
  return from === null ? null : from.slice(from.lastIndexOf('@') + 1);
}

/** RFC 5965: complaints of the users of mailbox providers. */
import type { FeedbackEvent } from '../../model/feedback.ts';
import { type Entity, type Field, findFieldValue, listLeafParts, readFieldGroups, readFields } from './entity.ts';
import { createEvidence, parseFieldAddress, stripType } from './evidence.ts';

const MAX_RECIPIENTS = 100;
const MAX_TYPE_LENGTH = 40;
const MAX_TEXT_LENGTH = 8_192;

/** The registered type, and those with which gateways replace it. */
const REPORT_TYPES: readonly string[] = [
  'message/feedback-report',
  'text/feedback-report',
  'application/feedback-report',
];

/** One for each recipient, or one without. */
export function readArfEvents(message: Entity): readonly FeedbackEvent[] {
  for (const part of listLeafParts(message)) {
    const fields = findReportFields(part);
    const feedbackType = parseFeedbackType(findFieldValue(fields, 'feedback-type'));
    // RFC 5965 section 3.1 requires the field Feedback-Type.
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

/** Of a report part, or of a text that begins with the three required fields of section 3.1. */
function findReportFields(part: Entity): readonly Field[] {
  if (REPORT_TYPES.includes(part.type)) return readFieldGroups(part.decodeText()).flat();
  if (part.type !== 'text/plain') return [];
  const [firstGroup = []] = readFieldGroups(part.decodeText().slice(0, MAX_TEXT_LENGTH));
  return ['feedback-type', 'user-agent', 'version'].every((name) => findFieldValue(firstGroup, name) !== null)
    ? firstGroup
    : [];
}

/**
 * Outlook.com (JMRP, https://sendersupport.olc.protection.outlook.com/snds/) names the recipient in an extra field of
 * the original.
 */
function readOutlookComplaints(message: Entity): readonly FeedbackEvent[] {
  for (const part of listLeafParts(message)) {
    if (part.type !== 'message/rfc822') continue;
    const value = findFieldValue(readFields(part.decodeOctets()), 'x-hmxmroriginalrecipient');
    if (value === null) continue;
    const evidence = createEvidence(null, findFieldValue(message.fields, 'subject'), readReportingHost([], message));
    return [
      { kind: 'complaint', feedbackType: 'abuse', recipient: parseFieldAddress(value, true), alias: null, evidence },
    ];
  }
  return [];
}

/** The token of Feedback-Type (RFC 5965 section 3.5), without comments and text after a space. */
function parseFeedbackType(value: string | null): string | null {
  const token = value?.trim().toLowerCase().split(' ')[0]?.split('(')[0]?.split(';')[0] ?? '';
  if (token === '' || token.length > MAX_TYPE_LENGTH) return null;
  // Some write `not_spam` and `opt_out`.
  return isToken(token) ? token.replaceAll('_', '-') : null;
}

function isToken(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) if (text.charCodeAt(i) <= 0x20 || text.charCodeAt(i) >= 0x7f) return false;
  return true;
}

/** RFC 5965 section 3.2 defines the first field. Some reporters use others. */
const RECIPIENT_FIELD_NAMES: readonly string[] = [
  'original-rcpt-to',
  'original-recipient',
  'x-original-to',
  'removal-recipient',
];

function readRecipients(fields: readonly Field[]): readonly (string | null)[] {
  for (const fieldName of RECIPIENT_FIELD_NAMES) {
    const recipients = fields
      .filter(({ name }) => name === fieldName)
      .flatMap(({ value }) => parseFieldAddress(value, true) ?? []);
    if (recipients.length > 0) return [...new Set(recipients)].slice(0, MAX_RECIPIENTS);
  }
  return [null];
}

function buildDiagnostic(fields: readonly Field[]): string | null {
  const userAgent = findFieldValue(fields, 'user-agent');
  const sourceAddress = findFieldValue(fields, 'source-ip');
  const diagnosticParts = [userAgent, sourceAddress === null ? null : `source ${sourceAddress}`].filter(
    (part) => part !== null,
  );
  return diagnosticParts.length === 0 ? null : diagnosticParts.join(', ');
}

/** RFC 5965 section 3.2, or the domain of the author. */
function readReportingHost(fields: readonly Field[], message: Entity): string | null {
  const reportingMta = findFieldValue(fields, 'reporting-mta');
  if (reportingMta !== null) return stripType(reportingMta);
  const authorAddress = parseFieldAddress(findFieldValue(message.fields, 'from') ?? '', true);
  return authorAddress === null ? null : authorAddress.slice(authorAddress.lastIndexOf('@') + 1);
}

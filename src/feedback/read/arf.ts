/** Feedback reports (RFC 5965): a mailbox provider passes on what its user did with a message. */
import type { Notice } from '../../model/feedback.ts';
import { type Entity, leafParts } from './entity.ts';
import { createEvidence, parseFieldAddress, stripType } from './evidence.ts';
import { type Field, fieldValue, readFieldGroups, readFields } from './fields.ts';

const MOST_RECIPIENTS = 100;
const LONGEST_TYPE = 40;
/** Of a text that may be a report. */
const LONGEST_LOOSE = 8_192;

/** The types of the machine-readable part, and what gateways make of it. */
const REPORT_TYPES: readonly string[] = [
  'message/feedback-report',
  'text/feedback-report',
  'application/feedback-report',
];

/** One complaint for each recipient that the report names, one without a recipient where it names none; none where it is no report. */
export function readArfNotices(message: Entity): readonly Notice[] {
  for (const part of leafParts(message)) {
    const fields = reportFields(part);
    const feedbackType = typeOf(fieldValue(fields, 'feedback-type'));
    // Section 3.1 requires the type; without it nobody knows what is reported.
    if (feedbackType === null) continue;
    const evidence = createEvidence(null, diagnosticOf(fields), hostOf(fields, message));
    return recipientsOf(fields).map((recipient) => ({
      kind: 'complaint',
      feedbackType,
      recipient,
      alias: null,
      evidence,
    }));
  }
  return withoutReport(message);
}

/** The fields of a part that is a report, or a text that begins as one (section 3.1's three required fields); else none. */
function reportFields(part: Entity): readonly Field[] {
  if (REPORT_TYPES.includes(part.type)) return readFieldGroups(part.text()).flat();
  if (part.type !== 'text/plain') return [];
  const [first = []] = readFieldGroups(part.text().slice(0, LONGEST_LOOSE));
  return ['feedback-type', 'user-agent', 'version'].every((name) => fieldValue(first, name) !== null) ? first : [];
}

/**
 * Outlook.com's junk mail reporting sends the message alone, the recipient in a field of its own.
 * https://sendersupport.olc.protection.outlook.com/snds/ (its "JMRP").
 */
function withoutReport(message: Entity): readonly Notice[] {
  for (const part of leafParts(message)) {
    if (part.type !== 'message/rfc822') continue;
    const value = fieldValue(readFields(part.octets()), 'x-hmxmroriginalrecipient');
    if (value === null) continue;
    const evidence = createEvidence(null, fieldValue(message.fields, 'subject'), hostOf([], message));
    return [
      { kind: 'complaint', feedbackType: 'abuse', recipient: parseFieldAddress(value, true), alias: null, evidence },
    ];
  }
  return [];
}

/** A token in lower case (section 3.5); a comment behind it, or anything after a blank, is none of it. */
function typeOf(value: string | null): string | null {
  const token = value?.trim().toLowerCase().split(' ')[0]?.split('(')[0]?.split(';')[0] ?? '';
  if (token === '' || token.length > LONGEST_TYPE) return null;
  // `not_spam` and `opt_out` are written too.
  return isToken(token) ? token.replaceAll('_', '-') : null;
}

function isToken(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) if (text.charCodeAt(i) <= 0x20 || text.charCodeAt(i) >= 0x7f) return false;
  return true;
}

/** Section 3.2: `Original-Rcpt-To`, as often as there were recipients. Others write it in their own way. */
const RECIPIENT_FIELDS: readonly string[] = [
  'original-rcpt-to',
  'original-recipient',
  'x-original-to',
  'removal-recipient',
];

function recipientsOf(fields: readonly Field[]): readonly (string | null)[] {
  for (const wanted of RECIPIENT_FIELDS) {
    const found = fields
      .filter(({ name }) => name === wanted)
      .flatMap(({ value }) => parseFieldAddress(value, true) ?? []);
    if (found.length > 0) return [...new Set(found)].slice(0, MOST_RECIPIENTS);
  }
  return [null];
}

/** What is worth reading of a complaint: who made the report, and with which result. */
function diagnosticOf(fields: readonly Field[]): string | null {
  const agent = fieldValue(fields, 'user-agent');
  const source = fieldValue(fields, 'source-ip');
  const pieces = [agent, source === null ? null : `source ${source}`].filter((piece) => piece !== null);
  return pieces.length === 0 ? null : pieces.join(', ');
}

/** Section 3.2's optional field, else the domain of whoever sent the report. */
function hostOf(fields: readonly Field[], message: Entity): string | null {
  const reporting = fieldValue(fields, 'reporting-mta');
  if (reporting !== null) return stripType(reporting);
  const from = parseFieldAddress(fieldValue(message.fields, 'from') ?? '', true);
  return from === null ? null : from.slice(from.lastIndexOf('@') + 1);
}

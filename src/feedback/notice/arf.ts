/** Feedback reports (RFC 5965): a mailbox provider tells what its user did with a message. */
import type { Notice } from '../../record/notice.ts';
import { leaves, type Part, parseFields } from './parts.ts';
import { hostName, oneLine, reportedAddress } from './text.ts';

const MOST_RECIPIENTS = 100;
const LONGEST_TYPE = 40;

/** The complaint of the report's machine-readable part, one notice for each recipient that it names; empty where there is none. */
export function arfNotices(message: Part): readonly Notice[] {
  for (const part of leaves(message)) {
    if (part.type !== 'message/feedback-report') continue;
    const fields = parseFields(part.text().replaceAll('\r\n', '\n').trimStart());
    const fieldOf = (name: string) => fields.find(([found]) => found === name)?.[1] ?? null;
    const type = oneLine((fieldOf('feedback-type') ?? '').toLowerCase(), LONGEST_TYPE);
    // Section 3.1 asks for it; without it nobody knows what is reported.
    if (type === null) continue;
    const evidence = {
      status: null,
      diagnostic: oneLine(fieldOf('user-agent') ?? ''),
      reportingHost: hostName(fieldOf('reporting-mta')) ?? hostName(fieldOf('source-ip')),
    };
    const recipients = fields
      .filter(([name]) => name === 'original-rcpt-to')
      .slice(0, MOST_RECIPIENTS)
      .map(([, value]) => reportedAddress(value));
    const named = recipients.length === 0 ? [null] : recipients;
    return named.map((recipient) => ({ kind: 'complaint', feedbackType: type, recipient, alias: null, evidence }));
  }
  return [];
}

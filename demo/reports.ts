/**
 * Composes reports about delivered messages as real mail servers and recipients send them. The service parses these
 * reports.
 */
import type { BehaviorScript } from './behaviors.ts';

export interface ReportedMessage {
  /** The envelope sender of the message. The report is sent to this address. */
  readonly returnPath: string;
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly id: string;
}

export type ReportKind = NonNullable<BehaviorScript['report']>['kind'];

/** Composes the report in the form in which SMTP transports it. */
export function composeReport(kind: ReportKind, message: ReportedMessage): Buffer {
  return Buffer.from(REPORT_LINES[kind](message).join('\r\n'), 'utf8');
}

const REPORT_LINES: Readonly<Record<ReportKind, (message: ReportedMessage) => readonly string[]>> = {
  bounce: (message) =>
    composeDsn(
      message,
      '5.1.1',
      `550 5.1.1 <${message.to}>: Recipient address rejected: User unknown in virtual mailbox table`,
    ),
  'mailbox-full': (message) => composeDsn(message, '5.2.2', `552 5.2.2 <${message.to}>: user is over quota`),
  complaint: (message) => [
    `From: feedback-loop@${getDomain(message)}`,
    `To: <${message.returnPath}>`,
    `Subject: FW: complaint about ${message.id}`,
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=feedback-report; boundary="report"',
    '',
    '--report',
    'Content-Type: text/plain; charset=us-ascii',
    '',
    'This is an email abuse report for a message that our user marked as spam.',
    '',
    '--report',
    'Content-Type: message/feedback-report',
    '',
    'Feedback-Type: abuse',
    'User-Agent: FeedbackLoop/2.1',
    'Version: 1',
    `Original-Rcpt-To: ${message.to}`,
    `Reporting-MTA: dns; fbl.${getDomain(message)}`,
    '',
    ...composeOriginalMessage(message),
  ],
  'out-of-office': (message) => [
    `From: <${message.to}>`,
    `To: <${message.returnPath}>`,
    'Subject: Automatic reply: out of office until Monday',
    'Auto-Submitted: auto-replied',
    'Content-Type: text/plain; charset=utf-8',
    '',
    'Thank you for your message. I am away and will read it on Monday.',
    '',
  ],
  'not-understood': (message) => [
    `From: <${message.to}>`,
    `To: <${message.returnPath}>`,
    'Subject: who are you?',
    'Content-Type: text/plain; charset=utf-8',
    '',
    'I got this and do not know what it is about. Please call me back.',
    '',
  ],
};

/** Returns the domain of the recipient. The mail servers of this domain send the report. */
function getDomain({ to }: ReportedMessage): string {
  return to.slice(to.lastIndexOf('@') + 1);
}

function composeDsn(message: ReportedMessage, status: string, diagnostic: string): readonly string[] {
  const host = `mx.${getDomain(message)}`;
  return [
    `From: MAILER-DAEMON@${host} (Mail Delivery System)`,
    `To: <${message.returnPath}>`,
    'Subject: Undelivered Mail Returned to Sender',
    'Auto-Submitted: auto-replied',
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=delivery-status; boundary="report"',
    '',
    '--report',
    'Content-Type: text/plain; charset=us-ascii',
    '',
    `This is the mail system at host ${host}.`,
    '',
    'Your message could not be delivered to one or more recipients.',
    '',
    `<${message.to}>: ${diagnostic}`,
    '',
    '--report',
    'Content-Type: message/delivery-status',
    '',
    `Reporting-MTA: dns; ${host}`,
    '',
    `Final-Recipient: rfc822; ${message.to}`,
    'Action: failed',
    `Status: ${status}`,
    `Diagnostic-Code: smtp; ${diagnostic}`,
    '',
    ...composeOriginalMessage(message),
  ];
}

function composeOriginalMessage(message: ReportedMessage): readonly string[] {
  return [
    '--report',
    'Content-Type: message/rfc822',
    '',
    `From: <${message.from}>`,
    `To: <${message.to}>`,
    // A subject with non-ASCII characters would have to be encoded, so it is omitted.
    ...(/^[ -~]*$/.test(message.subject) ? [`Subject: ${message.subject}`] : []),
    `Message-ID: <${message.id}@${message.from.slice(message.from.lastIndexOf('@') + 1)}>`,
    '',
    '(text omitted)',
    '--report--',
    '',
  ];
}

/** Reports about delivered messages, in the form in which mail servers and people write them; the service reads them. */
import type { BehaviourScript } from './behaviours.ts';

export interface ReportedMessage {
  /** The envelope sender, which receives the report. */
  readonly returnPath: string;
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly id: string;
}

export type ReportKind = NonNullable<BehaviourScript['report']>['kind'];

/** The report as received over SMTP. */
export function rawReport(kind: ReportKind, about: ReportedMessage): Buffer {
  return Buffer.from(TEXTS[kind](about).join('\r\n'), 'utf8');
}

const TEXTS: Readonly<Record<ReportKind, (about: ReportedMessage) => readonly string[]>> = {
  bounce: (about) =>
    deliveryStatus(
      about,
      '5.1.1',
      `550 5.1.1 <${about.to}>: Recipient address rejected: User unknown in virtual mailbox table`,
    ),
  full: (about) => deliveryStatus(about, '5.2.2', `552 5.2.2 <${about.to}>: user is over quota`),
  complaint: (about) => [
    `From: feedback-loop@${domainOf(about)}`,
    `To: <${about.returnPath}>`,
    `Subject: FW: complaint about ${about.id}`,
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
    `Original-Rcpt-To: ${about.to}`,
    `Reporting-MTA: dns; fbl.${domainOf(about)}`,
    '',
    ...returned(about),
  ],
  away: (about) => [
    `From: <${about.to}>`,
    `To: <${about.returnPath}>`,
    'Subject: Automatic reply: out of office until Monday',
    'Auto-Submitted: auto-replied',
    'Content-Type: text/plain; charset=utf-8',
    '',
    'Thank you for your message. I am away and will read it on Monday.',
    '',
  ],
  odd: (about) => [
    `From: <${about.to}>`,
    `To: <${about.returnPath}>`,
    'Subject: who are you?',
    'Content-Type: text/plain; charset=utf-8',
    '',
    'I got this and do not know what it is about. Can somebody call me back, please?',
    '',
  ],
};

/** The provider of the recipient, which sends the report. */
function domainOf({ to }: ReportedMessage): string {
  return to.slice(to.lastIndexOf('@') + 1);
}

function deliveryStatus(about: ReportedMessage, status: string, diagnostic: string): readonly string[] {
  const host = `mx.${domainOf(about)}`;
  return [
    `From: MAILER-DAEMON@${host} (Mail Delivery System)`,
    `To: <${about.returnPath}>`,
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
    `<${about.to}>: ${diagnostic}`,
    '',
    '--report',
    'Content-Type: message/delivery-status',
    '',
    `Reporting-MTA: dns; ${host}`,
    '',
    `Final-Recipient: rfc822; ${about.to}`,
    'Action: failed',
    `Status: ${status}`,
    `Diagnostic-Code: smtp; ${diagnostic}`,
    '',
    ...returned(about),
  ];
}

function returned(about: ReportedMessage): readonly string[] {
  return [
    '--report',
    'Content-Type: message/rfc822',
    '',
    `From: <${about.from}>`,
    `To: <${about.to}>`,
    // A subject with non-ASCII characters would be encoded; it is left out.
    ...(/^[ -~]*$/.test(about.subject) ? [`Subject: ${about.subject}`] : []),
    `Message-ID: <${about.id}@${about.from.slice(about.from.lastIndexOf('@') + 1)}>`,
    '',
    '(text left out)',
    '--report--',
    '',
  ];
}

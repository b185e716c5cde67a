/**
 * A relay that accepts every message, as Postfix does, and then sends a report to the envelope sender. The report is a
 * delivery status notification, a complaint (RFC 5965) or a reply. The local part of the recipient selects the report:
 * `gone`, `postrider-loop`, `spam` or `odd`. A message to any other recipient causes no report.
 */

import { connectSmtp } from './smtp-client.ts';
import { startSmtpServer } from './smtp-server.ts';

export interface BouncingRelay {
  readonly port: number;
  readonly feedbackReplies: readonly string[];
  readonly senders: ReadonlyMap<string, string>;
  close(): Promise<void>;
}

export async function startBouncingRelay(getFeedbackPort: () => number): Promise<BouncingRelay> {
  const feedbackReplies: string[] = [];
  const senders = new Map<string, string>();
  const pendingReports = new Set<Promise<void>>();
  const server = await startSmtpServer({ closeTimeout: 500 }, ({ from, to, data }) => {
    for (const address of to) {
      senders.set(address, from);
      const report = composeReportForRecipient(address, from, data.toString('latin1'));
      if (report === null) continue;
      const pendingReport = (async () => {
        const client = await connectSmtp(getFeedbackPort());
        feedbackReplies.push(await client.send('', from, Buffer.from(report, 'latin1')));
        client.close();
      })();
      pendingReports.add(pendingReport);
      void pendingReport.finally(() => pendingReports.delete(pendingReport));
    }
    return 'queued';
  });
  return {
    port: server.port,
    feedbackReplies,
    senders,
    async close() {
      await Promise.allSettled(pendingReports);
      await server.close();
    },
  };
}

/** Returns the report that the local part of the recipient `to` selects, or null. `from` is the envelope sender. */
function composeReportForRecipient(to: string, from: string, message: string): string | null {
  const [localPart = ''] = to.split('@');
  switch (localPart.split('+')[0]) {
    case 'gone':
    case 'postrider-loop':
      return composeDeliveryStatus(to, from, message, 'failed', '5.1.1', 'smtp; 550 5.1.1 No such user here');
    case 'spam':
      return composeComplaint(to, from, message);
    case 'odd':
      return `From: ${to}\r\nTo: ${from}\r\nSubject: Hm\r\n\r\nWhat is this address?\r\n`;
    default:
      return null;
  }
}

export function composeDeliveryStatus(
  to: string,
  from: string,
  message: string,
  action: string,
  status: string,
  diagnostic: string,
): string {
  return [
    'From: MAILER-DAEMON@relay.example.net (Mail Delivery System)',
    `To: ${from}`,
    'Subject: Undelivered Mail Returned to Sender',
    'Auto-Submitted: auto-replied',
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=delivery-status; boundary="report"',
    '',
    '--report',
    'Content-Type: text/plain; charset=us-ascii',
    '',
    `<${to}>: host mx.example.net said: ${diagnostic}`,
    '',
    '--report',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; relay.example.net',
    '',
    `Final-Recipient: rfc822; ${to}`,
    `Action: ${action}`,
    `Status: ${status}`,
    'Remote-MTA: dns; mx.example.net',
    `Diagnostic-Code: ${diagnostic}`,
    '',
    '--report',
    'Content-Type: message/rfc822',
    '',
    message,
    '--report--',
    '',
  ].join('\r\n');
}

function composeComplaint(to: string, from: string, message: string): string {
  return [
    'From: feedback@isp.example',
    `To: ${from}`,
    'Subject: FW: complaint',
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=feedback-report; boundary="report"',
    '',
    '--report',
    'Content-Type: message/feedback-report',
    '',
    'Feedback-Type: abuse',
    'User-Agent: Example-Feedback/1.0',
    'Version: 1',
    `Original-Rcpt-To: ${to}`,
    '',
    '--report',
    'Content-Type: message/rfc822',
    '',
    message,
    '--report--',
    '',
  ].join('\r\n');
}

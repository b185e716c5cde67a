/**
 * Sends reports as outsiders can, in a separate process: `perSecond` different delivery status notifications about the
 * message of the first return path from several addresses, and forged complaints to the others. The process ends after
 * `seconds`, and prints one JSON line with the number of replies by code.
 */
import { composeDeliveryStatus } from '../test/rig/bouncing-relay.ts';
import { connectSmtp, type SmtpClient } from '../test/rig/smtp-client.ts';

interface AttackParameters {
  readonly smtpPort: number;
  readonly returnPaths: readonly string[];
  readonly perSecond: number;
  readonly seconds: number;
  /** Differs between windows, so that their reports differ. */
  readonly seed: number;
}

const { smtpPort, returnPaths, perSecond, seconds, seed } = JSON.parse(process.argv[2] ?? '{}') as AttackParameters;
const CONNECTION_COUNT = 10;
const [reportedPath = '', ...outsiderPaths] = returnPaths;
const replyCounts: Record<string, number> = {};
const end = performance.now() + seconds * 1_000;

function createReport(n: number): readonly [to: string, report: string] {
  const outsiderPath = outsiderPaths[n % (10 * outsiderPaths.length)];
  if (outsiderPath !== undefined) return [outsiderPath, createComplaint(outsiderPath, n)];
  const status = `${n % 3 === 0 ? 5 : 4}.${n % 1_000}.${seed}`;
  const diagnostic = `451 ${seed} ${n} ${'x'.repeat(8_000)}`;
  return [
    reportedPath,
    composeDeliveryStatus('flooded@flooded.example', reportedPath, '', 'failed', status, diagnostic),
  ];
}

function createComplaint(returnPath: string, n: number): string {
  return [
    'From: <staff@hotmail.com>',
    `Subject: complaint ${seed} ${n}`,
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=feedback-report; boundary="report"',
    '',
    '--report',
    'Content-Type: message/feedback-report',
    '',
    'Feedback-Type: abuse',
    'User-Agent: flood/1',
    'Version: 1',
    '',
    '--report',
    'Content-Type: message/rfc822',
    '',
    `Return-Path: <${returnPath}>`,
    'Subject: Your receipt',
    '',
    'Thank you.',
    '--report--',
    '',
  ].join('\r\n');
}

async function runConnection(index: number): Promise<void> {
  let client: SmtpClient | null = null;
  for (let n = index; performance.now() < end; n += CONNECTION_COUNT) {
    const start = performance.now();
    client ??= await connectSmtp(smtpPort, `127.0.0.${10 + index}`);
    const [to, report] = createReport(n);
    const code = (await client.send('', to, report)).slice(0, 3);
    replyCounts[code] = (replyCounts[code] ?? 0) + 1;
    // After a refused recipient, the commands of the next report begin with a new connection.
    if (!code.startsWith('250')) {
      client.close();
      client = null;
    }
    const pauseMs = (1_000 * CONNECTION_COUNT) / perSecond - (performance.now() - start);
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  client?.close();
}

await Promise.all(Array.from({ length: CONNECTION_COUNT }, (_, index) => runConnection(index)));
console.log(JSON.stringify(replyCounts));

/** The `curl` command that submits a first message, for any POSIX shell. The dashboard shows it too. */
import { SEND_MAIL_PATH } from '../model/outcome.ts';
import { quoteForShell } from '../printing/text.ts';

export interface FirstMessage {
  readonly publicUrl: string;
  readonly key: string;
  readonly from: string;
  readonly to: string;
}

export function createFirstCurlCommand({ publicUrl, key, from, to }: FirstMessage): string {
  const body = JSON.stringify({ to, from, subject: 'Hello', message: 'It works.' });
  const baseArguments = publicUrl.startsWith('unix:')
    ? `curl -i --unix-socket ${quoteForShell(publicUrl.slice('unix:'.length))} http://localhost`
    : // curl accepts a self-signed certificate only with -k.
      `curl -i${publicUrl.startsWith('https:') ? 'k' : ''} ${publicUrl}`;
  return [
    `${baseArguments}${SEND_MAIL_PATH}`,
    `  -H ${quoteForShell(`Authorization: ${key}`)}`,
    `  -H ${quoteForShell('Content-Type: application/json')}`,
    `  -d ${quoteForShell(body)}`,
  ].join(' \\\n');
}

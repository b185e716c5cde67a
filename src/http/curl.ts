/**
 * The command that submits a first message: one `curl` call for any POSIX shell. The service prints it at start, and the dashboard shows
 * it. Pure.
 */

/** A recipient that works with every transport. Messages to it are not sent. */
export const SIMULATOR_SUCCESS_ADDRESS = 'success@simulator.postrider.test';

export interface FirstMessage {
  /** Of the public listener. */
  readonly publicUrl: string;
  readonly key: string;
  readonly from: string;
  readonly to: string;
}

/** The recipient of the first message. With `capture:` nothing is sent, so any address works; else it is a simulator address. */
export function firstRecipient(transport: string): string {
  return transport === 'capture' ? 'ada@example.com' : SIMULATOR_SUCCESS_ADDRESS;
}

export const FIRST_SENDER = 'hello@example.org';

/** The command with one line per argument, which is easy to read and edit. */
export function firstCurlCommand({ publicUrl, key, from, to }: FirstMessage): string {
  const body = JSON.stringify({ to, from, subject: 'Hello', message: 'It works.' });
  return [
    // A self-signed certificate needs -k.
    `curl -i${publicUrl.startsWith('https:') ? 'k' : ''} ${publicUrl}/api/v1/send-mail`,
    `  -H ${quoteForShell(`Authorization: ${key}`)}`,
    `  -H ${quoteForShell('Content-Type: application/json')}`,
    `  -d ${quoteForShell(body)}`,
  ].join(' \\\n');
}

/** In single quotes only the closing quote is special (POSIX.1-2024, shell command language, section 2.2.2). */
function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

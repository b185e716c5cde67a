/**
 * The command with which somebody submits a first message: one `curl` for any POSIX shell. The start prints it and the dashboard
 * shows it, both from here. Pure.
 */

/** Works with every transport, and never leaves the service. */
export const SIMULATOR_SUCCESS_ADDRESS = 'success@simulator.postrider.test';

export interface FirstMessage {
  /** Of the public listener. */
  readonly publicUrl: string;
  readonly key: string;
  readonly from: string;
  readonly to: string;
}

/** Captured mail goes nowhere, so that anybody may be written to; else the simulator's address hurts nobody's reputation. */
export function firstRecipient(transport: string): string {
  return transport === 'capture' ? 'ada@example.com' : SIMULATOR_SUCCESS_ADDRESS;
}

export const FIRST_SENDER = 'hello@example.org';

/** One line for each argument, so that it can be read and changed before it is run. */
export function firstCurlCommand({ publicUrl, key, from, to }: FirstMessage): string {
  const body = JSON.stringify({ to, from, subject: 'Hello', message: 'It works.' });
  return [
    // A certificate made by hand is not in any trust store; who has a real one drops the -k.
    `curl -i${publicUrl.startsWith('https:') ? 'k' : ''} ${publicUrl}/api/v1/send-mail`,
    `  -H ${quoted(`Authorization: ${key}`)}`,
    `  -H ${quoted('Content-Type: application/json')}`,
    `  -d ${quoted(body)}`,
  ].join(' \\\n');
}

/** In single quotes nothing means anything but their end (POSIX.1-2024, shell command language, section 2.2.2). */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

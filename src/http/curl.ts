/**
 * Creates the command that submits a first message: one `curl` call for any POSIX shell. `serve` prints the command
 * when it creates the first key, and the dashboard shows the command. The functions are pure.
 */

export interface FirstMessage {
  /** The URL of the public listener, or `unix:/PATH`. */
  readonly publicUrl: string;
  readonly key: string;
  readonly from: string;
  readonly to: string;
}

/** Returns the command with one argument per line. */
export function createFirstCurlCommand({ publicUrl, key, from, to }: FirstMessage): string {
  const body = JSON.stringify({ to, from, subject: 'Hello', message: 'It works.' });
  const baseArguments = publicUrl.startsWith('unix:')
    ? `curl -i --unix-socket ${quoteForShell(publicUrl.slice('unix:'.length))} http://localhost`
    : // curl accepts a self-signed certificate only with -k.
      `curl -i${publicUrl.startsWith('https:') ? 'k' : ''} ${publicUrl}`;
  return [
    `${baseArguments}/api/v1/send-mail`,
    `  -H ${quoteForShell(`Authorization: ${key}`)}`,
    `  -H ${quoteForShell('Content-Type: application/json')}`,
    `  -d ${quoteForShell(body)}`,
  ].join(' \\\n');
}

/**
 * Quotes an argument. Within single quotes, only a single quote is special (POSIX.1-2024, shell command language,
 * section 2.2.2).
 */
function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The `curl` command that submits a first message, for any POSIX shell. The dashboard shows it too. */

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
    `${baseArguments}/api/v1/send-mail`,
    `  -H ${quoteForShell(`Authorization: ${key}`)}`,
    `  -H ${quoteForShell('Content-Type: application/json')}`,
    `  -d ${quoteForShell(body)}`,
  ].join(' \\\n');
}

/** Within single quotes, only a single quote is special (POSIX.1-2024, shell command language, section 2.2.2). */
function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** `postrider send`: submits one mail request as a client would, over HTTP, with an API key. */
import type { Command } from 'commander';
import { formatHostPort } from '../config/host.ts';
import type { Settings } from '../config/settings.ts';
import { quote } from '../config/units.ts';
import type { Context } from './context.ts';
import { CommandFailure } from './failure.ts';
import { printable } from './text.ts';

const PATH = '/api/v1/send-mail';
const TIMEOUT_MS = 60_000;
/** An answer of the interface has a few hundred bytes; more comes from some other server. */
const MOST_ANSWER_BYTES = 65_536;

interface SendFlags {
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  readonly key?: string;
  readonly url?: string;
  readonly json?: boolean;
}

/** Adds the command. */
export function addSendCommand(program: Command, context: Context): void {
  const send = program.command('send').description('submit one mail request through the public interface');
  send.requiredOption('--to <address>', 'recipient').requiredOption('--from <address>', 'sender');
  send
    .requiredOption('--subject <text>', 'subject')
    .requiredOption('--message <text>', 'body: plain text, or HTML that begins with <html');
  send
    .option('--key <key>', 'API key')
    .option('--url <url>', 'address of the service; the one of POSTRIDER_LISTEN unless given');
  send.option('--json', 'for machines: {"id"}');
  send.action(async (flags: SendFlags) => {
    if (flags.key === undefined) {
      throw new CommandFailure('--key is missing; `postrider key create ACCOUNT` makes a key', 2);
    }
    // ISO 8859-1 is all that fetch puts into a header; no API key has anything beyond visible ASCII.
    if (!/^[\x21-\x7e]{1,200}$/.test(flags.key))
      throw new CommandFailure('--key is not an API key; one looks like pr_…', 2);
    const url = flags.url === undefined ? ownUrl(context.settings()) : givenUrl(flags.url);
    const id = await submit(url, flags.key, flags);
    if (flags.json) context.json({ id });
    else context.out(`accepted ${id}\n`);
  });
}

/** Where this machine reaches the service that these settings describe. */
function ownUrl({ listen, tls }: Settings): URL {
  if (listen.port === 0) throw new CommandFailure('POSTRIDER_LISTEN has port 0, so the port is unknown; give --url');
  const host = listen.host === '0.0.0.0' ? '127.0.0.1' : listen.host === '::' ? '::1' : listen.host;
  return new URL(PATH, `${tls === null ? 'http' : 'https'}://${formatHostPort({ host, port: listen.port })}`);
}

function givenUrl(text: string): URL {
  const url = URL.parse(text);
  if (
    url === null ||
    (url.protocol !== 'http:' && url.protocol !== 'https:') ||
    url.username !== '' ||
    url.search !== ''
  ) {
    throw new CommandFailure(`--url: ${quote(text)} is not an address such as https://mail.example.com`, 2);
  }
  const path = url.pathname.endsWith('/') ? url.pathname.slice(0, -1) : url.pathname;
  url.pathname = path.endsWith(PATH) ? path : path + PATH;
  return url;
}

async function submit(url: URL, key: string, { to, from, subject, message }: SendFlags): Promise<string> {
  const headers = { authorization: key, 'content-type': 'application/json' };
  const body = JSON.stringify({ to, from, subject, message });
  let response: Response;
  let text: string;
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal });
    text = await readStart(response);
  } catch (error) {
    throw new CommandFailure(
      `no answer from ${url.origin} (${causeOf(error)}); is the service running there? --url gives another address`,
    );
  }
  const answer = readAnswer(text);
  if (response.status === 201 && answer.id !== null) return answer.id;
  const reason = response.headers.get('postrider-reason');
  const wait = response.headers.get('retry-after');
  const notes = [reason, wait === null ? null : `try again in ${wait} s`].filter((note) => note !== null);
  const what = answer.message ?? 'the answer is not of this interface; is that address right?';
  throw new CommandFailure(
    printable(`${response.status} ${what}${notes.length === 0 ? '' : ` (${notes.join('; ')})`}`),
  );
}

async function readStart(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MOST_ANSWER_BYTES) break;
  }
  return Buffer.concat(chunks).toString('utf8');
}

function readAnswer(text: string): { readonly id: string | null; readonly message: string | null } {
  const none = { id: null, message: null };
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return none;
  }
  if (typeof json !== 'object' || json === null) return none;
  const message = 'message' in json && typeof json.message === 'string' ? json.message : null;
  const result = 'result' in json ? json.result : null;
  const id =
    typeof result === 'object' && result !== null && 'id' in result && typeof result.id === 'string' ? result.id : null;
  return { id, message };
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `none within ${TIMEOUT_MS / 1000} s`;
  const { cause } = error;
  if (cause instanceof Error) return 'code' in cause && cause.message === '' ? String(cause.code) : cause.message;
  return error.message;
}

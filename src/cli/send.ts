/**
 * `postrider send`: submits one mail request as a client would, over HTTP, with an API key: of `--key`, of standard input
 * (`--key -`) or of POSTRIDER_API_KEY. Without any it
 * makes one in the store that the settings name, uses it and revokes it; should that fail, the key expires by itself.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { formatHostPort } from '../config/host.ts';
import { apiKeyOf } from '../config/load.ts';
import type { Settings } from '../config/settings.ts';
import { quote } from '../config/units.ts';
import { newApiKey } from '../model/credentials.ts';
import { printable } from '../printing/escape.ts';
import { accountNotFound, type Context } from './context.ts';
import { CommandFailure } from './failure.ts';

const PATH = '/api/v1/send-mail';
const TIMEOUT_MS = 60_000;
/** An answer of the interface has a few hundred bytes; more comes from some other server. */
const MOST_ANSWER_BYTES = 65_536;
/** How long a key lives that this command made and could not revoke. */
const KEY_MS = 5 * 60_000;
/** A running service knows a new key within a second; asked again this often, and given up after so long. */
const ASK_AGAIN_MS = 100;
const UNKNOWN_KEY_MS = 5_000;

interface SendFlags {
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  readonly key?: string;
  readonly account?: string;
  readonly url?: string;
  readonly json?: boolean;
}

/** What the service said, as far as it is of the interface. */
interface Answer {
  readonly status: number;
  readonly id: string | null;
  readonly message: string | null;
  /** `Postrider-Reason` and `Retry-After`, for people. */
  readonly notes: readonly string[];
}

/** Adds the command. */
export function addSendCommand(program: Command, context: Context): void {
  const send = program.command('send').description('submit one mail request through the public interface');
  send.requiredOption('--to <address>', 'recipient').requiredOption('--from <address>', 'sender');
  send
    .requiredOption('--subject <text>', 'subject')
    .requiredOption('--message <text>', 'body: plain text, or HTML that begins with <html');
  send
    .option(
      '--key <key>',
      'API key; - reads it from standard input, because other users of this machine see a command line; else the one of POSTRIDER_API_KEY; else one that lives for this command is made in the store',
    )
    .option('--account <name>', 'make a key of that account; default where no key is given')
    .option('--url <url>', 'address of the service; the one of POSTRIDER_LISTEN unless given');
  send.option('--json', 'for machines: {"id"}');
  send.action(async (flags: SendFlags) => {
    const url = flags.url === undefined ? ownUrl(context.settings()) : givenUrl(flags.url);
    const key = await givenKey(context, flags);
    const answer = key === null ? await askWithOwnKey(context, url, flags) : await ask(url, key, flags);
    const id = idIn(answer);
    if (flags.json) context.json({ id });
    else context.out(`accepted ${id}\n`);
  });
}

/** The key of the flag, of standard input or of the environment; null where one is to be made. */
async function givenKey(context: Context, { key: flag, account }: SendFlags): Promise<string | null> {
  if (flag !== undefined && account !== undefined)
    throw new CommandFailure('--account and --key exclude each other; a key says whose mail it is', 2);
  // Who names an account means its key, whatever the environment has.
  if (account !== undefined) return null;
  if (flag === undefined) {
    const key = apiKeyOf(context.environment, context.dotEnv());
    return key === null ? null : checkedKey('POSTRIDER_API_KEY', key);
  }
  return checkedKey('--key', flag === '-' ? await context.inputLine('--key') : flag);
}

/** ISO 8859-1 is all that fetch puts into a header; no API key has anything beyond visible ASCII. */
function checkedKey(name: string, key: string): string {
  if (/^[\x21-\x7e]{1,200}$/.test(key)) return key;
  throw new CommandFailure(`${name} is not an API key; one looks like pr_…`, 2);
}

/** Asks with a key made for this one mail request, and revokes it whatever came of it. */
async function askWithOwnKey(context: Context, url: URL, flags: SendFlags): Promise<Answer> {
  const { database } = context.settings();
  if (database.kind === 'sqlite' && !existsSync(database.path))
    throw new CommandFailure(`there is no store ${quote(database.path)} to make a key in; give --key`);
  const account = flags.account ?? 'default';
  return context.withStore(async (store) => {
    const { clock } = context;
    const now = clock.now();
    const { key, prefix, hash } = newApiKey(randomBytes);
    const made = await store.createKey(account, { name: 'send', prefix, hash, expiresAt: now + KEY_MS }, now);
    if (made.kind !== 'done') throw accountNotFound(account);
    try {
      for (;;) {
        const answer = await ask(url, key, flags);
        if (answer.status !== 401 || answer.message !== 'Invalid API key') return answer;
        if (clock.now() - now > UNKNOWN_KEY_MS)
          throw new CommandFailure(
            unknownKey(url, database.kind === 'sqlite' ? database.path : 'the PostgreSQL database'),
          );
        await new Promise<void>((resolve) => clock.after(ASK_AGAIN_MS, resolve));
      }
    } finally {
      await store.revokeKey(made.value.id, clock.now()).catch(() => undefined);
    }
  });
}

function unknownKey(url: URL, path: string): string {
  return `the service at ${url.origin} does not know a key just made in ${quote(path)}, so it runs on another store; give --key`;
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

async function ask(url: URL, key: string, { to, from, subject, message }: SendFlags): Promise<Answer> {
  const headers = { authorization: key, 'content-type': 'application/json' };
  const body = JSON.stringify({ to, from, subject, message });
  let response: Response;
  let text: string;
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal });
    text = await readStart(response);
  } catch (error) {
    const cause = causeOf(error);
    throw new CommandFailure(
      isCertificateFault(error)
        ? `the certificate of ${url.origin} is not accepted (${cause}); give --url with a name in the certificate, or NODE_EXTRA_CA_CERTS for an authority of your own`
        : `no answer from ${url.origin} (${cause}); is the service running there? --url gives another address`,
    );
  }
  const reason = response.headers.get('postrider-reason');
  const wait = response.headers.get('retry-after');
  const notes = [reason, wait === null ? null : `try again in ${wait} s`].filter((note) => note !== null);
  return { status: response.status, ...readAnswer(text), notes };
}

/** @throws CommandFailure where the mail request was refused. */
function idIn({ status, id, message, notes }: Answer): string {
  if (status === 201 && id !== null) return id;
  const what = message ?? 'the answer is not of this interface; is that address right?';
  throw new CommandFailure(printable(`${status} ${what}${notes.length === 0 ? '' : ` (${notes.join('; ')})`}`));
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

function readAnswer(text: string): Pick<Answer, 'id' | 'message'> {
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

/** Node's codes of a certificate that it does not accept (nodejs.org/api/tls.html, X509 certificate error codes). */
function isCertificateFault(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : null;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return ['CERT', 'UNABLE_TO_VERIFY', 'UNABLE_TO_GET_ISSUER', 'SELF_SIGNED'].some((word) => code.includes(word));
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `none within ${TIMEOUT_MS / 1000} s`;
  const { cause } = error;
  if (cause instanceof Error) return 'code' in cause && cause.message === '' ? String(cause.code) : cause.message;
  return error.message;
}

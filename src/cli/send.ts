/** Without a key, the command creates a temporary key in the configured store and revokes it. */

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import type { Command } from 'commander';
import { parseHttpListen } from '../config/host.ts';
import { findApiKey } from '../config/load.ts';
import type { Settings } from '../config/settings.ts';
import { quote } from '../config/units.ts';
import { generateApiKey } from '../model/credentials.ts';
import { formatHostPort, formatListen, isUnixSocket, type UnixSocket } from '../model/listen-address.ts';
import { SEND_MAIL_PATH } from '../model/outcome.ts';
import { getHttps, request } from '../node-http.ts';
import { readResponseText, toReachableHost } from '../operations/listener-client.ts';
import { toPrintable } from '../printing/escape.ts';
import { CommandFailure, type Context } from './context.ts';

const TIMEOUT_MS = 60_000;
const KEY_LIFETIME_MS = 5 * 60_000;
/** A running service accepts a new key within one second. */
const UNKNOWN_KEY_RETRY_MS = 100;
const UNKNOWN_KEY_TIMEOUT_MS = 5_000;

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

/** The id and the message are null if the response is not from the public interface. */
interface SendResponse {
  readonly status: number;
  readonly id: string | null;
  readonly message: string | null;
  /** The values of `Postrider-Reason` and `Retry-After`, as text. */
  readonly notes: readonly string[];
}

type Target = URL | UnixSocket;

export function addSendCommand(program: Command, context: Context): void {
  const send = program.command('send').description('submit one message through the public interface');
  send.requiredOption('--to <address>', 'recipient').requiredOption('--from <address>', 'sender');
  send
    .requiredOption('--subject <text>', 'subject')
    .requiredOption('--message <text>', 'body: HTML if it begins with <html or <!doctype html, else plain text');
  send
    .option(
      '--key <key>',
      'API key; - reads it from standard input, because other users of this machine can see a command line; default: POSTRIDER_API_KEY, else a temporary key that the command creates in the store',
    )
    .option('--account <name>', 'create a temporary key of this account; default: the account default')
    .option('--url <url>', 'URL of the service, or unix:/PATH; default: the address of POSTRIDER_LISTEN');
  send.option('--json', 'print JSON: {"id"}');
  send.action(async (flags: SendFlags) => {
    const target = flags.url === undefined ? getLocalTarget(context.getSettings()) : parseUrlFlag(flags.url);
    const key = await readKey(context, flags);
    const response =
      key === null ? await submitWithTemporaryKey(context, target, flags) : await submitMessage(target, key, flags);
    const id = requireAccepted(response);
    if (flags.json) context.writeJson({ id });
    else context.writeText(`accepted ${id}\n`);
  });
}

/** Returns null if the command must create a temporary key. */
async function readKey(context: Context, { key: flag, account }: SendFlags): Promise<string | null> {
  if (flag !== undefined && account !== undefined)
    throw new CommandFailure(
      '--account and --key exclude each other, because a key belongs to one account; give only one flag',
      2,
    );
  // --account takes precedence over POSTRIDER_API_KEY.
  if (account !== undefined) return null;
  if (flag === undefined) {
    const key = findApiKey(context.environment, context.readDotEnv());
    return key === null ? null : requireKeyFormat('POSTRIDER_API_KEY', key);
  }
  return requireKeyFormat('--key', flag === '-' ? await context.readInputLine('--key -') : flag);
}

/** A header cannot contain every character. */
function requireKeyFormat(name: string, key: string): string {
  if (/^[\x21-\x7e]{1,200}$/.test(key)) return key;
  throw new CommandFailure(`${name} is not an API key; a key begins with pr_`, 2);
}

async function submitWithTemporaryKey(context: Context, target: Target, flags: SendFlags): Promise<SendResponse> {
  const { database } = context.getSettings();
  if (database.kind === 'sqlite' && !existsSync(database.path))
    throw new CommandFailure(`there is no database ${quote(database.path)} in which a key can be created; give --key`);
  const account = flags.account ?? 'default';
  return context.withStore(async (store) => {
    const { clock } = context;
    const createdAt = clock.now();
    const { key, prefix, hash } = generateApiKey(randomBytes);
    const createdKey = await store.createKey(
      account,
      { name: 'send', prefix, hash, expiresAt: createdAt + KEY_LIFETIME_MS },
      createdAt,
    );
    if (createdKey.kind !== 'done')
      throw new CommandFailure(
        `there is no account ${JSON.stringify(account)}; \`postrider account list\` lists accounts`,
      );
    try {
      for (;;) {
        const response = await submitMessage(target, key, flags);
        if (response.status !== 401 || response.message !== 'Invalid API key') return response;
        if (clock.now() - createdAt > UNKNOWN_KEY_TIMEOUT_MS)
          throw new CommandFailure(
            formatUnknownKeyError(target, database.kind === 'sqlite' ? database.path : 'the PostgreSQL database'),
          );
        await new Promise<void>((resolve) => clock.after(UNKNOWN_KEY_RETRY_MS, resolve));
      }
    } finally {
      await store.revokeKey(createdKey.value.id, clock.now()).catch(() => undefined);
    }
  });
}

function formatUnknownKeyError(target: Target, path: string): string {
  return `the service at ${formatTarget(target)} does not accept a key that was just created in ${quote(path)}, so it uses another database; give --key`;
}

function getLocalTarget({ listen, tls }: Settings): Target {
  if (isUnixSocket(listen)) return listen;
  if (listen.port === 0) throw new CommandFailure('POSTRIDER_LISTEN has port 0, so the port is unknown; give --url');
  const address = formatHostPort({ host: toReachableHost(listen.host), port: listen.port });
  return new URL(SEND_MAIL_PATH, `${tls === null ? 'http' : 'https'}://${address}`);
}

function parseUrlFlag(text: string): Target {
  if (text.startsWith('unix:')) {
    const listenResult = parseHttpListen(text);
    if (!listenResult.ok) throw new CommandFailure(`--url: ${listenResult.fault}`, 2);
    if (isUnixSocket(listenResult.value)) return listenResult.value;
  }
  const url = URL.parse(text);
  if (
    url === null ||
    (url.protocol !== 'http:' && url.protocol !== 'https:') ||
    url.username !== '' ||
    url.search !== ''
  ) {
    throw new CommandFailure(
      `--url: ${quote(text)} is not a URL such as https://mail.example.com or unix:/run/postrider/api.sock`,
      2,
    );
  }
  const path = url.pathname.endsWith('/') ? url.pathname.slice(0, -1) : url.pathname;
  url.pathname = path.endsWith(SEND_MAIL_PATH) ? path : path + SEND_MAIL_PATH;
  return url;
}

function formatTarget(target: Target): string {
  return target instanceof URL ? target.origin : formatListen(target);
}

async function submitMessage(
  target: Target,
  key: string,
  { to, from, subject, message }: SendFlags,
): Promise<SendResponse> {
  try {
    const response = await post(target, key, JSON.stringify({ to, from, subject, message }));
    const { 'postrider-reason': reason, 'retry-after': retryAfter } = response.headers;
    const notes = [reason, retryAfter === undefined ? undefined : `retry in ${retryAfter} s`];
    return {
      status: response.statusCode ?? 0,
      ...parseResponse(await readResponseText(response)),
      notes: notes.filter((note) => typeof note === 'string'),
    };
  } catch (error) {
    const cause = describeCause(error);
    throw new CommandFailure(
      isCertificateFault(error)
        ? `the certificate of ${formatTarget(target)} is not accepted (${cause}); give --url with a name in the certificate, or set NODE_EXTRA_CA_CERTS for a private certificate authority`
        : `no response from ${formatTarget(target)} (${cause}); start the service, or give another address with --url`,
    );
  }
}

function post(target: Target, key: string, body: string): Promise<IncomingMessage> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const headers = {
    authorization: key,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  };
  const options = { method: 'POST', headers, agent: false as const, signal };
  return new Promise((resolve, reject) => {
    const outgoing =
      target instanceof URL
        ? (target.protocol === 'https:' ? getHttps().request : request)(target, options, resolve)
        : request({ ...options, ...target, path: SEND_MAIL_PATH }, resolve);
    outgoing.on('error', (error) => reject(signal.aborted ? signal.reason : error)).end(body);
  });
}

/** @throws CommandFailure if the request was refused */
function requireAccepted({ status, id, message, notes }: SendResponse): string {
  if (status === 201 && id !== null) return id;
  const error = message ?? 'the response is not from Postrider; check the address';
  throw new CommandFailure(toPrintable(`${status} ${error}${notes.length === 0 ? '' : ` (${notes.join('; ')})`}`));
}

function parseResponse(text: string): Pick<SendResponse, 'id' | 'message'> {
  try {
    const json = JSON.parse(text) as { readonly message?: unknown; readonly result?: { readonly id?: unknown } } | null;
    const [id, message] = [json?.result?.id, json?.message].map((value) => (typeof value === 'string' ? value : null));
    return { id: id ?? null, message: message ?? null };
  } catch {
    return { id: null, message: null };
  }
}

/** nodejs.org/api/tls.html, X509 certificate error codes. */
function isCertificateFault(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return ['CERT', 'UNABLE_TO_VERIFY', 'UNABLE_TO_GET_ISSUER', 'SELF_SIGNED'].some((codePart) =>
    code.includes(codePart),
  );
}

function describeCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `timeout after ${TIMEOUT_MS / 1000} s`;
  return error.message === '' && 'code' in error ? String(error.code) : error.message;
}

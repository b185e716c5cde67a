/**
 * Puts the doctor's checks together with what they need of this machine: files, store, DNS, the relay. Changes nothing,
 * sends no mail and makes no database and no secret.
 */
import { constants, existsSync } from 'node:fs';
import { access, mkdtemp, readFile, rmdir, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { isLoopback } from '../config/host.ts';
import type { Settings } from '../config/settings.ts';
import { checkCertificate } from '../doctor/certificate.ts';
import { checkClock } from '../doctor/clock.ts';
import { checkDatabase, type DatabaseParts } from '../doctor/database.ts';
import { type Check, type Finding, runChecks, warning } from '../doctor/finding.ts';
import { checkHostName } from '../doctor/host-name.ts';
import { checkNotices, checkReturnPath } from '../doctor/return-path.ts';
import { checkSendingDomain } from '../doctor/sending-domain.ts';
import { type Conversation, checkTransport } from '../doctor/transport.ts';
import { createResolver, type Resolver } from '../domains/dns.ts';
import { openKey } from '../domains/keys.ts';
import { recordsFor } from '../domains/records.ts';
import { dataFolder, SECRET_REMEDY, sealingKey, secretPath, secretWarning, sendingSetup } from '../domains/setup.ts';
import { checkRecords } from '../domains/verify.ts';
import type { SendingDomain } from '../model/domain.ts';
import { sendersBound } from '../model/senders.ts';
import { describeError } from '../printing/error-line.ts';
import type { SesAccount } from '../transports/ses/client.ts';
import type { Context } from './context.ts';
import { type ProgressStream, StatusLine } from './progress.ts';
import { type Probe, probeRelay } from './smtp-probe.ts';

const LIMITS = {
  /** For each check. */
  timeoutMs: 25_000,
  /** After which no further check begins. */
  wholeMs: 60_000,
  concurrency: 8,
} as const;
/** Less than a check has, so that it says where the conversation hung. */
const RELAY_MS = 20_000;

/** What the store tells, once it is open. */
interface StoreFacts {
  readonly opened: DatabaseParts['opened'];
  readonly tookMs: number;
  readonly newestAcceptedAt: number | null;
  readonly domains: readonly SendingDomain[];
}

/** Runs them all. */
export async function examine(context: Context, terminal: ProgressStream): Promise<readonly Finding[]> {
  const settings = context.settings();
  const { clock } = context;
  const resolver = createResolver(settings.dns);
  const line = new StatusLine(terminal);
  const onProgress = (done: number, running: readonly string[]): void =>
    line.show(`${done} checked; ${running.join(', ')} …`);
  try {
    let facts: StoreFacts | null = null;
    const database: Check = {
      name: 'database',
      onTimeout: 'failure',
      async run() {
        facts = await readStore(context, settings);
        const { database } = settings;
        return database.kind === 'sqlite'
          ? checkDatabase({ path: database.path, ...facts, space: () => freeSpace(database.path) })
          : checkDatabase({
              path: 'the PostgreSQL database',
              ...facts,
              space: null,
              warnings: await warningsOf(database),
            });
      },
    };
    const first = await runChecks([database], { ...LIMITS, clock, onProgress });
    const rest = await runChecks(otherChecks(context, settings, resolver, facts), { ...LIMITS, clock, onProgress });
    return [...first, ...rest];
  } finally {
    line.end();
  }
}

/** What the database server says of itself that endangers mail; nothing where it cannot be asked. */
async function warningsOf(database: Settings['database']): Promise<readonly string[]> {
  const lines: string[] = [];
  try {
    const { openStore } = await import('../store/open.ts');
    await (await openStore(database, { exclusive: true, warn: (line) => lines.push(line) })).close();
  } catch {
    // Why it does not open is told already.
  }
  return lines;
}

async function readStore(context: Context, { database }: Settings): Promise<StoreFacts> {
  const nothing = { tookMs: 0, newestAcceptedAt: null, domains: [] };
  if (database.kind === 'sqlite' && !existsSync(database.path))
    return { ...nothing, opened: await whyAbsent(database.path) };
  const startedAt = performance.now();
  try {
    return await context.withStore(async (store) => {
      await store.probe();
      const tookMs = performance.now() - startedAt;
      const newest = await store.listMail({ accountId: null, state: null, to: null, since: null, limit: 1 });
      const domains = await store.listDomains();
      return { opened: { kind: 'ok' }, tookMs, newestAcceptedAt: newest[0]?.acceptedAt ?? null, domains };
    });
  } catch (error) {
    return { ...nothing, opened: { kind: 'failed', why: describeError(error) } };
  }
}

/** Not there yet, or not there any more. Makes nothing. */
async function whyAbsent(path: string): Promise<DatabaseParts['opened']> {
  const { requireUsableFiles, resolveDatabasePath } = await import('../store/sqlite/files.ts');
  const { isServed } = await import('../store/sqlite/serve-lock.ts');
  try {
    if (isServed(path))
      return {
        kind: 'failed',
        why: `the database ${path} is missing, and a service runs on it: it was removed or moved`,
      };
    requireUsableFiles(resolveDatabasePath(path));
    return { kind: 'absent' };
  } catch (error) {
    return { kind: 'failed', why: describeError(error) };
  }
}

function otherChecks(
  context: Context,
  settings: Settings,
  resolver: Resolver,
  facts: StoreFacts | null,
): readonly Check[] {
  const { clock } = context;
  const { transport, listen, tls } = settings;
  const data = dataFolder(settings.database);
  const inboxPath = join(data, 'inbox');
  const relay = transport.kind === 'smtp' ? probeRelay(transport, clock, RELAY_MS) : null;
  const check = (name: string, onTimeout: Check['onTimeout'], run: Check['run']): Check => ({ name, onTimeout, run });
  const secretFault = secretWarning(settings);
  return [
    ...(secretFault === null
      ? []
      : [check('secret', 'warning', async () => [warning('secret', secretFault, SECRET_REMEDY)])]),
    check('clock', 'warning', () =>
      checkClock({
        now: clock.now,
        monotonic: () => performance.now(),
        wait: async (ms) => void (await wait(ms)),
        newestAcceptedAt: facts?.newestAcceptedAt ?? null,
        fileTime: () => fileTime(data),
        greeting: relay === null ? Promise.resolve(null) : relay.then(({ greeting }) => greeting),
      }),
    ),
    check('transport', 'failure', () =>
      checkTransport({
        setting: transport,
        converse: () => conversationOf(relay),
        account: () => sesAccount(transport, clock),
        inboxPath,
        unwritable: () => unwritable(inboxPath),
      }),
    ),
    check('certificate', 'failure', () =>
      checkCertificate({
        paths: tls,
        listen,
        listensBeyondThisMachine: !isLoopback(listen.host),
        read: (path) => readFile(path),
        now: clock.now(),
      }),
    ),
    check('host name', 'warning', () => checkHostName(transport.kind === 'smtp' ? transport.name : null, resolver)),
    check('return path', 'warning', async () =>
      transport.kind === 'ses'
        ? checkNotices(settings.feedbackHttpListen !== null || settings.sesQueue !== null)
        : checkReturnPath(settings.returnPathDomain, resolver),
    ),
    ...(facts?.domains ?? []).map((domain) =>
      check(`domain ${domain.name}`, 'warning', () =>
        checkSendingDomain({
          domain,
          needed: sendersBound(settings),
          lookUp: () => checkRecords(recordsFor(domain, sendingSetup(settings)), resolver),
          keyFault: (selector, sealed) => keyFault(settings, domain.name, selector, sealed),
        }),
      ),
    ),
  ];
}

async function conversationOf(relay: Promise<Probe> | null): Promise<Conversation> {
  if (relay === null) return { kind: 'failed', stage: 'connect', text: 'the transport speaks no SMTP' };
  return (await relay).conversation;
}

async function sesAccount(setting: Settings['transport'], clock: Context['clock']): Promise<SesAccount> {
  if (setting.kind !== 'ses') throw new Error('the transport is not Amazon SES');
  const { createSesClient } = await import('../transports/ses/client.ts');
  const client = await createSesClient(setting, 1, clock);
  try {
    return await client.account(AbortSignal.timeout(RELAY_MS));
  } finally {
    client.close();
  }
}

/** Opens a key and forgets it. A secret that is gone is not made anew: what it sealed would be lost in silence. */
function keyFault(settings: Settings, domain: string, selector: string, sealed: string): string | null {
  const path = secretPath(settings);
  if (settings.secret === null && !existsSync(path)) return `the secret file ${path} is gone, and the keys need it`;
  try {
    openKey(sealingKey(settings), domain, selector, sealed).fill(0);
    return null;
  } catch (error) {
    return describeError(error);
  }
}

async function freeSpace(path: string): Promise<{ freeBytes: number; wholeBytes: number }> {
  const { bavail, blocks, bsize } = await statfs(nearestFolder(dirname(path)));
  return { freeBytes: bavail * bsize, wholeBytes: blocks * bsize };
}

/** The folder, or the one above it that is there. */
function nearestFolder(path: string): string {
  let folder = path;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}

/** The time of a folder made beside the database and taken away again. */
async function fileTime(data: string): Promise<number | null> {
  try {
    const made = await mkdtemp(join(data, '.doctor-'));
    try {
      return (await stat(made)).mtimeMs;
    } finally {
      await rmdir(made);
    }
  } catch {
    return null;
  }
}

async function unwritable(inboxPath: string): Promise<string | null> {
  const folder = nearestFolder(existsSync(join(inboxPath, 'tmp')) ? join(inboxPath, 'tmp') : inboxPath);
  try {
    await access(folder, constants.W_OK | constants.X_OK);
    await rmdir(await mkdtemp(join(folder, '.doctor-')));
    return null;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

/**
 * Checks the installation from this machine with the settings of the service: database, clock, transport, certificate, host name,
 * return path, sending domains. It changes nothing, sends no message, and creates neither a database nor a secret. A failure is a
 * finding with its remedy.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isLoopback } from '../config/host.ts';
import type { Settings } from '../config/settings.ts';
import { checkCertificate } from '../doctor/certificate.ts';
import { checkClock } from '../doctor/clock.ts';
import { checkDatabase, type DatabaseParts } from '../doctor/database.ts';
import { checkMaildirWritable, readDiskSpace, readFileSystemTime } from '../doctor/disk.ts';
import { type Check, runChecks, warning } from '../doctor/finding.ts';
import { checkHostName } from '../doctor/host-name.ts';
import { checkProviderEvents, checkReturnPath } from '../doctor/return-path.ts';
import { checkSendingDomain } from '../doctor/sending-domain.ts';
import { checkTransport } from '../doctor/transport.ts';
import { createResolver, type Resolver } from '../domains/dns.ts';
import { unsealKey } from '../domains/keys.ts';
import { recordsFor } from '../domains/records.ts';
import { dataFolder, SECRET_REMEDY, sealingKey, secretPath, secretWarning, sendingSetup } from '../domains/setup.ts';
import { checkRecords } from '../domains/verify.ts';
import type { SendingDomain } from '../model/domain.ts';
import { Type } from '../model/schema.ts';
import { requiresAuthenticatedSender } from '../model/submission.ts';
import { describeError } from '../printing/error-line.ts';
import type { RelayProbe, RelaySession } from '../transports/smtp/probe.ts';
import type { DoctorContext } from './context.ts';
import { ok } from './errors.ts';
import type { Operation } from './operation.ts';
import { nullable, oneOf } from './schemas.ts';

const LIMITS = {
  /** Time limit of one check. */
  timeoutMs: 25_000,
  /** After this time no further check begins. */
  totalTimeoutMs: 60_000,
  concurrency: 8,
} as const;
/** Shorter than the limit of a check, so that the finding names the stage at which the session stopped. */
const RELAY_TIMEOUT_MS = 20_000;

const NO_INPUT = Type.Object({});

/** The result of each check. */
export const Findings = Type.Array(
  Type.Object({
    check: Type.String({ description: 'The name of the check, such as `transport` or `domain example.com`.' }),
    result: oneOf(['ok', 'warning', 'failure']),
    detail: Type.String({ description: 'The result, in one line.' }),
    remedy: nullable(Type.String({ description: 'The remedy; null if none is needed.' })),
  }),
);

/** Runs all checks; takes at most one minute. */
export const runDoctor: Operation<typeof NO_INPUT, typeof Findings, DoctorContext> = {
  name: 'doctor.run',
  id: 'runDoctor',
  summary: 'Check the installation; takes up to one minute',
  changes: false,
  input: NO_INPUT,
  result: Findings,
  errors: [],
  async run(_input, context) {
    const { settings, machineClock: clock, installation, progress } = context;
    const resolver = createResolver(settings.dns);
    const onProgress = (done: number, running: readonly string[]): void =>
      progress(`${done} checked; ${running.join(', ')} …`);
    let facts: StoreFacts | null = null;
    const database: Check = {
      name: 'database',
      onTimeout: 'failure',
      async run() {
        facts = await readStore(context);
        return checkDatabase(
          settings.database.kind === 'sqlite'
            ? { path: settings.database.path, ...facts, readDiskSpace: spaceOf(settings.database.path) }
            : {
                path: 'the PostgreSQL database',
                ...facts,
                readDiskSpace: null,
                warnings: await installation.databaseWarnings(),
              },
        );
      },
    };
    const first = await runChecks([database], { ...LIMITS, clock, onProgress });
    const rest = await runChecks(otherChecks(context, resolver, facts), { ...LIMITS, clock, onProgress });
    return ok([...first, ...rest]);
  },
};

/** The contents of the store that checks need. */
interface StoreFacts {
  readonly opened: DatabaseParts['opened'];
  readonly tookMs: number;
  readonly newestAcceptedAt: number | null;
  readonly domains: readonly SendingDomain[];
}

async function readStore({ machineClock: clock, installation }: DoctorContext): Promise<StoreFacts> {
  const empty = { tookMs: 0, newestAcceptedAt: null, domains: [] };
  const absence = await installation.missingDatabase();
  if (absence !== null) return { ...empty, opened: absence };
  const startedAt = clock.monotonic();
  try {
    return await installation.withStore(async (store) => {
      await store.probe();
      const tookMs = clock.monotonic() - startedAt;
      const newest = await store.listMessages({ accountId: null, state: null, to: null, since: null, limit: 1 });
      const domains = await store.listDomains();
      return { opened: { kind: 'ok' }, tookMs, newestAcceptedAt: newest[0]?.acceptedAt ?? null, domains };
    });
  } catch (error) {
    return { ...empty, opened: { kind: 'failed', why: describeError(error) } };
  }
}

function spaceOf(path: string): DatabaseParts['readDiskSpace'] {
  return () => readDiskSpace(path);
}

function otherChecks(
  { settings, machineClock: clock, installation }: DoctorContext,
  resolver: Resolver,
  facts: StoreFacts | null,
): readonly Check[] {
  const { transport, listen, tls } = settings;
  const data = dataFolder(settings.database);
  const inboxPath = join(data, 'inbox');
  const relay = installation.probeRelay(RELAY_TIMEOUT_MS);
  const check = (name: string, onTimeout: Check['onTimeout'], run: Check['run']): Check => ({ name, onTimeout, run });
  const secretFault = secretWarning(settings);
  return [
    ...(secretFault === null
      ? []
      : [check('secret', 'warning', async () => [warning('secret', secretFault, SECRET_REMEDY)])]),
    check('clock', 'warning', () =>
      checkClock({
        now: clock.now,
        monotonic: clock.monotonic,
        wait: installation.wait,
        newestAcceptedAt: facts?.newestAcceptedAt ?? null,
        readFileSystemTime: () => readFileSystemTime(data),
        greeting: relay === null ? Promise.resolve(null) : relay.then(({ greeting }) => greeting),
      }),
    ),
    check('transport', 'failure', () =>
      checkTransport({
        setting: transport,
        probeRelay: () => conversationOf(relay),
        readSesAccount: () => installation.readSesAccount(RELAY_TIMEOUT_MS),
        inboxPath,
        checkWritable: () => checkMaildirWritable(inboxPath),
      }),
    ),
    check('certificate', 'failure', () =>
      checkCertificate({
        paths: tls,
        listen,
        acceptsRemoteClients: !isLoopback(listen.host),
        read: (path) => readFile(path),
        now: clock.now(),
      }),
    ),
    check('host name', 'warning', () => checkHostName(transport.kind === 'smtp' ? transport.name : null, resolver)),
    check('return path', 'warning', async () =>
      transport.kind === 'ses'
        ? checkProviderEvents(settings.feedbackHttpListen !== null || settings.sesQueue !== null)
        : checkReturnPath(settings.returnPathDomain, resolver),
    ),
    ...(facts?.domains ?? []).map((domain) =>
      check(`domain ${domain.name}`, 'warning', () =>
        checkSendingDomain({
          domain,
          authenticationRequired: requiresAuthenticatedSender(settings),
          checkRecords: () => checkRecords(recordsFor(domain, sendingSetup(settings)), resolver),
          checkKey: (selector, sealed) => keyFault(settings, domain.name, selector, sealed),
        }),
      ),
    ),
  ];
}

async function conversationOf(relay: Promise<RelayProbe> | null): Promise<RelaySession> {
  if (relay === null) return { kind: 'failed', stage: 'connect', text: 'the transport does not use SMTP' };
  return (await relay).session;
}

/** Opens a key and wipes it. Does not replace a missing secret: the sealed keys would be lost without a report. */
function keyFault(settings: Settings, domain: string, selector: string, sealed: string): string | null {
  const path = secretPath(settings);
  if (settings.secret === null && !existsSync(path))
    return `the secret file ${path} is missing; without it the keys cannot be opened`;
  try {
    unsealKey(sealingKey(settings), domain, selector, sealed).fill(0);
    return null;
  } catch (error) {
    return describeError(error);
  }
}

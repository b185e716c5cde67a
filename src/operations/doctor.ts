/**
 * Checks the installation from this machine with the settings of the service: database, secret, clock, transport,
 * notifications, certificate, host name, return path, message size, provider events, suppression lists, sending
 * domains. The checks send no message, change no data, and create neither a database nor a secret. A failure is a
 * finding with a remedy.
 */

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Settings } from '../config/settings.ts';
import { checkCertificate } from '../doctor/certificate.ts';
import { checkClock } from '../doctor/clock.ts';
import { checkDatabase, type DatabaseParts } from '../doctor/database.ts';
import { findMaildirFault, readDiskSpace, readFileSystemTime } from '../doctor/disk.ts';
import { type Check, createWarning, type Finding, runChecks } from '../doctor/finding.ts';
import { checkHostName } from '../doctor/host-name.ts';
import type { DoctorStore } from '../doctor/installation.ts';
import { checkMessageSize } from '../doctor/message-size.ts';
import { checkNotifications, type NotificationFacts } from '../doctor/notifications.ts';
import { sumRefusedReports } from '../doctor/provider-events.ts';
import { checkReturnPath, createUnusedReturnPathFinding } from '../doctor/return-path.ts';
import { checkSendingDomain, createMissingDomainFinding } from '../doctor/sending-domain.ts';
import { checkSuppressionLists } from '../doctor/suppression-lists.ts';
import { checkTransport } from '../doctor/transport.ts';
import { createResolver, type Resolver } from '../domains/dns.ts';
import { unsealKey } from '../domains/keys.ts';
import { createRecords } from '../domains/records.ts';
import { describeReturnPath } from '../domains/return-path.ts';
import {
  describeSignatures,
  findTransportProvider,
  getDataFolder,
  getSecretPath,
  getSecretWarning,
  getSendingSetup,
  loadSealingKey,
  SECRET_REMEDY,
} from '../domains/setup.ts';
import { checkRecords } from '../domains/verify.ts';
import { parseAddress, toCanonicalAddress } from '../model/address.ts';
import type { SendingDomain } from '../model/domain.ts';
import type { LastFeedback } from '../model/feedback.ts';
import { isLocalListen } from '../model/listen-address.ts';
import type { NodeStatus } from '../model/node.ts';
import { findSenderDomain, findSenderFault } from '../model/notification-sender.ts';
import { Type } from '../model/schema.ts';
import { requiresAuthenticatedSender } from '../model/submission.ts';
import type { ListedSuppression } from '../model/suppression.ts';
import { describeError } from '../printing/error-line.ts';
import { PROVIDERS } from '../providers/providers.ts';
import type { RelayProbe, RelaySession } from '../transports/smtp/probe.ts';
import { Findings } from './doctor/schemas.ts';
import { ok } from './errors.ts';
import type { DoctorContext, Operation } from './operation.ts';
import { getNotificationSenderDomain } from './overview/input.ts';
import { checkEvents, hasEventSettings } from './providers.ts';

const CHECK_LIMITS = {
  /** The time limit of each check. */
  timeoutMs: 25_000,
  /** The time after which no further check begins. */
  totalTimeoutMs: 60_000,
  concurrency: 8,
} as const;
/**
 * The time limit of an SMTP session with the relay. It is shorter than the limit of a check, so the finding names the
 * stage at which the session stopped.
 */
const RELAY_TIMEOUT_MS = 20_000;

const NO_INPUT = Type.Object({});

/** Runs the check of the database, and then all other checks concurrently. The limits are those of `CHECK_LIMITS`. */
export const runDoctor: Operation<typeof NO_INPUT, typeof Findings, DoctorContext> = {
  name: 'doctor.run',
  id: 'runDoctor',
  summary: 'Check the installation; takes up to two minutes',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: NO_INPUT,
  result: Findings,
  errors: [],
  async run(_input, context) {
    const { settings, machineClock: clock, installation, showProgress } = context;
    const resolver = createResolver(settings.dns);
    const onProgress = (completedCount: number, runningChecks: readonly string[]): void =>
      showProgress(`${completedCount} checked; ${runningChecks.join(', ')} …`);
    let storeFacts: StoreFacts | null = null;
    const database: Check = {
      name: 'database',
      onTimeout: 'failure',
      async run() {
        storeFacts = await readStore(context);
        const { lines, standby } = await installation.readDatabaseWarnings();
        return checkDatabase(
          settings.database.kind === 'sqlite'
            ? {
                path: settings.database.path,
                ...storeFacts,
                readDiskSpace: createDiskSpaceReader(settings.database.path),
              }
            : {
                path: 'the PostgreSQL database',
                ...storeFacts,
                readDiskSpace: null,
                warnings: lines,
                standby,
              },
        );
      },
    };
    const databaseFindings = await runChecks([database], { ...CHECK_LIMITS, clock, onProgress });
    const otherFindings = await runChecks(createOtherChecks(context, resolver, storeFacts), {
      ...CHECK_LIMITS,
      clock,
      onProgress,
    });
    return ok([...databaseFindings, ...otherFindings]);
  },
};

/** The data of the store that the checks need. */
interface StoreFacts {
  readonly openResult: DatabaseParts['openResult'];
  readonly durationMs: number;
  readonly newestAcceptedAt: number | null;
  readonly domains: readonly SendingDomain[];
  readonly lastFeedback: readonly LastFeedback[];
  readonly nodes: readonly NodeStatus[];
}

async function readStore({ machineClock: clock, installation }: DoctorContext): Promise<StoreFacts> {
  const emptyFacts = { durationMs: 0, newestAcceptedAt: null, domains: [], lastFeedback: [], nodes: [] };
  const missingDatabase = await installation.findMissingDatabase();
  if (missingDatabase !== null) return { ...emptyFacts, openResult: missingDatabase };
  const startedAt = clock.monotonic();
  try {
    return await installation.withStore(async (store) => {
      await store.probe();
      const durationMs = clock.monotonic() - startedAt;
      const newestMessages = await store.listMessages({
        accountId: null,
        state: null,
        to: null,
        since: null,
        limit: 1,
      });
      const domains = await store.listDomains();
      const lastFeedback = await store.listLastFeedback();
      const nodes = await store.listNodes(clock.now());
      const newestAcceptedAt = newestMessages[0]?.acceptedAt ?? null;
      return { openResult: { kind: 'ok' }, durationMs: durationMs, newestAcceptedAt, domains, lastFeedback, nodes };
    });
  } catch (error) {
    return { ...emptyFacts, openResult: { kind: 'failed', reason: describeError(error) } };
  }
}

const MAX_READ_NOTIFICATIONS = 50;

async function readNotificationFacts(store: DoctorStore, settings: Settings, now: number): Promise<NotificationFacts> {
  const { notifyTargets } = settings;
  const sender = getNotificationSenderDomain(settings);
  let senderFault: NotificationFacts['senderFault'] = null;
  let accountName: string | null = null;
  if (sender !== null) {
    const domains = await store.listDomains();
    const domain = findSenderDomain(sender, (name) => domains.find((candidate) => candidate.name === name) ?? null);
    const account = (await store.listAccounts()).find(({ id }) => id === domain?.accountId) ?? null;
    senderFault = findSenderFault(sender, domain, account, requiresAuthenticatedSender(settings));
    accountName = account?.name ?? null;
  }
  const targets = await Promise.all(
    notifyTargets.map(async (target) => {
      const notifications = await store.listNotifications(target.text, MAX_READ_NOTIFICATIONS);
      const messageId = notifications.find(({ status }) => status === 'delivered')?.messageId ?? null;
      const message = messageId === null ? null : await store.findMessage(messageId);
      const isSuppressed = target.kind === 'mail' && (await isOnList(store, target.address, accountName));
      return { target, notifications, messageState: message?.state ?? null, isSuppressed };
    }),
  );
  return { now, senderFault, targets };
}

/** Resolves to true if the suppression list of the account or of the service contains the address. */
async function isOnList(
  store: Pick<DoctorStore, 'findSuppression'>,
  text: string,
  accountName: string | null,
): Promise<boolean> {
  const address = parseAddress(text);
  if (address === null) return false;
  const entries = await store.findSuppression(toCanonicalAddress(address));
  return entries.some(({ list }) => list === '*' || list === accountName);
}

function createDiskSpaceReader(path: string): DatabaseParts['readDiskSpace'] {
  return () => readDiskSpace(path);
}

function createOtherChecks(
  context: DoctorContext,
  resolver: Resolver,
  storeFacts: StoreFacts | null,
): readonly Check[] {
  const { settings, machineClock: clock, installation, status } = context;
  const { transport, listen, tls } = settings;
  const dataPath = getDataFolder(settings.database);
  const inboxPath = join(dataPath, 'inbox');
  const relayProbe = installation.probeRelay(RELAY_TIMEOUT_MS);
  const defineCheck = (name: string, onTimeout: Check['onTimeout'], run: Check['run']): Check => ({
    name,
    onTimeout,
    run,
  });
  const relayProvider = findTransportProvider(transport);
  const maxMessageBytes = relayProvider?.relay?.maxMessageBytes ?? null;
  const secretFault = getSecretWarning(settings);
  return [
    ...(secretFault === null
      ? []
      : [defineCheck('secret', 'warning', async () => [createWarning('secret', secretFault, SECRET_REMEDY)])]),
    defineCheck('clock', 'warning', () =>
      checkClock({
        now: clock.now,
        monotonic: clock.monotonic,
        wait: installation.wait,
        newestAcceptedAt: storeFacts?.newestAcceptedAt ?? null,
        readFileSystemTime: () => readFileSystemTime(dataPath),
        greeting: relayProbe === null ? Promise.resolve(null) : relayProbe.then(({ greeting }) => greeting),
      }),
    ),
    defineCheck('transport', 'failure', () =>
      checkTransport({
        setting: transport,
        probeRelay: () => awaitRelaySession(relayProbe),
        readSesAccount: () => installation.readSesAccount(RELAY_TIMEOUT_MS),
        inboxPath,
        checkWritable: () => findMaildirFault(inboxPath),
      }),
    ),
    defineCheck('notifications', 'warning', async () =>
      storeFacts?.openResult.kind === 'ok'
        ? checkNotifications(
            await installation.withStore((store) => readNotificationFacts(store, settings, clock.now())),
          )
        : [],
    ),
    defineCheck('certificate', 'failure', () =>
      checkCertificate({
        paths: tls,
        listen,
        acceptsRemoteClients: !isLocalListen(listen),
        read: (path) => readFile(path),
        now: clock.now(),
      }),
    ),
    defineCheck('host name', 'warning', () =>
      checkHostName(transport.kind === 'smtp' ? transport.name : null, relayProvider?.title ?? null, resolver),
    ),
    defineCheck('return path', 'warning', async () =>
      relayProvider?.relay?.keepsEnvelopeSender === false
        ? [createUnusedReturnPathFinding(relayProvider.title, listReturnPaths(storeFacts?.domains ?? []))]
        : checkReturnPath(settings.returnPathDomain, resolver),
    ),
    ...(relayProvider === null || maxMessageBytes === null
      ? []
      : [
          defineCheck('message size', 'warning', async () => [
            checkMessageSize({
              title: relayProvider.title,
              maxMessageBytes,
              maxRequestBytes: settings.maxRequestBytes,
            }),
          ]),
        ]),
    ...PROVIDERS.filter((provider) => provider === relayProvider || hasEventSettings(settings, provider)).map(
      (provider) =>
        defineCheck(`events ${provider.name}`, 'warning', async () => [
          checkEvents(provider, relayProvider, settings, {
            lastFeedback: storeFacts?.lastFeedback ?? [],
            refusedReports: sumRefusedReports(storeFacts?.nodes ?? [], status?.() ?? null),
            now: clock.now(),
          }),
        ]),
    ),
    ...(relayProvider?.name === 'ses' && storeFacts?.openResult.kind === 'ok'
      ? [defineCheck('suppression lists', 'warning', () => compareSuppressionLists(context))]
      : []),
    ...(storeFacts?.openResult.kind === 'ok' && storeFacts.domains.length === 0 && requiresAuthenticatedSender(settings)
      ? [defineCheck('domain', 'warning', async () => [createMissingDomainFinding()])]
      : []),
    ...(storeFacts?.domains ?? []).map((domain) =>
      defineCheck(`domain ${domain.name}`, 'warning', () =>
        checkSendingDomain({
          domain,
          requiresAuthentication: requiresAuthenticatedSender(settings),
          signatures: describeSignatures(settings, domain),
          checkRecords: () => checkRecords(createRecords(domain, getSendingSetup(settings)), resolver),
          returnPath:
            domain.returnPath === null ? null : describeReturnPath(domain.returnPath, getSendingSetup(settings)),
          checkKey: (selector, sealedKey) => findKeyFault(settings, domain.name, selector, sealedKey),
        }),
      ),
    ),
  ];
}

const SUPPRESSION_PAGE_SIZE = 10_000;

/** Compares the suppression list of Amazon SES with the suppression lists of Postrider. */
async function compareSuppressionLists({
  settings,
  machineClock: clock,
  installation,
}: DoctorContext): Promise<readonly Finding[]> {
  const list = await installation.openSesSuppressionList();
  if (list === null) return [];
  try {
    return await installation.withStore(async (store) => [
      await checkSuppressionLists({
        list,
        usesSmtpInterface: settings.transport.kind === 'smtp',
        findSuppressed: (addresses) => store.findSuppressed(addresses),
        readOwnPages: () => readSuppressionPages(store),
        clock,
        wait: installation.wait,
      }),
    ]);
  } finally {
    list.close();
  }
}

/** Reads the suppression list of the whole service, then the suppression list of each account. */
async function* readSuppressionPages(
  store: Pick<DoctorStore, 'listAccounts' | 'listSuppressions'>,
): AsyncGenerator<readonly ListedSuppression[]> {
  for (const list of ['*', ...(await store.listAccounts()).map(({ name }) => name)]) {
    for (let after: string | null = null; ; ) {
      const page = await store.listSuppressions(list, after, SUPPRESSION_PAGE_SIZE);
      if (page.kind !== 'done') break;
      yield page.value.map((entry) => ({ ...entry, list }));
      if (page.value.length < SUPPRESSION_PAGE_SIZE) break;
      after = page.value.at(-1)?.address ?? null;
    }
  }
}

function listReturnPaths(domains: readonly SendingDomain[]): readonly string[] {
  return domains.flatMap(({ returnPath }) => (returnPath === null ? [] : [returnPath.name]));
}

async function awaitRelaySession(relayProbe: Promise<RelayProbe> | null): Promise<RelaySession> {
  if (relayProbe === null)
    return { kind: 'failed', stage: 'connect', code: null, text: 'the transport does not use SMTP' };
  return (await relayProbe).session;
}

/**
 * Decrypts a key and erases it from memory. Returns the fault, or null. A missing secret is not created, because a new
 * secret could not decrypt the stored keys.
 */
function findKeyFault(settings: Settings, domain: string, selector: string, sealedKey: string): string | null {
  const path = getSecretPath(settings);
  if (settings.secret === null && !existsSync(path))
    return `the secret file ${path} is missing; the DKIM keys cannot be decrypted without it`;
  try {
    unsealKey(loadSealingKey(settings), domain, selector, sealedKey).fill(0);
    return null;
  } catch (error) {
    return describeError(error);
  }
}

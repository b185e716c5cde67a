/** The probes send no message, change no data, and create neither a database nor a secret. A failure is a finding. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Static } from 'typebox';
import { checkCertificate } from '../checks/certificate.ts';
import { checkClock } from '../checks/clock.ts';
import { checkDatabase, type OpenResult } from '../checks/database.ts';
import { checkSendingDomain, createMissingDomainFinding } from '../checks/domains.ts';
import { type Finding, getNotificationSenderDomain, report } from '../checks/facts.ts';
import { checkEvents, hasEventSettings, planLoopTests, runLoopTests, sumRefusedReports } from '../checks/feedback.ts';
import { checkHostName, checkReturnPath, createUnusedReturnPathFinding } from '../checks/host-names.ts';
import { checkNotifications, type NotificationFacts } from '../checks/outbound.ts';
import {
  type DoctorStore,
  findMaildirFault,
  type Probe,
  readDiskSpace,
  readFileSystemTime,
  runProbes,
} from '../checks/probes.ts';
import { checkSuppressionLists } from '../checks/suppression-lists.ts';
import { checkMessageSize, checkTransport } from '../checks/transport.ts';
import type { Settings } from '../config/settings.ts';
import { parseDuration } from '../config/units.ts';
import { createResolver, type Resolver } from '../domains/dns.ts';
import { unsealKey } from '../domains/keys.ts';
import { describeReturnPath } from '../domains/name.ts';
import { createRecords } from '../domains/records.ts';
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
import type { Account } from '../model/account.ts';
import { parseAddress, toCanonicalAddress } from '../model/address.ts';
import type { SendingDomain } from '../model/domain.ts';
import type { LastFeedback } from '../model/feedback.ts';
import { isLocalListen } from '../model/listen-address.ts';
import type { NewMessage } from '../model/message.ts';
import type { NodeStatus } from '../model/node.ts';
import { findSenderDomain, findSenderFault } from '../model/notification.ts';
import { createMessageIdGenerator, requiresAuthenticatedSender } from '../model/submission.ts';
import { isCurrent, type ListedSuppression } from '../model/suppression.ts';
import { describeError, maskSecrets } from '../printing/escape.ts';
import { PROVIDERS } from '../providers/providers.ts';
import { createAccountNotFound, createInvalid, ok, toMemberResult } from './errors.ts';
import { type DoctorContext, type Operation, reads } from './operation.ts';
import { Type } from './schemas.ts';

const LIMITS = {
  timeoutMs: 25_000,
  totalTimeoutMs: 60_000,
  concurrency: 8,
} as const;
/** Shorter than the limit of a probe, so that the finding names the stage at which the SMTP session stopped. */
const RELAY_TIMEOUT_MS = 20_000;
const MAX_READ_NOTIFICATIONS = 50;
const SUPPRESSION_PAGE_SIZE = 10_000;

const Findings = Type.Array(
  Type.Object({
    check: Type.String('The name of the check, such as `transport` or `domain example.com`.'),
    result: Type.Enum(['ok', 'warning', 'failure']),
    detail: Type.String('The result, in one line.'),
    remedy: Type.NullableString('The remedy, or null.'),
  }),
);
export type Findings = Static<typeof Findings>;

const NO_INPUT = Type.Object({});

function toResult(findings: readonly Finding[]): Findings {
  return findings.map(({ code, subject, level, text, remedy }) => {
    return { check: subject === null ? code : `${code} ${subject}`, result: level, detail: maskSecrets(text), remedy };
  });
}

/** Probes the database, and then everything else concurrently. */
export const runDoctor: Operation<typeof NO_INPUT, typeof Findings, DoctorContext> = {
  name: 'doctor.run',
  id: 'runDoctor',
  summary: 'Check the installation; takes up to two minutes',
  ...reads('viewer'),
  input: NO_INPUT,
  result: Findings,
  errors: [],
  async run(_input, context) {
    const { settings, machineClock: clock, installation, showProgress } = context;
    const onProgress = (completedCount: number, runningNames: readonly string[]): void =>
      showProgress(`${completedCount} checked; ${runningNames.join(', ')} …`);
    const options = { ...LIMITS, clock, onProgress };
    let facts = NO_FACTS;
    const { database } = settings;
    const databaseProbe: Probe = {
      name: 'database',
      onTimeout: 'failure',
      async run() {
        facts = await readDoctorFacts(context);
        const { lines: warnings, standby } = await installation.readDatabaseWarnings();
        return checkDatabase(
          database.kind === 'sqlite'
            ? { ...facts, path: database.path, readDiskSpace: () => readDiskSpace(database.path) }
            : { ...facts, path: 'the PostgreSQL database', readDiskSpace: null, warnings, standby },
        );
      },
    };
    const databaseFindings = await runProbes([databaseProbe], options);
    const probes = listProbes(context, createResolver(settings.dns), facts);
    return ok(toResult([...databaseFindings, ...(await runProbes(probes, options))]));
  },
};

interface DoctorFacts {
  readonly openResult: OpenResult;
  readonly durationMs: number;
  readonly newestAcceptedAt: number | null;
  readonly domains: readonly SendingDomain[];
  readonly lastFeedback: readonly LastFeedback[];
  readonly nodes: readonly NodeStatus[];
}

const NO_FACTS: DoctorFacts = {
  ...{ openResult: { kind: 'absent' }, durationMs: 0, newestAcceptedAt: null },
  ...{ domains: [], lastFeedback: [], nodes: [] },
};

async function readDoctorFacts({ machineClock: clock, installation }: DoctorContext): Promise<DoctorFacts> {
  const missingDatabase = await installation.findMissingDatabase();
  if (missingDatabase !== null) return { ...NO_FACTS, openResult: missingDatabase };
  const startedAt = clock.monotonic();
  try {
    return await installation.withStore(async (store) => {
      await store.probe();
      const durationMs = clock.monotonic() - startedAt;
      const [newest] = await store.listMessages({ accountId: null, state: null, to: null, since: null, limit: 1 });
      return {
        openResult: { kind: 'ok' },
        durationMs,
        newestAcceptedAt: newest?.acceptedAt ?? null,
        domains: await store.listDomains(),
        lastFeedback: await store.listLastFeedback(),
        nodes: await store.listNodes(clock.now()),
      };
    });
  } catch (error) {
    return { ...NO_FACTS, openResult: { kind: 'failed', reason: describeError(error) } };
  }
}

function listProbes(context: DoctorContext, resolver: Resolver, facts: DoctorFacts): readonly Probe[] {
  const { settings, machineClock: clock, installation, status } = context;
  const { listen, tls } = settings;
  const { domains, lastFeedback, nodes, newestAcceptedAt } = facts;
  const hasStore = facts.openResult.kind === 'ok';
  const dataPath = getDataFolder(settings.database);
  const inboxPath = join(dataPath, 'inbox');
  const routes = settings.routes.map(({ name, transport }) => ({
    ...{ transport, route: settings.routes.length === 1 ? null : name },
    relayProbe: installation.probeRelay(transport, RELAY_TIMEOUT_MS),
    provider: findTransportProvider(transport),
  }));
  const greetings = routes.flatMap(({ relayProbe }) => relayProbe ?? []);
  const providers = [...new Set(routes.flatMap(({ provider }) => provider ?? []))];
  const secretFault = getSecretWarning(settings);
  const requiresAuthentication = requiresAuthenticatedSender(settings);
  const sendingSetup = getSendingSetup(settings);
  const probes: Probe[] = [];
  const add = (name: string, onTimeout: Probe['onTimeout'], run: () => ReturnType<Probe['run']> | Finding) =>
    probes.push({ name, onTimeout, run: async () => run() });

  if (secretFault !== null) add('secret', 'warning', () => report('secret').warning(secretFault, SECRET_REMEDY));
  add('clock', 'warning', () =>
    checkClock({
      ...{ now: clock.now, monotonic: clock.monotonic, wait: installation.wait, newestAcceptedAt },
      readFileSystemTime: () => readFileSystemTime(dataPath),
      greeting: Promise.resolve(greetings[0]).then((probe) => probe?.greeting ?? null),
    }),
  );
  for (const { route, transport, relayProbe } of routes)
    add(route === null ? 'transport' : `transport ${route}`, 'failure', () =>
      checkTransport({
        ...{ route, setting: transport, inboxPath },
        async probeRelay() {
          const text = 'the transport does not use SMTP';
          return (await relayProbe)?.session ?? { kind: 'failed', stage: 'connect', code: null, text };
        },
        readSesAccount: () => installation.readSesAccount(transport, RELAY_TIMEOUT_MS),
        checkWritable: () => findMaildirFault(inboxPath),
      }),
    );
  add('notifications', 'warning', async () => {
    if (!hasStore) return [];
    const read = (store: DoctorStore) => readNotificationFacts(store, settings, clock.now());
    return checkNotifications(await installation.withStore(read));
  });
  add('certificate', 'failure', () =>
    checkCertificate({
      ...{ paths: tls, listen, acceptsRemoteClients: !isLocalListen(listen), now: clock.now() },
      read: (path) => readFile(path),
    }),
  );
  const hostNames = new Map(
    routes.map(({ transport, provider }) => [transport.kind === 'smtp' ? transport.name : null, provider?.title]),
  );
  for (const [hostName, title] of hostNames)
    add('host name', 'warning', () => checkHostName(hostName, title ?? null, resolver));
  add('return path', 'warning', () => {
    if (routes.some(({ provider }) => provider?.relay?.keepsEnvelopeSender !== false))
      return checkReturnPath(settings.returnPathDomain, resolver);
    const returnPaths = domains.flatMap(({ returnPath }) => returnPath?.name ?? []);
    return createUnusedReturnPathFinding(providers.map(({ title }) => title).join(' and '), returnPaths);
  });
  for (const { title, relay } of providers) {
    const maxMessageBytes = relay?.maxMessageBytes ?? null;
    if (maxMessageBytes !== null)
      add('message size', 'warning', () => checkMessageSize(title, maxMessageBytes, settings.maxRequestBytes));
  }
  for (const provider of PROVIDERS)
    if (providers.includes(provider) || hasEventSettings(settings, provider))
      add(`events ${provider.name}`, 'warning', () => {
        const refusedReports = sumRefusedReports(nodes, status?.() ?? null);
        const relayProvider = providers.find((candidate) => candidate === provider) ?? null;
        return checkEvents(provider, relayProvider, settings, { lastFeedback, refusedReports, now: clock.now() });
      });
  if (providers.some(({ name }) => name === 'ses') && hasStore)
    add('suppression lists', 'warning', () => compareSuppressionLists(context));
  if (hasStore && domains.length === 0 && requiresAuthentication) add('domain', 'warning', createMissingDomainFinding);
  for (const domain of domains)
    add(`domain ${domain.name}`, 'warning', () =>
      checkSendingDomain({
        ...{ domain, requiresAuthentication, signatures: describeSignatures(settings, domain) },
        checkRecords: () => checkRecords(createRecords(domain, sendingSetup), resolver),
        returnPath: domain.returnPath === null ? null : describeReturnPath(domain.returnPath, sendingSetup),
        checkKey: (selector, sealedKey) => findKeyFault(settings, domain.name, selector, sealedKey),
      }),
    );
  return probes;
}

async function readNotificationFacts(store: DoctorStore, settings: Settings, now: number): Promise<NotificationFacts> {
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
    settings.notifyTargets.map(async (target) => {
      const notifications = await store.listNotifications(target.text, MAX_READ_NOTIFICATIONS);
      const messageId = notifications.find(({ status }) => status === 'delivered')?.messageId ?? null;
      const message = messageId === null ? null : await store.findMessage(messageId);
      const address = target.kind === 'mail' ? parseAddress(target.address) : null;
      const entries = address === null ? [] : await store.findSuppression(toCanonicalAddress(address));
      const isSuppressed = entries.some(
        (entry) => isCurrent(entry, now) && (entry.list === '*' || entry.list === accountName),
      );
      return { target, notifications, messageState: message?.state ?? null, isSuppressed };
    }),
  );
  return { now, senderFault, targets };
}

async function compareSuppressionLists({
  settings,
  machineClock: clock,
  installation,
}: DoctorContext): Promise<readonly Finding[]> {
  const usesSmtpInterface = settings.routes.some(
    ({ transport }) => transport.kind === 'smtp' && transport.provider === 'ses',
  );
  const list = await installation.openSesSuppressionList();
  if (list === null) return [];
  try {
    return await installation.withStore(async (store) => [
      await checkSuppressionLists({
        ...{ list, clock, wait: installation.wait, usesSmtpInterface },
        findSuppressed: (addresses) => store.findSuppressed(addresses),
        readOwnPages: () => readSuppressionPages(store),
      }),
    ]);
  } finally {
    list.close();
  }
}

async function* readSuppressionPages(store: DoctorStore): AsyncGenerator<readonly ListedSuppression[]> {
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

/** Returns the fault, or null. A missing secret is not created, because it could not decrypt the stored keys. */
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

const POLL_INTERVAL_MS = 250;
/** The maximum wait for reports. */
const MAX_WAIT_MS = 3_600_000;

const LoopInput = Type.Object({
  account: Type.OptionalString(
    'The account that sends; the default is the first account with an authenticated domain.',
  ),
  within: Type.String({ default: '2m', description: 'The maximum wait for reports, at most `1h`.' }),
});

export const testFeedbackLoop: Operation<typeof LoopInput, typeof Findings, DoctorContext> = {
  name: 'doctor.loop',
  id: 'tryLoop',
  summary: 'Send messages that bounce, and wait for their feedback reports',
  ...reads('operator'),
  input: LoopInput,
  result: Findings,
  errors: [],
  async run({ account, within }, { settings, machineClock: clock, installation, showProgress }) {
    const timeout = toMemberResult('within', parseDuration(within));
    if (!timeout.ok) return timeout;
    if (timeout.value > MAX_WAIT_MS) return createInvalid('within', 'the maximum is 1h');
    const tests = planLoopTests(settings);
    if ('code' in tests) return ok(toResult([tests]));
    const startedAt = clock.now();
    try {
      const findings = await installation.withStore(async (store) => {
        const sender = await findSender(store, settings, account);
        if ('code' in sender) return [sender];
        const ids = createMessageIdGenerator(await store.findNewestId(), randomUUID);
        return runLoopTests({
          tests,
          send: (to) => submitTestMessage(store, ids.next(clock.now()), sender, to, clock.now()),
          readMessage: (id) => store.findMessage(id),
          clock,
          waitForPoll: async () => {
            await installation.wait(POLL_INTERVAL_MS);
            showProgress(`waiting for feedback reports, ${Math.round((clock.now() - startedAt) / 1000)} s …`);
          },
          timeoutMs: timeout.value,
        });
      });
      return ok(toResult(findings));
    } catch (error) {
      return ok(toResult([report('loop').failure(describeError(error), RUN_AGAIN)]));
    }
  },
};

const RUN_AGAIN = 'correct the cause and run the command again';

/** Selects a locked account only if no other account has a sender address. */
async function findSender(
  store: Pick<DoctorStore, 'listAccounts' | 'listDomains'>,
  { senders, returnPathDomain }: Settings,
  name: string | undefined,
): Promise<{ account: Account; from: string } | Finding> {
  const { failure } = report('loop');
  const accounts = (await store.listAccounts()).filter((account) => name === undefined || account.name === name);
  const [firstAccount] = accounts;
  if (firstAccount === undefined)
    return name === undefined
      ? failure('there is no account to send with', 'start the service once, or run `postrider account create NAME`')
      : failure(createAccountNotFound(name).error.message, RUN_AGAIN);
  const domains = (await store.listDomains()).filter(({ status }) => status === 'authenticated');
  const lockedLast = accounts.toSorted((a, b) => Number(a.locked !== null) - Number(b.locked !== null));
  for (const account of lockedLast) {
    const ownDomain = domains.find(({ accountId }) => accountId === account.id);
    const domain = ownDomain?.name ?? (senders === 'any' ? returnPathDomain : null);
    if (domain !== null) return { account, from: `postrider-doctor@${domain}` };
  }
  return failure(
    `${name === undefined ? 'no account has an' : `the account ${name} has no`} authenticated domain to send from`,
    `run \`postrider domain add ${firstAccount.name} DOMAIN\`, publish its records, and run \`postrider domain verify DOMAIN\``,
  );
}

async function submitTestMessage(
  store: Pick<DoctorStore, 'accept'>,
  id: string,
  { account, from }: { readonly account: Account; readonly from: string },
  to: string,
  now: number,
): Promise<string> {
  const message: NewMessage = {
    ...{ id, accountId: account.id, acceptedAt: now, to, recipient: to, from },
    // The key id 0 marks a test message. A report about a test message changes neither the reputation of the account
    // nor a suppression list.
    keyId: 0,
    subject: 'Postrider feedback test',
    message: '`postrider doctor --loop` sent this message to test that its bounce or complaint arrives.',
    ...{ idempotency: null, lease: null, suppressedBy: null },
  };
  const [result] = await store.accept([message]);
  switch (result?.kind) {
    case 'accepted':
      return id;
    case 'refused':
      throw new Error(`the account may not send now: ${result.reason}`);
    case 'locked':
      throw new Error('the account is locked');
    default:
      throw new Error('the store did not accept the message');
  }
}

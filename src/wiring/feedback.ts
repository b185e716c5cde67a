import type { MonotonicClock } from '../clock.ts';
import { listOtherRoutes, listSesRoutes, loadReturnPathKey } from '../domains/setup.ts';
import type { EventRoute } from '../feedback/http-listener.ts';
import { createFeedbackIntake, startPendingReports } from '../feedback/intake.ts';
import { createTrustedProxies, FailureCounts, getClientAddress } from '../http/peers.ts';
import { bind } from '../http/server.ts';
import { readCertificate, watchCertificate } from '../http/tls.ts';
import type { SignerResult } from '../message/dkim-verification.ts';
import { formatHostPort, isUnixSocket } from '../model/listen-address.ts';
import { getTls } from '../node-http.ts';
import { PROVIDERS } from '../providers/providers.ts';
import { createGroupCommit } from '../store/commits.ts';
import { setThreadFlags } from '../store/threads.ts';
import type { DeliveryParts } from './delivering.ts';
import { createFailureReporter } from './node.ts';
import type { EventAuthenticators } from './secret-files.ts';

/** On PostgreSQL, a transaction holds the locks of all messages of the batch until it commits. */
const MAX_BATCH_REPORTS = { sqlite: 512, postgres: 64 } as const;
const MAX_CONCURRENT_PARTS = { sqlite: 4, postgres: 2 } as const;
const CERTIFICATE_CHECK_INTERVAL_MS = 1_000;

export interface FeedbackParts extends Pick<DeliveryParts, 'settings' | 'store' | 'domains' | 'publish'> {
  readonly authenticators: EventAuthenticators;
  readonly clock: MonotonicClock;
  readonly maxConnections: number;
}

export async function startFeedback(parts: FeedbackParts) {
  const { settings, clock, store, domains, publish, authenticators } = parts;
  await using stack = new AsyncDisposableStack();
  const reportFailure = createFailureReporter(publish, clock);
  const onCertificateError = (fault: string) => publish({ type: 'certificate.refused', at: clock.now(), fault });
  const commits = createGroupCommit(store.recordFeedback, {
    maxBatch: MAX_BATCH_REPORTS[settings.database.kind],
    now: () => performance.now(),
  });
  const pendingReports = startPendingReports({ clock, store, publish, onError: reportFailure });
  stack.defer(() => pendingReports.close());
  const intake = createFeedbackIntake({
    clock,
    store,
    record: (report) => commits.submit(report),
    publish,
    onPending: pendingReports.wake,
    maxConcurrentParts: MAX_CONCURRENT_PARTS[settings.database.kind],
    listOtherRoutes: (source) => listOtherRoutes(settings.routes, source),
    keepHistoryMs: settings.keepHistoryMs,
  });
  stack.defer(() => intake.close());
  const addresses = { smtp: await startSmtp(), http: await startEvents() };
  await startSqs();
  const startedComponents = stack.move();
  return { addresses, [Symbol.asyncDispose]: () => startedComponents.disposeAsync() };

  async function startSmtp(): Promise<string | null> {
    const { feedbackListen: listenAddress, tls } = settings;
    const returnPath = loadReturnPathKey(settings);
    if (listenAddress === null || returnPath === null) return null;
    // A module is loaded only if its listener is enabled.
    const [{ createSmtpListener }, { createReportReader }] = await Promise.all([
      import('../feedback/smtp-listener.ts'),
      import('../feedback/thread-reader.ts'),
    ]);
    const reader = createReportReader({ clock, prepareThread: setThreadFlags, onError: reportFailure });
    stack.defer(() => reader.close());
    const listener = createSmtpListener({
      listenAddress,
      bind,
      clock,
      returnPath: {
        key: returnPath.key,
        isReturnPathDomain: (name) => name === returnPath.domain || domains.isReturnPath(name),
      },
      name: returnPath.domain,
      certificate: tls === null ? null : readCertificate(tls),
      isTrustedProxy: createTrustedProxies(settings.trustedProxies).includesAddress,
      reader,
      findFeedbackLoop: await createLoopSearch(),
      recordReport: intake.recordReport,
      publish,
      onError: reportFailure,
    });
    const boundAddress = await listener.start();
    stack.defer(() => listener.close());
    if (tls !== null)
      stack.defer(
        watchCertificate(tls, CERTIFICATE_CHECK_INTERVAL_MS, clock, listener.renewCertificate, onCertificateError),
      );
    return formatHostPort(boundAddress);
  }

  async function createLoopSearch(): Promise<(message: Buffer) => Promise<SignerResult>> {
    const domains = new Set(settings.feedbackLoops);
    if (domains.size === 0) return async () => ({ kind: 'unsigned' });
    const [{ createResolver }, { findSigner }] = await Promise.all([
      import('../domains/dns.ts'),
      import('../message/dkim-verification.ts'),
    ]);
    const { lookUpTxt } = createResolver(settings.dns);
    return (message) => findSigner(message, { domains, lookUpTxt, now: clock.now() });
  }

  async function startEvents(): Promise<string | null> {
    const { feedbackHttpListen: listenAddress } = settings;
    if (listenAddress === null) return null;
    const { createEventListener } = await import('../feedback/http-listener.ts');
    const routes = new Map<string, EventRoute>();
    await addSesRoute(routes);
    await addProviderRoutes(routes);
    const eventPaths = [...routes.keys()];
    await addTestRoutes(routes);
    const listener = createEventListener({
      listenAddress,
      clock,
      tls: settings.tls,
      trustedProxies: settings.trustedProxies,
      limits: { maxConnections: parts.maxConnections },
      routes,
      publish,
      onError: reportFailure,
    });
    const { url } = await listener.start();
    stack.defer(() => listener.close());
    return isUnixSocket(listenAddress) || eventPaths.length === 0
      ? url
      : eventPaths.map((path) => `${url}${path}`).join(', ');
  }

  async function addSesRoute(routes: Map<string, EventRoute>): Promise<void> {
    const { sesTopics: topics } = settings;
    if (topics.length === 0) return;
    const [{ createSnsRoute }, { createSnsCertificates }] = await Promise.all([
      import('../feedback/ses/sns-receiver.ts'),
      import('../feedback/ses/sns-certificates.ts'),
    ]);
    // The default certificates include those of NODE_EXTRA_CA_CERTS.
    const getRoots = () => getTls().getCACertificates('default');
    const certificates = createSnsCertificates({ fetch, getRoots, now: clock.now });
    const { recordReport } = intake;
    const route = createSnsRoute({ clock, topics, certificates, fetch, recordReport, publish, onError: reportFailure });
    routes.set('/ses', route);
  }

  async function addProviderRoutes(routes: Map<string, EventRoute>): Promise<void> {
    const { eventSecrets } = settings;
    if (Object.keys(eventSecrets).length === 0) return;
    const [{ createProviderRoute }, { createBodyReader }] = await Promise.all([
      import('../feedback/provider/receiver.ts'),
      import('../feedback/provider/body-reader.ts'),
    ]);
    const failures = new FailureCounts();
    const proxies = createTrustedProxies(
      settings.trustedProxies,
      settings.feedbackHttpListen !== null && isUnixSocket(settings.feedbackHttpListen),
    );
    for (const { name, relay, events } of PROVIDERS) {
      if (name === 'ses' || eventSecrets[name] === undefined || events === null) continue;
      const path = `/events/${name}`;
      // Each provider has threads of its own, so that the bodies of one never wait for those of another.
      const bodyReader = createBodyReader({ clock, prepareThread: setThreadFlags, onError: reportFailure });
      stack.defer(() => bodyReader.close());
      const route = createProviderRoute({
        provider: name,
        format: events,
        authenticate: (request, now) => authenticators.authenticate(name, request, now),
        getSecrets: () => authenticators.getSecrets(name),
        url: getPublicUrl(path),
        usesReferences: relay !== null && relay.findReference !== null,
        countFailure: (request) => failures.count(getClientAddress(request, proxies), clock.now()) > 0,
        clock,
        bodyReader,
        intake,
        publish,
        onError: reportFailure,
      });
      routes.set(path, route);
    }
  }

  /** The tests of URLs of providers whose secret is not set. */
  async function addTestRoutes(routes: Map<string, EventRoute>): Promise<void> {
    const { createTestRoute } = await import('../feedback/provider/receiver.ts');
    for (const { name, events } of PROVIDERS) {
      const path = `/events/${name}`;
      const isEndpointTest = events?.isEndpointTest;
      if (name !== 'ses' && isEndpointTest !== undefined && !routes.has(path))
        routes.set(path, createTestRoute({ provider: name, isEndpointTest, url: getPublicUrl(path) }));
    }
  }

  function getPublicUrl(path: string): string | null {
    return settings.feedbackUrl === null ? null : `${settings.feedbackUrl}${path}`;
  }

  async function startSqs(): Promise<void> {
    const { sesQueue: queueUrl, sesTopics: topics, routes } = settings;
    if (queueUrl === null) return;
    const { createSqsPoller } = await import('../feedback/ses/sqs-poller.ts');
    const poller = createSqsPoller({
      ...{ queueUrl, region: listSesRoutes(routes)[0]?.region ?? 'us-east-1', topics },
      ...{ clock, random: Math.random, recordReport: intake.recordReport, publish, onError: reportFailure },
    });
    await poller.start();
    stack.defer(() => poller.close());
  }
}

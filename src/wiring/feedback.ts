/** The role `feedback`: starts the SMTP listener, the listener for provider events and the SQS poller. */

import { getCACertificates } from 'node:tls';
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { returnPathKey } from '../domains/setup.ts';
import { createFeedbackIntake } from '../feedback/intake.ts';
import { bind } from '../http/bind.ts';
import type { HttpConnections } from '../http/connections.ts';
import { readCertificate, watchCertificate } from '../http/tls.ts';
import { createTrustedProxies } from '../http/trusted-proxies.ts';
import type { Publish } from '../model/events.ts';
import { formatHostPort, isUnixSocket } from '../model/listen-address.ts';
import { createGroupCommit } from '../store/commits.ts';
import type { FeedbackStore } from '../store/contract.ts';
import { setThreadFlags } from '../store/threads.ts';
import { createFailureReporter } from './events.ts';

const MAX_BATCH_REPORTS = 64;
const CERTIFICATE_CHECK_INTERVAL_MS = 1_000;

export interface FeedbackParts {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly store: Pick<FeedbackStore, 'recordFeedback'>;
  readonly publish: Publish;
  /** The connections of the listener for provider events. */
  readonly connections: HttpConnections;
}

/**
 * The addresses of the listeners, which the service prints when it starts. The address of a disabled listener is null.
 */
export interface FeedbackAddresses {
  readonly smtp: string | null;
  readonly http: string | null;
}

export const NO_FEEDBACK: FeedbackAddresses = { smtp: null, http: null };

export interface Feedback extends AsyncDisposable {
  readonly addresses: FeedbackAddresses;
}

/**
 * Starts the listeners and the poller. Disposal stops them in reverse order and then the intake. Rejects with a
 * one-line Error.
 */
export async function startFeedback(parts: FeedbackParts): Promise<Feedback> {
  const { settings, clock, store, publish, connections } = parts;
  await using stack = new AsyncDisposableStack();
  const reportFailure = createFailureReporter(publish, clock);
  const onCertificateError = (fault: string) => publish({ type: 'certificate.refused', at: clock.now(), fault });
  const commits = createGroupCommit(store.recordFeedback, {
    maxBatch: MAX_BATCH_REPORTS,
    now: () => performance.now(),
  });
  const intake = createFeedbackIntake({ clock, record: (report) => commits.submit(report), publish });
  stack.defer(() => intake.close());
  const addresses = { smtp: await startSmtp(), http: await startSns() };
  await startSqs();
  const started = stack.move();
  return { addresses, [Symbol.asyncDispose]: () => started.disposeAsync() };

  async function startSmtp(): Promise<string | null> {
    const { feedbackListen: at, tls } = settings;
    const returnPath = returnPathKey(settings);
    if (at === null || returnPath === null) return null;
    // The modules are loaded only if the listener is enabled.
    const [{ createSmtpListener }, { createReportReader }] = await Promise.all([
      import('../feedback/smtp-listener.ts'),
      import('../feedback/report-reader.ts'),
    ]);
    const reader = createReportReader({ clock, beforeThread: setThreadFlags, onError: reportFailure });
    stack.defer(() => reader.close());
    const listener = createSmtpListener({
      listenAddress: at,
      bind,
      clock,
      returnPath,
      name: returnPath.domain,
      certificate: tls === null ? null : readCertificate(tls),
      isTrustedProxy: createTrustedProxies(settings.trustedProxies).includesAddress,
      reader,
      recordReport: intake.recordReport,
      publish,
      onError: reportFailure,
    });
    const bound = await listener.start();
    stack.defer(() => listener.close());
    if (tls !== null)
      stack.defer(
        watchCertificate(tls, CERTIFICATE_CHECK_INTERVAL_MS, clock, listener.renewCertificate, onCertificateError),
      );
    return formatHostPort(bound);
  }

  /** Starts the listener for provider events of Amazon SES, which SNS posts. */
  async function startSns(): Promise<string | null> {
    const { feedbackHttpListen: at, sesTopics: topics } = settings;
    if (at === null) return null;
    const tls = isUnixSocket(at) ? null : settings.tls;
    const [{ createSnsReceiver }, { createSnsCertificates }] = await Promise.all([
      import('../feedback/ses/sns-receiver.ts'),
      import('../feedback/ses/sns-certificates.ts'),
    ]);
    const receiver = createSnsReceiver({
      listenAddress: at,
      bind,
      connections,
      clock,
      topics,
      // The default certificates include those of NODE_EXTRA_CA_CERTS.
      certificates: createSnsCertificates({ fetch, roots: () => getCACertificates('default'), now: clock.now }),
      fetch,
      certificate: tls === null ? null : readCertificate(tls),
      recordReport: intake.recordReport,
      publish,
      onError: reportFailure,
    });
    const { url } = await receiver.start();
    stack.defer(() => receiver.close());
    if (tls !== null)
      stack.defer(
        watchCertificate(tls, CERTIFICATE_CHECK_INTERVAL_MS, clock, receiver.renewCertificate, onCertificateError),
      );
    return isUnixSocket(at) ? url : `${url}/ses`;
  }

  /** Starts the poller that reads provider events of Amazon SES from an SQS queue. */
  async function startSqs(): Promise<void> {
    const { sesQueue: queueUrl, sesTopics: topics, transport } = settings;
    if (queueUrl === null) return;
    const { createSqsPoller } = await import('../feedback/ses/sqs-poller.ts');
    const poller = createSqsPoller({
      queueUrl,
      region: transport.kind === 'ses' ? transport.region : 'us-east-1',
      clock,
      random: Math.random,
      topics,
      recordReport: intake.recordReport,
      publish,
      onError: reportFailure,
    });
    await poller.start();
    stack.defer(() => poller.close());
  }
}

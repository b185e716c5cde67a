/**
 * Creates the metrics in the Prometheus text format, in a separate registry. docs/monitoring.md lists the metrics.
 *
 * Guarantees: the series of requests, attempts and states are created in advance, so that their increments look up no
 * labels. The values from the store are read only during a scrape, at most once per second. If the store does not
 * answer, the scrape omits only these values.
 */

import { createRequire } from 'node:module';
import { ALARMING_REASONS } from '../classify/classify.ts';
import type { Clock } from '../clock.ts';
import {
  BREAKER_STATES,
  type BreakerState,
  DROP_REASONS,
  type DropReason,
  type EventOf,
  HTTP_LISTENERS,
  type HttpListenerName,
} from '../model/events.ts';
import { FAILURE_CATEGORIES, FAILURE_CLASSES, type Failure } from '../model/failure.ts';
import { STATES, type State } from '../model/message.ts';
import { SIGNING_ALARM } from '../model/node.ts';
import type { Outcome } from '../model/outcome.ts';
import type { QueueStatistics } from '../model/overview.ts';
import { formatWebhookId, type WebhookStatistics } from '../model/webhook.ts';
import { type Handlers, ignoreSimulated } from './events.ts';

const require = createRequire(import.meta.url);

export interface Metrics {
  /**
   * Counts a message that was accepted with a 201. `tookMs` is the time from the start of the API key check to the
   * response.
   */
  countAccepted(tookMs: number): void;
  /** Counts a request that was answered with an error. `reason` is a code of docs/errors.md. */
  countRefused(reason: string): void;
  /** Counts a request that repeated an idempotency key. */
  countReplayed(): void;
  /** Counts the unknown members in the body of a request that was answered with a 201. */
  countIgnoredFields(fieldCount: number): void;
  countAttempt(outcome: Outcome['kind'], tookMs: number): void;
  /** Counts a message that entered a state. */
  countStateEntry(state: State): void;
  /** Counts a bounced message by its failure. */
  countBounce(failure: Failure): void;
  /** Records the time from acceptance to the confirmation of the delivery by the provider. */
  recordConfirmation(tookMs: number): void;
  /** Counts a deferred message: the attempt failed, and a later attempt is due. */
  countDeferred(): void;
  countAlarm(reason: AlarmReason): void;
  /** Records the number of messages and the duration of one commit of the store. */
  recordCommit(kind: 'accept' | 'settle', size: number, tookMs: number): void;
  /** Counts a received feedback report by its result. */
  countReport(result: ReportResult, count?: number): void;
  /** Counts a refused feedback report by reason. */
  countRefusedReport(reason: string, count?: number): void;
  setBreakerState(state: BreakerState): void;
  /**
   * Counts a connection that a listener closed because of a limit, or because the client did not read the responses.
   */
  countDroppedConnection(listener: HttpListenerName, reason: DropReason): void;
  /** Counts the result of an attempt to deliver a notification to operators. */
  countNotification(target: string, result: 'delivered' | 'retried' | 'failed'): void;
  /** Counts an attempt to send a webhook. */
  countWebhookAttempt(webhookId: number, isSuccess: boolean): void;
  /**
   * Resolves to the complete exposition. Concurrent scrapes share one exposition, so many scrapes cost as much as one
   * scrape.
   */
  scrape(): Promise<Exposition>;
}

export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

/**
 * The results of feedback reports. `bounced`, `complained` and `delivered`: the report changed the state of a message.
 * `confirmed`: the report confirmed the delivery. `recorded`: the report changed only the history. A report with any
 * other result changed no message.
 */
const REPORT_RESULTS = [
  'bounced',
  'complained',
  'delivered',
  'confirmed',
  'recorded',
  'repeated',
  'not-understood',
  'unrelated',
] as const;
export type ReportResult = (typeof REPORT_RESULTS)[number];

/** The refusal reasons that concern the whole service, and other conditions that an operator must correct. */
const ALARM_REASONS = [
  ...ALARMING_REASONS,
  SIGNING_ALARM,
  'domain-failing',
  'domain-blocked',
  'return-path-failing',
  'account-locked',
  'database-files',
  'webhook-disabled',
] as const;
export type AlarmReason = (typeof ALARM_REASONS)[number];

export interface MetricsOptions {
  readonly clock: Clock;
  /** Resolves to the queue statistics. Called during a scrape. */
  readonly readQueueStatistics: () => Promise<QueueStatistics>;
  /** Resolves to the time of the last feedback report, or null. Called during a scrape. */
  readonly readLastFeedbackAt?: () => Promise<number | null>;
  /** The targets of notifications to operators (`formatTarget`). Default: none. */
  readonly notificationTargets?: readonly string[];
  /** Resolves to the statistics of webhooks. Called during a scrape. */
  readonly readWebhookStatistics?: () => Promise<readonly WebhookStatistics[]>;
  /** All codes that `countRefused` can receive. */
  readonly refusalReasons: readonly string[];
  /** Returns the number of lines that the log has dropped. Called during a scrape. */
  readonly getDroppedLineCount?: () => number;
}

const CACHE_TTL_MS = 1000;
/** The maximum number of endpoints with a series of their own. Further endpoints share the label `other`. */
const MAX_WEBHOOK_SERIES = 100;
const DURATION_BUCKETS_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
];
const CONFIRMATION_BUCKETS_SECONDS = [0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400];
const COMMIT_SIZE_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];
const OUTCOMES: readonly Outcome['kind'][] = ['delivered', 'bounced', 'deferred', 'unanswered'];

interface LabeledCounter {
  inc(): void;
}

/** Creates the metrics and their registry, which includes the process metrics (memory, event loop lag). */
export function createMetrics({
  clock,
  readQueueStatistics,
  readLastFeedbackAt,
  notificationTargets = [],
  readWebhookStatistics,
  refusalReasons,
  getDroppedLineCount = () => 0,
}: MetricsOptions): Metrics {
  const { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } =
    require('prom-client') as typeof import('prom-client');
  const registry = new Registry();
  const registers = [registry];
  // With the default precision, the event loop is sampled every 10 ms, which took 80 % of the processor time of an idle
  // node.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });

  const acceptedCounter = new Counter({
    name: 'postrider_accepted_total',
    help: 'Messages accepted with a 201',
    registers,
  });
  const replayedCounter = new Counter({
    name: 'postrider_replayed_total',
    help: 'Requests that repeated an idempotency key and received the answer to the first request',
    registers,
  });
  const ignoredFieldCounter = new Counter({
    name: 'postrider_ignored_fields_total',
    help: 'Unknown members of the bodies of accepted requests',
    registers,
  });
  const refusedCounter = new Counter({
    name: 'postrider_refused_total',
    help: 'Requests refused, by error code (docs/errors.md)',
    labelNames: ['reason'],
    registers,
  });
  const attemptCounter = new Counter({
    name: 'postrider_attempts_total',
    help: 'Delivery attempts, by outcome',
    labelNames: ['outcome'],
    registers,
  });
  const messageCounter = new Counter({
    name: 'postrider_messages_total',
    help: 'Messages that entered a state, by state',
    labelNames: ['state'],
    registers,
  });
  const bouncedCounter = new Counter({
    name: 'postrider_bounced_total',
    help: 'Messages bounced, by class and category of the failure (docs/feedback.md)',
    labelNames: ['class', 'category'],
    registers,
  });
  const confirmationSeconds = new Histogram({
    name: 'postrider_confirmation_duration_seconds',
    help: 'Time from acceptance to the delivery event of the provider, in seconds',
    buckets: CONFIRMATION_BUCKETS_SECONDS,
    registers,
  });
  const deferredCounter = new Counter({
    name: 'postrider_deferred_total',
    help: 'Messages deferred: the attempt failed and a later attempt is due',
    registers,
  });
  const alarmCounter = new Counter({
    name: 'postrider_alarms_total',
    help: 'Conditions that require an operator, by reason',
    labelNames: ['reason'],
    registers,
  });
  const requestSeconds = new Histogram({
    name: 'postrider_accept_duration_seconds',
    help: 'Time from the key check to the 201, in seconds',
    buckets: DURATION_BUCKETS_SECONDS,
    registers,
  });
  const attemptSeconds = new Histogram({
    name: 'postrider_attempt_duration_seconds',
    help: 'Time of one delivery attempt, in seconds',
    buckets: DURATION_BUCKETS_SECONDS,
    registers,
  });
  const commitSize = new Histogram({
    name: 'postrider_commit_size',
    help: 'Messages in one commit of the store, by kind',
    labelNames: ['kind'],
    buckets: COMMIT_SIZE_BUCKETS,
    registers,
  });
  const commitSeconds = new Histogram({
    name: 'postrider_commit_duration_seconds',
    help: 'Time of one commit of the store with its sync, in seconds, by kind',
    labelNames: ['kind'],
    buckets: DURATION_BUCKETS_SECONDS,
    registers,
  });
  new Counter({
    name: 'postrider_log_dropped_total',
    help: 'Log lines dropped because the reader of standard output stalled',
    registers,
    collect() {
      this.reset();
      this.inc(getDroppedLineCount());
    },
  });
  const droppedConnectionCounter = new Counter({
    name: 'postrider_connections_dropped_total',
    help: 'Connections that a listener closed, by listener and reason',
    labelNames: ['listener', 'reason'],
    registers,
  });
  const reportCounter = new Counter({
    name: 'postrider_feedback_reports_total',
    help: 'Feedback reports received, by result',
    labelNames: ['result'],
    registers,
  });
  const refusedReportCounter = new Counter({
    name: 'postrider_feedback_refused_total',
    help: 'Feedback reports refused, by reason',
    labelNames: ['reason'],
    registers,
  });
  const feedbackAge = new Gauge({
    name: 'postrider_feedback_last_report_age_seconds',
    help: 'Seconds since the last feedback report that any node received; absent before the first report',
    registers,
  });
  const breakerState = new Gauge({
    name: 'postrider_circuit_breaker_state',
    help: '1 for the current state of the circuit breaker, 0 for the others',
    labelNames: ['state'],
    registers,
  });
  const queueDepth = new Gauge({
    name: 'postrider_queue_depth',
    help: 'Messages in the queue, by state',
    labelNames: ['state'],
    registers,
  });
  const oldestAge = new Gauge({
    name: 'postrider_queue_oldest_age_seconds',
    help: 'Age of the oldest message in the state queued or sending, in seconds; 0 if there is none',
    registers,
  });

  const webhookAttemptCounter = new Counter({
    name: 'postrider_webhook_attempts_total',
    help: 'Attempts to send a webhook, by result',
    labelNames: ['result'],
    registers,
  });
  const notificationCounter = new Counter({
    name: 'postrider_notifications_total',
    help: 'Attempts to deliver a notification to operators, by target and result',
    labelNames: ['target', 'result'],
    registers,
  });
  const webhookFailureCounter = new Counter({
    name: 'postrider_webhook_failures_total',
    help: 'Failed attempts to send a webhook, by endpoint; "other" beyond 100 endpoints',
    labelNames: ['webhook'],
    registers,
  });
  const pendingWebhookGauge = new Gauge({
    name: 'postrider_webhooks_pending',
    help: 'Pending webhooks: due, waiting for a retry, or waiting for a disabled endpoint',
    registers,
  });
  const failedWebhookGauge = new Gauge({
    name: 'postrider_webhooks_failed',
    help: 'Webhooks whose final attempt failed; they can be replayed',
    registers,
  });
  const webhookOldestAge = new Gauge({
    name: 'postrider_webhook_oldest_age_seconds',
    help: 'Age of the oldest pending webhook, in seconds; 0 if there is none',
    registers,
  });

  const refusedByReason = new Map<string, LabeledCounter>(
    refusalReasons.map((reason) => [reason, refusedCounter.labels({ reason })]),
  );
  const attemptsByOutcome = new Map<Outcome['kind'], LabeledCounter>(
    OUTCOMES.map((outcome) => [outcome, attemptCounter.labels({ outcome })]),
  );
  const messagesByState = new Map<State, LabeledCounter>(
    STATES.map((state) => [state, messageCounter.labels({ state })]),
  );
  // The series of the following counters start at zero, because an alert on an increase would miss a series that starts
  // at one.
  for (const reason of refusalReasons) refusedCounter.inc({ reason }, 0);
  for (const reason of ALARM_REASONS) alarmCounter.inc({ reason }, 0);
  for (const outcome of OUTCOMES) attemptCounter.inc({ outcome }, 0);
  for (const state of STATES) messageCounter.inc({ state }, 0);
  for (const failureClass of FAILURE_CLASSES)
    for (const category of FAILURE_CATEGORIES) bouncedCounter.inc({ class: failureClass, category }, 0);
  for (const result of REPORT_RESULTS) reportCounter.inc({ result }, 0);
  for (const listener of HTTP_LISTENERS)
    for (const reason of DROP_REASONS) droppedConnectionCounter.inc({ listener, reason }, 0);
  for (const result of ['succeeded', 'failed']) webhookAttemptCounter.inc({ result }, 0);
  for (const target of notificationTargets)
    for (const result of ['delivered', 'retried', 'failed']) notificationCounter.inc({ target, result }, 0);
  const webhookLabels = new Map<number, string>();
  /**
   * Returns the label of an endpoint. The first `MAX_WEBHOOK_SERIES` endpoints with a failed attempt have a label of
   * their own.
   */
  function getWebhookLabel(webhookId: number): string {
    const knownLabel = webhookLabels.get(webhookId);
    if (knownLabel !== undefined) return knownLabel;
    if (webhookLabels.size >= MAX_WEBHOOK_SERIES) return 'other';
    const label = formatWebhookId(webhookId);
    webhookLabels.set(webhookId, label);
    return label;
  }
  const commitMetrics = {
    accept: { size: commitSize.labels({ kind: 'accept' }), seconds: commitSeconds.labels({ kind: 'accept' }) },
    settle: { size: commitSize.labels({ kind: 'settle' }), seconds: commitSeconds.labels({ kind: 'settle' }) },
  };

  let readAt = Number.NEGATIVE_INFINITY;
  let currentScrape: Promise<Exposition> | null = null;
  let currentRead: Promise<void> | null = null;

  async function readStore(): Promise<void> {
    try {
      const statistics = await readQueueStatistics();
      queueDepth.set({ state: 'queued' }, statistics.queued);
      queueDepth.set({ state: 'sending' }, statistics.sending);
      queueDepth.set({ state: 'uncertain' }, statistics.uncertain);
      const acceptedAt = statistics.oldest?.acceptedAt;
      oldestAge.set(acceptedAt === undefined ? 0 : Math.max(0, clock.now() - acceptedAt) / 1000);
      const reportedAt = (await readLastFeedbackAt?.()) ?? null;
      if (reportedAt === null) feedbackAge.remove();
      else feedbackAge.set(Math.max(0, clock.now() - reportedAt) / 1000);
      const webhooks = (await readWebhookStatistics?.()) ?? [];
      pendingWebhookGauge.set(webhooks.reduce((sum, { pendingCount }) => sum + pendingCount, 0));
      failedWebhookGauge.set(webhooks.reduce((sum, { failedCount }) => sum + failedCount, 0));
      const pendingSince = webhooks.flatMap(({ oldestPendingAt }) => oldestPendingAt ?? []);
      const oldestPendingAt = pendingSince.reduce((oldest, at) => Math.min(oldest, at), clock.now());
      webhookOldestAge.set((clock.now() - oldestPendingAt) / 1000);
    } catch {
      // The values are removed, because old values would be wrong. An alert reports their absence.
      queueDepth.reset();
      oldestAge.remove();
      feedbackAge.remove();
      for (const gauge of [pendingWebhookGauge, failedWebhookGauge, webhookOldestAge]) gauge.remove();
    }
  }

  setBreaker('closed');
  function setBreaker(currentState: BreakerState): void {
    for (const state of BREAKER_STATES) breakerState.set({ state }, state === currentState ? 1 : 0);
  }

  return {
    countAccepted(tookMs) {
      acceptedCounter.inc();
      requestSeconds.observe(tookMs / 1000);
    },
    countReplayed: () => replayedCounter.inc(),
    countIgnoredFields: (fields) => ignoredFieldCounter.inc(fields),
    countRefused: (reason) => refusedByReason.get(reason)?.inc(),
    countAttempt(outcome, tookMs) {
      attemptsByOutcome.get(outcome)?.inc();
      attemptSeconds.observe(tookMs / 1000);
    },
    countStateEntry: (state) => messagesByState.get(state)?.inc(),
    countBounce: ({ class: failureClass, category }) => bouncedCounter.inc({ class: failureClass, category }),
    recordConfirmation: (tookMs) => confirmationSeconds.observe(Math.max(0, tookMs) / 1000),
    countDeferred: () => deferredCounter.inc(),
    countAlarm: (reason) => alarmCounter.inc({ reason }),
    recordCommit(kind, size, tookMs) {
      commitMetrics[kind].size.observe(size);
      commitMetrics[kind].seconds.observe(tookMs / 1000);
    },
    countReport: (result, count = 1) => reportCounter.inc({ result }, count),
    countRefusedReport: (reason, count = 1) => refusedReportCounter.inc({ reason }, count),
    setBreakerState: setBreaker,
    countNotification(target, result) {
      notificationCounter.inc({ target, result });
    },
    countWebhookAttempt(webhookId, isSuccess) {
      webhookAttemptCounter.inc({ result: isSuccess ? 'succeeded' : 'failed' });
      if (!isSuccess) webhookFailureCounter.inc({ webhook: getWebhookLabel(webhookId) });
    },
    countDroppedConnection: (listener, reason) => droppedConnectionCounter.inc({ listener, reason }),
    scrape() {
      currentScrape ??= writeExposition().finally(() => {
        currentScrape = null;
      });
      return currentScrape;
    },
  };

  async function writeExposition(): Promise<Exposition> {
    const now = clock.now();
    if (currentRead === null && Math.abs(now - readAt) >= CACHE_TTL_MS) {
      readAt = now;
      currentRead = readStore().finally(() => {
        currentRead = null;
      });
    }
    await currentRead;
    return { contentType: registry.contentType, text: await registry.metrics() };
  }
}

/** Returns the event handlers of the metrics. The first event creates the metrics (`getMetrics`). */
export function createMetricHandlers(getMetrics: () => Metrics): Handlers {
  const countReported = (event: EventOf<'message.bounced' | 'message.complained'>, state: 'bounced' | 'complained') => {
    getMetrics().countStateEntry(state);
    if (event.reportedBy !== null) getMetrics().countReport(state);
  };
  return ignoreSimulated({
    'message.accepted': ({ tookMs }) => getMetrics().countAccepted(tookMs),
    'message.replayed': () => getMetrics().countReplayed(),
    'message.suppressed': () => getMetrics().countStateEntry('suppressed'),
    'message.delivered': ({ at, acceptedAt, reportedBy }) => {
      getMetrics().countStateEntry('delivered');
      if (reportedBy === null) return;
      getMetrics().countReport('delivered');
      // Of all reports, only the delivery event of a provider sets `delivered`, so this event also confirms the
      // delivery.
      if (acceptedAt !== null) getMetrics().recordConfirmation(at - acceptedAt);
    },
    'message.confirmed': ({ at, acceptedAt }) => {
      getMetrics().countReport('confirmed');
      getMetrics().recordConfirmation(at - acceptedAt);
    },
    'message.deferred': () => getMetrics().countDeferred(),
    'message.bounced': (event) => {
      countReported(event, 'bounced');
      if (event.failure !== null) getMetrics().countBounce(event.failure);
    },
    'message.complained': (event) => countReported(event, 'complained'),
    'message.expired': () => getMetrics().countStateEntry('expired'),
    'message.uncertain': () => getMetrics().countStateEntry('uncertain'),
    'message.cancelled': () => getMetrics().countStateEntry('cancelled'),
    'message.reported': () => getMetrics().countReport('recorded'),
    'message.signing_failed': () => getMetrics().countAlarm(SIGNING_ALARM),
    'attempt.ended': ({ attempt }) => getMetrics().countAttempt(attempt.outcome.kind, attempt.tookMs),
    'attempt.alarm_raised': ({ reason }) => getMetrics().countAlarm(reason),
    'request.refused': ({ code }) => getMetrics().countRefused(code),
    'request.fields_ignored': ({ count }) => getMetrics().countIgnoredFields(count),
    'connection.dropped': ({ listener, reason }) => getMetrics().countDroppedConnection(listener, reason),
    'report.repeated': () => getMetrics().countReport('repeated'),
    'report.unrelated': ({ count }) => getMetrics().countReport('unrelated', count),
    'report.not_understood': () => getMetrics().countReport('not-understood'),
    'report.refused': ({ reason, count }) => getMetrics().countRefusedReport(reason, count),
    'account.locked': () => getMetrics().countAlarm('account-locked'),
    'domain.failing': () => getMetrics().countAlarm('domain-failing'),
    'domain.blocked': () => getMetrics().countAlarm('domain-blocked'),
    'domain.return_path_failing': () => getMetrics().countAlarm('return-path-failing'),
    'notification.delivered': ({ target }) => getMetrics().countNotification(target, 'delivered'),
    'notification.attempt_failed': ({ target }) => getMetrics().countNotification(target, 'retried'),
    'notification.failed': ({ target }) => getMetrics().countNotification(target, 'failed'),
    'webhook.attempt_succeeded': ({ webhookId }) => getMetrics().countWebhookAttempt(webhookId, true),
    'webhook.attempt_failed': ({ webhookId }) => getMetrics().countWebhookAttempt(webhookId, false),
    'webhook.delivery_failed': ({ webhookId }) => getMetrics().countWebhookAttempt(webhookId, false),
    'webhook.disabled': () => getMetrics().countAlarm('webhook-disabled'),
    'store.committed': ({ kind, size, tookMs }) => getMetrics().recordCommit(kind, size, tookMs),
    'store.files_lost': () => getMetrics().countAlarm('database-files'),
    'circuit_breaker.opened': () => getMetrics().setBreakerState('open'),
    'circuit_breaker.half_opened': () => getMetrics().setBreakerState('half-open'),
    'circuit_breaker.closed': () => getMetrics().setBreakerState('closed'),
  });
}

/**
 * docs/monitoring.md lists the metrics. Values from the store are read only during a scrape, at most once per second.
 * If the store does not answer, the scrape omits only these values.
 */
import { createRequire } from 'node:module';
import { ALARMING_REASONS } from '../classify/classify.ts';
import type { Clock } from '../clock.ts';
import type { QueueStatistics } from '../model/attention.ts';
import { DROP_REASONS, type EventOf, type EventType, type Handlers, HTTP_LISTENERS } from '../model/events.ts';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../model/failure.ts';
import { STATES } from '../model/message.ts';
import { SIGNING_ALARM } from '../model/node.ts';
import { DEFAULT_ROUTE, ROUTE_STATES, type RouteState } from '../model/route.ts';
import { formatWebhookId, type WebhookStatistics } from '../model/webhook.ts';
import { ignoreSimulated, type Series } from '../statistics/traffic.ts';

const require = createRequire(import.meta.url);

const ALARMS = [
  ...ALARMING_REASONS,
  SIGNING_ALARM,
  'domain-failing',
  'domain-blocked',
  'return-path-failing',
  'account-locked',
  'database-files',
  'webhook-disabled',
] as const;

/** The first three changed the state of a message, `confirmed` and `recorded` its history, the others no message. */
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

/** The names without the prefix `postrider_`, and the help texts. */
const HELP = {
  commit_size: 'Messages in one commit of the store, by kind',
  commit_duration_seconds: 'Time of one commit of the store with its sync, in seconds, by kind',
  accepted_total: 'Messages accepted with a 201',
  accept_duration_seconds: 'Time from the key check to the 201, in seconds',
  replayed_total: 'Requests that repeated an idempotency key and received the answer to the first request',
  ignored_fields_total: 'Unknown members of the bodies of accepted requests',
  refused_total: 'Requests refused, by error code (docs/errors.md)',
  attempts_total: 'Delivery attempts, by route and outcome',
  attempt_duration_seconds: 'Time of one delivery attempt, in seconds',
  messages_total: 'Messages that entered a state, by state',
  bounced_total: 'Messages bounced, by class and category of the failure (docs/feedback.md)',
  confirmation_duration_seconds: 'Time from acceptance to the delivery event of the provider, in seconds',
  deferred_total: 'Messages deferred: the attempt failed and a later attempt is due',
  alarms_total: 'Conditions that require an operator, by reason',
  connections_dropped_total: 'Connections that a listener closed, by listener and reason',
  feedback_reports_total: 'Feedback reports received, by result',
  feedback_refused_total: 'Feedback reports refused, by reason',
  webhook_attempts_total: 'Attempts to send a webhook, by result',
  webhook_failures_total: 'Failed attempts to send a webhook, by endpoint; "other" beyond 100 endpoints',
  notifications_total: 'Attempts to deliver a notification to operators, by target and result',
  route_state: '1 for the current state of a route on a node that delivers, 0 for the others',
  feedback_last_report_age_seconds:
    'Seconds since the last feedback report that any node received; absent before the first report',
  queue_depth: 'Messages in the queue, by state',
  queue_held: 'Messages in the queue that holds stop',
  queue_oldest_age_seconds:
    'Age of the oldest message in the state queued or sending that no hold stops, in seconds; 0 if there is none',
  webhooks_pending: 'Pending webhooks: due, waiting for a retry, or waiting for a disabled endpoint',
  webhooks_failed: 'Webhooks whose final attempt failed; they can be replayed',
  webhook_oldest_age_seconds: 'Age of the oldest pending webhook, in seconds; 0 if there is none',
  log_dropped_total: 'Log lines dropped because the reader of standard output stalled',
} as const;
type Name = keyof typeof HELP;

const OUTCOMES = ['delivered', 'bounced', 'deferred', 'unanswered'] as const;
const COMMIT_KINDS = ['accept', 'settle'] as const;
const CACHE_TTL_MS = 1000;
/** The maximum number of endpoints with a series of their own. Further endpoints share the label `other`. */
const MAX_WEBHOOK_SERIES = 100;
const DURATION_BUCKETS_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
];
const CONFIRMATION_BUCKETS_SECONDS = [0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400];
const COMMIT_SIZE_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];

export interface MetricsOptions {
  readonly clock: Clock;
  readonly readQueueStatistics: () => Promise<QueueStatistics>;
  readonly readLastFeedbackAt: () => Promise<number | null>;
  readonly readWebhookStatistics: () => Promise<readonly WebhookStatistics[]>;
  readonly notificationTargets: readonly string[];
  readonly refusalReasons: readonly string[];
  /** In the order of the settings. */
  readonly routeNames: readonly string[];
  /** None on a node that does not deliver. */
  readonly readRouteStates: () => readonly RouteMetric[];
  readonly getDroppedLineCount: () => number;
}

export interface RouteMetric {
  readonly name: string;
  readonly state: RouteState;
}

export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics(options: MetricsOptions) {
  const { clock, readQueueStatistics, readLastFeedbackAt, readWebhookStatistics, getDroppedLineCount } = options;
  const { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } =
    require('prom-client') as typeof import('prom-client');
  const registry = new Registry();
  const registers = [registry];
  // With the default precision, the event loop is sampled every 10 ms, which took 80 % of the processor time of an idle
  // node.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });

  /** `series` are the labels that start at zero: an alert on an increase would miss a series that starts at one. */
  const counter = (name: Name, labelNames: string[] = [], series: Record<string, string>[] = []) => {
    const created = new Counter({ name: `postrider_${name}`, help: HELP[name], labelNames, registers });
    for (const labels of series) created.inc(labels, 0);
    return created;
  };
  /** A counter with one label and known values. An increment looks up no labels. */
  const countBy = (name: Name, label: string, values: readonly string[]) => {
    const series = values.map((value) => ({ [label]: value }));
    const created = counter(name, [label], series);
    return new Map(values.map((value) => [value, created.labels({ [label]: value })]));
  };
  const gauge = (name: Name, labelNames: string[] = []) =>
    new Gauge({ name: `postrider_${name}`, help: HELP[name], labelNames, registers });
  const histogram = (name: Name, buckets: number[], labelNames: string[] = []) =>
    new Histogram({ name: `postrider_${name}`, help: HELP[name], buckets, labelNames, registers });

  const attempts = counter('attempts_total', ['route', 'outcome']);
  const commitSize = histogram('commit_size', COMMIT_SIZE_BUCKETS, ['kind']);
  const commitSeconds = histogram('commit_duration_seconds', DURATION_BUCKETS_SECONDS, ['kind']);
  const meters = {
    accepted: counter('accepted_total'),
    acceptSeconds: histogram('accept_duration_seconds', DURATION_BUCKETS_SECONDS),
    replayed: counter('replayed_total'),
    ignoredFields: counter('ignored_fields_total'),
    refused: countBy('refused_total', 'reason', options.refusalReasons),
    attempts: new Map(
      options.routeNames.map((route) => [
        route,
        new Map(OUTCOMES.map((outcome) => [outcome, attempts.labels({ route, outcome })])),
      ]),
    ),
    attemptSeconds: histogram('attempt_duration_seconds', DURATION_BUCKETS_SECONDS),
    states: countBy('messages_total', 'state', STATES),
    bounced: counter(
      'bounced_total',
      ['class', 'category'],
      FAILURE_CLASSES.flatMap((name) => FAILURE_CATEGORIES.map((category) => ({ class: name, category }))),
    ),
    confirmationSeconds: histogram('confirmation_duration_seconds', CONFIRMATION_BUCKETS_SECONDS),
    deferred: counter('deferred_total'),
    alarms: countBy('alarms_total', 'reason', ALARMS),
    commits: new Map(
      COMMIT_KINDS.map((kind) => [
        kind,
        { size: commitSize.labels({ kind }), seconds: commitSeconds.labels({ kind }) },
      ]),
    ),
    droppedConnections: counter(
      'connections_dropped_total',
      ['listener', 'reason'],
      HTTP_LISTENERS.flatMap((listener) => DROP_REASONS.map((reason) => ({ listener, reason }))),
    ),
    reports: countBy('feedback_reports_total', 'result', REPORT_RESULTS),
    refusedReports: counter('feedback_refused_total', ['reason']),
    webhookAttempts: countBy('webhook_attempts_total', 'result', ['succeeded', 'failed']),
    webhookFailures: counter('webhook_failures_total', ['webhook']),
    notifications: counter(
      'notifications_total',
      ['target', 'result'],
      options.notificationTargets.flatMap((target) =>
        ['delivered', 'retried', 'failed'].map((result) => ({ target, result })),
      ),
    ),
    webhookLabels: new Map<number, string>(),
  };
  for (const route of meters.attempts.values()) for (const outcome of route.values()) outcome.inc(0);
  new Gauge({
    name: 'postrider_route_state',
    help: HELP.route_state,
    labelNames: ['route', 'state'],
    registers,
    collect() {
      for (const { name: route, state: current } of options.readRouteStates())
        for (const state of ROUTE_STATES) this.set({ route, state }, state === current ? 1 : 0);
    },
  });
  new Counter({
    name: 'postrider_log_dropped_total',
    help: HELP.log_dropped_total,
    registers,
    collect() {
      this.reset();
      this.inc(getDroppedLineCount());
    },
  });
  const feedbackAge = gauge('feedback_last_report_age_seconds');
  const queueDepth = gauge('queue_depth', ['state']);
  const heldCount = gauge('queue_held');
  const oldestAge = gauge('queue_oldest_age_seconds');
  const pendingWebhooks = gauge('webhooks_pending');
  const failedWebhooks = gauge('webhooks_failed');
  const oldestWebhookAge = gauge('webhook_oldest_age_seconds');

  let readAt = Number.NEGATIVE_INFINITY;
  let currentScrape: Promise<Exposition> | null = null;
  let currentRead: Promise<void> | null = null;

  async function readStore(): Promise<void> {
    const getAge = (at: number) => Math.max(0, clock.now() - at) / 1000;
    try {
      const { queued, sending, uncertain, held, oldest } = await readQueueStatistics();
      for (const [state, depth] of Object.entries({ queued, sending, uncertain })) queueDepth.set({ state }, depth);
      heldCount.set(held);
      oldestAge.set(oldest === null ? 0 : getAge(oldest.acceptedAt));
      const reportedAt = await readLastFeedbackAt();
      if (reportedAt === null) feedbackAge.remove();
      else feedbackAge.set(getAge(reportedAt));
      const webhooks = await readWebhookStatistics();
      pendingWebhooks.set(webhooks.reduce((sum, { pendingCount }) => sum + pendingCount, 0));
      failedWebhooks.set(webhooks.reduce((sum, { failedCount }) => sum + failedCount, 0));
      const pendingSince = webhooks.flatMap(({ oldestPendingAt }) => oldestPendingAt ?? []);
      oldestWebhookAge.set(getAge(Math.min(clock.now(), ...pendingSince)));
    } catch {
      // The values are removed, because old values would be wrong. An alert reports their absence.
      queueDepth.reset();
      for (const removed of [heldCount, oldestAge, feedbackAge, pendingWebhooks, failedWebhooks, oldestWebhookAge])
        removed.remove();
    }
  }

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

  return {
    meters,
    /** Resolves to the complete exposition. Concurrent scrapes share one exposition. */
    scrape(): Promise<Exposition> {
      currentScrape ??= writeExposition().finally(() => {
        currentScrape = null;
      });
      return currentScrape;
    },
  };
}

type Meters = Metrics['meters'];

function countWebhook({ webhookAttempts, webhookFailures, webhookLabels }: Meters, id: number, result: string): void {
  webhookAttempts.get(result)?.inc();
  if (result === 'succeeded') return;
  if (!webhookLabels.has(id) && webhookLabels.size < MAX_WEBHOOK_SERIES) webhookLabels.set(id, formatWebhookId(id));
  webhookFailures.inc({ webhook: webhookLabels.get(id) ?? 'other' });
}

const COUNTS: { readonly [Type in EventType]?: (meters: Meters, event: EventOf<Type>) => void } = {
  'message.accepted': ({ accepted, acceptSeconds }, { tookMs }) => {
    accepted.inc();
    acceptSeconds.observe(tookMs / 1000);
  },
  'message.replayed': ({ replayed }) => replayed.inc(),
  'message.uncertain': ({ states }) => states.get('uncertain')?.inc(),
  'message.cancelled': ({ states }) => states.get('cancelled')?.inc(),
  'message.delivered': countReported('delivered'),
  'message.bounced': countReported('bounced'),
  'message.complained': countReported('complained'),
  'message.confirmed': ({ reports }) => reports.get('confirmed')?.inc(),
  'message.reported': ({ reports }) => reports.get('recorded')?.inc(),
  'message.signing_failed': countAlarm(SIGNING_ALARM),
  'attempt.ended': ({ attempts, attemptSeconds }, { attempt }) => {
    attempts
      .get(attempt.route ?? DEFAULT_ROUTE)
      ?.get(attempt.outcome.kind)
      ?.inc();
    attemptSeconds.observe(attempt.tookMs / 1000);
  },
  'attempt.alarm_raised': ({ alarms }, { reason }) => alarms.get(reason)?.inc(),
  'request.refused': ({ refused }, { code }) => refused.get(code)?.inc(),
  'request.fields_ignored': ({ ignoredFields }, { count }) => ignoredFields.inc(count),
  'connection.dropped': ({ droppedConnections }, { listener, reason }) => droppedConnections.inc({ listener, reason }),
  'report.repeated': ({ reports }) => reports.get('repeated')?.inc(),
  'report.unrelated': ({ reports }, { count }) => reports.get('unrelated')?.inc(count),
  'report.not_understood': ({ reports }) => reports.get('not-understood')?.inc(),
  'report.refused': ({ refusedReports }, { reason, count }) => refusedReports.inc({ reason }, count),
  'account.locked': countAlarm('account-locked'),
  'domain.failing': countAlarm('domain-failing'),
  'domain.blocked': countAlarm('domain-blocked'),
  'domain.return_path_failing': countAlarm('return-path-failing'),
  'notification.delivered': ({ notifications }, { target }) => notifications.inc({ target, result: 'delivered' }),
  'notification.attempt_failed': ({ notifications }, { target }) => notifications.inc({ target, result: 'retried' }),
  'notification.failed': ({ notifications }, { target }) => notifications.inc({ target, result: 'failed' }),
  'webhook.attempt_succeeded': (meters, { webhookId }) => countWebhook(meters, webhookId, 'succeeded'),
  'webhook.attempt_failed': (meters, { webhookId }) => countWebhook(meters, webhookId, 'failed'),
  'webhook.delivery_failed': (meters, { webhookId }) => countWebhook(meters, webhookId, 'failed'),
  'webhook.disabled': countAlarm('webhook-disabled'),
  'store.committed': ({ commits }, { kind, size, tookMs }) => {
    commits.get(kind)?.size.observe(size);
    commits.get(kind)?.seconds.observe(tookMs / 1000);
  },
  'store.files_lost': countAlarm('database-files'),
};

function countAlarm(reason: (typeof ALARMS)[number]) {
  return ({ alarms }: Meters) => alarms.get(reason)?.inc();
}

function countReported(result: (typeof REPORT_RESULTS)[number]) {
  return ({ reports }: Meters, { reportedBy }: { readonly reportedBy: string | null }) => {
    if (reportedBy !== null) reports.get(result)?.inc();
  };
}

/** Returns the event handlers of the metrics, and their series. The first event creates the metrics (`getMetrics`). */
export function countInMetrics(getMetrics: () => Metrics): { readonly handlers: Handlers; readonly series: Series } {
  const handlers = Object.entries(COUNTS).map(([type, count]) => {
    const countEvent = count as (meters: Meters, event: EventOf<EventType>) => void;
    return [type, (event: EventOf<EventType>) => countEvent(getMetrics().meters, event)];
  });
  return {
    handlers: ignoreSimulated(Object.fromEntries(handlers)),
    series: {
      add({ names, failure = null, confirmationMs = null }) {
        const { states, deferred, bounced, confirmationSeconds } = getMetrics().meters;
        for (const name of names) {
          states.get(name)?.inc();
          if (name === 'deferred') deferred.inc();
        }
        if (failure !== null) bounced.inc({ class: failure.class, category: failure.category });
        if (confirmationMs !== null) confirmationSeconds.observe(Math.max(0, confirmationMs) / 1000);
      },
    },
  };
}

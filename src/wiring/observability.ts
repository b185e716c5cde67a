import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { createResolver } from '../domains/dns.ts';
import { createMailboxProviders } from '../domains/mailbox-providers.ts';
import { ERROR_CODES } from '../http/errors.ts';
import { TOPICS } from '../model/audit.ts';
import type { Handlers } from '../model/events.ts';
import { type Alarm, formatUnmatchedReason, type RefusedReports, SIGNING_ALARM } from '../model/node.ts';
import { formatTarget } from '../model/notification.ts';
import { isCaptureOnly } from '../model/submission.ts';
import type { Events } from '../observability/events.ts';
import { createChangeFeedReader, createLiveUpdates } from '../observability/live-updates.ts';
import { countInMetrics, createMetrics, type Metrics, type RouteMetric } from '../observability/metrics.ts';
import { getErrorText } from '../printing/text.ts';
import { startDeliverabilityCounter } from '../statistics/deliverability.ts';
import { createCountHandlers, startTrafficCounter } from '../statistics/traffic.ts';
import type { OverviewStore, Store } from '../store/contract.ts';
import { createFailureReporter } from './node.ts';

/** Where the SDK of OpenTelemetry registers itself. The API, which has 44 files, is loaded only if there is an SDK. */
const TRACE_API_GLOBAL = Symbol.for('opentelemetry.js.api.1');

export interface ObservabilityParts {
  readonly settings: Settings;
  readonly version: string;
  readonly node: string;
  readonly clock: Clock;
  readonly store: Store;
  readonly readQueueStatistics: OverviewStore['readQueueStatistics'];
  readonly getDroppedLineCount: () => number;
  readonly readRouteStates: () => readonly RouteMetric[];
  readonly events: Events;
}

export type Observability = Awaited<ReturnType<typeof startObservability>>;

/** Each part receives every event since the start of the process. Disposal writes the last rows. */
export async function startObservability(parts: ObservabilityParts) {
  const { settings, version, node, clock, store, events } = parts;
  const traceHandlers =
    TRACE_API_GLOBAL in globalThis ? (await import('../observability/traces.ts')).createTraceHandlers(version) : null;
  const stack = new AsyncDisposableStack();
  // The library of the metrics is loaded for the first counted event or scrape, because with its dependencies it takes
  // as long as a tenth of the start.
  let metrics: Metrics | null = null;
  const getMetrics = (): Metrics => {
    metrics ??= createMetrics({
      ...parts,
      readLastFeedbackAt: () => store.findLastFeedbackAt(),
      notificationTargets: settings.notifyTargets.map(({ text }) => formatTarget(text)),
      readWebhookStatistics: () => store.readWebhookStatistics(),
      refusalReasons: ERROR_CODES,
      routeNames: settings.routes.map((route) => route.name),
    });
    return metrics;
  };
  const reportFailure = createFailureReporter(events.publish, clock);
  const traffic = startTrafficCounter({
    node,
    clock,
    writeRows: store.writeTraffic,
    onWriteError: (error) => reportFailure('write the time series', error),
  });
  stack.defer(() => traffic.stop());
  const mailboxProviders = createMailboxProviders({
    clock,
    resolver: mayQueryDns(settings) ? createResolver(settings.dns, { maxAttempts: 2 }) : null,
    store,
    onError: (error) => reportFailure('look up mailbox providers', error),
  });
  stack.defer(() => mailboxProviders.stop());
  const deliverability = startDeliverabilityCounter({
    node,
    clock,
    writeRows: store.writeDeliverability,
    findMailboxProvider: mailboxProviders.find,
    onWriteError: (error) => reportFailure('write the deliverability figures', error),
  });
  stack.defer(() => deliverability.stop());
  const topics = TOPICS.filter((topic) => topic !== 'inbox' || settings.transport.kind === 'capture');
  const liveUpdates = createLiveUpdates({
    clock,
    topics,
    readChanges: createChangeFeedReader(store, clock.now),
    events,
  });
  stack.defer(() => liveUpdates.stop());
  const status = trackRuntimeStatus();
  const metricCounts = countInMetrics(getMetrics);
  events.subscribe(metricCounts.handlers);
  if (traceHandlers !== null) events.subscribe(traceHandlers);
  events.subscribe(createCountHandlers([metricCounts.series, traffic, deliverability]));
  events.subscribe(status.handlers);
  events.endStartup();
  return {
    scrape: async () => getMetrics().scrape(),
    liveUpdates,
    findMailboxProvider: mailboxProviders.find,
    readAlarms: () => status.readAlarms(clock.now()),
    getRefusedReports: status.readRefusedReports,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** With `capture:` no message is sent, so lookups are made only if POSTRIDER_DNS names a DNS server. */
function mayQueryDns({ routes, dns }: Settings): boolean {
  return !isCaptureOnly(routes) || dns !== null;
}

const ALARM_TTL_MS = 3_600_000;

/** In memory only. */
export function trackRuntimeStatus() {
  const alarms = new Map<string, Alarm>();
  const refusedReports = new Map<string, RefusedReports>();
  function countReports(reason: string, count: number, at: number): void {
    refusedReports.set(reason, { reason, count: (refusedReports.get(reason)?.count ?? 0) + count, lastAt: at });
  }
  const handlers: Handlers = {
    'attempt.alarm_raised': ({ at, reason, attempt }) => {
      const { route } = attempt;
      const alarm = { reason, text: attempt.outcome.reply.text, lastAt: at };
      alarms.set(reason, route === undefined ? alarm : { ...alarm, route });
    },
    'message.signing_failed': ({ at, error }) => {
      const text = getErrorText(error);
      alarms.set(SIGNING_ALARM, { reason: SIGNING_ALARM, text, lastAt: at });
    },
    // The reasons are a fixed set of texts, so the number of map entries is limited.
    'report.refused': ({ at, reason, count = 1 }) => countReports(reason, count, at),
    'report.unrelated': ({ at, source, count = 1 }) => {
      if (source !== undefined) countReports(formatUnmatchedReason(source), count, at);
    },
  };
  return {
    handlers,
    readRefusedReports: (): readonly RefusedReports[] => [...refusedReports.values()],
    readAlarms(now: number): readonly Alarm[] {
      const recentAlarms = [...alarms.values()].filter(({ lastAt }) => now - lastAt < ALARM_TTL_MS);
      return recentAlarms.sort((a, b) => b.lastAt - a.lastAt);
    },
  };
}
